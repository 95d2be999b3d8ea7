"""What a report carries so that `dbdyno replicate` can repeat the comparison: the experiment and its effects.

The page has it as JSON in a `<template>`, whose content browsers neither show nor execute. In JSON `<`, `>`
and `&` can be written as escapes, so no content can end the element.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from markupsafe import Markup
from pydantic import Field, ValidationError

from dbdyno.experiment.file_reading import read_file
from dbdyno.experiment.server import has_password
from dbdyno.finding import FreeForm
from dbdyno.problem import ExitCode, Problem
from dbdyno.server_record import ServerRecord
from dbdyno.store import Run, StoreProblem, files
from dbdyno.store.document import DocumentPart
from dbdyno.store.older_versions import current_verdict
from dbdyno.store.verdict import VerdictFile

# Begin and end of the element in the page.
BEGIN, END = '<template id="dbdyno-replication">', "</template>"
# The largest page that is read; a report of 10 loads, 3 workloads and 20 blocks has less than 2 MB.
PAGE_BYTES_MAX = 64 << 20
# Facts about the machine that the page carries, besides memory_bytes.
_HOST = ("cpu_model", "cpus", "architecture", "system", "kernel", "cpu_governor", "memory_bytes")
_URL = re.compile(r"\w+://[^\s'\"<>]+")
_AGAIN = "dbdyno report RUN, by the owner of the run, renders the page again"


class Published(DocumentPart):
    """The experiment of a report and its effects."""

    format_version: Annotated[Literal[2], Field(alias="format")] = 2
    """Version of this format."""
    run: str
    """Folder's name of the run."""
    hash: str
    """SHA-256 of `experiment`, taken before the first trial."""
    source: str
    """The experiment file."""
    source_sha256: str
    """SHA-256 of the experiment file."""
    profile: str | None
    """The profile that was chosen."""
    assignments: list[str]
    """The keys that the command line changed."""
    experiment: dict[str, Any]
    """The experiment with every default filled in."""
    environment: dict[str, Any]
    """The machine, and the versions of dbdyno and its engine."""
    servers: dict[str, str]
    """Variant -> product and version of its server."""
    verdict: VerdictFile
    """The verdict, without findings."""


def embedded(run: Run, verdict: VerdictFile, servers: Mapping[str, ServerRecord]) -> Markup:
    """The content of the element for a run; a JSON object with the key `refusal` if it must not leave this
    machine. Raises StoreProblem.
    """
    with files.open_regular(run.path / "experiment.toml") as file:
        source = file.read()
    published = Published(
        run=run.path.name,
        hash=run.hash,
        source=source.decode(errors="replace"),
        source_sha256=hashlib.sha256(source).hexdigest(),
        profile=run.profile,
        assignments=run.assignments,
        experiment=run.resolved,
        environment=_facts(run.environment),
        servers={
            name: f"{server['product']} {server['version']}"
            for name, server in servers.items()
            if "product" in server and "version" in server
        },
        verdict=_effects(verdict),
    ).model_dump(mode="json")
    if run.judged_path != run.path:
        text = "its judgement was chosen when the data had been seen; the planned one has another report"
        published = {"format": 2, "refusal": text}
    if any(_has_account(url) for url in _URL.findall(json.dumps(published, ensure_ascii=False))):
        text = "its servers are named by URLs with an account, which a report does not carry on"
        published = {"format": 2, "refusal": text}
    content = json.dumps(published, separators=(",", ":"))
    for character in "<>&":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return Markup(content)  # noqa: S704 — without the characters that HTML knows.


def read_published(path: Path) -> Published:
    """What a local report carries. Raises Problem if it carries nothing, or if its experiment is not the one
    whose hash was taken.
    """
    try:
        page = read_file(path, PAGE_BYTES_MAX)
    except OSError as error:
        raise Problem(
            f"{path} cannot be read: {error.strerror}",
            "Give the path of a report, an HTML page on this machine",
        ) from error
    _, begin, rest = page.partition(BEGIN.encode())
    content, end, after = rest.partition(END.encode())
    if not begin:
        raise Problem(f"{path} carries no experiment: it is no report, or one of an older dbdyno", _AGAIN)
    if not end or BEGIN.encode() in after:
        raise _damaged(path, "its experiment is cut off, or there more than once")
    try:
        value = json.loads(content, parse_constant=_refuse_constant)
        if isinstance(value, dict) and isinstance(refusal := value.get("refusal"), str):
            raise Problem(
                f"the comparison of {path} cannot be repeated: {refusal}",
                "Write the experiment with servers of your own, and compare the two runs with dbdyno diff",
            )
        if isinstance(value, dict) and value.get("format") == 1 and isinstance(value.get("verdict"), dict):
            value |= {"format": 2, "verdict": current_verdict(value["verdict"])}
        published = Published.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise _damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if hashlib.sha256(published.source.encode()).hexdigest() != published.source_sha256:
        raise _damaged(path, "the experiment file is not the one whose hash the page has")
    return published


def _damaged(path: Path, why: str) -> Problem:
    return StoreProblem(
        f"{path} was changed or damaged: {why}",
        "Get the report again from its source",
        ExitCode.NOT_COMPARABLE,
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _has_account(url: str) -> bool:
    """Whether a URL names a user, or may contain a password."""
    place = re.split(r"[/?#\\]", url.partition("://")[2], maxsplit=1)[0]
    return "@" in place or has_password(url)


def _facts(environment: FreeForm) -> dict[str, Any]:
    """What a replication compares; the command line and the machine's name stay here."""
    host, versions = environment.get("host"), environment.get("versions")
    return {
        "host": {key: host[key] for key in _HOST if key in host} if isinstance(host, Mapping) else {},
        "versions": dict(versions) if isinstance(versions, Mapping) else {},
    }


def _effects(verdict: VerdictFile) -> VerdictFile:
    """The verdict without what a replication does not compare."""
    nothing = {"secondary_metrics": None, "order": None, "highest_throughput": None, "capacity": None}
    comparisons = [comparison.model_copy(update=nothing) for comparison in verdict.comparisons]
    return verdict.model_copy(
        update={"comparisons": comparisons, "checks": [], "scaling": None, "gate": None, "stopping": None}
    )
