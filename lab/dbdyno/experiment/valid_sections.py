"""Validates the valid sections of a file although others are not, so that all errors are reported together.

An invalid section is replaced by a valid one. Errors in it that are found later may be consequences of the
first ones, so they are not reported.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable
from typing import Any

from dbdyno.experiment.errors import InputError
from dbdyno.experiment.overrides import SECTIONS as _SECTIONS

SECTIONS = (*_SECTIONS, "factor", "profile")
# Valid sections in place of required ones.
_VALID: dict[str, Any] = {
    "experiment": {"name": "name"},
    "workload": [{"name": "oltp_point_select"}],
    "variant": [{"name": "variant"}],
    "load": {"connections": [1], "duration": "1s"},
}


class Errors:
    """The errors of a file in the order in which they are found, and the sections that cannot be used."""

    def __init__(self) -> None:
        self.entries: list[InputError] = []
        self.invalid: set[str] = set()

    def add(
        self,
        errors: Iterable[InputError],
        *,
        invalidating: Collection[str] = (),
        unless: Collection[str] = (),
    ) -> None:
        """Add errors outside the invalid sections; none if one of the sections `unless` is invalid.

        If there are any, the sections `invalidating` cannot be used.
        """
        if self.invalid.intersection(unless):
            return
        errors = [one for one in errors if section_of(one.key) not in self.invalid]
        self.entries += [one for one in errors if one not in self.entries]
        if errors:
            self.invalid.update(invalidating)


def section_of(key: str) -> str:
    """The section of an error's key; an error in a .sql file is one of the workloads. Empty for an option."""
    match = re.match(r"[^.\[]+", key)
    if match is None or key.startswith("-"):
        return ""
    return match[0] if match[0] in SECTIONS or match[0] == key else "workload"


def use_valid_sections(document: dict[str, Any], invalid: Collection[str]) -> None:
    """Replace the invalid sections of `document`, in place; those that are not required are removed."""
    removed = {*invalid, *(("factor",) if "variant" in invalid else ())}
    for section in removed:
        document.pop(section, None)
    for section, valid in _VALID.items():
        document.setdefault(section, copy.deepcopy(valid))
    if "workload" in removed:
        # Changes of a workload that is not there.
        document["variant"] = [
            {key: value for key, value in one.items() if key != "workload"} for one in document["variant"]
        ]


def is_same_key(one: str, other: str) -> bool:
    """Whether two keys, without the names in brackets, are equal or one is below the other."""
    parts = [re.sub(r"\[[^\]]*\]", "", key).split(".") for key in (one, other)]
    length = min(map(len, parts))
    return parts[0][:length] == parts[1][:length]
