"""The experiment that confirms a change in a history: it compares a variant's servers of two stored runs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dbdyno.experiment.bisection import Document, comparison_document, with_server
from dbdyno.experiment.model import JUDGING_KEYS, Design, Experiment, Variant
from dbdyno.experiment.reading import read_document
from dbdyno.problem import Problem
from dbdyno.run.stopping import finished_blocks
from dbdyno.runs.history import SUFFIX, confirmed_runs, confirming_blocks, variant_name
from dbdyno.server_record import ServerRecord
from dbdyno.servers import describe_server
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.sources.installed import programs_folder
from dbdyno.store import Run
from dbdyno.store.listing import list_runs
from dbdyno.store.several_runs import HistoryChange, HistorySeries

# Earlier runs whose blocks say how much blocks vary.
RUNS = 10
# What is needed where both runs name the same server -> kind of server.
_NEEDED = {
    "remote": "A URL has one version at a time: give each version a server and a URL of its own",
    "command": "The commands start one version: give each version commands and a URL of its own",
    "docker": "Keep the image of each run, under a tag of its own",
    "local": "Keep each build in a folder of its own, and name it with server.basedir or server.version",
}


def confirming_experiment(
    series: HistorySeries, change: HistoryChange, before: Run, after: Run, recent: Sequence[Run]
) -> Experiment:
    """The comparison of a series' variant as it was in the runs around a change. `recent` are runs whose
    blocks say how much blocks vary.

    Raises Problem if the stored experiments do not name two servers, or if one is not available any more.
    """
    of_before, of_after = (_variant(run, series.variant, series.workload) for run in (before, after))
    numbers = change.last_before, change.first_after
    where = f"the change between run {numbers[0]} and run {numbers[1]}"
    if of_before.server == of_after.server:
        raise Problem(
            f"{where} cannot be confirmed: the experiment files of both runs name the same server for "
            f"{series.variant}",
            _NEEDED[of_after.server.kind],
        )
    for variant, number in zip((of_before, of_after), numbers, strict=True):
        try:
            describe_server(variant)
        except ServerProblem as problem:
            raise Problem(
                f"{where} cannot be confirmed: the server of run {number} is not available any more: "
                f"{problem.text}",
                problem.fix,
            ) from problem
    least = min(change.interval_percent, key=abs)
    step, smallest = (math.log1p(percent / 100.0) for percent in (change.change_percent, least))
    blocks = confirming_blocks(step, smallest, [_ratios(run, series) for run in recent[-RUNS:]])
    experiment = after.experiment()
    alike = {
        "name": f"{experiment.name}{SUFFIX}",
        "question": f"Did {series.variant} change between run {numbers[0]} and run {numbers[1]}?",
        "workloads": tuple(entry for entry in experiment.workloads if entry.title == series.workload),
        "variants": tuple(
            entry.model_copy(update={"name": variant_name(series.variant, number)})
            for entry, number in zip((of_before, of_after), numbers, strict=True)
        ),
        "design": Design(**_design(experiment), blocks=blocks),
    }
    return Experiment(**{**dict(experiment), **alike})


def confirming_document(experiment: Experiment, before: Run, after: Run) -> Document:
    """The file of a confirming experiment, from those of both runs. Raises InvalidExperiment if dbdyno does
    not read them any more.
    """
    pair = confirmed_runs(experiment)
    assert pair is not None, "the caller has a confirming experiment"
    documents = [
        read_document(run.path / "experiment.toml", run.profile, run.assignments) for run in (before, after)
    ]
    tables = []
    for run, document, variant in zip((before, after), documents, experiment.variants, strict=True):
        table = next(table for table in document["variant"] if table["name"] == pair[0])
        changes = {key: str(value) for key, value in _server_changes(run, pair[0]).items()}
        tables.append({**with_server(table, **changes), "name": variant.name})
    blocks, workload = {"blocks": experiment.design.blocks}, experiment.workloads[0].title
    document = comparison_document(documents[1], SUFFIX, tables, workload, blocks)
    document["experiment"]["question"] = experiment.question
    return document


def begun_confirmation(experiment: Experiment, results: Path) -> Experiment | None:
    """The experiment of the newest confirmation, if it compares the same servers and is not finished: since
    it began, other runs may have changed the number of its blocks.
    """
    stored = (path for path in list_runs(results, experiment.name) if (path / "experiment.json").is_file())
    if (path := next(stored, None)) is None:
        return None
    run = Run.open(path)
    with run.reading():
        begun = run.experiment()
        is_finished = len(finished_blocks(run)) >= begun.design.blocks
    titles = [[workload.title for workload in of.workloads] for of in (begun, experiment)]
    is_same = confirmed_runs(begun) == confirmed_runs(experiment) and titles[0] == titles[1]
    return begun if is_same and not is_finished else None


def _design(experiment: Experiment) -> dict[str, Any]:
    """The design without what belongs to the verdicts of the experiment."""
    compared_keys = (*JUDGING_KEYS, "order_seed")
    kept = {key: value for key, value in dict(experiment.design).items() if key not in compared_keys}
    return {**kept, "metrics": experiment.design.metrics[:1]}


def _variant(run: Run, name: str, workload: str) -> Variant:
    """A variant of a run with the server that the run had."""
    variant = run.experiment().variant(name)
    workloads = tuple(entry for entry in variant.workloads if entry.title == workload)
    server = variant.server.model_copy(update=_server_changes(run, name))
    return variant.model_copy(update={"server": server, "workloads": workloads, "levels": {}})


def _server_changes(run: Run, name: str) -> dict[str, str | Path]:
    """The keys that name the server which a variant of a run had: the version of an image's tag, or of a
    version's first digits, may be another one today.
    """
    server = run.experiment().variant(name).server
    records = [trial.server for trial in run.trials() if trial.meta["variant"] == name]
    record = next(filter(None, records), ServerRecord())
    image = record.get("identity", {}).get("image_id")
    version = re.match(r"\d+(\.\d+)*", str(record.get("version", "")))
    if server.kind == "docker" and image:
        return {"image": str(image)}
    if server.basedir is not None:
        # The file may have a path that begins in its own folder.
        return {"basedir": server.basedir}
    if server.kind != "local" or not server.version or not version:
        return {}
    changes: dict[str, str | Path] = {"version": version[0]}
    # Two versions differ by their programs.
    with suppress(ServerProblem):
        if (folder := programs_folder(server.model_copy(update=changes))) is not None:
            changes["basedir"] = folder
    return changes


def _ratios(run: Run, series: HistorySeries) -> list[float]:
    """The log ratios of the blocks of one run of a series."""
    judged = run.judge_files()
    entries = judged[1].comparisons if judged else ()
    return [
        math.log1p(percent / 100.0)
        for entry in entries
        if (entry.variant, entry.workload) == (series.variant, series.workload)
        for percent in entry.curve.percent.values()
        if percent is not None and percent > -100.0
    ]
