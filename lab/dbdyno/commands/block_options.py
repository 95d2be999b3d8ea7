"""The options of `compare` that change keys of the experiment."""

from __future__ import annotations

from dbdyno.commands.gating import parse_max_loss
from dbdyno.problem import Problem


def parse_blocks(text: str | None, *, resume: bool) -> tuple[int | None, int | None]:
    """The number of blocks that replaces the plan of the file, and the number to add to a run. Raises
    Problem.
    """
    if text is None:
        return None, None
    number = text.removeprefix("+")
    if not number.isdecimal() or int(number) == 0:
        raise Problem(
            f"--blocks {text}: this is not a number of blocks", "Write --blocks 8, or --resume --blocks +4"
        )
    if not text.startswith("+"):
        return int(number), None
    if not resume:
        raise Problem(f"--blocks {text} adds blocks to a run", "Add --resume, or write the number without +")
    return None, int(number)


def design_changes(blocks: int | None, max_loss: str | None) -> list[str]:
    """The options as changes of keys of the experiment file. Raises Problem."""
    changes = [] if blocks is None else [f"design.blocks={blocks}"]
    return changes if max_loss is None else [*changes, f"design.max_loss_percent={parse_max_loss(max_loss)}"]


def fleet_changes(engines: int | None) -> list[str]:
    """The option --fleet as a change of a key of the experiment file."""
    return [] if engines is None else [f"fleet.engines={engines}"]
