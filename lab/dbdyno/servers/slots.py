"""Equal places on disk for the servers of a comparison, which exchange them from block to block.

A place is a directory, two ports and the path of a socket. Where files lie on the disk, how long their paths
are and which port is hashed can make a server faster or slower; a variant that kept one place for the whole
run would have that effect counted as its own. Exchanged places make it noise, which the interval contains.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from typing import Any

from dbdyno.servers import ports
from dbdyno.servers.local import LocalServer
from dbdyno.servers.server import Server
from dbdyno.servers.slot import Slot
from dbdyno.servers.workspace import Workspace, socket_directory


class Slots:
    """The places of one comparison. Only one of its servers runs at a time.

    `declared_ports` are those that variants declare: no place has one of them as its own.
    """

    def __init__(self, workspace: Workspace, count: int, declared_ports: Collection[int] = ()) -> None:
        """Raises ServerProblem where there are no free names or ports."""
        self._tenants: dict[int, LocalServer] = {}
        used = set(declared_ports)
        slots = []
        for directory in workspace.slot_directories(count):
            port, admin_port = ports.free_pair(str(directory), None, excluded=used)
            used |= {port, admin_port}
            slots.append(Slot(directory, socket_directory(directory, workspace.user), port, admin_port))
        self._workspace, self._slots = workspace, tuple(slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, number: int) -> Slot:
        return self._slots[number]

    def assign(self, number: int, server: Server) -> Mapping[str, Any]:
        """Move a server to a place, and return its datadir, socket and port by their names in
        `Description.identity`. Nothing happens to a server that is there already, and to one that dbdyno does
        not start.

        The data that the server and the former tenant of the place had are removed.
        """
        if not isinstance(server, LocalServer):
            return {}
        others = [tenant for tenant in self._tenants.values() if tenant is not server]
        assert not any(tenant.runs for tenant in others), "only one server of a comparison runs at a time"
        if self._tenants.get(number) is not server:
            for former, tenant in list(self._tenants.items()):
                if tenant is server:
                    del self._tenants[former]
                    self._workspace.renew(self._slots[former].directory)
            self._workspace.renew(self._slots[number].directory)
            server.occupy(self._slots[number])
            self._tenants[number] = server
        return server.place()

    def close(self) -> None:
        """Remove the places; the servers are stopped. Idempotent."""
        for slot in self._slots:
            if slot.sockets != slot.directory:
                shutil.rmtree(slot.sockets, ignore_errors=True)
            self._workspace.discard(slot.directory)
