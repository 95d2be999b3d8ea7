"""Names and defaults of variables by version: renamed.toml and defaults.toml, which explain their keys."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from dbdyno.experiment.quantities import is_equal, number


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
    return {(one["name"], one.get("flag", "")): one for one in entries if one["product"] == product}


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
    one, other = (_rule_of_version(product, version, name, "") for version in versions)
    return one is not None and one is other and "default" not in one


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
    pairs = [(one.old[0], one.new[0]) for one in renamings(product) if one.change["conversion"] == "same"]
    names: dict[str, frozenset[str]] = {}
    for pair in (*pairs, *(two[::-1] for two in pairs)):
        names[pair[0]] = names.get(pair[0], frozenset()) | {pair[1]}
    return names


def renamings(product: str) -> Iterator[Renaming]:
    """The variables of a product that were renamed or replaced."""
    for one in _table("renamed.toml")["change"]:
        if one["product"] == product and one["old"] and one["new"]:
            yield Renaming(tuple(one["old"]), tuple(one["new"]), one)
