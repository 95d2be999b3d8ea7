"""The experiments of a bisection: which variants a file has for a version or a commit, and those of a step.

::

    variants    the [[variant]] tables of the file from the good one to the bad one
    versions    one [[variant]] as a template, with `server.version`, or with {candidate} replaced
    commits     one [[variant]] as a template, with {candidate} and {build} replaced
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno.experiment.errors import did_you_mean
from dbdyno.experiment.model import JUDGING_KEYS, Experiment
from dbdyno.experiment.reading import from_document
from dbdyno.experiment.workload import workload_title
from dbdyno.problem import Problem

CANDIDATE, BUILD = "{candidate}", "{build}"
# Ends the name of the experiments of a bisection, so that their runs have a folder of their own.
SUFFIX = "-bisect"

Document = dict[str, Any]


def require_suitable(document: Document) -> None:
    """Raise Problem for an experiment that cannot be bisected."""
    if document.get("factor"):
        raise Problem(
            "a bisection cannot use an experiment with [factor]",
            "Write a file with one [[variant]], or with one for each version",
        )


def variant_names(document: Document) -> list[str]:
    """The names of the file's variants."""
    return [str(entry["name"]) for entry in document["variant"] if "name" in entry]


def find_template(document: Document, good: str) -> Document:
    """The variant from which those of all versions are step: the only one, or the one named like the good
    version. Raises Problem.
    """
    variants: list[Document] = document["variant"]
    named = [variant for variant in variants if variant.get("name") == good]
    if len(variants) == 1 or named:
        return (named or variants)[0]
    raise Problem(
        f"the file has {len(variants)} variants, and none of them is named {good}",
        "Leave one [[variant]], of which dbdyno makes those of all versions",
    )


def has_placeholder(template: Any, *placeholders: str) -> bool:
    """Whether a text in the variant contains one of these."""
    if isinstance(template, Mapping):
        return any(has_placeholder(entry, *placeholders) for entry in template.values())
    if isinstance(template, list):
        return any(has_placeholder(entry, *placeholders) for entry in template)
    return isinstance(template, str) and any(placeholder in template for placeholder in placeholders)


def fill(template: Document, name: str, build: str = "") -> Document:
    """The variant of one version: its name, and the placeholders replaced."""

    def replaced(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: replaced(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [replaced(entry) for entry in value]
        return value.replace(CANDIDATE, name).replace(BUILD, build) if isinstance(value, str) else value

    filled: Document = replaced(copy.deepcopy(template))
    return {**filled, "name": name}


def with_server(template: Document, **keys: str) -> Document:
    """The variant with these keys of its server."""
    return {**template, "server": {**template.get("server", {}), **keys}}


def choose_workload(document: Document, title: str | None) -> str:
    """The title of the workload of the bisection, by default the first. Raises Problem."""
    titles = [workload_title(entry) for entry in document["workload"]]
    if title is not None and title not in titles:
        raise Problem(f"--workload {title}: there is no such workload", did_you_mean(title, titles))
    return title or titles[0]


def step_document(
    document: Document, variants: Sequence[Document], workload: str, max_blocks: int
) -> Document:
    """The file of one step: these variants on one workload, block after block."""
    stop = {"max_blocks": max_blocks, "max_time": "24h"}
    return comparison_document(document, SUFFIX, variants, workload, {"stop": stop})


def comparison_document(
    document: Document, suffix: str, variants: Sequence[Document], workload: str, blocks: Document
) -> Document:
    """The file of another comparison with the load of this file: these variants on one workload, by the first
    metric. `suffix` ends its name, and `blocks` are the keys of [design] that say how many there are.
    """
    changed = copy.deepcopy(document)
    changed["experiment"]["name"] = f"{changed['experiment'].get('name', '')}{suffix}"
    others = {workload_title(entry) for entry in changed["workload"]} - {workload}
    changed["workload"] = [entry for entry in changed["workload"] if workload_title(entry) == workload]
    design = changed.get("design", {})
    metrics = design.get("metrics")
    changed["design"] = {
        **{key: value for key, value in design.items() if key not in JUDGING_KEYS},
        **({"metrics": metrics[:1]} if isinstance(metrics, list) else {}),
        **blocks,
    }
    changed["variant"] = [_on_workload(variant, others) for variant in variants]
    return changed


def with_unequal_software(document: Document) -> Document:
    """The file for commits, of which dbdyno does not know the versions: check P03 lets them differ."""
    return {
        **document,
        "override": {"P03": "the commits may differ in version", **document.get("override", {})},
    }


def read_step(step: Document, path: Path) -> Experiment:
    """The experiment of a step of the file `path`. Raises InvalidExperiment."""
    return from_document(copy.deepcopy(step), str(path), path.parent)


def _on_workload(variant: Document, others: set[str]) -> Document:
    """The variant without its changes of other workloads."""
    changes = variant.get("workload")
    if not isinstance(changes, Mapping):
        return variant
    kept = {
        key: value for key, value in changes.items() if key not in others or not isinstance(value, Mapping)
    }
    return {**variant, "workload": kept}
