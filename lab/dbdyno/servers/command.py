"""Servers on the user's own machines: started, stopped and restored by the user's own commands.

They are reached by a URL like any other; what ssh, systemctl or a cloud's tool does is theirs.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dbdyno.experiment.model import Variant
from dbdyno.servers import commands
from dbdyno.servers.admin import Refused
from dbdyno.servers.declared import all_of
from dbdyno.servers.endpoint import EndpointServer, variant_password, variant_target
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshot import Snapshot
from dbdyno.servers.workspace import Workspace

# How long a server that was started may take until it answers.
ANSWER_S_MAX = 300.0

_LINE = re.compile(r"\s*([^\s=:]+)\s*[=:\s]\s*(.*?)\s*")


class CommandServer(EndpointServer):
    """The server of a variant of kind `command`."""

    def __init__(self, variant: Variant, workspace: Workspace, snapshot: Snapshot | None) -> None:  # noqa: ARG002
        super().__init__(variant_target(variant), variant_password(variant), variant.name, variant.server)
        self._commands = variant.server
        # Whether our `start` command has been run and `stop` not yet.
        self._up = False

    def restore(self) -> None:
        """Run the `restore` command, on a server that is stopped where we can stop it."""
        if self._commands.restore:
            self.stop(clean=True)
            self._run("restore", self._commands.restore)

    def start(self) -> None:
        """Run the `start` command, and wait until the server answers."""
        if self._commands.start and not self._up:
            self._run("start", self._commands.start)
            self._up = True
            self._wait()
        super().start()

    def _wait(self) -> None:
        deadline = time.monotonic() + ANSWER_S_MAX
        while True:
            try:
                return self._admin.open()
            except Refused as refused:
                if not refused.not_yet:
                    return None
                if time.monotonic() > deadline:
                    raise ServerProblem(
                        f"{self.variant}: the start command has ended well, and the server did not answer "
                        f"within {ANSWER_S_MAX:g} s: {refused.text}",
                        "look at the server's own log",
                        exit_code=3,
                    ) from refused
            time.sleep(0.1)

    def stop(self, *, clean: bool) -> None:
        """Disconnect; run the `stop` command where we have started it. Raises ServerProblem, as those two."""
        problems: list[ServerProblem] = []
        try:
            super().stop(clean=clean)
        except ServerProblem as problem:
            problems.append(problem)
        if self._up:
            self._up = False
            try:
                self._run("stop", self._commands.stop)
                if not self._reached.lasts:
                    # What was set has ended with the server.
                    problems.clear()
            except ServerProblem as problem:
                problems.append(problem)
        if len(problems) > 1:
            raise all_of(problems, "stopping it")
        if problems:
            raise problems[0]

    def _host(self, variables: Mapping[str, str]) -> Mapping[str, Any]:
        """What the server tells, and what the `describe` command says."""
        told = super()._host(variables)
        if not self._commands.describe:
            return told
        return {**told, **facts(self._run("describe", self._commands.describe))}

    def process(self) -> Mapping[str, float]:
        """The numbers of the `sample` command, by its own names; what is none is left out."""
        if not self._commands.sample:
            return {}
        found: dict[str, float] = {}
        for name, value in facts(self._run("sample", self._commands.sample)).items():
            with suppress(TypeError, ValueError, OverflowError):
                if math.isfinite(count := float(value)):
                    found[name] = count
        return found

    def _run(self, what: str, argv: Sequence[str]) -> str:
        known = {"DBDYNO_VARIANT": self.variant, "DBDYNO_URL": str(self._target)}
        try:
            ended = commands.run(argv, known, self._commands.command_timeout_s, self.secrets)
            fault = ended.fault()
        except ServerProblem as problem:
            fault = problem.text
        if fault:
            raise ServerProblem(
                f"{self.variant}: the {what} command failed: {fault}",
                f"try it by hand; it is server.{what} of the variant, and may take "
                f"{self._commands.command_timeout_s:g} s (command_timeout)",
                exit_code=4,
            )
        return ended.output


def facts(text: str) -> dict[str, Any]:
    """What a command tells: a JSON object, or lines of a name and a value."""
    try:
        found = json.loads(text)
    except ValueError:
        matches = (_LINE.fullmatch(line) for line in text.splitlines())
        return {match[1]: match[2] for match in matches if match}
    return found if isinstance(found, dict) else {"told": found}
