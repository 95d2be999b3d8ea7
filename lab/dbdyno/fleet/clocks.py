"""How far the clock of each host is from this machine's, measured through the carrier.

As in NTP (RFC 5905, section 8): the offset is the host's time less the middle between sending the question
and receiving the answer, and the question with the shortest round trip is the best, since half of it bounds
the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from dbdyno.fleet.carrier import Place, wait_for

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
