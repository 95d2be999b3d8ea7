"""The codes of all checks and rules, and the short forms of the warnings of checks.

`codes.json` is generated from the registers of checks, rules and documents (`make docs`), so that an
experiment can be validated and a stored run judged without them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from dbdyno.text import compose_form

# A pattern; or patterns by the key of the evidence that each needs, with "" last. An empty pattern: the
# verdict sentence itself says it. None: the code alone.
Caveat = str | Mapping[str, str] | None


@cache
def codes() -> Mapping[str, Caveat]:
    """Code -> the short form of its warnings, if a check has one."""
    content: dict[str, Caveat] = json.loads((files("dbdyno") / "codes.json").read_text(encoding="utf-8"))
    return content


def caveat_of(code: str) -> Caveat:
    """The short form of a check's warnings."""
    return codes().get(code)


def form(caveat: Caveat, evidence: Mapping[str, object]) -> str | None:
    """The short form of one warning, with the values of its evidence."""
    if isinstance(caveat, Mapping):
        caveat = next(pattern for key, pattern in caveat.items() if not key or key in evidence)
    if not caveat:
        return caveat
    return compose_form(caveat, evidence)
