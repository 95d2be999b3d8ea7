"""The options --max-loss and --undecided of `compare` and `report`, and the exit codes of the gate."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dbdyno.experiment.stop import parse_percent
from dbdyno.problem import ExitCode, Problem
from dbdyno.store.verdict import Gate


class Undecided(StrEnum):
    """What an undecided gate counts as."""

    PASS = "pass"  # noqa: S105 — not a password.
    FAIL = "fail"


MaxLoss = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Exit with 0 if no variant is worse by more than this, with 1 if one is, with 5 if undecided.",
    ),
]
UndecidedAs = Annotated[
    Undecided | None,
    typer.Option(help="With --max-loss: exit with 0 or 1 instead of 5."),
]


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
