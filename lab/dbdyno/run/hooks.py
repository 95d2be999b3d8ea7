"""The user's own commands around a trial, and what they say: before it, while it is measured, after it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.run.engine import Record
from dbdyno.servers import commands
from dbdyno.servers.commands import Ended, Running
from dbdyno.servers.server import Description, Server, ServerProblem
from dbdyno.store import StoreProblem


class HookWriter(Protocol):
    """Writes the files of a trial, or of a long trial of the rehearsal."""

    def hook(self, name: str, words: str, argv: list[str], exit_status: int | None, seconds: float) -> None:
        """Keep what a hook said and how it ended. Raises StoreProblem."""


class TrialHooks:
    """The hooks of one trial. `before` and `after` are called around it, `record` for each of its records.

    A long trial of the rehearsal has them too: they can decide how long a server warms up, as one that drops
    the page cache does.
    """

    def __init__(
        self,
        experiment: Experiment,
        trial: Trial,
        server: Server,
        description: Description,
        writer: HookWriter,
        *,
        measured_s: float,
    ) -> None:
        spec = experiment.variant(trial.variant).server
        self._hooks = spec.hooks()
        self._secrets = experiment.secrets()
        self._facts = _facts(experiment, trial, server, description, measured_s)
        self._writer = writer
        self._during: Running | None = None
        # What is to be told beside the result: hooks that failed, in words.
        self.complaints: list[str] = []

    def before(self) -> str:
        """Run before_trial: why the trial cannot begin, or nothing."""
        return self._run("before_trial") if self._hooks.before_trial else ""

    def record(self, record: Record) -> None:
        """Start during_trial when the measurement begins."""
        measuring = record["type"] == "phase" and record["data"]["name"] == "measure"
        if not (measuring and self._hooks.during_trial and self._during is None):
            return
        try:
            self._during = Running(self._hooks.during_trial, self._facts, self._secrets, endless=True)
        except ServerProblem as problem:
            self.complaints.append(f"the hook during_trial: {problem.text}")

    def over(self) -> None:
        """The trial is over: tell during_trial to stop, and keep what it said. Idempotent."""
        running, self._during = self._during, None
        if running is not None:
            self._keep("during_trial", running.finish(self._hooks.hook_timeout_s))

    def after(self) -> None:
        """Run after_trial, whatever became of the trial. Raises StoreProblem."""
        try:
            self.over()
        finally:
            if self._hooks.after_trial:
                self._run("after_trial")

    def cut_short(self) -> None:
        """As `after`, while something else is on its way out: that is the thing to hear about."""
        with suppress(StoreProblem):
            self.after()

    def _run(self, name: str) -> str:
        argv = getattr(self._hooks, name)
        try:
            ended = commands.run(argv, self._facts, self._hooks.hook_timeout_s, self._secrets)
        except ServerProblem as problem:
            self.complaints.append(f"the hook {name}: {problem.text}")
            return self.complaints[-1]
        return self._keep(name, ended)

    def _keep(self, name: str, ended: Ended) -> str:
        """Store a hook's words and its end; what went wrong, or nothing."""
        self._writer.hook(
            name, ended.output + ended.complaints, list(ended.argv), ended.exit_status, ended.seconds
        )
        fault = ended.fault()
        if not fault:
            return ""
        self.complaints.append(f"the hook {name}: {fault}")
        return self.complaints[-1]


def _facts(
    experiment: Experiment, trial: Trial, server: Server, description: Description, measured_s: float
) -> dict[str, str]:
    """What a hook's environment tells of the trial. No password."""
    address = server.address()
    ((unit, level),) = trial.point.at().items()
    told: Mapping[str, Any] = {
        "EXPERIMENT": experiment.name,
        "TRIAL": trial.index,
        # A long trial is in no block, and has a negative number.
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
    return {f"DBDYNO_{name}": str(value) for name, value in told.items()}
