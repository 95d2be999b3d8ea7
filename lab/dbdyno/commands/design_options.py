"""The options of `compare` that change keys of the experiment: --blocks, --fleet and --max-loss; and with
--max-loss, also of `report`: --undecided, and the exit codes of the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.commands.choices import Undecided
from dbdyno.experiment.base import parse_percent
from dbdyno.problem import ExitCode, Problem

if TYPE_CHECKING:
    # Slow, and the options of a command need only the functions.
    from dbdyno.store.verdict import Gate


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


def parse_max_loss(text: str) -> float:
    """The allowed loss in percent. Raises Problem."""
    percent = parse_percent(text)
    if percent is None or not 0.0 < percent < 100.0:
        raise Problem(
            f"--max-loss {text}: this is not a percentage between 0 and 100",
            "Write a number and %, such as --max-loss 3%",
        )
    return percent


def require_max_loss(undecided: Undecided | None, max_loss_percent: float | None) -> None:
    """Raise Problem for --undecided without a gate."""
    if undecided is not None and max_loss_percent is None:
        raise Problem(
            "--undecided has no effect without --max-loss or design.max_loss_percent",
            "Add --max-loss 3%, for example",
        )


def exit_code(gate: Gate, undecided: Undecided | None) -> ExitCode:
    """The exit code of a gate's result."""
    match gate.result:
        case "not-inferior":
            return ExitCode.DONE
        case "worse":
            return ExitCode.WORSE
        case "not-comparable":
            return ExitCode.NOT_COMPARABLE
        case "undecided":
            mapped = {None: ExitCode.UNDECIDED, Undecided.PASS: ExitCode.DONE, Undecided.FAIL: ExitCode.WORSE}
            return mapped[undecided]
