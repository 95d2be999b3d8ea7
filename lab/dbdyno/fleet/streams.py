"""Reads the records of all engines of a fleet, and passes them to the program that merges them.

Each place has one call of `read` in progress, which returns after half a second even if the engine has
written nothing. So a place that does not answer for some seconds is lost, whatever the cause: the engine, its
process, its host or the network, also in phases in which engines wait for a server and write nothing. An
engine that writes no record while others do is lost too. All other engines then stop.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import IO, Any

from dbdyno.binary import EngineProblem
from dbdyno.fleet.carrier import LOST_S, Clock, EngineLost, Place, lose, wait_for
from dbdyno.problem import ExitCode, Problem
from dbdyno.store.records import parse

# Seconds that `read` waits for a record.
READ_S = 0.5
# Seconds after which an engine under load that has written no record hangs, and within which another one must
# have written to show that the load goes on.
SILENT_S, WRITES_S = 3.0, 1.5
# Seconds between two looks at the times of the last answers.
CHECK_S = 0.25
# Maximum seconds until the answers of places that stop.
STOP_S_MAX = 1.5
_HELLO, _PHASE, _END = b'{"type":"hello"', b'{"type":"phase"', b'{"type":"end"'
_LOG = logging.getLogger(__name__)


class Streams:
    """The output of the engines of one run, read by a thread."""

    def __init__(
        self,
        places: Sequence[Place],
        merger: IO[bytes],
        append: Sequence[Callable[[bytes], None]],
        sources: Sequence[Mapping[str, str]],
        drain_s: float,
    ) -> None:
        """`merger` is the input of `dbdyno-engine merge`; `append` keeps the lines of each engine, which
        waits up to `drain_s` for transactions in flight at the end. `sources` is, for each engine, the path
        of a file on its host -> the path on this machine.
        """
        self._sources, self._drain_s = sources, drain_s
        self._places, self._merger, self._append = places, merger, append
        # The clock of each place, measured before the load begins.
        self.clocks: Sequence[Clock] = ()
        # Why the run has no result; None if every engine answered.
        self.problem: Problem | None = None
        # Microseconds since 1970 by this machine's clock at which the load began on each engine.
        self.starts_us: dict[int, float] = {}
        # When each engine last wrote a record, or when the load began if that is later.
        self._wrote: dict[int, float] = {}
        # The last record of each engine.
        self.ends: dict[int, dict[str, Any]] = {}
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait until every engine has ended; returns whether they have."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop all engines; return when they have ended, or after a time limit."""
        stopping = {place.call("stop"): place for place in self._places if not place.is_lost}
        done, _ = wait(stopping, STOP_S_MAX)
        # A place that does not answer stops its engine itself, because nobody reads its records.
        for future, place in stopping.items():
            place.is_lost = future not in done or future.exception() is not None

    def _run(self) -> None:
        try:
            self._read_all()
        except Problem as problem:
            self.problem = problem
            _LOG.debug("%s", problem.text)
            self.stop()
        finally:
            with suppress(OSError):
                self._merger.close()

    def _read_all(self) -> None:
        now = time.monotonic()
        reading: dict[Future[Any], tuple[int, float]] = {
            place.call("read", READ_S): (index, now) for index, place in enumerate(self._places)
        }
        while reading:
            done, _ = wait(reading, CHECK_S, FIRST_COMPLETED)
            for future in done:
                index, _ = reading.pop(future)
                if not self._handle(index, future):
                    reading[self._places[index].call("read", READ_S)] = (index, time.monotonic())
            self._require_answers(reading.values())
            self._require_records(time.monotonic())

    def _require_answers(self, reading: Iterable[tuple[int, float]]) -> None:
        """Raise EngineLost if a place has not answered for a time. `reading` has the places that were asked,
        and when.
        """
        now = time.monotonic()
        silent_s = {index: now - asked - READ_S for index, asked in reading}
        if max(silent_s.values(), default=0.0) > LOST_S:
            late = [index for index, silent in silent_s.items() if silent > LOST_S / 2.0]
            # All that are late: nobody waits for their answers to `stop`.
            errors = [lose(self._places[index], f"no answer for {LOST_S:g} s") for index in late]
            raise errors[0]

    def _require_records(self, now: float) -> None:
        """Raise EngineLost if an engine hangs under load, when each writes several records a second,
        or does not end after it has waited for transactions in flight.
        """
        # The engines begin together, so all are under load when one is.
        running = [index for index in self._wrote if index not in self.ends]
        if not self.starts_us or not running:
            return
        index = min(running, key=lambda entry: self._wrote[entry])
        others_write = not self.ends and now - max(self._wrote.values()) < WRITES_S
        limit_s = SILENT_S if others_write else SILENT_S + self._drain_s
        if now - self._wrote[index] > limit_s:
            raise EngineLost(self._places[index].name, f"it wrote no record for {limit_s:g} s")

    def _handle(self, index: int, future: Future[Any]) -> bool:
        """Pass on what an engine wrote; returns whether it has ended. Raises EngineLost."""
        name = self._places[index].name
        lines, status, stderr = wait_for(self._places[index], future)
        if lines:
            self._wrote[index] = time.monotonic()
        self._pass_on(index, [self._note(index, line) for line in lines])
        if status is not None and index not in self.ends:
            reason = stderr.strip() or f"it ended with status {status}"
            if status == ExitCode.USAGE:
                raise EngineProblem(f"{name}: {reason}")
            raise EngineLost(name, f"{reason}, without its last record")
        return status is not None

    def _note(self, index: int, line: bytes) -> bytes:
        """Keep a line, and what the fleet needs of it. Returns it with times of this machine's clock."""
        self._append[index](line)
        if line.startswith(_HELLO):
            # The plans are equal but for the paths of their files.
            for path, source in self._sources[index].items():
                line = line.replace(_quote(path), _quote(source))
        elif line.startswith(_END):
            self.ends[index] = parse(line)["data"]
        elif line.startswith(_PHASE):
            record = parse(line)
            phase = record["data"]
            phase["at_unix_us"] = round(phase["at_unix_us"] - self.clocks[index].offset_us)
            if not self.starts_us:
                # While they connect, engines write nothing, and the records of the others arrive later.
                self._wrote = dict.fromkeys(self._wrote, time.monotonic())
            self.starts_us.setdefault(index, phase["at_unix_us"] - phase["at_us"])
            return json.dumps(record).encode() + b"\n"
        return line

    def _pass_on(self, index: int, lines: Sequence[bytes]) -> None:
        # The merger ends with the last record of the run: of the last engine, or the first that failed.
        with suppress(BrokenPipeError, ValueError):
            self._merger.writelines(b"%d " % index + line for line in lines)
            self._merger.flush()


def _quote(text: str) -> bytes:
    """A text in JSON, as an engine writes it."""
    return json.dumps(text, ensure_ascii=False).encode()
