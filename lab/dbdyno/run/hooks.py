"""Runs hooks: the user's commands before, during and after the measurement of a trial."""

from __future__ import annotations

from contextlib import suppress

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import FreeForm
from dbdyno.run.engine import Record
from dbdyno.servers import user_commands
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
