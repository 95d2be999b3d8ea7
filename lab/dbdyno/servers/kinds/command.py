"""Servers that the user's commands start, stop and restore, and to which dbdyno connects by a URL.

The commands call, for example, ssh, systemctl or a cloud provider's tool.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dbdyno.experiment.model import ServerSpec
from dbdyno.finding import FreeForm
from dbdyno.servers import user_commands
from dbdyno.servers.admin.connection import ConnectFailure
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.server import MachineProblem, ServerProblem, combine_problems
from dbdyno.servers.url import Target
from dbdyno.waiting import waiting_for

_NAME_VALUE = re.compile(r"\s*([^\s=:]+)\s*[=:\s]\s*(.*?)\s*")


class CommandServer(RemoteServer):
    """A remote server that the user's commands start, stop and restore."""

    def __init__(
        self, target: Target, password: Password, name: str, spec: ServerSpec, run: str = ""
    ) -> None:
        super().__init__(target, password, name, spec, run)
        self._commands = spec
        # Whether the `start` command has run, and `stop` has not run since.
        self._is_started = False

    def restore(self) -> None:
        """Stop the server, if there is a `stop` command, and run the `restore` command."""
        if self._commands.restore:
            self.stop(clean=True)
            self._run("restore", self._commands.restore)

    def start(self) -> None:
        """Run the `start` command, and wait until the server answers."""
        if self._commands.start and not self._is_started:
            self._run("start", self._commands.start)
            self._is_started = True
            with waiting_for(f"the server of {self.variant} to answer after its start command"):
                self._wait()
        super().start()

    def _wait(self) -> None:
        limit_s = self._commands.start_timeout_s
        deadline = time.monotonic() + limit_s
        while True:
            try:
                return self._admin.open()
            except ConnectFailure as failure:
                if not failure.is_starting_up:
                    return None
                if time.monotonic() > deadline:
                    raise ServerProblem(
                        f"{self.variant}: the start command succeeded, but the server did not answer "
                        f"within {limit_s:g} s: {failure.text}",
                        "look at the server's log, or raise start_timeout of the variant",
                        exit_code=3,
                    ) from failure
            time.sleep(0.1)

    def stop(self, *, clean: bool) -> None:
        """Disconnect, and run the `stop` command if dbdyno ran `start`. Raises ServerProblem."""
        problems: list[ServerProblem] = []
        try:
            super().stop(clean=clean)
        except ServerProblem as problem:
            problems.append(problem)
        if self._is_started:
            self._is_started = False
            try:
                self._run("stop", self._commands.stop)
                if not self._protocol.survives_restart:
                    # The server loses the changed values when it stops, so they need not be restored.
                    problems.clear()
                    self.changes.forget_own()
            except ServerProblem as problem:
                problems.append(problem)
        if len(problems) > 1:
            raise combine_problems(problems, "stopping it")
        if problems:
            raise problems[0]

    def _host(self, variables: Mapping[str, str]) -> FreeForm:
        """The facts that the server reports, and the output of the `describe` command."""
        host = super()._host(variables)
        if not self._commands.describe:
            return host
        return {**host, **parse_output(self._run("describe", self._commands.describe))}

    def process(self) -> Mapping[str, float]:
        """The numbers that the `sample` command prints, by their printed names. Other values are ignored."""
        if not self._commands.sample:
            return {}
        counts: dict[str, float] = {}
        for name, value in parse_output(self._run("sample", self._commands.sample)).items():
            with suppress(TypeError, ValueError, OverflowError):
                if math.isfinite(count := float(value)):
                    counts[name] = count
        return counts

    def _run(self, what: str, argv: Sequence[str]) -> str:
        facts = {"DBDYNO_VARIANT": self.variant, "DBDYNO_URL": str(self._target)}
        variables = user_commands.environment(facts, self.secrets, self._commands.hook_environment)
        try:
            result = user_commands.run(argv, variables, self._commands.command_timeout_s)
            failure = result.failure()
        except ServerProblem as problem:
            failure = problem.text
        if failure:
            is_start = what == "start"
            raise (ServerProblem if is_start else MachineProblem)(
                f"{self.variant}: the {what} command failed: {failure}",
                f"run the command yourself (server.{what} of the variant); its limit is "
                f"{self._commands.command_timeout_s:g} s (command_timeout)",
                exit_code=4,
            )
        return result.output


def parse_output(text: str) -> dict[str, Any]:
    """Names and values in a command's output, which is a JSON object or lines of a name and a value."""
    try:
        value = json.loads(text)
    except ValueError:
        matches = (_NAME_VALUE.fullmatch(line) for line in text.splitlines())
        return {match[1]: match[2] for match in matches if match}
    return value if isinstance(value, dict) else {"output": value}
