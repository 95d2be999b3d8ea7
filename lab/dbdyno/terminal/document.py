"""The results of a document of others, what they show, and their mistakes: in a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno import result_text
from dbdyno.languages import Translator
from dbdyno.reading.limits import LISTED_MAX
from dbdyno.reading.record import ReadDocument, ReadDoubt, ReadOmission, ReadVariant
from dbdyno.reading.result import FIGURE_TEXTS
from dbdyno.terminal.console import Column, SafeConsole, print_text, table_lines
from dbdyno.text import compose, join, join_some

_ROWS_PRINTED = 500
# The figures that the tables have, if any result of the variant has them.
_COLUMNS = ("tps", "qps", "nopm", "tpm", "mean_s", "mean_ms", "p95_ms", "p99_ms", "max_ms", "errors")


def print_document(document: ReadDocument, translate: Translator) -> None:
    """Print the tables of a document, the calls in it, its verdict, and the doubts and findings."""
    console = SafeConsole(highlight=False)
    print_text(console, document.file, "bold")
    for omission in document.left_out:
        print_text(console, translate(_omission(omission)), "yellow", indent=2)
    for variant in document.variants:
        name, titles, *rows = _table(variant, translate)
        print_text(console, name, "bold")
        print_text(console, titles, "dim")
        # Many at once, because a document may have 25,000 results, and each call takes its time.
        for start in range(0, len(rows), _ROWS_PRINTED):
            print_text(console, "\n".join(rows[start : start + _ROWS_PRINTED]))
    for text in _calls(document):
        print_text(console, translate(text), indent=2)
    print_text(console, translate(document.verdict), "bold")
    for doubt in document.doubts:
        print_text(console, translate(_doubt(doubt)), "yellow", indent=2)
    for finding in document.findings:
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


def _calls(document: ReadDocument) -> list[str]:
    """The calls of a document without results, in a line for each program and test."""
    if document.variants:
        return []
    lines: list[str] = [
        compose("{call} (line {line})", call=call.sentence, line=call.lines[0])
        if len(call.lines) == 1
        else compose(
            "{call} (lines {lines})",
            call=call.sentence,
            lines=join_some([str(line) for line in call.lines], LISTED_MAX),
        )
        for call in document.calls[:LISTED_MAX]
    ]
    more = len(document.calls) - len(lines)
    return [*lines, compose("and {number} more", number=more)] if more else lines


def _omission(omission: ReadOmission) -> str:
    return compose("line {line}: {text}. The rest is read.", line=omission.line, text=omission.text)


def _doubt(doubt: ReadDoubt) -> str:
    return compose("line {line}: {text}.", line=doubt.line, text=doubt.text)


def _message(text: str, fix: str) -> str:
    return join(" ", [join("", (part, ".")) for part in (text, fix) if part])


def _table(variant: ReadVariant, translate: Translator) -> Iterator[str]:
    """The lines of the table of a variant: its name, the headings, and a row for each result."""
    names = [name for name in _COLUMNS if any(name in result.figures for result in variant.results)]
    columns = [Column(translate(compose("connections")), right=True)]
    columns += [Column(translate(FIGURE_TEXTS[name]), right=True) for name in names]
    columns.append(Column(translate(compose("line")), right=True))
    rows = [
        [
            result_text.MISSING if result.connections is None else str(result.connections),
            *(
                f"{result.figures[name].value:g}" if name in result.figures else result_text.MISSING
                for name in names
            ),
            str(result.lines[0]),
        ]
        for result in variant.results
    ]
    of = f" ({variant.workload})" if variant.workload else ""
    yield (variant.name or translate(compose("a variant that the document does not name"))) + of
    yield from (f" {line}" for line in table_lines(columns, rows))


def document_markdown(document: ReadDocument, translate: Translator) -> Iterator[str]:
    """The lines of the same as Markdown."""
    yield f"# {_escape(document.file)}"
    if document.left_out:
        yield ""
    yield from (f"- {_escape(translate(_omission(omission)))}" for omission in document.left_out)
    for variant in document.variants:
        name, titles, *rows = _table(variant, translate)
        yield ""
        yield f"## {_escape(name)}"
        yield ""
        split = [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in (titles, *rows)]
        yield "| " + " | ".join(split[0]) + " |"
        yield "|" + "--:|" * len(split[0])
        yield from ("| " + " | ".join(row) + " |" for row in split[1:])
    yield ""
    if calls := _calls(document):
        yield from (f"- {_escape(translate(text))}" for text in calls)
        yield ""
    yield f"**{_escape(translate(document.verdict))}**"
    if document.findings or document.doubts:
        yield ""
    yield from (f"- {_escape(translate(_doubt(doubt)))}" for doubt in document.doubts)
    for finding in document.findings:
        lines = ", ".join(map(str, finding.lines))
        text = _escape(translate(_message(finding.text, finding.fix)))
        yield f"- **{finding.code}** {finding.level}, {lines}: {text}"


def _escape(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
