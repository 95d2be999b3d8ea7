"""The type of findings (results of the checks before, during and after a run), and the codes of all checks
and rules with the short forms of the warnings of checks.

`codes.json` is generated from the registers of checks, rules and documents (`make docs`), so that an
experiment can be validated and a stored run judged without them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from dbdyno.text import Composed, Text, compose, compose_form, join

Level = Literal["stop", "warn", "note"]

# A JSON object whose keys are not fixed: they depend on the check, the server or the machine.
FreeForm = Mapping[str, Any]

# The most severe first.
LEVELS: tuple[Level, ...] = ("stop", "warn", "note")
SEVERITIES = {"stop": compose("stop"), "warn": compose("warning"), "note": compose("note")}


@dataclass(frozen=True, config=ConfigDict(use_attribute_docstrings=True))
class Finding:
    """One finding, as checks.json and verdict.json store it."""

    code: str
    """Code of the check, such as "P07"; docs/checks.md lists them."""
    level: Level
    """stop: the results must not be compared, unless overridden; warn: shown with the verdict; note: shown
    only in the report."""
    text: Composed
    """What the check found, with the measured values and their limits; then the consequence for the
    results."""
    evidence: FreeForm = field(default_factory=dict)
    """The values that the text mentions, for programs; the keys depend on the check."""
    subject: str = ""
    """The variant that has the problem; empty for the whole experiment."""
    override: str | None = None
    """The reason that [override] in the experiment gives; null without one."""
    fix: Composed = ""
    """How to fix the cause; empty if the text says it or nothing can be done."""

    @property
    def is_blocking(self) -> bool:
        """Whether the finding forbids a comparison: a stop without an override."""
        return self.level == "stop" and self.override is None

    @property
    def how_to_override(self) -> str:
        """The option with which a comparison goes on in spite of a finding that forbids it."""
        return compose("to go on all the same: --set 'override.{code}=\"REASON\"'", code=self.code)

    @property
    def summary(self) -> str:
        """Code, subject and message in one line."""
        return join("", (self.code, f" {self.subject}" if self.subject else "", ": ", self.message))

    @property
    def clause(self) -> str:
        """The text without the period that runs of older versions have at its end."""
        return self.text if isinstance(self.text, Text) else self.text.strip().rstrip(".")

    @property
    def message(self) -> str:
        """Text and fix, each as a sentence."""
        parts = (part for part in (self.text, self.fix) if part)
        return join(
            " ", [part if part.endswith((".", "?", "!")) else join("", (part, ".")) for part in parts]
        )


FINDINGS = TypeAdapter(list[Finding])


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
