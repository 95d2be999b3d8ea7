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
from contextlib import suppress
from typing import Any, Self

from dbdyno.binary import EngineProblem
from dbdyno.checks import Context
from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import FreeForm
from dbdyno.problem import Problem
from dbdyno.run.background import BackgroundLoads, OpenFile
from dbdyno.run.engine import Engine, EngineResult, OpenLines, Record, require_within_limits
from dbdyno.run.failures import HookProblem
from dbdyno.run.plan import background_plan
from dbdyno.servers import user_commands
from dbdyno.servers.admin.connection import answers_within, require_answers
from dbdyno.servers.kinds.remote_protocol import open_load_session
from dbdyno.servers.server import Description, Server, ServerProblem
from dbdyno.servers.user_commands import CommandResult, RunningCommand
from dbdyno.store import StoreProblem
from dbdyno.store.preparation import HookWriter
from dbdyno.store.trial import TrialWriter


class TrialHooks:
    """Runs the hooks of one trial. The caller calls `before` and `after` around the trial, and
    `handle_record` for each of its records.

    Hooks also run for the warm-up trials that determine the warm-up: a hook that drops the page cache, for
    example, changes how long a server warms up. In a pilot `before_trial` and `after_trial` run once for the
    steps on one server, because a hook may start what the load needs.
    """

    def __init__(
        self,
        experiment: Experiment,
        trial: Trial,
        server: Server,
        description: Description,
        writer: TrialWriter | HookWriter,
        *,
        measured_s: float,
    ) -> None:
        spec = experiment.variant(trial.variant).server
        self._hooks = spec.hooks()
        facts = _facts(experiment, trial, server, description, measured_s)
        self._variables = user_commands.environment(facts, experiment.secrets(), spec.hook_environment)
        self._writer = writer
        self._during: RunningCommand | None = None
        # The reasons of failed hooks, one text for each.
        self.failures: list[str] = []

    def before(self) -> str:
        """Run before_trial. Returns why the trial cannot begin, or an empty text."""
        return self._run("before_trial") if self._hooks.before_trial else ""

    def handle_record(self, record: Record) -> None:
        """Process a record of the engine; the beginning of the measurement starts during_trial."""
        if record["type"] == "phase" and record["data"]["name"] == "measure":
            self.start()

    def start(self) -> None:
        """Start during_trial, if it does not run yet."""
        if not self._hooks.during_trial or self._during is not None:
            return
        try:
            self._during = RunningCommand(self._hooks.during_trial, self._variables, endless=True)
        except ServerProblem as problem:
            self.failures.append(f"the hook during_trial: {problem.text}")

    def finish(self) -> None:
        """Stop during_trial and store its output. Idempotent."""
        running, self._during = self._during, None
        if running is not None:
            self._store("during_trial", running.finish(self._hooks.hook_timeout_s))

    def after(self) -> None:
        """Run after_trial, also when the trial failed. Raises StoreProblem."""
        try:
            self.finish()
        finally:
            if self._hooks.after_trial:
                self._run("after_trial")

    def abort(self) -> None:
        """Like `after`, but raises no errors, because the caller is raising another one."""
        with suppress(StoreProblem):
            self.after()

    def _run(self, name: str) -> str:
        argv = getattr(self._hooks, name)
        try:
            result = user_commands.run(argv, self._variables, self._hooks.hook_timeout_s)
        except ServerProblem as problem:
            self.failures.append(f"the hook {name}: {problem.text}")
            return self.failures[-1]
        return self._store(name, result)

    def _store(self, name: str, result: CommandResult) -> str:
        """Store a hook's output. Returns why it failed, or an empty text."""
        self._writer.write_hook(
            name, result.output + result.errors, list(result.argv), result.exit_status, result.seconds
        )
        failure = result.failure()
        if not failure:
            return ""
        self.failures.append(f"the hook {name}: {failure}")
        return self.failures[-1]


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
        """Run the load of `plan`, and with it the background loads and, if `has_hook`, the hook during_trial.

        `on_line`, `on_record` and `open_lines` are those of `Engine.run`. When every connection of the trial
        is open, the background loads begin, and then `on_ready` is called. `open_file` opens the file for the
        records of a background load; `planned` and `earlier_trials` are those of `trial_plan`. Raises
        StoreProblem, FleetProblem, and what the functions raise.
        """
        if self.problem is not None:
            return
        experiment, trial, server = self.experiment, self.trial, self.server
        environment, cpus = server.load_address().environment(), experiment.client.cpus
        plans = {
            load.title: background_plan(experiment, trial, load, plan, planned, earlier_trials=earlier_trials)
            for load in experiment.backgrounds(experiment.variant(trial.variant), trial.workload)
        }

        def begin() -> None:
            running.start()
            on_ready()

        def handle_record(record: Record) -> None:
            running.require_running()
            on_record(record)
            if has_hook:
                self.hooks.handle_record(record)

        try:
            with BackgroundLoads(plans, environment, cpus, engine, open_file) as running:
                result = engine.run(
                    "run",
                    plan,
                    environment,
                    handle_record,
                    cpus,
                    on_line=on_line,
                    on_ready=begin,
                    on_silence=lambda: require_answers(server, "the load generator"),
                    open_lines=open_lines,
                )
                running.require_running()
            self.result = result
        except (EngineProblem, ServerProblem) as problem:
            self.fail(problem)

    def require_within_limits(self) -> None:
        """Raise LimitProblem if the load exceeded a limit of `load.abort_if`."""
        require_within_limits(self.result.end if self.result is not None else None)

    def end(self) -> None:
        """Run the hook after_trial, also after a failure. Raises StoreProblem."""
        self._is_between_hooks = False
        self.hooks.after()


def _facts(
    experiment: Experiment, trial: Trial, server: Server, description: Description, measured_s: float
) -> dict[str, str]:
    """Facts about a trial for its hooks, as environment variables; they contain no password."""
    address = server.load_address()
    ((unit, level),) = trial.point.as_dict().items()
    values: FreeForm = {
        "EXPERIMENT": experiment.name,
        "TRIAL": trial.index,
        # A warm-up trial has a negative index and belongs to no block.
        "BLOCK": trial.block if trial.index >= 0 else "",
        "VARIANT": trial.variant,
        "WORKLOAD": trial.workload,
        "POINT": f"{unit}={level:g}",
        "HOST": address.host,
        "PORT": address.port,
        "SOCKET": address.unix_socket or "",
        "USER": address.user,
        "DATABASE": address.database,
        "SERVER_PID": description.identity.get("pid", ""),
        "SECONDS": f"{measured_s:g}",
    }
    return {f"DBDYNO_{name}": str(value) for name, value in values.items()}
