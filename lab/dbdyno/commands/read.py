"""`dbdyno read FILE…`: prints the results in other people's documents, what they show, and their mistakes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import typer

from dbdyno import result_text
from dbdyno.commands.choices import ReadFormat
from dbdyno.commands.init import write_translation
from dbdyno.languages import ENGLISH, Translator, translator
from dbdyno.problem import ExitCode, Problem
from dbdyno.reading.checks import examine, examine_comparison
from dbdyno.reading.document import Document, load, parse, read_bytes
from dbdyno.reading.limits import LISTED_MAX
from dbdyno.reading.reading import Reading, combine
from dbdyno.reading.reading import read as read_document
from dbdyno.reading.record import ReadDocument, ReadDoubt, ReadFigure, ReadOmission, ReadVariant, record
from dbdyno.reading.result import FIGURE_TEXTS
from dbdyno.reading.translation import translate_reading
from dbdyno.store.listing import Imported
from dbdyno.terminal.console import Column, SafeConsole, fit, heading, line, print_text
from dbdyno.terminal.messages import Output
from dbdyno.text import compose, join, join_some

_READABLE = (
    "dbdyno read reads outputs of sysbench, pgbench, mysqlslap, mariadb-slap, HammerDB, go-tpc, "
    "BenchmarkSQL, tpcc-mysql and YCSB; tables of text, Markdown, HTML or CSV whose headings name figures "
    "(TPS, QPS, p95 latency); calls of sysbench, pgbench and mysqlslap in scripts and jobs; and settings of "
    "servers"
)
_ROWS_PRINTED = 500
# The figures that the tables have, if any result of the variant has them.
_COLUMNS = ("tps", "qps", "nopm", "tpm", "mean_s", "mean_ms", "p95_ms", "p99_ms", "max_ms", "errors")


def read(
    paths: Sequence[Path],
    to_experiment: Path | None,
    results: Path | None,
    output: ReadFormat,
    language: str,
) -> NoReturn:
    """Print what was read, store it below `results` if that is a folder, and exit with 4 if a mistake forbids
    a comparison. Raises Problem.
    """
    readings = [read_document(_load(path)) for path in paths]
    if to_experiment is not None:
        _write_experiment(readings, to_experiment)
    translate = translator(language)
    records = [record(reading, examine(reading)) for reading in readings]
    nothing = [one.file for one, reading in zip(records, readings, strict=True) if _is_empty(reading, one)]
    if results is not None:
        for path, reading, one in zip(paths, readings, records, strict=True):
            source = reading.document.source.encode()
            stored = Imported.create(results, path.stem, source, one.model_dump(mode="json"))
            print(f"stored in {stored.path}", file=sys.stderr)
    compared = combine(readings)
    if compared is not None:
        records.append(record(compared, examine_comparison(compared)))
    if output is ReadFormat.JSON:
        answer = [one.model_dump(mode="json") for one in records]
        print(json.dumps(answer[0] if len(answer) == 1 else answer, indent=1, ensure_ascii=False))
    else:
        for number, one in enumerate(records):
            if number:
                print()
            # The tables of a comparison of files are those of the files.
            shown = one.model_copy(update={"variants": []}) if number == len(readings) else one
            if output is ReadFormat.MD:
                print("\n".join(_markdown(shown, translate)))
            else:
                _print(shown, translate)
    if nothing:
        raise Problem(f"nothing was read from {', '.join(nothing)}", _READABLE)
    is_stopped = any(finding.level == "stop" for one in records for finding in one.findings)
    raise typer.Exit(ExitCode.NOT_COMPARABLE if is_stopped else ExitCode.DONE)


def _is_empty(reading: Reading, one: ReadDocument) -> bool:
    """Whether a document has nothing that can be read."""
    return not (reading.results or reading.calls or reading.settings or reading.claims or one.findings)


def show_stored(stored: Imported, output: Output) -> None:
    """Print a stored document as `output` says. Raises StoreProblem."""
    if output.as_json:
        print(json.dumps(stored.reading, indent=1, ensure_ascii=False))
    elif output.language == ENGLISH:
        _print(ReadDocument.model_validate(stored.reading), translator(ENGLISH))
    else:
        # The record has English texts only.
        reading = read_document(load(stored.source))
        _print(record(reading, examine(reading)), translator(output.language))


def _load(path: Path) -> Document:
    """A document. Raises Problem."""
    if str(path) == "-":
        return parse(read_bytes(sys.stdin.buffer, "-"), "-")
    return load(path)


def _print(one: ReadDocument, translate: Translator) -> None:
    console = SafeConsole(highlight=False)
    print_text(console, one.file, "bold")
    for omission in one.left_out:
        print_text(console, translate(_omission(omission)), "yellow", indent=2)
    for variant in one.variants:
        name, titles, *rows = _table(variant, translate)
        print_text(console, name, "bold")
        print_text(console, titles, "dim")
        # Many at once, because a document may have 25,000 results, and each call takes its time.
        for start in range(0, len(rows), _ROWS_PRINTED):
            print_text(console, "\n".join(rows[start : start + _ROWS_PRINTED]))
    for text in _calls(one):
        print_text(console, translate(text), indent=2)
    print_text(console, translate(one.verdict), "bold")
    for doubt in one.doubts:
        print_text(console, translate(_doubt(doubt)), "yellow", indent=2)
    for finding in one.findings:
        lines = ", ".join(map(str, finding.lines))
        where = (
            compose("line {lines}", lines=lines)
            if len(finding.lines) == 1
            else compose("lines {lines}", lines=lines)
        )
        text = join(
            " ", (finding.code, finding.level, join("", (where, ":")), _message(finding.text, finding.fix))
        )
        print_text(console, translate(text), "red" if finding.level == "stop" else "", indent=2)


def _calls(one: ReadDocument) -> list[str]:
    """The calls of a document without results, in a line for each program and test."""
    if one.variants:
        return []
    lines: list[str] = [
        compose("{call} (line {line})", call=call.sentence, line=call.lines[0])
        if len(call.lines) == 1
        else compose(
            "{call} (lines {lines})",
            call=call.sentence,
            lines=join_some([str(line) for line in call.lines], LISTED_MAX),
        )
        for call in one.calls[:LISTED_MAX]
    ]
    more = len(one.calls) - len(lines)
    return [*lines, compose("and {number} more", number=more)] if more else lines


def _omission(one: ReadOmission) -> str:
    return compose("line {line}: {text}. The rest is read.", line=one.line, text=one.text)


def _doubt(one: ReadDoubt) -> str:
    return compose("line {line}: {text}.", line=one.line, text=one.text)


def _message(text: str, fix: str) -> str:
    return join(" ", [join("", (part, ".")) for part in (text, fix) if part])


def _table(variant: ReadVariant, translate: Translator) -> Iterator[str]:
    """The lines of the table of a variant: its name, the headings, and a row for each result."""
    names = [name for name in _COLUMNS if any(name in one.figures for one in variant.results)]
    columns = [Column(translate(compose("connections")), right=True)]
    columns += [Column(translate(FIGURE_TEXTS[name]), right=True) for name in names]
    columns.append(Column(translate(compose("line")), right=True))
    rows = [
        [
            result_text.MISSING if one.connections is None else str(one.connections),
            *(
                f"{one.figures[name].value:g}" if name in one.figures else result_text.MISSING
                for name in names
            ),
            str(one.lines[0]),
        ]
        for one in variant.results
    ]
    fit(columns, rows)
    of = f" ({variant.workload})" if variant.workload else ""
    yield (variant.name or translate(compose("a variant that the document does not name"))) + of
    yield f" {heading(columns)}"
    yield from (f" {line(columns, row)}" for row in rows)


def _number(figure: ReadFigure | None) -> str:
    return result_text.MISSING if figure is None else f"{figure.value:g}"


def _markdown(one: ReadDocument, translate: Translator) -> Iterator[str]:
    """The same as Markdown."""
    yield f"# {_escape(one.file)}"
    if one.left_out:
        yield ""
    yield from (f"- {_escape(translate(_omission(omission)))}" for omission in one.left_out)
    for variant in one.variants:
        name, titles, *rows = _table(variant, translate)
        yield ""
        yield f"## {_escape(name)}"
        yield ""
        split = [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in (titles, *rows)]
        yield "| " + " | ".join(split[0]) + " |"
        yield "|" + "--:|" * len(split[0])
        yield from ("| " + " | ".join(row) + " |" for row in split[1:])
    yield ""
    if calls := _calls(one):
        yield from (f"- {_escape(translate(text))}" for text in calls)
        yield ""
    yield f"**{_escape(translate(one.verdict))}**"
    if one.findings or one.doubts:
        yield ""
    yield from (f"- {_escape(translate(_doubt(doubt)))}" for doubt in one.doubts)
    for finding in one.findings:
        lines = ", ".join(map(str, finding.lines))
        text = _escape(translate(_message(finding.text, finding.fix)))
        yield f"- **{finding.code}** {finding.level}, {lines}: {text}"


def _escape(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)


def _write_experiment(readings: Sequence[Reading], file: Path) -> None:
    """Write the experiment of the first document that calls a benchmark. Raises Problem."""
    of = next((one for one in readings if one.calls), readings[0])
    write_translation(file, translate_reading(of), "dbdyno read")
