"""Reads the records of all engines of a fleet, and passes them to the program that merges them.

Each place has one call of `read` in progress, which returns after half a second even if the engine has
written nothing. So a place that does not answer for some seconds is lost, whatever the cause: the engine, its
process, its host or the network. An engine that writes no record while others do is lost too. All other
engines then stop.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import IO, Any

from dbdyno.binary import EngineProblem
from dbdyno.fleet.carrier import EngineLost, Place, wait_for
from dbdyno.fleet.clocks import Clock
from dbdyno.problem import ExitCode, Problem

# Seconds that `read` waits for a record, and after which a place that has not answered is lost.
READ_S, LOST_S = 0.5, 3.0
# Seconds within which an engine under load has written a record, unless it hangs.
WRITES_S = 1.5
# Maximum seconds until the answers of places that stop.
STOP_S_MAX = 4.0
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
        # When each engine last wrote a record.
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
        stopping = [place.call("stop") for place in self._places]
        # A place that does not answer stops its engine itself, because nobody reads its records.
        wait(stopping, STOP_S_MAX)

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
            done, _ = wait(reading, READ_S, FIRST_COMPLETED)
            for future in done:
                index, _ = reading.pop(future)
                if not self._handle(index, future):
                    reading[self._places[index].call("read", READ_S)] = (index, time.monotonic())
            now = time.monotonic()
            for index, asked in reading.values():
                if now - asked > READ_S + LOST_S:
                    raise EngineLost(self._places[index].name, f"no answer for {LOST_S:g} s")
            self._require_records(now)

    def _require_records(self, now: float) -> None:
        """Raise EngineLost if an engine hangs under load, when each writes several records a second,
        or does not end after it has waited for transactions in flight.
        """
        # The engines begin together, so all are under load when one is.
        running = [index for index in self._wrote if index not in self.ends]
        if not self.starts_us or not running:
            return
        index = min(running, key=lambda one: self._wrote[one])
        others_write = not self.ends and now - max(self._wrote.values()) < WRITES_S
        limit_s = LOST_S if others_write else LOST_S + self._drain_s
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
            self.ends[index] = json.loads(line)["data"]
        elif line.startswith(_PHASE):
            record = json.loads(line)
            phase = record["data"]
            phase["at_unix_us"] = round(phase["at_unix_us"] - self.clocks[index].offset_us)
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
