"""`dbdyno read FILE…`: prints the results in other people's documents, what they show, and their mistakes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem

if TYPE_CHECKING:
    from dbdyno.reading.reading import Reading
    from dbdyno.reading.record import ReadDocument
    from dbdyno.store.listing import Imported
    from dbdyno.terminal.messages import Output

_READABLE = (
    "dbdyno read reads outputs of sysbench, pgbench, mysqlslap, mariadb-slap, HammerDB, go-tpc, "
    "BenchmarkSQL, tpcc-mysql and YCSB; tables of text, Markdown, HTML or CSV whose headings name figures "
    "(TPS, QPS, p95 latency); calls of sysbench, pgbench and mysqlslap in scripts and jobs; and settings of "
    "servers"
)


# The output formats of `dbdyno read`.
ReadFormat = Literal["text", "json", "md"]


def read(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…", help="Outputs, scripts or pages; - is standard input.", show_default=False
        ),
    ],
    to_experiment: Annotated[
        Path | None,
        typer.Option(
            "--to-experiment",
            metavar="FILE",
            help="Write the experiment file that measures the same.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Store the documents next to the runs, for list, show and diff.")
    ] = False,
    results: options.Results = options.RESULTS,
    language: options.Language = "en",
    output_format: Annotated[ReadFormat, typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Read results, scripts and pages of others; name mistakes."""
    from dbdyno.commands.init import write_translation
    from dbdyno.languages import translator
    from dbdyno.reading.checks import examine, examine_comparison
    from dbdyno.reading.document import load, parse, read_bytes
    from dbdyno.reading.reading import combine
    from dbdyno.reading.reading import read as read_document
    from dbdyno.reading.record import record
    from dbdyno.reading.translation import translate_reading
    from dbdyno.store.listing import Imported
    from dbdyno.terminal.document import document_markdown, print_document

    translate = translator(options.require_language(language))
    readings = [
        read_document(parse(read_bytes(sys.stdin.buffer, "-"), "-") if str(path) == "-" else load(path))
        for path in files
    ]
    if to_experiment is not None:
        calling = next((entry for entry in readings if entry.calls), readings[0])
        write_translation(to_experiment, translate_reading(calling), "dbdyno read")
    records = [record(reading, examine(reading)) for reading in readings]
    nothing = [
        entry.file for entry, reading in zip(records, readings, strict=True) if _is_empty(reading, entry)
    ]
    if store:
        for path, reading, document_record in zip(files, readings, records, strict=True):
            source = reading.document.source.encode()
            stored = Imported.create(results, path.stem, source, document_record.model_dump(mode="json"))
            print(f"stored in {stored.path}", file=sys.stderr)
    compared = combine(readings)
    if compared is not None:
        records.append(record(compared, examine_comparison(compared)))
    if output_format == "json":
        answer = [entry.model_dump(mode="json") for entry in records]
        print(json.dumps(answer[0] if len(answer) == 1 else answer, indent=1, ensure_ascii=False))
    else:
        for number, document_record in enumerate(records):
            if number:
                print()
            # The tables of a comparison of files are those of the files.
            shown = (
                document_record.model_copy(update={"variants": []})
                if number == len(readings)
                else document_record
            )
            if output_format == "md":
                print("\n".join(document_markdown(shown, translate)))
            else:
                print_document(shown, translate)
    if nothing:
        raise Problem(f"nothing was read from {', '.join(nothing)}", _READABLE)
    is_stopped = any(finding.level == "stop" for entry in records for finding in entry.findings)
    raise typer.Exit(ExitCode.NOT_COMPARABLE if is_stopped else ExitCode.DONE)


def _is_empty(reading: Reading, document: ReadDocument) -> bool:
    """Whether a document has nothing that can be read."""
    return not (reading.results or reading.calls or reading.settings or reading.claims or document.findings)


def show_stored(stored: Imported, output: Output) -> None:
    """Print a stored document as `output` says. Raises StoreProblem."""
    from dbdyno.languages import ENGLISH, translator
    from dbdyno.reading.checks import examine
    from dbdyno.reading.document import load
    from dbdyno.reading.reading import read as read_document
    from dbdyno.reading.record import ReadDocument, record
    from dbdyno.terminal.document import print_document

    if output.as_json:
        print(json.dumps(stored.reading, indent=1, ensure_ascii=False))
    elif output.language == ENGLISH:
        print_document(ReadDocument.model_validate(stored.reading), translator(ENGLISH))
    else:
        # The record has English texts only.
        reading = read_document(load(stored.source))
        print_document(record(reading, examine(reading)), translator(output.language))
