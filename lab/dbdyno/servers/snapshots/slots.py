"""Slots: sets of a directory, two ports and a socket path that the servers of a comparison use in rotation.

The disk blocks of a file, the length of its path and the bucket into which the kernel hashes a port number
can make a server faster or slower. If a variant kept one slot during the whole run, this effect would be
attributed to the variant. Because the variants change their slots from block to block, the effect becomes
noise, which the confidence interval includes.
"""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.servers import ports
from dbdyno.servers.server import Server
from dbdyno.servers.workspace import Workspace, socket_directory


@dataclass(frozen=True)
class Slot:
    """One slot. In all slots of a `Slots`, paths are equally long and ports have equally many digits."""

    directory: Path
    # The folder of the unix socket: `directory`, or a shorter one if the socket's path would be too long.
    sockets: Path
    port: int
    admin_port: int


class PrivateServer(Server):
    """A server that dbdyno starts, and that can move to another slot."""

    private: ClassVar[bool] = True

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether the server was started and not stopped since."""

    @abstractmethod
    def occupy(self, slot: Slot) -> None:
        """Move the stopped server, without its data, to an empty slot; `restore` then copies the data."""

    @abstractmethod
    def place(self) -> Mapping[str, Any]:
        """The server's data directory, socket and port, by the keys of `Description.identity`."""


class Slots:
    """The slots of one comparison.

    `declared_ports` are the ports that variants declare; no slot uses them.
    """

    def __init__(self, workspace: Workspace, count: int, declared_ports: Collection[int] = ()) -> None:
        """Raises ServerProblem if no directory names or ports are free."""
        self._occupants: dict[int, PrivateServer] = {}
        used = set(declared_ports)
        slots = []
        for directory in workspace.slot_directories(count):
            port, admin_port = ports.reserve_pair(name=str(directory), requested=None, excluded=used)
            used |= {port, admin_port}
            slots.append(Slot(directory, socket_directory(directory, workspace.user), port, admin_port))
        self._workspace, self._slots = workspace, tuple(slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, number: int) -> Slot:
        return self._slots[number]

    def assign(self, number: int, server: Server) -> Mapping[str, Any]:
        """Move a server to a slot, unless it is already there, and return `PrivateServer.place`.

        The data of the server and of the slot's previous server are removed. A server that dbdyno does not
        start cannot move; the result is then empty.
        """
        if not isinstance(server, PrivateServer):
            return {}
        occupant = self._occupants.get(number)
        if occupant is not server:
            assert occupant is None or not occupant.is_running, "the slot's previous server has stopped"
            for previous, occupant in list(self._occupants.items()):
                if occupant is server:
                    del self._occupants[previous]
                    self._workspace.empty_directory(self._slots[previous].directory)
            self._workspace.empty_directory(self._slots[number].directory)
            server.occupy(self._slots[number])
            self._occupants[number] = server
        return server.place()

    def close(self) -> None:
        """Remove the slots, whose servers must be stopped. Idempotent."""
        for slot in self._slots:
            if slot.sockets != slot.directory:
                shutil.rmtree(slot.sockets, ignore_errors=True)
            self._workspace.discard(slot.directory)
            ports.release_directory(slot.directory)
