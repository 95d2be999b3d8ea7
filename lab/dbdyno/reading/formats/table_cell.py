"""A cell of a table, and the number that it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dbdyno.reading.patterns import decimal, linear

_NUMBER = linear(
    r"(?<![*_`~\d])[*_`~]*+([-+]?\d[\d, ]{0,40}+(?:\.\d{1,40}+)?(?:e[+-]?\d{1,5}+)?)"
    r"\s{0,9}+([kKM](?![a-zA-Z]))?(?:\s?(?P<unit>ms|msec|us|usec|µs|μs|s|sec|毫秒|ミリ秒|밀리초|微秒|秒|초|tps|qps|/s)(?![a-zA-Z]))?(?:\s?(?:±|\+/-|\+-)\s?[\d.,]{1,40}+\s?(?:%|ms|us|s)?)?[*_`]{0,9}+(?:\s{0,9}+\(.{0,200}\))?$"
)
_FACTORS = {"k": 1e3, "m": 1e6}
# Milliseconds of a unit of time.
_UNITS = {
    **dict.fromkeys(("ms", "msec", "毫秒", "ミリ秒", "밀리초"), 1.0),
    **dict.fromkeys(("us", "usec", "µs", "μs", "微秒"), 1e-3),
    **dict.fromkeys(("s", "sec", "秒", "초"), 1e3),
}


@dataclass(frozen=True)
class Cell:
    """A cell, and the index of its line."""

    text: str
    index: int

    @cached_property
    def value(self) -> float | None:
        """Its number; None if it has none, or more than one."""
        match = _NUMBER.match(self.text)
        if match is None:
            return None
        number = decimal(match[1].replace(" ", ""))
        return None if number is None else number * _FACTORS.get((match[2] or "").lower(), 1.0)

    def figure(self, name: str, scale: float) -> float | None:
        """Its number in the unit of a figure: by its own unit, or else by that of the heading."""
        match = _NUMBER.match(self.text)
        if self.value is None or match is None:
            return None
        own = _UNITS.get(match["unit"] or "") if name.endswith("_ms") else None
        return self.value * (scale if own is None else own)
