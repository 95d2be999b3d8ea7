"""The life of one trial on a server that is ready, whatever the trial is for.

::

    with TrialSession(context, trial, writer, measured_s=…) as session:
        session.prepare()     the hook before_trial
        session.connect()     pre-warming
        session.load(…)       the engine and the background loads; the hook during_trial
        session.end()         the hook after_trial

A problem of the engine or the server ends the trial: the steps up to `end` do nothing any more, and `problem`
has the reason. Any other exception is passed on, after the hook after_trial has run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from dbdyno.binary import EngineProblem
from dbdyno.checks import Context
from dbdyno.checks.samples import open_load_session
from dbdyno.experiment.model import SqlWorkload
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import Problem
from dbdyno.run.background import OpenFile, run_loads
from dbdyno.run.engine import Engine, EngineResult, OpenLines, Record, require_within_limits
from dbdyno.run.failures import HookProblem
from dbdyno.run.hooks import TrialHooks
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.server import ServerProblem
from dbdyno.store.trial import TrialWriter
from dbdyno.store.warmup_trial import HookWriter


class TrialSession:
    """One trial in progress. A context manager."""

    def __init__(
        self, context: Context, trial: Trial, writer: TrialWriter | HookWriter, *, measured_s: float
    ) -> None:
        """`context` has the server of the trial, which has started; `writer` stores the output of hooks, and
        `measured_s` is the planned length of the measurement.
        """
        assert context.server is not None, "the server runs"
        assert context.description is not None, "a server is described when it has started"
        self.experiment, self.trial = context.experiment, trial
        self.server, self.description = context.server, context.description
        self.hooks = TrialHooks(
            self.experiment, trial, self.server, self.description, writer, measured_s=measured_s
        )
        # The result of the engine, if it has one.
        self.result: EngineResult | None = None
        # What ended the trial, unless the engine did.
        self.problem: Problem | None = None
        # Whether the hook before_trial has begun, and after_trial has not.
        self._is_between_hooks = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._is_between_hooks:
            self.hooks.abort()

    @property
    def reason(self) -> str:
        """Why the trial failed; empty if it did not."""
        if self.problem is not None:
            return self.problem.text
        return self.result.failure() if self.result is not None else ""

    def fail(self, problem: Problem) -> None:
        """End the trial because of a problem outside the engine."""
        self.problem = problem

    def prepare(self) -> None:
        """Run the hook before_trial."""
        self._is_between_hooks = True
        if reason := self.hooks.before():
            self.fail(HookProblem(reason))

    def connect(self) -> None:
        """Pre-warm."""
        if self.problem is None:
            try:
                self.prewarm()
            except ServerProblem as problem:
                self.fail(problem)

    def prewarm(self) -> None:
        """Read all data of a user-written SQL workload; for the OLTP workloads the engine does this.

        Raises ServerProblem.
        """
        variant = self.experiment.variant(self.trial.variant)
        workload = self.experiment.workload_for(variant, self.trial.workload)
        if self.experiment.load_for(variant).prewarm == "scan" and isinstance(workload, SqlWorkload):
            # A scan of a large table may take hours.
            with answers_within(None), open_load_session(self.server, workload, variant) as admin:
                for sql in workload.scans(self.server.address().protocol):
                    admin.query(sql)

    def load(
        self,
        engine: Engine,
        plan: Mapping[str, Any],
        on_line: Callable[[bytes], None],
        *,
        on_record: Callable[[Record], None] = lambda _record: None,
        on_ready: Callable[[], None] = lambda: None,
        open_file: OpenFile = lambda _title: lambda _line: None,
        open_lines: OpenLines = lambda _index: lambda _line: None,
        planned: Sequence[Trial] = (),
        earlier_trials: int = 0,
        has_hook: bool = True,
    ) -> None:
        """Run the load of `plan` with the background loads, and with the hook during_trial if `has_hook`; the
        other parameters are those of `run_loads`. Raises StoreProblem and FleetProblem.
        """

        def handle_record(record: Record) -> None:
            on_record(record)
            if has_hook:
                self.hooks.handle_record(record)

        if self.problem is not None:
            return
        try:
            self.result = run_loads(
                self.experiment,
                self.trial,
                plan,
                server=self.server,
                engine=engine,
                on_record=handle_record,
                on_line=on_line,
                on_ready=on_ready,
                open_file=open_file,
                open_lines=open_lines,
                planned=planned,
                earlier_trials=earlier_trials,
            )
        except (EngineProblem, ServerProblem) as problem:
            self.fail(problem)

    def require_within_limits(self) -> None:
        """Raise LimitProblem if the load exceeded a limit of `load.abort_if`."""
        require_within_limits(self.result.end if self.result is not None else None)

    def end(self) -> None:
        """Run the hook after_trial, also after a failure. Raises StoreProblem."""
        self._is_between_hooks = False
        self.hooks.after()
