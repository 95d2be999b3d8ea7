r"""An engine that consists of several: it runs a plan on all of them, and its records are those of one run.

::

    plan --> segment 0 of 3 --> host a --\\
             segment 1 of 3 --> host b ---> streams --> dbdyno-engine merge --> records
             segment 2 of 3 --> host c --/

Every engine is one share of the load: connections, rate, keys, sequences and random streams follow from its
segment. The load begins on all hosts at one instant, by their measured clocks.
"""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dbdyno import passwords
from dbdyno.binary import EngineProblem
from dbdyno.experiment.base import parse_cpus
from dbdyno.experiment.model import Experiment, Fleet
from dbdyno.fleet.carrier import (
    Carrier,
    EngineLost,
    FleetProblem,
    Place,
    measure_clocks,
    wait_for_all,
)
from dbdyno.fleet.cluster import open_carrier
from dbdyno.fleet.streams import Streams
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.engine import (
    Engine,
    EngineFacts,
    EngineResult,
    Listeners,
    Request,
    drain_s,
    find_binary,
    time_limits,
)
from dbdyno.run.engine_process import STOP_S_MAX, Limits, Reader, watched

# The start is so far ahead that the command reaches every host before.
START_AHEAD_S = 0.25
# Maximum seconds to send a program or files to a host, and to start an engine.
SEND_S_MAX = 60.0
# Microseconds for which an engine waits for its start: another one may read large tables first. Engines that
# nobody reads any more are killed by their hosts.
START_WAIT_US = 24 * 3_600_000_000
# Workloads whose tables may refer to each other, or that a script loads.
_LOADED_BY_ONE = frozenset({"sql", "lua"})
# The keys of a plan whose values are paths (schema/plan.schema.json).
_FILE_KEYS = frozenset({"ca", "certificate", "file", "key", "path", "server_public_key"})
_BYTES_MAX = 256 << 20
_LOG = logging.getLogger(__name__)


def open_engine(experiment: Experiment) -> Engine:
    """The engine of an experiment: one, or a fleet. Raises EngineProblem and FleetProblem."""
    passwords.hide(experiment.secrets())
    return Engine() if experiment.fleet is None else FleetEngine(experiment.fleet)


class FleetEngine(Engine):
    """Runs plans on all engines of a fleet, and loads tables from all of them. One engine on this machine
    creates and drops tables, and loads those with rows of the user.
    """

    def __init__(self, fleet: Fleet, binary: Path | None = None, carrier: Carrier | None = None) -> None:
        """`binary` and `carrier`: by default the installed engine and those of `fleet.address`. Raises
        EngineProblem and FleetProblem.
        """
        super().__init__(binary)
        self._fleet = fleet
        self._carrier = carrier or open_carrier(fleet.address)
        self._places: Sequence[Place] = ()
        # Program -> its path on each host.
        self._programs: dict[Path, list[str]] = {}

    def close(self) -> None:
        """Stop all engines and leave the hosts."""
        self._carrier.close()

    def execute(self, request: Request, listeners: Listeners) -> EngineResult:
        """See `Engine.execute`. Raises also EngineLost if an engine no longer answers, and FleetProblem if
        there are not enough hosts.
        """
        if request.command == "run":
            return self._run_everywhere(request, listeners)
        if request.command != "prepare" or request.plan["workload"]["name"] in _LOADED_BY_ONE:
            return super().execute(request, listeners)
        try:
            return self._load(request, listeners)
        except EngineLost as problem:
            _LOG.debug("loading once more: %s", problem.text)
            return self._load(request, listeners)

    def _load(self, request: Request, listeners: Listeners) -> EngineResult:
        """Load tables from all engines; those that another attempt has left unfinished too."""
        result = super().execute(_with_part(request, "create"), listeners)
        if result.done:
            result = self._run_everywhere(_with_part(request, "fill"), listeners)
        return super().execute(_with_part(request, "complete"), listeners) if result.done else result

    def _run_everywhere(self, request: Request, listeners: Listeners) -> EngineResult:
        """Run a command on all engines."""
        self._place()
        try:
            return self._run(request, _FleetReader(self, "start" in request.plan, **vars(listeners)))
        except BaseException as error:
            # After the loss of an engine alone its place starts the next one.
            if not isinstance(error, EngineLost) or any(place.is_lost for place in self._places):
                self._release()
            raise

    def _place(self) -> None:
        if not self._places:
            self._places = self._carrier.place(self._fleet.engines, self._fleet.per_host)
            _LOG.debug(
                "placed %d engines: %s", len(self._places), ", ".join(place.name for place in self._places)
            )

    def _release(self) -> None:
        self._places = ()
        self._programs.clear()
        self._carrier.release()

    def _run(self, request: Request, reader: _FleetReader) -> EngineResult:
        places = self._places
        daemons_s = self._call_all("daemon_cpu_s")
        sources = self._start_engines(request)
        with self._start_merger() as merger:
            assert merger.stdin is not None, "standard input is a pipe"
            append = [request.open_lines(index) for index in range(len(places))]
            streams = Streams(places, merger.stdin, append, sources, drain_s(request.plan))
            reader.streams = streams
            streams.start()
            try:
                reader.read(merger, time_limits(request.command, request.plan))
            except KeyboardInterrupt:
                streams.stop()
                with suppress(Problem, KeyboardInterrupt):
                    reader.read(merger, Limits(STOP_S_MAX))
                raise
            finally:
                # After a planned end the engines end by themselves.
                if merger.poll() != 0 or not streams.join(STOP_S_MAX):
                    streams.stop()
                    # A merger that hangs reads nothing, so the streams wait for it.
                    merger.kill()
                    streams.join(STOP_S_MAX)
                merger.kill()
        # The merged records end with the failure of the first engine that has one. The others were stopped
        # because of it, and may not have written their last records.
        if streams.problem is not None and reader.end is None:
            raise streams.problem
        result = EngineResult(merger.returncode, reader.hello, reader.end, reader.stderr, is_of_fleet=True)
        if not result.done or request.command != "run":
            return result
        used_s = [
            after - before for before, after in zip(daemons_s, self._call_all("daemon_cpu_s"), strict=True)
        ]
        return replace(result, fleet=_facts(places, streams, reader.start_us, used_s))

    def start_load(self, streams: Streams) -> float:
        """Start the load of all engines at one instant, and return it in microseconds since 1970. Raises
        EngineLost.
        """
        # Not earlier: connecting may take minutes, in which a clock may change.
        streams.clocks = measure_clocks(self._places)
        slowest_us = max(clock.round_trip_us for clock in streams.clocks)
        at_us = time.time_ns() / 1000.0 + START_AHEAD_S * 1e6 + 4.0 * slowest_us
        for place, clock in zip(self._places, streams.clocks, strict=True):
            command = {"type": "start", "data": {"at_unix_us": round(at_us + clock.offset_us)}}
            place.call("send", json.dumps(command).encode() + b"\n")
        return at_us

    def _start_engines(self, request: Request) -> list[dict[str, str]]:
        """Send every engine its segment of the plan. Returns, for each, the path of a file on its host -> its
        path on this machine.
        """
        places, local, plan = self._places, self._carrier.is_local, request.plan
        programs = self._install(find_binary(plan, self.binary))
        files = {} if local else read_files(plan)
        named = {name_on_host(path): content for path, content in files.items()}
        paths = self._call_all("write_files", named) if named else [{} for _ in places]
        cpus = sorted(parse_cpus(request.cpus)) if local and request.cpus else None
        starting = []
        for index, place in enumerate(places):
            plan_of_place = replace_paths(watched(plan), partial(_path_on_host, paths[index]))
            plan_of_place["segment"] = {"index": index, "count": len(places)}
            if "start" in plan_of_place:
                plan_of_place["start"] = {"on-command": {"start_timeout_us": START_WAIT_US}}
            line = json.dumps(plan_of_place, allow_nan=False).encode() + b"\n"
            argv, environment = [programs[index], request.command], dict(request.environment)
            starting.append(place.call("start", argv, line, environment, cpus))
        wait_for_all(list(zip(places, starting, strict=True)), SEND_S_MAX)
        return [{of_host[name_on_host(path)]: path for path in files} for of_host in paths]

    def _install(self, program: Path) -> list[str]:
        """The path of a program at each place."""
        if self._carrier.is_local:
            return [str(program)] * len(self._places)
        if program not in self._programs:
            content = program.read_bytes()
            paths = self._call_all("find_program", program.name, hashlib.sha256(content).hexdigest())
            if None in paths:
                paths = self._call_all("install", program.name, self._carrier.share(content))
            self._programs[program] = paths
        return self._programs[program]

    def _call_all(self, method: str, *arguments: object) -> list[Any]:
        return wait_for_all([(place, place.call(method, *arguments)) for place in self._places], SEND_S_MAX)

    def _start_merger(self) -> subprocess.Popen[bytes]:
        """The process that merges the records. Ctrl-C does not reach it."""
        names = [place.name for place in self._places]
        try:
            return subprocess.Popen(
                [self.binary, "merge", *names],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise EngineProblem(f"the load engine {self.binary} does not start: {error}") from error


class _FleetReader(Reader):
    """Reads the merged records; the load starts on all engines when all are ready."""

    def __init__(self, engine: FleetEngine, waits_for_start: bool, **listeners: Any) -> None:
        super().__init__(waits_for_start, **listeners)
        self._engine = engine
        self.streams: Streams | None = None
        # The instant of the start in microseconds since 1970.
        self.start_us = 0.0

    def start(self, process: subprocess.Popen[bytes]) -> None:  # noqa: ARG002 — the merger needs no start.
        """Start the load of all engines."""
        assert self.streams is not None, "records come from streams"
        self.start_us = self._engine.start_load(self.streams)


def _with_part(request: Request, part: str) -> Request:
    """The request for one part of loading."""
    return replace(
        request, plan={**request.plan, "loading": {**request.plan.get("loading", {}), "part": part}}
    )


def _path_on_host(paths: Mapping[str, str], path: str) -> str:
    """Where a file of this machine is on a host that has `paths`."""
    return paths.get(name_on_host(path), path)


def _facts(
    places: Sequence[Place], streams: Streams, start_us: float, daemons_s: Sequence[float]
) -> list[EngineFacts]:
    """What is known about each engine of a run that ended as planned."""
    facts: list[EngineFacts] = []
    for index, (place, clock) in enumerate(zip(places, streams.clocks, strict=True)):
        measured = streams.ends[index]["phases"].get("measure", {})
        events = int(measured.get("events", 0))
        facts.append(
            {
                "name": place.name,
                "host": place.host,
                "clock_offset_us": round(clock.offset_us),
                "round_trip_us": round(clock.round_trip_us),
                "start_skew_us": round(streams.starts_us[index] - start_us),
                "events": events,
                "latency_mean_us": measured["latency_sum_us"] / events if events else None,
                "generator_cpu": measured.get("generator", {}).get("cpu"),
                "cpu_s": streams.ends[index]["cpu_us"] / 1e6,
                "daemons_cpu_s": round(daemons_s[index], 3),
            }
        )
    return facts


def read_files(plan: Mapping[str, Any]) -> dict[str, bytes]:
    """Path -> content of each file that the plan names. A script brings the other scripts of its folder,
    which it may load. Raises FleetProblem.
    """
    paths: set[Path] = set()

    def note(path: str) -> str:
        paths.add(Path(path))
        return path

    replace_paths(plan, note)
    for script in [path for path in paths if path.suffix == ".lua"]:
        paths.update(script.parent.glob("*.lua"))
    try:
        files = {str(path): path.read_bytes() for path in sorted(paths)}
    except OSError as error:
        raise FleetProblem(
            f"{error.filename} cannot be read: {error.strerror}", exit_code=ExitCode.USAGE
        ) from error
    if (size := sum(map(len, files.values()))) > _BYTES_MAX:
        raise FleetProblem(
            f"the files of the workload have {size >> 20} MB; a fleet sends at most {_BYTES_MAX >> 20} MB to "
            "each host",
            "Use shorter files, or one load generator",
            ExitCode.USAGE,
        )
    return files


def name_on_host(path: str) -> str:
    """The name of a sent file: files of one folder stay together."""
    return path.lstrip("/")


def replace_paths(value: Any, path_of: Callable[[str], str], key: str = "") -> Any:
    """A plan with `path_of(path)` for the path of each file of this machine."""
    if isinstance(value, Mapping):
        return {name: replace_paths(entry, path_of, name) for name, entry in value.items()}
    if isinstance(value, list):
        return [replace_paths(entry, path_of, key) for entry in value]
    is_file = key in _FILE_KEYS and isinstance(value, str) and value.startswith("/") and Path(value).is_file()
    return path_of(value) if is_file else value
