"""A sweep over one server that is there: its data, its points in the given order, and nothing left behind.

::

    capacity checked -> tables loaded, or those that are there checked -> each point -> checks -> tables
    dropped

It prints nothing; what happens goes to `tell` and into the run's folder, as with a comparison. Only tables
that this sweep has loaded are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.checks.p02_data import shapes
from dbdyno.checks.tables import DataSpec
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload
from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress
from dbdyno.run.engine import Engine
from dbdyno.run.holding import cleanup
from dbdyno.run.loading import Tell, must_load, prepare, require_empty
from dbdyno.run.trial import death, give_up, run_trial
from dbdyno.servers.server import Server
from dbdyno.store import Run

# A table's comment while the engine loads it: a load that was cut short, which the next one begins again.
UNFINISHED = "dbdyno loading"

# The design of a sweep is its purpose, and it compares nothing.
_DESIGN_CODES = ("P07", "P08", "P11")
_READY_CODES = ("P07",)
_DATA_CODES = ("P02",)
_LOADED_CODES = (*_DATA_CODES, "P08", "P09")
_AFTER_CODES = ("P02", "P03")


@dataclass(frozen=True)
class SweepEnd:
    """How a sweep ended."""

    done: int
    failed: int
    # Findings that forbid using its numbers; empty when all went its way.
    stops: tuple[Finding, ...]


def sweep(
    experiment: Experiment, run: Run, server: Server, tell: Tell, engine: Engine, *, keep_data: bool
) -> SweepEnd:
    """Measure every point of a one-variant experiment on `server`, which has been started.

    Raises Problem (loading, foreign tables, the engine, the store) and lets KeyboardInterrupt through.
    Either way the points that ended are kept, and the tables it made are dropped unless `keep_data`.
    """
    return _Sweep(experiment, run, server, tell, engine).conduct(keep_data=keep_data)


class _Sweep:
    """One sweep in progress."""

    def __init__(self, experiment: Experiment, run: Run, server: Server, tell: Tell, engine: Engine) -> None:
        assert len(experiment.variants) == len(experiment.workloads) == 1, "a sweep is over one of each"
        self._experiment, self._run, self._server = experiment, run, server
        self._tell, self._engine = tell, engine
        self._workload = experiment.workloads[0]
        # While the user's own set-up runs.
        self._untold = False
        self._context = Context(
            experiment,
            variant=experiment.variants[0],
            server=server,
            description=server.describe(),
            workload=self._workload,
        )

    def conduct(self, *, keep_data: bool) -> SweepEnd:
        """Everything, in order."""
        # Before anything is loaded: a limit that stands in the way of the last point is told now.
        stops = self._check(Moment.DESIGN, _DESIGN_CODES) + self._check(Moment.READY, _READY_CODES)
        if stops:
            return SweepEnd(0, 0, tuple(stops))
        with self._data(keep_data=keep_data):
            stops = self._check(Moment.READY, _LOADED_CODES)
            if stops:
                return SweepEnd(0, 0, tuple(stops))
            done, failed, dead = self._points()
            stops = [] if dead else self._check(Moment.AFTER_GROUP, _AFTER_CODES)
        return SweepEnd(done, failed, tuple(stops))

    @contextmanager
    def _data(self, *, keep_data: bool) -> Iterator[None]:
        """The tables: those that are there, which stay, or ours, which go."""
        if self._are_there():
            self._say("using the tables that are there; they stay")
            yield
            return
        try:
            self._load()
            yield
        except BaseException:
            # A set-up of the user's own that broke off has made nobody knows what.
            if self._untold:
                self._say(
                    f"the set-up did not come to its end: {self._leftover_way_out()}, what there is of it"
                )
                raise
            # Whatever went wrong is the thing to hear about, even when the tables cannot be dropped either.
            if not keep_data and (why := self._drop()):
                self._say(why)
            raise
        if not keep_data and (why := self._drop()):
            raise Problem(why, self._leftover_way_out(), ExitCode.NOT_COMPARABLE)

    def _are_there(self) -> bool:
        """Whether there is something to run over. Raises Problem where it is not what the options ask for."""
        workload = self._workload
        if isinstance(workload, ScriptWorkload):
            if workload.prepare:
                require_empty(workload, self._server)
            return not workload.prepare
        if isinstance(workload, SqlWorkload):
            there = not must_load(workload, self._server)
            count = len(workload.made(self._server.address().protocol))
        else:
            found = shapes(self._server, DataSpec.of(workload).names())
            # A load that was cut short is begun again.
            count = sum(shape.comment != UNFINISHED for shape in found.values())
            there = count > 0
        if there and count:
            self._require_fit(count)
        return there

    def _require_fit(self, count: int) -> None:
        """Foreign tables are used when they are what the options say, and never touched otherwise."""
        self._say(f"{_tables(count)} there already: checking against the options")
        if self._check(Moment.READY, _DATA_CODES):
            # Somebody else's tables under our names are a matter of the options, not of the measurement.
            raise Problem(
                f"the tables in {self._server.address().database} are not what the options ask for (see "
                "above)",
                "They were left as they are. Give the options they were loaded with (--tables, --table-size, "
                "--set), name another database in --target, or drop them yourself",
                ExitCode.USAGE,
            )

    def _load(self) -> None:
        workload = self._workload
        self._say(f"loading {workload.data_text()}")
        self._untold = not isinstance(workload, OltpWorkload)
        result = prepare(self._experiment, workload, self._server, self._engine, self._tell)
        self._untold = False
        # What the engine says it will do is surer than what the options promise.
        self._context = replace(self._context, hello=result.hello)

    def _drop(self) -> str:
        """Drop our tables; why it failed, or nothing."""
        self._say("dropping the tables")
        try:
            why = cleanup(self._experiment, self._workload, self._server, self._engine)
        except Problem as problem:
            why = problem.text
        return f"the tables could not be dropped: {why}" if why else ""

    def _leftover_way_out(self) -> str:
        database = self._server.address().database
        if isinstance(self._workload, ScriptWorkload):
            return f"Drop what {self._workload.title} has made in {database} yourself"
        if isinstance(self._workload, SqlWorkload):
            made = self._workload.made(self._server.address().protocol)
            return f"Drop {', '.join(made)} in {database} yourself"
        names = DataSpec.of(self._workload).names()
        told = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        return f"Drop {told} in {database} yourself; the comment begins with dbdyno"

    def _points(self) -> tuple[int, int, str]:
        """Every point: how many are done, how many failed, and why the server is dead, if it is."""
        description = self._context.description
        assert description is not None, "it was described when the sweep began"
        done, failed, dead = 0, 0, ""
        for trial in schedule(self._experiment):
            self._tell(progress.TrialBegan(trial, 0.0, 0.0))
            if dead:
                stored = give_up(self._run, self._experiment, trial, self._server, dead)
            else:
                outcome = run_trial(
                    self._run,
                    self._experiment,
                    trial,
                    server=self._server,
                    description=description,
                    engine=self._engine,
                )
                stored = outcome.stored
            reason = str(stored.meta.get("reason", ""))
            self._tell(progress.TrialEnded(trial, stored.done, reason, None, 0.0))
            done, failed = done + stored.done, failed + (not stored.done)
            dead = dead or ("" if stored.done else death(self._server))
        return done, failed, dead

    def _check(self, moment: Moment, codes: tuple[str, ...]) -> list[Finding]:
        """Keep and tell what the checks find, and give back what forbids going on."""
        findings = checks.run(moment, self._context, codes)
        if new := self._run.add_findings(findings):
            self._tell(progress.Found(tuple(new)))
        return checks.stops(findings)

    def _say(self, text: str) -> None:
        self._tell(progress.Step(text, 0.0))


def _tables(count: int) -> str:
    return "1 table" if count == 1 else f"{count} tables"
