"""Compares values of server variables that have several spellings.

A file contains `8G`, `true` or `index_merge=off`; the server reports 8589934592, `ON` or a list of forty
switches. Values that a server rounds or clips are handled in `checks.settings`.
"""

from __future__ import annotations

import re
from decimal import Decimal

# Powers of 1024, as MySQL and MariaDB read option values ("Specifying Values for Options" in their manuals).
_SUFFIXES: dict[str, int] = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)([KMGTPE]?)", re.IGNORECASE)
# Characters of a number, and its largest power of ten.
_LENGTH_MAX = 400
_EXPONENT_MAX = 310
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

# Values of sql_mode that the server expands into a list of modes.
_COMBINED_MODES = frozenset(
    {"ANSI", "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL", "TRADITIONAL"}
)

# Old names of character sets, which the server reports under new names.
_CHARACTER_SETS = {"UTF8": "UTF8MB3"}

Setting = str | int | float | bool
# The beginning of the options that a server ignores if it does not know them.
_LOOSE = "loose_"


def as_text(value: Setting) -> str:
    """A value of an experiment file as text; a boolean becomes ON or OFF."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return str(value).strip()


def variable_name(option: str) -> str:
    """The system variable of an option: `--loose-innodb-buffer-pool-size` is innodb_buffer_pool_size."""
    return _normalize_option(option).removeprefix(_LOOSE)


def is_loose(option: str) -> bool:
    """Whether the server ignores the option if it does not know it."""
    return _normalize_option(option).startswith(_LOOSE)


def _normalize_option(option: str) -> str:
    return option.strip().lstrip("-").lower().replace("-", "_")


def number(text: str) -> Decimal | None:
    """The numeric value of a setting, with K, M, G, T, P and E as powers of 1024, PostgreSQL's sizes in bytes
    and its times in milliseconds; None if it is not a number.
    """
    text = text.strip() if len(text) <= _LENGTH_MAX else ""
    with_unit = _WITH_UNIT.fullmatch(text)
    match = _NUMBER.fullmatch(text)
    if with_unit is not None:
        digits, factor = with_unit[1], _UNITS[with_unit[2]]
    elif match is not None:
        digits, factor = match[1], Decimal(1024 ** _SUFFIXES[match[2].upper()])
    else:
        return None
    value = Decimal(digits)
    # No setting has such a size, and a calculation with it would overflow.
    return value * factor if abs(value.adjusted()) <= _EXPONENT_MAX else None


def with_unit(setting: Setting, unit: str | None) -> Setting:
    """A number without a unit as text in the variable's own `unit`, for example 16384 in "8kB"."""
    bare = None if unit is None or isinstance(setting, bool) else _NUMBER.fullmatch(str(setting).strip())
    scaled = None if bare is None or bare[2] else re.fullmatch(r"(\d*)([A-Za-z]+)", unit or "")
    # -1 and 0 are special values, which have no unit.
    if bare is None or scaled is None or Decimal(bare[1]) <= 0:
        return setting
    return f"{(Decimal(bare[1]) * int(scaled[1] or 1)).normalize():f}{scaled[2]}"


def parse_boolean(text: str) -> bool | None:
    """Whether a setting means on or off; None if it means neither."""
    word = text.strip().upper()
    return True if word in _TRUE else False if word in _FALSE else None


def is_equal(name: str, declared: Setting, effective: str) -> bool:
    """Whether the `effective` value that the server reports equals `declared`. `name` is the variable."""
    requested = as_text(declared)
    if requested.upper() == effective.strip().upper():
        return True
    if effective.strip().upper() in {"ON", "OFF"}:
        return parse_boolean(requested) == parse_boolean(effective)
    requested_number, effective_number = number(requested), number(effective)
    if requested_number is not None and effective_number is not None:
        # SHOW VARIABLES prints fractions with six decimal places.
        return abs(requested_number - effective_number) < Decimal("0.000001")
    return _is_equal_list(name, requested, effective)


def _is_equal_list(name: str, requested: str, effective: str) -> bool:
    """Lists in any order, sets of switches by subset, paths with or without the final slash, renamed
    character sets.
    """
    requested_words, effective_words = _words(requested), _words(effective)
    if name == "optimizer_switch" or requested_words & _COMBINED_MODES:
        # The server reports all switches, or a combined mode together with its parts.
        return requested_words <= effective_words
    if name.startswith(("character_set_", "collation_")):
        return _normalize_name(requested.upper()) == _normalize_name(effective.upper())
    if "/" in requested:
        return requested.rstrip("/") == effective.rstrip("/")
    return requested_words == effective_words


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip().upper() for word in text.split(",") if word.strip())


def _normalize_name(name: str) -> str:
    head, _, tail = name.partition("_")
    return "_".join(filter(None, (_CHARACTER_SETS.get(head, head), tail)))
