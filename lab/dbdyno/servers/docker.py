"""A private server in a container: an image's programs over a data directory of ours.

Everything but the process is as in `local`: directory, configuration, accounts, snapshots. The container sees
the server's directory under its own name, so that no path differs; its first process is the server itself,
as an unprivileged user and without capabilities. An image's own entrypoint and its data take no part.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dbdyno.experiment.model import Variant
from dbdyno.experiment.server import size_bytes
from dbdyno.servers import containers, process
from dbdyno.servers.containers import Container, Engine, Image
from dbdyno.servers.declared import PRODUCTS
from dbdyno.servers.local import LocalServer
from dbdyno.servers.product import Binaries, Place, Product
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshot import Snapshot
from dbdyno.servers.workspace import Workspace

# Where images keep the programs of servers, beside PATH.
_FOLDERS = "/usr/sbin:/usr/local/bin:/usr/local/mysql/bin:/usr/libexec"


@functools.cache
def engine() -> Engine:
    """The engine of this machine; asked for once. Raises ServerProblem."""
    return Engine()


@functools.cache
def _found(image: Image, product: Product) -> tuple[Binaries, str]:
    """A product's programs in an image, and what the server says of its version. Raises ServerProblem."""
    servers, installers = product.programs
    script = [
        f'PATH="$PATH:{_FOLDERS}"',
        # In the shell alone: an image of a server need not have any other program.
        'for folder in /usr/lib/postgresql/*/bin; do PATH="$PATH:$folder"; done',
        *(f'[ -n "$server" ] || server="$(command -v {name})"' for name in servers),
        *(f'[ -n "$install" ] || install="$(command -v {name})"' for name in installers),
        'echo "server=$server"; echo "install=$install"',
        '[ -z "$server" ] || "$server" --version',
    ]
    said = engine().tell(image, "\n".join(script))
    places = dict(re.findall(r"^(server|install)=(.*)$", said, re.MULTILINE))
    version = " ".join(line for line in said.splitlines() if not re.match(r"(server|install)=", line))
    for what, names in (("server", servers), ("install", installers)):
        if not places.get(what):
            raise ServerProblem(
                f"image {image.name!r} has no {product.title} server: there is no {names[0]} in it",
                "choose an image of that product, or correct server.product",
            )
    if not product.is_named(version):
        raise ServerProblem(
            f"image {image.name!r} has no {product.title} server: its {places['server']} says "
            f"{version[:200]!r}",
            "choose an image of that product, or correct server.product",
        )
    return Binaries(Path(places["server"]), Path(places["install"]), None, here=False), version


def software(variant: Variant) -> str:
    """What runs in a variant's container: the image by its content, and the server's version. Raises
    ServerProblem.
    """
    image = engine().image(str(variant.server.image))
    return f"{image.id} {_found(image, PRODUCTS[str(variant.server.product)])[1]}"


class DockerServer(LocalServer):
    """The server of a variant of kind `docker`."""

    def __init__(self, variant: Variant, workspace: Workspace, snapshot: Snapshot | None) -> None:
        self._image = engine().image(str(variant.server.image))
        self._started: Container | None = None
        super().__init__(variant, workspace, snapshot)

    def _find(self, workspace: Workspace) -> Binaries:  # noqa: ARG002 — an image's programs are in it.
        return _found(self._image, self._product)[0]

    def _make_place(self, directory: Path, sockets: Path, port: int, admin_port: int) -> Place:
        socket = sockets / self._product.socket_name(port)
        if self._spec.network == "host":
            return Place(directory, socket, port, admin_port)
        # Connections come from the bridge's own address; the port is published on loopback alone.
        return Place(directory, socket, port, admin_port, listens="0.0.0.0", clients="%")  # noqa: S104

    def _begin(self, command: Sequence[str]) -> Container:
        place, spec = self._place, self._spec
        user = self._workspace.user
        names = place.directory / "passwd"
        names.write_text(_passwd(user.uid, user.gid))
        folders = [place.directory]
        if place.socket.parent != place.directory:
            folders.append(place.socket.parent)
        options = containers.Options(
            self._image,
            self.variant,
            f"{user.uid}:{user.gid}",
            tuple(str(folder) for folder in folders),
            {str(names): "/etc/passwd"},
            spec.cpus,
            spec.cpu_limit,
            None if spec.memory is None else size_bytes(spec.memory),
            process.open_files_max(),
            spec.network,
            tuple(port for port in (place.port, place.admin_port) if port),
        )
        self._started = engine().start(options, command)
        return self._started

    def _log(self) -> str:
        """Its log file, and what it said before it had one."""
        return super()._log() + (self._started.words() if self._started is not None else "")

    def _identity(self) -> dict[str, Any]:
        spec = self._spec
        return {
            **super()._identity(),
            "image": self._image.name,
            "image_id": self._image.id,
            "network": spec.network,
            "memory_limit": spec.memory,
            "cpu_limit": spec.cpu_limit,
        }


def _passwd(uid: int, gid: int) -> str:
    """A container's accounts: root, the server's, and ours, by which PostgreSQL knows its administrator."""
    lines = ["root:x:0:0::/:/bin/sh", f"dbdyno:x:{uid}:{gid}::/:/bin/sh"]
    if os.geteuid() not in (0, uid):
        lines.append(f"{pwd.getpwuid(os.geteuid()).pw_name}:x:{os.geteuid()}:{os.getegid()}::/:/bin/sh")
    elif os.geteuid() == uid != 0:
        lines[1] = f"{pwd.getpwuid(uid).pw_name}:x:{uid}:{gid}::/:/bin/sh"
    return "".join(f"{line}\n" for line in lines)
