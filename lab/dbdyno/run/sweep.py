"""Runs a sweep of one remote server: loads or checks its data, measures its points in order, and cleans up.

::

    check capacity -> load tables, or check existing ones -> measure each point -> check -> drop tables

A sweep drops only tables that it has loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dbdyno.checks import CHECKS, Context, Moment, codes_of
from dbdyno.checks.tables import shapes
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload
from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import pilot, progress
from dbdyno.run.coordinator import Conclusion, Coordinator, Stopped
from dbdyno.run.description import describe
from dbdyno.run.engine import Engine
from dbdyno.run.loading import cleanup, created_tables, must_load, prepare
from dbdyno.run.marked_tables import LOADING, drop_instruction
from dbdyno.run.pilot import measure_ceilings
from dbdyno.run.progress import Listener
from dbdyno.run.times import Estimate, StepTimes
from dbdyno.run.warmup import warmup_trials
from dbdyno.servers.server import Server
from dbdyno.store import Run
from dbdyno.store.preparation import Step

# A sweep does not compare variants, so the other checks do not apply.
_DESIGN_CODES = codes_of(Moment.DESIGN, in_sweep=True)
_READY_CODES = codes_of(Moment.READY, in_sweep=True, needs_data=False)
_DATA_CODES = [check.code for check in CHECKS if check.admits_tables]
_LOADED_CODES = codes_of(Moment.READY, in_sweep=True, needs_data=True)
_AFTER_CODES = codes_of(Moment.AFTER_GROUP, in_sweep=True)


def sweep(
    experiment: Experiment, run: Run, server: Server, listen: Listener, engine: Engine, *, keep_data: bool
) -> Conclusion:
    """Measure every point of a one-variant experiment on `server`, which is started.

    Raises Problem (loading, foreign tables, the engine, the store) and passes on KeyboardInterrupt. In both
    cases completed points are kept, and the loaded tables are dropped unless `keep_data`.
    """
    times, estimate = StepTimes(), Estimate(experiment)

    def tell(value: progress.Progress) -> None:
        times.listen(value, estimate.load_s)
        listen(value)

    coordinator = Coordinator(experiment, run, engine, tell, times)
    return coordinator.conclude(_Sweep(coordinator, server).run(keep_data=keep_data))


class _Sweep:
    """One sweep in progress."""

    def __init__(self, coordinator: Coordinator, server: Server) -> None:
        experiment = coordinator.experiment
        assert len(experiment.variants) == len(experiment.workloads) == 1, (
            "a sweep has one variant and one workload"
        )
        self._coordinator, self._experiment, self._server = coordinator, experiment, server
        self._times, self._workload = coordinator.times, experiment.workloads[0]
        # Whether the user's setup is running; it may create tables that dbdyno does not know.
        self._in_setup = False
        self._context = Context(
            experiment,
            variant=experiment.variants[0],
            server=server,
            description=server.describe(),
            workload=self._workload,
        )

    def run(self, *, keep_data: bool) -> Sequence[Finding]:
        """Run all steps in order. Returns the findings that ended the sweep."""
        check = self._coordinator.check
        # Runs before the data are loaded, so that an exceeded limit is found without loading.
        stops: Sequence[Finding] = [
            *check(Moment.DESIGN, self._context, _DESIGN_CODES),
            *check(Moment.READY, self._context, _READY_CODES),
        ]
        if not stops:
            with self._data(keep_data=keep_data):
                stops = self._points()
        return stops

    def _points(self) -> Sequence[Finding]:
        try:
            self._coordinator.require(Moment.READY, self._context, _LOADED_CODES)
            trials = schedule(self._experiment)
            self._determine_workers()
            with self._times.step("connecting"):
                self._coordinator.run_trials(trials, self._server, self._context, _AFTER_CODES)
            with self._times.step("checking"):
                measure_ceilings(self._coordinator.run, self._experiment, self._coordinator.engine)
        except Stopped as stopped:
            return stopped.stops
        return ()

    def _determine_workers(self) -> None:
        steps: list[Step] = []
        if pilot.has_pilot(self._experiment):
            (trial,) = warmup_trials(self._experiment, [self._workload.title])
            with self._times.step("pilot"):
                steps = pilot.measure(self._coordinator, trial, self._context, ())
        pilot.keep_workers(self._coordinator, steps)

    @contextmanager
    def _data(self, *, keep_data: bool) -> Iterator[None]:
        """Provide the tables, and at the end drop those that this sweep has loaded."""
        if self._has_tables():
            how = drop_instruction(self._server)
            self._coordinator.step(
                f"using the existing tables, which are not dropped{f'; to {how}' if how else ''}"
            )
            yield
            return
        try:
            self._load()
            yield
        except BaseException:
            if self._in_setup:
                self._coordinator.step(f"setup was interrupted: {self._drop_instruction()}, if they exist")
                raise
            # The exception being raised matters more than tables that cannot be dropped.
            if not keep_data and (why := self._drop()):
                self._coordinator.step(why)
            raise
        if not keep_data and (why := self._drop()):
            raise Problem(why, self._drop_instruction(), ExitCode.NOT_COMPARABLE)

    def _has_tables(self) -> bool:
        """Whether the tables exist. Raises Problem if they do not match the options."""
        workload = self._workload
        if isinstance(workload, OltpWorkload):
            tables = shapes(self._server, self._table_names())
            # An interrupted load is repeated.
            count = sum(not table.comment.startswith(LOADING) for table in tables.values())
            is_present = count > 0
        else:
            is_present = not must_load(workload, self._server)
            count = len(created_tables(workload, self._server)) if is_present else 0
        if is_present and count:
            self._require_matching_tables(count)
        return is_present

    def _require_matching_tables(self, count: int) -> None:
        """Raise Problem unless existing tables match the options; never change them."""
        tables = "1 table exists" if count == 1 else f"{count} tables exist"
        self._coordinator.step(f"{tables} already: checking against the options")
        if self._coordinator.check(Moment.READY, self._context, _DATA_CODES):
            # This is an error in the options, not in the measurement.
            raise Problem(
                f"the tables in {self._server.address().database} do not match the options (see above)",
                "dbdyno did not change them. Use the options with which they were loaded (--tables, "
                "--table-size, --set), name another database in --target, or "
                + (drop_instruction(self._server) or "drop them yourself"),
                ExitCode.USAGE,
            )

    def _load(self) -> None:
        workload = self._workload
        self._coordinator.step(f"loading {workload.data_text()}")
        self._in_setup = not isinstance(workload, OltpWorkload)
        with self._times.step("loading"):
            prepare(
                self._experiment, workload, self._server, self._coordinator.engine, self._coordinator.listen
            )
        self._in_setup = False

    def _table_names(self) -> Sequence[str]:
        protocol = self._server.address().protocol
        return describe(self._experiment, self._workload, protocol).table_names()

    def _drop(self) -> str:
        """Drop the loaded tables. Returns why it failed, or an empty text."""
        self._coordinator.step("dropping the tables")
        try:
            with self._times.step("dropping the tables"):
                why = cleanup(self._experiment, self._workload, self._server, self._coordinator.engine)
        except Problem as problem:
            why = problem.text
        return f"the tables could not be dropped: {why}" if why else ""

    def _drop_instruction(self) -> str:
        """A sentence that names the tables that the user must drop."""
        database = self._server.address().database
        if isinstance(self._workload, ScriptWorkload):
            return f"Drop the tables of {self._workload.title} in {database} yourself"
        if isinstance(self._workload, SqlWorkload):
            tables = self._workload.created_tables(self._server.address().protocol)
            return f"Drop {', '.join(tables)} in {database} yourself"
        names = self._table_names()
        tables_text = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        how = drop_instruction(self._server)
        return f"To {how}" if how else f"Drop {tables_text} in {database} yourself"
