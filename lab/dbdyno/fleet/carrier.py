"""The interface of carriers, which place engines on hosts and call them.

A carrier has three verbs: place engines, call a method of `EngineHost` at a place, and release the places.
Everything else that a fleet does is the same for each carrier. It measures
the clocks of hosts through the carrier.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, ClassVar

from dbdyno.binary import EngineProblem
from dbdyno.problem import ExitCode, Problem

# Maximum seconds for an answer.
ANSWER_S_MAX = 10.0
# A place that does not answer a short call within this time is lost, whatever the cause: its process, its
# host or the network. A longer call comes with short ones, one after the other, the first after PING_S.
LOST_S, PING_S = 2.0, 0.5


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
    # Whether a call failed or was not answered in time: no other call is worth waiting for.
    is_lost: bool = False

    @abstractmethod
    def call(self, method: str, *arguments: object) -> Future[Any]:
        """Call a method of the place's `EngineHost`; `wait_for` returns the result."""

    def explain(self, error: Exception) -> str:
        """Why a call failed, in a few words."""
        return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def wait_for(place: Place, future: Future[Any], seconds: float = ANSWER_S_MAX) -> Any:
    """The result of a call. Raises EngineLost if it fails, if there is none in time, or if the place does not
    answer another call meanwhile.
    """
    (result,) = wait_for_all([(place, future)], seconds)
    return result


def wait_for_all(calls: Sequence[tuple[Place, Future[Any]]], seconds: float = ANSWER_S_MAX) -> list[Any]:
    """The results of calls, in order. Raises EngineLost as `wait_for` does."""
    began = time.monotonic()
    pings: dict[Place, tuple[Future[Any], float]] = {}
    while waiting := [(place, future) for place, future in calls if not future.done()]:
        left_s = seconds - (time.monotonic() - began)
        wait([future for _, future in waiting], max(0.0, min(PING_S, left_s)))
        if failed := [(place, future) for place, future in calls if future.done() and future.exception()]:
            calls = failed
            break
        for place, future in waiting:
            if future.done():
                continue
            if left_s <= 0.0:
                raise lose(place, f"it did not answer within {seconds:g} s")
            ping, asked = pings.get(place, (None, 0.0))
            if ping is None or ping.done():
                pings[place] = place.call("clock_us"), time.monotonic()
            elif time.monotonic() - asked > LOST_S:
                raise lose(place, f"no answer for {LOST_S:g} s")
    return [_result(place, future) for place, future in calls]


def lose(place: Place, why: str) -> EngineLost:
    """Note that a place is lost."""
    place.is_lost = True
    return EngineLost(place.name, why)


def _result(place: Place, future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        raise lose(place, place.explain(error)) from error


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


QUESTIONS = 8


@dataclass(frozen=True)
class Clock:
    """The clock of a host."""

    # Microseconds by which the host's clock is ahead of this machine's.
    offset_us: float
    # The shortest round trip of a question in microseconds; half of it is the largest error of the offset.
    round_trip_us: float


def measure_clocks(places: Sequence[Place]) -> list[Clock]:
    """The clock of each place, in order. Raises EngineLost."""
    answers: list[list[Clock]] = [[] for _ in places]
    for _ in range(QUESTIONS):
        questions = []
        for place in places:
            began = time.time_ns() / 1000.0
            future = place.call("clock_us")
            ended: list[float] = []
            future.add_done_callback(_note_time(ended))
            questions.append((began, future, ended))
        for place, of_place, (began, future, ended) in zip(places, answers, questions, strict=True):
            host_us = wait_for(place, future)
            end = ended[0] if ended else time.time_ns() / 1000.0
            of_place.append(Clock(host_us - (began + end) / 2.0, end - began))
    return [min(of_place, key=lambda clock: clock.round_trip_us) for of_place in answers]


def _note_time(times: list[float]) -> Callable[[Future[Any]], None]:
    """A callback that notes when a future is done, in microseconds since 1970."""
    return lambda _future: times.append(time.time_ns() / 1000.0)
