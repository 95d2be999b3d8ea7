"""The interface of carriers, which place engines on hosts and call them.

A carrier has three verbs: place engines, call a method of `EngineHost` at a place, and release the places.
Everything else that a fleet does is the same for each carrier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from dbdyno.binary import EngineProblem
from dbdyno.problem import ExitCode, Problem

# Maximum seconds for an answer.
ANSWER_S_MAX = 10.0


class EngineLost(EngineProblem):
    """An engine, or its host, no longer answers. The trial has failed, and another attempt may succeed."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f"the engine on {where} was lost: {why}. All other engines were stopped, and the trial has no "
            "result",
            exit_code=ExitCode.NOT_COMPARABLE,
        )


class FleetProblem(Problem):
    """There are not enough hosts for a fleet, or one cannot be used. It ends the experiment, which can be
    resumed.
    """

    def __init__(self, text: str, fix: str = "", exit_code: int = ExitCode.NOT_COMPARABLE) -> None:
        super().__init__(text, fix, exit_code)


class Place(ABC):
    """Where one engine of a fleet runs."""

    # Name for messages: that of the host, with a number if the host has several engines.
    name: str
    # Address or name of the host.
    host: str

    @abstractmethod
    def call(self, method: str, *arguments: object) -> Future[Any]:
        """Call a method of the place's `EngineHost`; `wait_for` returns the result."""

    def explain(self, error: Exception) -> str:
        """Why a call failed, in a few words."""
        return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def wait_for(place: Place, future: Future[Any], seconds: float = ANSWER_S_MAX) -> Any:
    """The result of a call. Raises EngineLost if it fails, or if there is none in time."""
    try:
        return future.result(seconds)
    except TimeoutError:
        raise EngineLost(place.name, f"it did not answer within {seconds:g} s") from None
    except Exception as error:
        raise EngineLost(place.name, place.explain(error)) from error


class Carrier(ABC):
    """Places engines on hosts."""

    # Whether every place is on this machine, with its files, programs and CPUs.
    is_local: ClassVar[bool]

    @abstractmethod
    def place(self, engines: int, per_host: int) -> Sequence[Place]:
        """Places for so many engines, at most `per_host` on each host, in the order of their segments. All of
        them, or none: raises FleetProblem.
        """

    @abstractmethod
    def count_hosts(self) -> int:
        """Number of hosts that engines can be placed on. Raises FleetProblem."""

    @abstractmethod
    def release(self) -> None:
        """End what runs at the places. Idempotent."""

    def share(self, content: bytes) -> object:
        """Content that is an argument of several calls, in a form that is sent to each host once."""
        return content

    def close(self) -> None:
        """Release the places and disconnect."""
        self.release()
