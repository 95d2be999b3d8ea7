"""A private server in memory, so that conducting an experiment is tested without a database.

It implements the whole interface and keeps a journal of the calls. The load is the real engine's, over its
null target, which has no tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from dbdyno import servers
from dbdyno.experiment.model import Variant
from dbdyno.servers.server import Address, Description, ServerProblem
from dbdyno.servers.snapshots import cache
from dbdyno.servers.snapshots.directories import Snapshot
from dbdyno.servers.snapshots.slots import PrivateServer, Slot
from dbdyno.servers.workspace import Workspace

ANSWER_US = 200
# A port on which nothing listens.
CLOSED_PORT = 1


class NullAddress(Address):
    """Leads the engine to its null target, or to a port where no server answers."""

    def target(self, transport: str = "tcp") -> dict[str, Any]:
        if self.port == CLOSED_PORT:
            return super().target(transport)
        return {"protocol": "null", "answer_us": ANSWER_US}


@dataclass
class FakeServers:
    """Makes fake servers and knows what was asked of all of them, in order: "a start", "a stop clean"."""

    variables: dict[str, str] = field(default_factory=lambda: {"max_connections": "100"})
    journal: list[str] = field(default_factory=list)
    # Raised when the journal gets such an entry, as in {"b start": ServerProblem("no memory")}.
    failures: dict[str, BaseException] = field(default_factory=dict)
    # Variants whose servers answer the lab, and no load.
    unreachable: set[str] = field(default_factory=set)
    # Variants whose servers die under load.
    mortal: set[str] = field(default_factory=set)
    # Whether servers run at the same time.
    in_slices: bool = False
    starts: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    running: list[FakeServer] = field(default_factory=list)

    def open(self, variant: Variant, workspace: Workspace, snapshot: Snapshot | None) -> FakeServer:
        """As the classes in `servers.KINDS`."""
        return FakeServer(self, variant, workspace, snapshot)

    def note(self, entry: str) -> None:
        """Write an entry, and fail where it is to."""
        self.journal.append(entry)
        if entry in self.failures:
            raise self.failures[entry]

    @contextmanager
    def registered(self) -> Iterator[FakeServers]:
        """While open, servers of kind local are these."""
        kinds = {"local": self.open}
        with mock.patch.dict(servers.KINDS, kinds), mock.patch.dict(cache.PRIVATE_KINDS, kinds):
            yield self


class FakeServer(PrivateServer):
    """One of them. Its data are the key of the snapshot that it was restored from."""

    def __init__(
        self, world: FakeServers, variant: Variant, workspace: Workspace, snapshot: Snapshot | None
    ) -> None:
        self.variant, self._world, self._workspace, self._snapshot = variant.name, world, workspace, snapshot
        self._spec = variant.server
        self._directory = workspace.server_directory(variant.name)
        self._slot: Slot | None = None
        self._data: str | None = None
        # The number of its start; 0 when it is stopped.
        self._start = 0

    def _note(self, what: str) -> None:
        self._world.note(f"{self.variant} {what}")

    @property
    def is_running(self) -> bool:
        return self._start > 0

    def occupy(self, slot: Slot) -> None:
        assert not self.is_running
        self._slot, self._data = slot, None
        self._note(f"occupy {slot.directory.name}")

    def place(self) -> Mapping[str, Any]:
        directory = self._slot.directory if self._slot else self._directory
        port = self._slot.port if self._slot else 20_000
        return {"datadir": str(directory / "data"), "socket": str(directory / "sock"), "port": port}

    def restore(self) -> None:
        self._stop()
        self._note("restore")
        self._data = self._snapshot.key if self._snapshot else "empty"

    def start(self) -> None:
        if self.is_running:
            return
        if self._data is None:
            self.restore()
        self._note("start")
        if not self._world.in_slices:
            assert not self._world.running, "only one server of an experiment runs at a time"
        self._world.running.append(self)
        self._start = next(self._world.starts)

    def finish_background_work(self, tables: Sequence[str]) -> None:  # noqa: ARG002 — it has none.
        self._note("settle")

    def stop_for_snapshot(self) -> None:
        """As the method of `LocalServer`."""
        self.stop(clean=True)

    def give_data(self, target: Path) -> None:
        """As the method of `LocalServer`."""
        target.mkdir()
        (target / "rows").write_text("rows")

    def stop(self, *, clean: bool) -> None:
        if self.is_running:
            self._stop()
            self._note("stop clean" if clean else "stop")

    def _stop(self) -> None:
        self._start = 0
        if self in self._world.running:
            self._world.running.remove(self)

    def close(self) -> None:
        self.stop(clean=False)
        self._note("close")

    def address(self) -> Address:
        port = CLOSED_PORT if self.variant in self._world.unreachable else int(self.place()["port"])
        if self.variant in self._world.mortal and self.is_running:
            port = CLOSED_PORT
        return NullAddress("127.0.0.1", port, None, "dbdyno", "dbdyno")

    def is_silent(self) -> bool:
        """It never stops answering without an end."""
        return False

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """It has no tables. A mortal server no longer answers once the load has begun."""
        if not self.is_running or (sql == "SELECT 1" and self.variant in self._world.mortal):
            raise ServerProblem(f"the server of {self.variant!r} is gone", exit_code=4)
        return []

    def describe(self) -> Description:
        identity = {**self.place(), "pid": 10_000_000 + self._start, "start_unix_us": self._start}
        declared = {name: str(value) for name, value in self._spec.variables.items()}
        return Description("mariadb", "10.11", identity, declared, {}, {**self.variables()})

    def variables(self) -> Mapping[str, str]:
        declared = {name: str(value) for name, value in self._spec.variables.items()}
        return {**self._world.variables, **declared}

    def status(self) -> Mapping[str, str]:
        if not self.is_running:
            raise ServerProblem(f"the server of {self.variant!r} is gone", exit_code=4)
        return {"Questions": "1"}

    def process(self) -> Mapping[str, float]:
        return {}


def install(folder: Path) -> Path:
    """A `basedir` whose programs have a version: it names the snapshots of the servers."""
    (folder / "bin").mkdir(parents=True)
    for name in ("mariadbd", "mariadb-install-db"):
        program = folder / "bin" / name
        program.write_text("#!/bin/sh\necho 'mariadbd  Ver 10.11.6-MariaDB for nothing'\n")
        program.chmod(0o755)
    return folder
