"""Server variables as values: when two spellings of a setting mean the same thing.

A file says `8G`, `true` or `index_merge=off`; the server answers 8589934592, `ON` or a list of forty
switches. Pure functions over text; what a server rounds or clips is in `adjustments`, not here.
"""

from __future__ import annotations

import re
from decimal import Decimal

# Powers of 1024, as MySQL and MariaDB read option values ("Specifying Values for Options" in their manuals).
_SUFFIXES: dict[str, int] = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)([KMGTPE]?)", re.IGNORECASE)
# PostgreSQL's units, as bytes and as milliseconds ("Parameter Names and Values" in its manual).
_UNITS = {
    "B": Decimal(1),
    "kB": Decimal(1024),
    "MB": Decimal(1024**2),
    "GB": Decimal(1024**3),
    "TB": Decimal(1024**4),
    "us": Decimal("0.001"),
    "ms": Decimal(1),
    "s": Decimal(1000),
    "min": Decimal(60_000),
    "h": Decimal(3_600_000),
    "d": Decimal(86_400_000),
}
_WITH_UNIT = re.compile(rf"([+-]?\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})")
_TRUE = frozenset({"1", "ON", "TRUE", "YES"})
_FALSE = frozenset({"0", "OFF", "FALSE", "NO"})

# sql_mode words that the server expands into a list of others.
_COMBINED_MODES = frozenset(
    {"ANSI", "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL", "TRADITIONAL"}
)

# Old names of character sets that the server answers with the new ones.
_CHARACTER_SETS = {"UTF8": "UTF8MB3"}

Setting = str | int | float | bool


def as_text(value: Setting) -> str:
    """A value of an experiment file as the server would spell it; a boolean becomes ON or OFF."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return str(value).strip()


def variable_name(option: str) -> str:
    """The system variable behind an option name: `loose-innodb-buffer-pool-size` is
    innodb_buffer_pool_size.
    """
    return option.strip().lower().replace("-", "_").removeprefix("loose_")


def number(text: str) -> Decimal | None:
    """The number a setting stands for, with K, M, G, T, P and E as powers of 1024, sizes of PostgreSQL in
    bytes and its times in milliseconds; None where it is no number.
    """
    if (with_unit := _WITH_UNIT.fullmatch(text.strip())) is not None:
        return Decimal(with_unit[1]) * _UNITS[with_unit[2]]
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    return Decimal(match[1]) * Decimal(1024 ** _SUFFIXES[match[2].upper()])


def with_unit(setting: Setting, unit: str | None) -> Setting:
    """A number without a unit in the variable's own `unit`, such as 16384 in "8kB": as text with a unit."""
    bare = None if unit is None or isinstance(setting, bool) else _NUMBER.fullmatch(str(setting).strip())
    scaled = None if bare is None or bare[2] else re.fullmatch(r"(\d*)([A-Za-z]+)", unit or "")
    # -1 and 0 have meanings of their own, which no unit changes.
    if bare is None or scaled is None or Decimal(bare[1]) <= 0:
        return setting
    return f"{(Decimal(bare[1]) * int(scaled[1] or 1)).normalize():f}{scaled[2]}"


def truth(text: str) -> bool | None:
    """Whether a setting says on or off; None where it says neither."""
    word = text.strip().upper()
    return True if word in _TRUE else False if word in _FALSE else None


def same(name: str, declared: Setting, effective: str) -> bool:
    """Whether `effective`, as the server gives it, is what `declared` asks for. `name` is the variable."""
    requested = as_text(declared)
    if requested.upper() == effective.strip().upper():
        return True
    if effective.strip().upper() in {"ON", "OFF"}:
        return truth(requested) == truth(effective)
    requested_number, effective_number = number(requested), number(effective)
    if requested_number is not None and effective_number is not None:
        # Six decimals are what SHOW VARIABLES prints of a fraction.
        return abs(requested_number - effective_number) < Decimal("0.000001")
    return _same_words(name, requested, effective)


def _same_words(name: str, requested: str, effective: str) -> bool:
    """Lists in any order, switches by subset, paths with and without the slash at the end, renamed sets."""
    requested_words, effective_words = _words(requested), _words(effective)
    if name == "optimizer_switch" or requested_words & _COMBINED_MODES:
        # The server answers with every switch, or with the mode and all modes that it combines.
        return requested_words <= effective_words
    if name.startswith(("character_set_", "collation_")):
        return _renamed(requested.upper()) == _renamed(effective.upper())
    if "/" in requested:
        return requested.rstrip("/") == effective.rstrip("/")
    return requested_words == effective_words


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip().upper() for word in text.split(",") if word.strip())


def _renamed(name: str) -> str:
    head, _, tail = name.partition("_")
    return "_".join(filter(None, (_CHARACTER_SETS.get(head, head), tail)))
