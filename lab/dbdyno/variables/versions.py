"""Names and defaults of variables by version: renamed.toml and defaults.toml, which explain their keys. And
the options that set variables, which have several spellings: "Program Option Modifiers" in MySQL's manual;
MariaDB also accepts every unique beginning of a name.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from dbdyno.experiment.quantities import Setting, as_text, is_equal, number, parse_boolean, variable_name


@cache
def _table(name: str) -> Mapping[str, Any]:
    return tomllib.loads(resources.files("dbdyno.variables").joinpath(name).read_text(encoding="utf-8"))


def version_key(version: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version, to compare it with others; () without one."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def without_log_suffix(version: str) -> str:
    """A version of MariaDB or MySQL without `-log`, which says that a log is on."""
    return version.removesuffix("-log")


@cache
def _defaults(product: str) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Variable and flag (or "") -> its entry in defaults.toml."""
    table = _table("defaults.toml")
    entries = (*table["variable"], *table["flag"])
    return {(entry["name"], entry.get("flag", "")): entry for entry in entries if entry["product"] == product}


def _rule_of_version(product: str, version: str, name: str, flag: str) -> Mapping[str, Any] | None:
    """The element of `defaults` that holds for a version; None if it is not known."""
    entry, key = _defaults(product).get((name, flag)), version_key(version)
    earlier = [] if entry is None else [o for o in entry["defaults"] if version_key(o["version"]) <= key]
    return earlier[-1] if earlier and not earlier[-1].get("unknown") else None


def is_default(product: str, version: str, name: str, value: str, flag: str = "") -> bool | None:
    """Whether a value is the default of the version; None if the table does not give it, or gives a rule by
    which the server computes it.
    """
    rule = _rule_of_version(product, version, name, flag)
    if rule is None or "default" not in rule:
        return None
    if is_equal(name, rule["default"], value):
        return True
    return None if "rule" in rule else False


def depends_on_machine(product: str, versions: Sequence[str], name: str) -> bool:
    """Whether the default depends on the machine, by the same rule in both versions."""
    entry = _defaults(product).get((name, ""))
    if entry is None or not entry.get("machine"):
        return False
    old_rule, new_rule = (_rule_of_version(product, version, name, "") for version in versions)
    return old_rule is not None and old_rule is new_rule and "default" not in old_rule


@dataclass(frozen=True)
class Renaming:
    """Variables that have other names in later versions."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    change: Mapping[str, Any] = field(compare=False)

    def is_same(self, before: Sequence[str], after: Sequence[str]) -> bool:
        """Whether the values under the new names mean the same as those under the old names."""
        conversion, target = self.change["conversion"], number(after[0])
        if conversion == "same":
            return is_equal(self.new[0], before[0], after[0])
        if conversion == "map":
            return bool(self.change["map"].get(before[0]) == after[0])
        values = [number(text) for text in before]
        if conversion in ("product", "times") and None not in values:
            factor = self.change.get("factor", 1)
            scaled = math.prod(float(value or 0) for value in values) * factor
            unit = number(f"1{self.change['unit']}") if "unit" in self.change else None
            return target is not None and float(target) == scaled * float(unit or 1)
        return False


@cache
def other_names(product: str) -> Mapping[str, frozenset[str]]:
    """Variable -> the other names of the same variable, in the same version or in another one."""
    pairs = [
        (renaming.old[0], renaming.new[0])
        for renaming in renamings(product)
        if renaming.change["conversion"] == "same"
    ]
    names: dict[str, frozenset[str]] = {}
    for pair in (*pairs, *(two[::-1] for two in pairs)):
        names[pair[0]] = names.get(pair[0], frozenset()) | {pair[1]}
    return names


def renamings(product: str) -> Iterator[Renaming]:
    """The variables of a product that were renamed or replaced."""
    for entry in _table("renamed.toml")["change"]:
        if entry["product"] == product and entry["old"] and entry["new"]:
            yield Renaming(tuple(entry["old"]), tuple(entry["new"]), entry)


# Beginnings of options that switch a variable, each with whether they switch it on.
_SWITCHES = {"skip_": False, "disable_": False, "enable_": True}
# Options that switch a variable on, and whose value names files.
_NAMES_OF_FILES = frozenset({"log_bin"})
# Values of variables in the order of the numbers that options accept for them.
_ISOLATION = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")
_NUMBERED = {
    "completion_type": ("NO_CHAIN", "CHAIN", "RELEASE"),
    "concurrent_insert": ("NEVER", "AUTO", "ALWAYS"),
    "query_cache_type": ("OFF", "ON", "DEMAND"),
    "binlog_format": ("MIXED", "STATEMENT", "ROW"),
    "delay_key_write": ("OFF", "ON", "ALL"),
    "tx_isolation": _ISOLATION,
    "transaction_isolation": _ISOLATION,
}
# What PostgreSQL reports for `on`.
_MEANINGS_OF_ON = {"wal_compression": "pglz"}


def variable_of(
    option: str, value: Setting, variables: Mapping[str, str], product: str
) -> tuple[str, Setting] | None:
    """The variable that an option sets, and the value that it sets; None if the server has no such variable.

    An option without a value has the value "".
    """
    name = variable_name(option)
    for entry in (name, *sorted(other_names(product).get(name, ()))):
        if entry in variables:
            is_bare = as_text(value) == "" and _is_switch(entry, variables)
            return entry, True if is_bare else value
    for beginning, switches_on in _SWITCHES.items():
        switched = name.removeprefix(beginning)
        if switched != name and _is_switch(switched, variables):
            is_on = as_text(value) == "" or parse_boolean(as_text(value)) is not False
            return switched, is_on == switches_on
    longer = [variable for variable in variables if variable.startswith(name)] if product == "mariadb" else []
    return (longer[0], value) if len(longer) == 1 else None


def is_effective(name: str, value: Setting, variables: Mapping[str, str]) -> bool:
    """Whether a variable of the server has the value that an option sets."""
    effective = variables[name]
    if is_equal(name, value, effective) or _is_same_file(as_text(value), effective, variables):
        return True
    if as_text(value) in map(str, range(len(_NUMBERED.get(name, ())))):
        return _NUMBERED[name][int(as_text(value))] == effective
    if name in _MEANINGS_OF_ON and parse_boolean(as_text(value)):
        return effective == _MEANINGS_OF_ON[name]
    is_name = name in _NAMES_OF_FILES and parse_boolean(as_text(value)) is None
    return is_name and effective.upper() == "ON"


def _is_switch(name: str, variables: Mapping[str, str]) -> bool:
    return variables.get(name, "").upper() in {"ON", "OFF"}


def _is_same_file(declared: str, effective: str, variables: Mapping[str, str]) -> bool:
    """Whether a declared relative path is the `effective` path: the server completes it by its data directory
    or by the directory of its programs.
    """
    folders = (variables.get(name, "") for name in ("datadir", "data_directory", "basedir"))
    relative = declared.removeprefix("./").rstrip("/")
    return bool(relative) and any(
        folder and effective.rstrip("/") == f"{folder.rstrip('/')}/{relative}" for folder in folders
    )
