"""`dbdyno replicate REPORT`: runs the experiment of a report here, and says whether its effects replicate.

Another person's experiment file can run commands (hooks, programs of a server, settings that name
programs), so nothing starts without a confirmation.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from dbdyno.commands.choices import TextFormat
from dbdyno.commands.compare import Source, measure
from dbdyno.commands.diff import replication, require_comparable, show
from dbdyno.commands.disclosure import agree
from dbdyno.commands.option_document import as_toml, write_new
from dbdyno.experiment.file_reading import parse_toml
from dbdyno.experiment.model import SqlWorkload
from dbdyno.experiment.reading import read, read_bytes
from dbdyno.problem import ExitCode, Problem
from dbdyno.report.replication import Published, read_published
from dbdyno.runs.comparable import Side, differences, side
from dbdyno.runs.replication import Names
from dbdyno.store import StoreProblem
from dbdyno.store.run import experiment_hash, stored_experiment
from dbdyno.terminal.messages import Output
from dbdyno.terminal.streams import on_standard_error

NAMES = Names("the report", "this run", "the published effect")
# Keys of a variant's tables that name a file, besides those of its workloads.
_FILES = ("config", "tls_ca", "tls_certificate", "tls_key", "server_public_key")


@dataclass(frozen=True)
class Options:
    """The options of the command, which are those of `compare`."""

    results: Path
    assignments: Sequence[str]
    # Do not ask before the experiment runs.
    yes: bool
    resume: bool
    no_report: bool
    share: bool
    output: TextFormat


def replicate(page: Path, options: Options) -> None:
    """Repeat the comparison of a report. Raises Problem; exits with the code of `compare`."""
    published = read_published(page)
    first = _published_side(page, published)
    assignments = [*published.assignments, *options.assignments]
    text = _source(published, page)
    _require_same(first, text, published.profile, assignments)
    source = Source(write_new(text, Path(), first.experiment.name), published.profile, assignments)
    print(f"experiment file: {source.file}", file=sys.stderr)
    experiment = read(source.file, source.profile, assignments)
    agree(experiment, str(source.file), yes=options.yes, changes=_changes(source))
    as_json = options.output is TextFormat.JSON
    with on_standard_error() if as_json else contextlib.nullcontext():
        run, code = measure(
            source,
            experiment,
            options.results,
            share=options.share,
            output=Output(writes_report=not options.no_report),
            resume=options.resume,
        )
    second = side(run, NAMES.second)
    show(replication(first, second, require_comparable(first, second), NAMES), options.output, NAMES)
    raise typer.Exit(code)


def _published_side(page: Path, published: Published) -> Side:
    """The report as one of two runs. Raises Problem if its experiment has another hash."""
    try:
        experiment = stored_experiment(published.experiment)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreProblem(
            f"the experiment of {page} cannot be read: {str(error).splitlines()[0]}",
            "Use the version of dbdyno that wrote the report",
        ) from error
    if len(experiment.variants) < 2:
        raise Problem(f"{page} has one variant, so there is no effect to replicate", "Use dbdyno run")
    if any(variant.server.config is not None for variant in experiment.variants):
        # The hash covers the content of these files.
        _refuse_files(page, [str(v.server.config) for v in experiment.variants if v.server.config])
    if experiment_hash(published.experiment, experiment) != published.hash:
        raise Problem(
            f"{page} was changed: its experiment is not the one whose hash was taken before the first trial "
            f"({published.hash[:12]}…)",
            "Get the report again from its source",
            ExitCode.NOT_COMPARABLE,
        )
    return Side(
        NAMES.first, str(page), experiment, published.verdict, published.environment, published.servers
    )


def _source(published: Published, page: Path) -> str:
    """The experiment file to write: that of the report, with the SQL of its files in it. Raises Problem if it
    needs files that the report does not have.
    """
    try:
        document = parse_toml(published.source.encode())
    except ValueError as error:
        raise Problem(f"{page}: its experiment file is invalid TOML: {error}") from error
    resolved = stored_experiment(published.experiment)
    by_title = {workload.title: workload for workload in resolved.workloads}
    missing: list[str] = []
    has_changed = False
    workloads = [one for one in _tables(document.get("workload")) if isinstance(one, dict)]
    for workload in workloads:
        model = by_title.get(str(workload.get("label", workload.get("name"))))
        if "file" in workload and isinstance(model, SqlWorkload):
            statements = _without_nulls(model.model_dump(mode="json", exclude_defaults=True))
            workload.clear()
            workload.update(statements)
            has_changed = True
        missing += [str(workload[key]) for key in ("script", "file") if key in workload]
        replay = workload.get("replay")
        missing += [str(replay.get("file"))] if isinstance(replay, dict) else []
    for variant in _tables(document.get("variant")):
        missing += _files(variant)
    if missing:
        _refuse_files(page, missing)
    return as_toml(document) if has_changed else published.source


def _files(table: Any) -> Iterator[str]:
    """The files that the tables of a variant name."""
    if isinstance(table, dict):
        for key, value in table.items():
            if isinstance(value, str) and key in (*_FILES, "script", "file"):
                yield value
            elif key != "variables":
                yield from _files(value)


def _refuse_files(page: Path, names: Sequence[str]) -> None:
    listed = ", ".join(dict.fromkeys(names))
    raise Problem(
        f"the comparison of {page} needs files that the report does not have: {listed}",
        "Ask its author for them and for the experiment file; then compare, and use dbdyno diff on both runs",
    )


def _require_same(first: Side, source: str, profile: str | None, assignments: Sequence[str]) -> None:
    """Raise Problem if the file, as this dbdyno reads it, is another experiment than that of the report."""
    experiment = read_bytes(source.encode(), Path(f"{first.experiment.name}.toml"), profile, assignments)
    here = Side("the file here", "", experiment, first.verdict, {}, {})
    if refusals := differences(first, here).refusals:
        listed = "".join(f"\n  {text}" for text in refusals)
        raise Problem(
            f"{first.place}: its experiment file is not the experiment that was run:{listed}",
            "The run was changed by options that an older dbdyno did not store, or by --set here",
            ExitCode.NOT_COMPARABLE,
        )


def _changes(source: Source) -> str:
    """The options that change the experiment file."""
    profile = [] if source.profile is None else [f"--profile {source.profile}"]
    return " ".join([*profile, *(f"--set {text}" for text in source.assignments)])


def _tables(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _without_nulls(value: Any) -> Any:
    """TOML has no null; a key without a value has its default."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value
