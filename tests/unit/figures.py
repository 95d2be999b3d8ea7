"""Reads the marks of measured figures in the documents, and the tables that the marks name.

A figure is followed by a comment that names its source, so that the test computes it again:

    0.94 to 1.04<!-- from results.md: throughput; section oltp_point_select apart -->

After the page comes the row: the beginning of one of its first two cells, or two of them with ` / ` between,
which is their ratio in each table. Then conditions: `section NAME` (a part of its name), `column NAME`
(its beginning; of the comparisons with sysbench, the ratio without it) and `connections 256` or
`connections 1 to 256`. A range in the text is the least and the greatest value of the rows, one number all of
them; `least`, `greatest`, `at least` and `at most` say what else it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RATIO = "dbdyno / sysbench"
NUMBER = r"[-+−]?\d[\d,]*(?:\.\d+)?"
UNIT = r"(?:%|times|points|MiB|KiB|GiB|MB|GB|µs|us|ms|s|seconds|minutes|hours)"
MARK = re.compile(rf"({NUMBER})(?: to ({NUMBER}))?(?:\s+{UNIT})?<!-- from (\S+): ([^>]*?) -->")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FIGURE = re.compile(rf"(?<![\w.,:])({NUMBER})(?: (?:to|and) {NUMBER})?\s+{UNIT}(?![\w-])")
# What a sentence about a measurement or a simulation says.
EVIDENCE = re.compile(
    r"simulat(?!ion\*)|trials found|its median was|in (our|one) (measurement|run|case|experiment)\b"
    r"|times sysbench|sysbench's (throughput|CPU|client)|times the (throughput|CPU|memory)"
    r"|times as (wide|fast|narrow|long as the same)"
    r"|of (all |the |simulated )*(runs|experiments|histories|selections)\b",
    re.IGNORECASE,
)
COMMAND = re.compile(r"`(?:make [a-z-]+|(?:\S+/)?python -m [a-z_.]+[^`]*|pytest [^`]*|dbdyno [^`]*)`")
# Pages whose head names the command that writes them.
RESULTS = {
    page.rpartition("/")[2]: page
    for page in ("benchmarks/results.md", "docs/why-believe-it.md", "docs/reliability.md")
}


@dataclass(frozen=True)
class Row:
    """A row of a table. Of several columns with the same name the first one counts."""

    section: str
    table: int
    cells: dict[str, str]

    def is_named(self, label: str) -> bool:
        return any(cell.startswith(label) for cell in list(self.cells.values())[:2])

    def value(self, column: str) -> float | None:
        """The first number of a cell; None if the table has no such column, or the cell no number."""
        for name, cell in self.cells.items():
            if name.startswith(column):
                match = re.search(NUMBER, cell)
                return number(match.group()) if match else None
        return None


@dataclass(frozen=True)
class Source:
    """The rows that a mark names."""

    label: str
    section: str = ""
    column: str = RATIO
    connections: tuple[int, int] | None = None
    flags: frozenset[str] = field(default=frozenset())

    @classmethod
    def parse(cls, text: str) -> Source:
        label, *conditions = (" ".join(part.split()) for part in text.split(";"))
        options: dict[str, str] = {}
        flags = set()
        for condition in conditions:
            if condition in {"least", "greatest", "at least", "at most"}:
                flags.add(condition)
                continue
            name, _, value = condition.partition(" ")
            assert name in {"section", "column", "connections"}, condition
            options[name] = value
        low, _, high = options.get("connections", "").partition(" to ")
        points = (int(number(low)), int(number(high or low))) if low else None
        return cls(label, options.get("section", ""), options.get("column", RATIO), points, frozenset(flags))

    def values(self, rows: list[Row]) -> list[float]:
        chosen = [row for row in rows if self.section in row.section]
        if self.connections:
            low, high = self.connections
            chosen = [row for row in chosen if low <= (row.value("connections") or -1) <= high]
        top, _, bottom = self.label.partition(" / ")
        above = self._column(chosen, top)
        if not bottom:
            return [value for values in above.values() for value in values]
        below = self._column(chosen, bottom)
        return [
            one / other
            for table, values in above.items()
            for one, other in zip(values, below[table], strict=True)
        ]

    def _column(self, rows: list[Row], label: str) -> dict[int, list[float]]:
        """The values by table. A ratio of rows is that of each column whose name begins so."""
        found: dict[int, list[float]] = {}
        for row in (row for row in rows if row.is_named(label)):
            names = [name for name in row.cells if name.startswith(self.column)]
            values = [row.value(name) for name in (names if " / " in self.label else names[:1])]
            found.setdefault(row.table, []).extend(value for value in values if value is not None)
        return found


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def tables(text: str) -> list[Row]:
    """All rows of the tables of a page, with the section of `<!-- begin NAME -->` they are in."""
    section, header, table, rows = "", [""], 0, []
    for line in text.splitlines():
        if match := re.fullmatch(r"<!-- (begin|end) (.*) -->", line):
            section = match.group(2) if match.group(1) == "begin" else ""
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not header:
            header, table = cells, table + 1
        elif set(line) - set("|-: "):
            by_name: dict[str, str] = {}
            for name, cell in zip(header, cells, strict=False):
                by_name.setdefault(name, cell)
            rows.append(Row(section, table, by_name))
    return rows


def wrong_marks(text: str, pages: dict[str, list[Row]]) -> Iterator[str]:
    """The marks whose figure is not that of the source."""
    if text.count("<!-- from ") != len(MARK.findall(text)):
        yield "a mark follows no figure, or is not as the head of figures.py says"
    for low, high, page, conditions in MARK.findall(text):
        source = Source.parse(conditions)
        values = source.values(pages[page])
        if not values:
            yield f"{page} has no row for: {conditions}"
            continue
        for written, expected, exact in _expected(low, high, values, source.flags):
            decimals = len(written.partition(".")[2])
            close = abs(number(written) - expected) <= 0.5 * 10**-decimals + 1e-9
            if not (close if exact is None else (number(written) - expected) * exact >= 0):
                yield f"{written} is {expected:g} in {page}: {conditions}"


def _expected(
    low: str, high: str, values: list[float], flags: frozenset[str]
) -> Iterator[tuple[str, float, int | None]]:
    """The written number, the one it must be, and 1 or -1 if it may also be above or below."""
    if high:
        yield low, min(values), None
        yield high, max(values), None
    elif "at most" in flags:
        yield low, max(values), 1
    elif "at least" in flags:
        yield low, min(values), -1
    elif "least" in flags:
        yield low, min(values), None
    elif "greatest" in flags:
        yield low, max(values), None
    else:
        yield from ((low, value, None) for value in values)


def paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs, items of lists and rows of tables, each with the paragraph that introduces it by a colon;
    without code and without what commands have written.
    """
    text = re.sub(r"(?ms)^```.*?^```$", "", text)
    text = re.sub(r"(?s)<!-- table of .*?<!-- end of the table -->", "", text)
    head = ""
    for part in filter(str.strip, re.split(r"\n\s*\n|\n(?=- |\| )", text)):
        if not part.startswith(("- ", "| ")):
            head = ""
        yield part, head
        if part.rstrip().endswith(":"):
            head = part


def without_source(page: str, text: str) -> Iterator[str]:
    """The paragraphs with figures of a measurement that name neither a command nor its page, and the figures
    of `benchmarks/results.md` without a mark.
    """
    folder = (ROOT / page).parent
    for part, head in paragraphs(text):
        marks = MARK.findall(part)
        plain = COMMENT.sub("", part)
        if not (FIGURE.search(plain) and (EVIDENCE.search(plain) or marks)):
            continue
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", head + part)]
        sources = {
            str((folder / link).resolve().relative_to(ROOT)) for link in links if "://" not in link and link
        }
        if not (COMMAND.search(head + part) or sources & set(RESULTS.values()) or page in RESULTS.values()):
            yield f"no command: {' '.join(plain.split())[:200]}"
        if "benchmarks/results.md" in sources:
            bare = MARK.sub("", part)
            for figure in FIGURE.finditer(re.sub(r"`[^`]*`", "", COMMENT.sub("", bare))):
                yield f"no mark: {figure.group()} in: {' '.join(plain.split())[:200]}"
