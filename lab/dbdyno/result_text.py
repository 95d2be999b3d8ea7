"""Numbers and verdicts of results as text, for sentences, the terminal, the report and its charts.

Sentences and lines of the terminal have ASCII hyphens as minus signs, for scripts (`signed`); tables and
charts have minus signs, with which columns align (`percent`).
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence

from dbdyno.text import Text, compose, compose_count

# Written by name because in most fonts they look like a hyphen.
MISSING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

# Code of a verdict in verdict.json -> text.
VERDICTS = {
    "not-comparable": compose("not comparable"),
    "unfinished": compose("unfinished"),
    "too-few-blocks": compose("too few blocks"),
    "mixed": compose("mixed"),
    "equivalent": compose("equivalent"),
    "faster": compose("faster"),
    "slower": compose("slower"),
    "undecided": compose("undecided"),
}
# Verdicts about the data, with which a change must not be emphasised -> what a sentence says of the variant.
WITHOUT_EFFECT = {
    "not-comparable": compose("is not comparable"),
    "unfinished": compose("is unfinished"),
    "too-few-blocks": compose("has too few blocks"),
}

# Beyond these changes in percent, texts give a ratio, which is easier to read.
RATIO_BELOW, RATIO_ABOVE = -50.0, 100.0
# Ratios below this have two significant digits.
SMALL_RATIO = 0.1


def is_ratio(change_percent: float) -> bool:
    """Whether the text gives a ratio (8.0 times, 0.4 times) instead of the change. -100 % is never
    a ratio.
    """
    return -100.0 < change_percent < RATIO_BELOW or RATIO_ABOVE < change_percent < math.inf


def times(change_percent: float, decimals: int = 1) -> str:
    """A change as a ratio: 8.0, 0.41, 0.0055; ∞ if it is infinite."""
    if math.isinf(change_percent):
        return "∞"
    ratio = 1.0 + change_percent / 100.0
    if 0.0 < ratio < SMALL_RATIO:
        return f"{ratio:.2g}"
    return f"{ratio:.{decimals}f}" if ratio >= 1.0 else f"{ratio:.2f}"


def ratio_decimals(ends: Sequence[float]) -> int:
    """Decimals of the ends of an interval as ratios: 1, or 2 if they are equal with one."""
    return 1 if len({times(end) for end in ends}) == len(ends) else 2


def signed(value: float, decimals: int = 1) -> str:
    """A change with its sign; 0 without a sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text


def decimals_for(values: Iterable[float | None], delta_percent: float | None = None) -> int:
    """1, or 2 if rounding to one decimal moves a value across 0 or ±delta."""
    limits = [0.0] if delta_percent is None else [0.0, delta_percent, -delta_percent]
    finite = [value for value in values if value is not None and math.isfinite(value)]
    crosses = any(
        _side(round(value, 1), limit) != _side(value, limit) for value in finite for limit in limits
    )
    return 2 if crosses else 1


def _side(value: float, limit: float) -> int:
    """-1, 0 or 1: below, at or above the limit."""
    return (value > limit) - (value < limit)


def percent(value: float, decimals: int = 1) -> str:
    """A change with its sign, without the unit. The minus sign is as wide as a plus, so columns align."""
    text = f"{value:+,.{decimals}f}"
    return text[1:] if float(text.replace(",", "")) == 0.0 else text.replace("-", MINUS)


def rate(value: float | None) -> str:
    """Transactions per second with three to five digits; without the unit."""
    if value is None:
        return MISSING
    return (
        f"{value:,.0f}" if value >= 1000 or value == 0 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"
    )


def milliseconds(value_us: float | None) -> str:
    """A latency in milliseconds, without the unit."""
    return MISSING if value_us is None else f"{value_us / 1000.0:,.2f}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, for messages that are not translated: 1 host, 8 hosts."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def three_digits(value: float) -> str:
    """A number with three significant digits, without an exponent if it is at least 0.0001."""
    if value == 0.0:
        return "0"
    if value >= 99.95:
        return f"{value:,.0f}"
    if value < 0.0001:
        return f"{value:.1e}"
    text = f"{value:.3g}"
    return text if "e" not in text else f"{value:.6f}".rstrip("0")


# At the start of a cell, and after what other spreadsheets take for the end of one. The last four characters
# are the full-width forms.
_FORMULA = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def cell(value: object) -> object:
    """A cell that a spreadsheet does not execute."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return _FORMULA.sub(r"\1'", value)


def write_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows of cells as CSV, without a line break at the end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return text.getvalue().rstrip("\n")


def blocks_count(number: int) -> Text:
    """1 block, 8 blocks."""
    return compose_count(number, "{number} block", "{number} blocks")


def trials_count(number: int) -> Text:
    """1 trial, 8 trials."""
    return compose_count(number, "{number} trial", "{number} trials")


def connections_count(number: int) -> Text:
    """1 connection, 8 connections."""
    return compose_count(number, "{number} connection", "{number} connections")


def cpus_count(number: int) -> Text:
    """1 CPU, 8 CPUs."""
    return compose_count(number, "{number} CPU", "{number} CPUs")


def rows_count(number: int) -> Text:
    """1 row, 8 rows."""
    return compose_count(number, "{number:,} row", "{number:,} rows")
