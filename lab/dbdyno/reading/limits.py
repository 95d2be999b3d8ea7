r"""What `dbdyno read` reads at most, and what of a document it has left out.

A document comes from strangers. What exceeds a limit is left out, with the line, the value and the limit, and
the rest of the document is read; only a document of too many bytes is refused.

Python's `re` tries a repetition such as `\s*` again at each place of a run of blanks, which takes a time in
proportion to the square of its length. `linear` gives each repetition a limit: its patterns need a time in
proportion to the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from dbdyno.text import Text, compose

# Larger than the largest output that people keep; the text is kept in memory.
DOCUMENT_BYTES_MAX = 256 << 20
LINES_MAX = 10_000_000
# Empty lines in a row.
BLANK_LINES_MAX = 100
# Characters of a line; a page may have a whole output in one line, which is divided if it is no longer.
LINE_MAX = 10_000
FOLDED_MAX = 100_000
# A count or a figure beyond these is a misprint; so are more digits.
NUMBER_MIN = 1e-12
NUMBER_MAX = 1e15
DIGITS_MAX = 15
# Columns and rows of a table, and cells of a page's tables that repeat others by rowspan and colspan.
COLUMNS_MAX = 1_000
ROWS_MAX = 20_000
SPAN_MAX = 100
SPANNED_MAX = 100_000
# Results of a document, its variants, planned loads, and sentences that compare.
RESULTS_MAX = 25_000
VARIANTS_MAX = 1_000
LOADS_MAX = 1_000
CLAIMS_MAX = 2_000
# Repetitions of one load from which an interval is computed.
REPETITIONS_MAX = 300
# Variables of a server that are known at a line.
SETTINGS_MAX = 2_000
# Values of a variable of a script, characters of a value, passes of loops over one command, and characters of
# the commands of all passes after the first.
VALUES_MAX = 500
VALUE_MAX = 1_000
PASSES_MAX = 500
PASSES_CHARACTERS_MAX = 1_000_000
# Workloads of an experiment that is written, its transactions, and notes about it.
WORKLOADS_MAX = 100
NOTES_MAX = 100
# Hosts and ports that a command may combine.
HOSTS_MAX = 64
# Characters of one SQL statement, and of all that are parsed.
SQL_MAX = 20_000
SQL_TOTAL_MAX = 100_000
# Kinds of commands whose prepared statements the engine is asked for.
DESCRIBED_MAX = 20
# Findings of one check; how many names, loads or changes one message lists.
FINDINGS_MAX = 200
LISTED_MAX = 20
# How many lines a finding names.
LINES_LISTED_MAX = 100


@dataclass(frozen=True)
class Omission:
    """What was left out first of one kind, with the number of its line, and how often it happened."""

    line: int
    text: Text
    count: int


@dataclass
class LeftOut:
    """What exceeded a limit: the first of each kind, and how often."""

    _firsts: dict[str, tuple[int, Text]] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, line: int, text: Text) -> None:
        """Notes that something of this kind was left out at a line."""
        self._firsts.setdefault(kind, (line, text))
        self._counts[kind] += 1

    def has(self, kind: str) -> bool:
        """Whether something of this kind was left out."""
        return kind in self._firsts

    def __iter__(self) -> Iterator[Omission]:
        return (Omission(line, text, self._counts[kind]) for kind, (line, text) in self._firsts.items())


def sentence(omission: Omission) -> Text:
    """What was left out, with how often if more than once."""
    if omission.count == 1:
        return omission.text
    return compose("{text} (and {count:,} more)", text=omission.text, count=omission.count - 1)


# Longer than any run of blanks, word or number that means something.
RUN_MAX = 64
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\]){0,200}+\]|[*+](?=[?+]?)|\{\d*,\d*\}|\(\?|.", re.DOTALL)


def linear(text: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern, in which `*` and `+` stop after RUN_MAX repetitions."""
    parts: list[str] = []
    for part in _PART.findall(text):
        # The plus of a possessive repetition stays.
        is_mode = part == "+" and bool(parts) and parts[-1][0] in "{?"
        is_repetition = part in ("*", "+") and not is_mode
        parts.append(f"{{{0 if part == '*' else 1},{RUN_MAX}}}" if is_repetition else part)
    return re.compile("".join(parts), flags)


def whole(text: str) -> int | None:
    """A whole number with or without commas; None if it has more digits than a count can have."""
    digits = text.replace(",", "")
    return int(digits) if digits.isdecimal() and len(digits) <= DIGITS_MAX else None


def decimal(text: str) -> float | None:
    """A figure with or without commas; None if it is no number, or one that no benchmark measures."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value == 0 or NUMBER_MIN <= abs(value) <= NUMBER_MAX else None
