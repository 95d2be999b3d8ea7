"""`dbdyno replicate REPORT`: runs the experiment of a report here, and says whether its effects replicate.

Another person's experiment file can run commands (hooks, programs of a server, settings that name
programs), so nothing starts without a confirmation.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.messages import Output
from dbdyno.terminal.streams import on_standard_error

if TYPE_CHECKING:
    from dbdyno.commands.comparison import Source
    from dbdyno.report.replication import Published
    from dbdyno.runs.comparable import Side

# Keys of a variant's tables that name a file, besides those of its workloads.
_FILES = ("config", "tls_ca", "tls_certificate", "tls_key", "server_public_key")


def replicate(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    report: Annotated[
        Path, typer.Argument(metavar="REPORT", help="An HTML report of dbdyno compare.", show_default=False)
    ],
    results: options.Results = options.RESULTS,
    assignments: options.Assignments = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. Read the experiment file of the report first.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this experiment.")
    ] = False,
    no_report: options.NoReport = False,
    share_machine: options.ShareMachine = False,
    _verbose: options.Verbose = False,
    result_format: options.ResultFormat = "text",
) -> None:
    """Repeat the comparison of a report on this machine, and say whether its effects replicate."""
    from dbdyno.commands.comparison import Source, agree, measure
    from dbdyno.commands.diff import show
    from dbdyno.commands.option_document import write_new
    from dbdyno.experiment.reading import read
    from dbdyno.report.replication import read_published
    from dbdyno.runs.comparable import require_comparable, side
    from dbdyno.runs.replication import Names, compare_runs
    from dbdyno.store.older_versions import current_assignment

    names = Names("the report", "this run", "the published effect")
    published = read_published(report)
    first = _published_side(report, published, names.first)
    changes = [*map(current_assignment, published.assignments), *(assignments or ())]
    text = _source(published, report)
    _require_same(first, text, published.profile, changes)
    source = Source(write_new(text, Path(), first.experiment.name), published.profile, changes)
    print(f"experiment file: {source.file}", file=sys.stderr)
    experiment = read(source.file, source.profile, changes)
    agree(experiment, str(source.file), yes=yes, changes=_changes(source))
    as_json = result_format == "json"
    with on_standard_error() if as_json else contextlib.nullcontext():
        run, code = measure(
            source,
            experiment,
            results,
            share=share_machine,
            output=Output(writes_report=not no_report),
            resume=resume,
        )
    second = side(run, names.second)
    notes = require_comparable(first, second)
    show(compare_runs(first, second, notes, names), result_format, names)
    raise typer.Exit(code)


def _published_side(page: Path, published: Published, name: str) -> Side:
    """The report as one of two runs. Raises Problem if its experiment has another hash."""
    from dbdyno.runs.comparable import Side
    from dbdyno.store import StoreProblem
    from dbdyno.store.run import experiment_hash, stored_experiment

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
    return Side(name, str(page), experiment, published.verdict, published.environment, published.servers)


def _source(published: Published, page: Path) -> str:
    """The experiment file to write: that of the report, with the SQL of its files in it. Raises Problem if it
    needs files that the report does not have.
    """
    from dbdyno.commands.option_document import as_toml
    from dbdyno.experiment.file_reading import parse_toml
    from dbdyno.experiment.model import SqlWorkload
    from dbdyno.store.older_versions import current_file
    from dbdyno.store.run import stored_experiment

    try:
        written = parse_toml(published.source.encode())
    except ValueError as error:
        raise Problem(f"{page}: its experiment file is invalid TOML: {error}") from error
    document = current_file(written)
    resolved = stored_experiment(published.experiment)
    by_title = {workload.title: workload for workload in resolved.workloads}
    missing: list[str] = []
    has_changed = document != written
    workloads = [table for table in _tables(document.get("workload")) if isinstance(table, dict)]
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
    from dbdyno.experiment.reading import read_bytes
    from dbdyno.runs.comparable import Side, differences

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
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    return [_without_nulls(entry) for entry in value] if isinstance(value, list) else value
