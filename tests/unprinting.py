"""Numbers of sysbench's output hidden, and nothing else: every variable figure becomes its format.

Two runs never print the same rates and latencies. A figure is hidden only where it is what its format makes
of a number: the right number of decimals and width, padded on the right side, in its column. `    12.34`
where `%10.2f` belongs stays as it is, and the comparison fails.

::

    "         min:                                    0.23"
    "         min: %39.2f"

How figures of varying width are treated: a width in the format is checked (`%39.2f` keeps the column in
which the figure ends, `%-6u` the one in which the text behind it begins, unless the figure itself is wider);
without a width the text behind moves with the figure. A histogram's rows are checked one by one
(`_histogram_row`) and become a single row, for their number is a matter of luck.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

_LATENCY = (
    "         min: %39.2f",
    "         avg: %39.2f",
    "         max: %39.2f",
    "        %3dth percentile: %27.2f",
    "         sum: %39.2f",
)

# In each: %d a number that is kept; %u a count, kept unless the run ends by the clock; %…f a figure;
# %?…f a figure of which is kept whether it is zero.
FORMATS: tuple[str, ...] = (
    # While it runs.
    "[ %ds ] thds: %d tps: %.2f qps: %.2f (r/w/o: %.2f/%.2f/%.2f) lat (ms,%d%%): %.2f err/s: %?.2f reconn/s: %?.2f",  # noqa: E501
    "[ %ds ] thds: %d eps: %.2f lat (ms,%d%%): %.2f",
    # By the reporters that scripts may choose.
    "[ %ds ] thds: %d tps: %.2f qps: %.2f (r/w/o: %.2f/%?.2f/%?.2f) lat (ms,%d%%): %.2f err/s %?.2f reconn/s: %?.2f",  # noqa: E501
    "%u,%u,%.2f,%.2f,%.2f,%?.2f,%?.2f,%.2f,%?.2f,%?.2f",
    '    "time": %4u,',
    '    "tps": %.2f,',
    '      "total": %.2f,',
    '      "reads": %.2f,',
    '      "writes": %?.2f,',
    '      "other": %?.2f',
    '    "latency": %.2f,',
    '    "errors": %?.2f,',
    '    "reconnects": %?.2f',
    # Of the server.
    "[ %ds ] queue length: %q, concurrency: %q",
    "[ %ds ] queue length: %q concurrency: %q",
    "[ %ds ] %.2f MiB/sec",
    "[ %ds ] reads: %.2f MiB/s writes: %.2f MiB/s fsyncs: %.2f/s latency (ms,%d%%): %.3f",
    # The statements.
    "        read:                            %u",
    "        write:                           %u",
    "        other:                           %u",
    "        total:                           %u",
    "    transactions:                        %-6u (%.2f per sec.)",
    "    queries:                             %-6u (%.2f per sec.)",
    "    ignored errors:                      %-6u (%?.2f per sec.)",
    "    reconnects:                          %-6u (%?.2f per sec.)",
    "Number of unfinished transactions on forced shutdown: %u",
    # What the built-in tests add.
    "    events per second: %8.2f",
    "Total operations: %u (%8.2f per second)",
    "%.2f MiB transferred (%.2f MiB/sec)",
    "    reads/s:                      %.2f",
    "    writes/s:                     %.2f",
    "    fsyncs/s:                     %.2f",
    "    read, MiB/s:                  %.2f",
    "    written, MiB/s:               %.2f",
    "%d bytes written in %.2f seconds (%.2f MiB/sec).",
    # All tests, 1.0 and then 1.1.
    "    total time:                          %.4fs",
    "    total number of events:              %u",
    "    events/s (eps):                      %.4f",
    "    time elapsed:                        %.4fs",
    *_LATENCY,
    "    events (avg/stddev):           %v/%.2f",
    "    execution time (avg/stddev):   %.4f/%.2f",
    "DEBUG:     thread #%3d: min: %.4fs  avg: %.4fs  max: %.4fs  events: %u",
    "DEBUG:                  total time taken by event execution: %.4fs",
    # The engine is honest about whose LuaJIT runs the scripts.
    "sysbench 1.0.20 (using %w LuaJIT %w)",
)

CONVERSION = re.compile(r"%(?P<zero>\??)(?P<flags>[-0]*\d*(?:\.\d+)?)(?P<kind>[a-z%])")
# What is random in a message: an address, and the values in a statement that was refused.
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
QUERY = re.compile(r"(?:(?<= for query ')|(?<=failed query was: )).*")
VALUE = re.compile(r"(?<![a-z])-?\d+(?:-\d+)*")
HISTOGRAM_HEAD = "       value  ------------- distribution ------------- count"
STARS_MAX = 40

# sysbench's histogram: 1,024 buckets from 0.001 ms to 100 s, even in the logarithm (sb_histogram's defaults).
BUCKETS, LOWEST_MS, HIGHEST_MS = 1024, 0.001, 100_000.0


def bucket_values() -> list[float]:
    """The value that stands for each bucket, in ms."""
    step = (math.log(HIGHEST_MS) - math.log(LOWEST_MS)) / (BUCKETS - 1)
    return [math.exp(math.log(LOWEST_MS) + index * step) for index in range(BUCKETS)]


@dataclass(frozen=True)
class _Field:
    """One conversion of a format."""

    kind: str
    flags: str
    zero_matters: bool

    def pattern(self) -> str:
        """What its text looks like, width left aside."""
        return {"f": r" *\d+\.\d+", "v": r"\d+\.\d{4}", "w": r"[\w.+-]+"}.get(self.kind, r" *\d+ *")

    def hidden(self, text: str, *, timed: bool) -> str | None:
        """What takes the text's place; None where the format would not have printed it so."""
        if self.kind == "w":
            return "%w"
        if self.kind == "v":
            # The mean number of events of a thread: exact as long as the number of events is.
            return "%.4f" if timed else text
        if self.kind == "f":
            if f"%{self.flags}f" % float(text) != text:
                return None
            return text if self.zero_matters and float(text) == 0 else f"%{self.flags}f"
        if f"%{self.flags}d" % int(text) != text:
            return None
        return f"%{self.flags}u" if self.kind == "q" or (self.kind == "u" and timed) else text


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], tuple[_Field, ...], tuple[str, ...]], ...]:
    """Each format as a pattern, its fields, and the words between them."""
    compiled = []
    for form in FORMATS:
        words, fields, position = [""], [], 0
        for found in CONVERSION.finditer(form):
            words[-1] += form[position : found.start()]
            position = found.end()
            if found["kind"] == "%":
                words[-1] += "%"
            else:
                fields.append(_Field(found["kind"], found["flags"], bool(found["zero"])))
                words.append("")
        words[-1] += form[position:]
        pattern = re.escape(words[0])
        for field, word in zip(fields, words[1:], strict=True):
            pattern += f"({field.pattern()})" + re.escape(word)
        compiled.append((re.compile(pattern), tuple(fields), tuple(words)))
    return tuple(compiled)


def unprinted_line(line: str, *, timed: bool = False) -> str:
    """The line with its variable figures replaced by their formats; a line that no format makes, as it is."""
    for pattern, fields, words in _compiled():
        found = pattern.fullmatch(line)
        if found is None:
            continue
        hidden = [field.hidden(text, timed=timed) for field, text in zip(fields, found.groups(), strict=True)]
        if None not in hidden:
            return words[0] + "".join(f"{text}{word}" for text, word in zip(hidden, words[1:], strict=True))
    return line


def unprinted(text: str, *, timed: bool = False) -> list[str]:
    """Every line of an output, figures hidden; `timed` hides also what depends on how long it ran."""
    return list(_lines(text.split("\n"), timed=timed))


def _lines(lines: Sequence[str], *, timed: bool) -> Iterator[str]:
    position = 0
    while position < len(lines):
        line = lines[position]
        line = QUERY.sub(lambda found: VALUE.sub("#", found[0]), line)
        yield ADDRESS.sub("0x#", unprinted_line(line, timed=timed))
        position += 1
        if line == HISTOGRAM_HEAD:
            rows = []
            while position < len(lines) and "|" in lines[position]:
                rows.append(lines[position])
                position += 1
            yield from _histogram(rows)


def _histogram(rows: Sequence[str]) -> Iterable[str]:
    """One line for all rows that are as they should be, and those that are not as they came."""
    counts = [int(row.rsplit(" ", 1)[-1]) for row in rows if row.rsplit(" ", 1)[-1].isdigit()]
    if len(counts) != len(rows):
        return rows
    wrong = [row for row in rows if not _histogram_row(row, max(counts))]
    return wrong or ["<rows of a histogram>"]


def _histogram_row(row: str, count_max: int) -> bool:
    """Whether it is `%12.3f |STARS COUNT`, its value one of a bucket, its stars as many as they should be."""
    found = re.fullmatch(r"([ \d.]{12}) \|(\*{0,40})( *) (\d+)", row)
    if found is None:
        return False
    value, stars, padding, count = found.groups()
    expected = math.floor(STARS_MAX * int(count) / count_max + 0.5)
    return (
        value in _bucket_texts()
        and len(stars) + len(padding) == STARS_MAX
        # Halves are rounded by the C library there and may be cut elsewhere.
        and abs(len(stars) - expected) <= 1
        and (len(stars) == STARS_MAX or int(count) < count_max)
    )


@cache
def _bucket_texts() -> frozenset[str]:
    return frozenset(f"{value:12.3f}" for value in bucket_values())
