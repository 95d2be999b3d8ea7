"""Ends a share of the load's connections every second, by the server's own statement."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import ServerProblem

PERIOD_S = 1.0
# All connections of the account: those of the load, and dbdyno's own.
LIST = {
    "mysql": "SELECT id FROM information_schema.processlist WHERE user = '{user}'",
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE usename = '{user}'",
}
END = {"mysql": "KILL {id}", "postgresql": "SELECT pg_terminate_backend({id})"}


class Killer:
    """A thread that kills connections until `close`."""

    def __init__(self, server: LocalServer, share: float) -> None:
        self.killed = 0
        self.seconds = 0
        self._server, self._share = server, share
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End. It may not have begun."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(10.0)

    def _run(self) -> None:
        address = self._server.address()
        generator = random.Random(1)
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due += PERIOD_S
            self.seconds += 1
            with suppress(ServerProblem):
                rows = self._server.query(LIST[address.protocol].format(user=address.user))
                connections = [int(row[0]) for row in rows]
                # The share of a small number is met over several seconds.
                count = int(len(connections) * self._share + generator.random())
                for one in generator.sample(connections, min(count, len(connections))):
                    # It may have ended since.
                    with suppress(ServerProblem):
                        self._server.query(END[address.protocol].format(id=one))
                        self.killed += 1
