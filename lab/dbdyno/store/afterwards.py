"""chosen_afterwards.json: what was chosen about the judgement of a run when data of the run had been seen.

In the folder of a run it has the overrides that a call of `compare --resume` changed; in the folder of a
later judgement (`store/judgement.py`) what that judgement changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dbdyno.store.document import Document, DocumentPart, Optional
from dbdyno.text import Text, compose, compose_count, join, join_some

FILE = "chosen_afterwards.json"
OVERRIDE = "override."
# Maximum number of choices that a sentence names, and of values that a choice names.
NAMED_MAX = 4


class KeyChange(DocumentPart):
    """A key of the experiment whose value was changed."""

    key: str
    """The key, as in design.delta_percent."""
    was: Any
    """The value before; null if there was none."""
    now: Any
    """The value now; null if it was removed."""


class LeftOut(DocumentPart):
    """Measured data that the judgement does not use."""

    blocks: list[int] = Field(default_factory=list)
    """Numbers of blocks, from 1, as in reports."""
    connections: list[int] = Field(default_factory=list)
    """Loads by their number of connections."""
    rates: list[float] = Field(default_factory=list)
    """Loads by their rate, in transactions per second."""
    workloads: list[str] = Field(default_factory=list)
    """Titles of workloads."""


class ChosenAfterwards(DocumentPart):
    """What was chosen about the judgement when data of the run had been seen."""

    unix_us: int
    """When it was chosen."""
    trials: int
    """Number of trials that were measured before."""
    changes: list[KeyChange]
    """The keys that were changed."""
    left_out: Optional[LeftOut] = None
    """Present if data were left out."""
    reason: Optional[str] = None
    """Why, in the words of the user."""

    def texts(self) -> Iterator[Text]:
        """Each choice in a few words."""
        for change in self.changes:
            if change.key.startswith(OVERRIDE):
                code = change.key.removeprefix(OVERRIDE)
                yield (
                    compose("no override of {code}", code=code)
                    if change.now is None
                    else compose("override of {code}", code=code)
                )
            else:
                was, now = _shown(change.was), _shown(change.now)
                yield compose("{key} {now} instead of {was}", key=change.key, now=now, was=was)
        if self.left_out is None:
            return
        if blocks := self.left_out.blocks:
            numbers = _listed(blocks)
            yield compose_count(
                len(blocks), "block {numbers} left out", "blocks {numbers} left out", numbers=numbers
            )
        if connections := self.left_out.connections:
            yield compose("connections {values} left out", values=_listed(connections))
        if rates := self.left_out.rates:
            yield compose("rate {values} left out", values=_listed(rates))
        if workloads := self.left_out.workloads:
            yield compose("{titles} left out", titles=_listed(workloads))


def choices_text(choices: Sequence[ChosenAfterwards]) -> Text:
    """All choices in a few words."""
    return join_some([text for choice in choices for text in choice.texts()], NAMED_MAX)


def _listed(values: Sequence[float | str]) -> Text:
    return join_some([_shown(value) for value in values], NAMED_MAX)


def _shown(value: Any) -> str:
    match value:
        case None:
            return compose("none")
        case list() | tuple():
            return join(", ", [_shown(entry) for entry in value])
        case int() | float():
            return f"{value:g}"
    return str(value)


class AfterwardsFile(Document):
    """The content of chosen_afterwards.json."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """The version of this file's schema."""
    choices: list[ChosenAfterwards]
    """The choices, oldest first."""


def read_choices(folder: Path) -> list[ChosenAfterwards]:
    """The choices in a folder, oldest first. Raises StoreProblem."""
    file = AfterwardsFile.read(folder / FILE)
    return [] if file is None else file.choices


def changed_overrides(was: Mapping[str, str], now: Mapping[str, str]) -> list[KeyChange]:
    """The changes from one table [override] to another."""
    codes = sorted({code for code in {*was, *now} if was.get(code) != now.get(code)})
    return [KeyChange(key=f"{OVERRIDE}{code}", was=was.get(code), now=now.get(code)) for code in codes]


def override_changes(changes: Sequence[KeyChange]) -> dict[str, str | None]:
    """Code of a check -> the changed reason, or None if there is no override any more."""
    return {
        change.key.removeprefix(OVERRIDE): change.now for change in changes if change.key.startswith(OVERRIDE)
    }
