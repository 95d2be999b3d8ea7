"""A private server in a container, which runs the programs of an image on a data directory of dbdyno.

Directory, configuration, accounts and snapshots are the same as for `local`. The container mounts the
server's directory under its own path, so that all paths are the same inside and outside. The container's
first process is the server, as an unprivileged user and without capabilities. The image's entrypoint and data
are not used.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.model import Variant
from dbdyno.experiment.server import size_bytes
from dbdyno.servers.kinds import containers, process
from dbdyno.servers.kinds.containers import Container, Engine, Image
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.products.product import Binaries, Place, Product
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshots.snapshot import Snapshot
from dbdyno.servers.workspace import Workspace

# Folders in which images keep server programs and which may be missing from PATH.
_FOLDERS = "/usr/sbin:/usr/local/bin:/usr/local/mysql/bin:/usr/libexec"


@functools.cache
def engine() -> Engine:
    """The Docker engine of this machine. Raises ServerProblem."""
    return Engine()


@functools.cache
def _binaries(image: Image, product: Product) -> tuple[Binaries, str]:
    """A product's programs in an image, and the version that the server prints. Raises ServerProblem."""
    servers, installers = product.programs
    script = [
        f'PATH="$PATH:{_FOLDERS}"',
        # The script uses only shell built-ins, because an image may contain no other programs.
        'for folder in /usr/lib/postgresql/*/bin; do PATH="$PATH:$folder"; done',
        *(f'[ -n "$server" ] || server="$(command -v {name})"' for name in servers),
        *(f'[ -n "$install" ] || install="$(command -v {name})"' for name in installers),
        'echo "server=$server"; echo "install=$install"',
        '[ -z "$server" ] || "$server" --version',
    ]
    output = engine().run_script(image, "\n".join(script))
    paths = dict(re.findall(r"^(server|install)=(.*)$", output, re.MULTILINE))
    version = " ".join(line for line in output.splitlines() if not re.match(r"(server|install)=", line))
    for what, names in (("server", servers), ("install", installers)):
        if not paths.get(what):
            raise ServerProblem(
                f"image {image.name!r} has no {product.title} server: it contains no {names[0]}",
                "choose an image of that product, or correct server.product",
            )
    if not product.is_version_of(version):
        raise ServerProblem(
            f"image {image.name!r} has no {product.title} server: its {paths['server']} prints "
            f"{version[:200]!r}",
            "choose an image of that product, or correct server.product",
        )
    return Binaries(Path(paths["server"]), Path(paths["install"]), None, runnable=False), version


def describe_software(variant: Variant) -> str:
    """The content hash of a variant's image, and the version of its server. Raises ServerProblem."""
    image = engine().image(str(variant.server.image))
    return f"{image.id} {_binaries(image, PRODUCTS[str(variant.server.product)])[1]}"


class DockerServer(LocalServer):
    """The server of a variant of kind `docker`."""

    _path_separators: ClassVar[Mapping[str, str]] = {":": "which separates the two paths of a mount"}

    def __init__(self, variant: Variant, workspace: Workspace, snapshot: Snapshot | None) -> None:
        self._image = engine().image(str(variant.server.image))
        self._started: Container | None = None
        super().__init__(variant, workspace, snapshot)

    def _find(self, workspace: Workspace) -> Binaries:  # noqa: ARG002 — the image contains the programs.
        return _binaries(self._image, self._product)[0]

    def _empty_key(self, programs: Sequence[str]) -> str | None:  # noqa: ARG002 — they are in the image.
        """A container's installer runs again: its image may be another one under the same name."""
        return None

    def _make_place(self, directory: Path, sockets: Path, port: int, admin_port: int) -> Place:
        socket = sockets / self._product.socket_name(port)
        if self._spec.network == "host":
            return Place(directory, socket, port, admin_port)
        # Connections come from the bridge's address; the port is published only on loopback.
        return Place(directory, socket, port, admin_port, listen_address="0.0.0.0", client_address="%")  # noqa: S104

    def _spawn(self, command: Sequence[str], *, installs: bool) -> Container:  # noqa: ARG002 — a container ends whole.
        place, spec = self._place, self._spec
        user = self._workspace.user
        passwd = place.directory / "passwd"
        user.write_file(passwd, _passwd(user.uid, user.gid))
        folders = [place.directory]
        if place.socket.parent != place.directory:
            folders.append(place.socket.parent)
        options = containers.ContainerOptions(
            self._image,
            self.variant,
            f"{user.uid}:{user.gid}",
            tuple(str(folder) for folder in folders),
            {str(passwd): "/etc/passwd"},
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
        """The end of the log file, then the container's output, which has the messages from before the log
        file.
        """
        return super()._log() + (self._started.output() if self._started is not None else "")

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
    """The container's passwd file: root, the server's account, and the account of this process, which
    PostgreSQL accepts as its administrator.
    """
    lines = ["root:x:0:0::/:/bin/sh", f"dbdyno:x:{uid}:{gid}::/:/bin/sh"]
    if os.geteuid() not in (0, uid):
        lines.append(f"{pwd.getpwuid(os.geteuid()).pw_name}:x:{os.geteuid()}:{os.getegid()}::/:/bin/sh")
    elif os.geteuid() == uid != 0:
        lines[1] = f"{pwd.getpwuid(uid).pw_name}:x:{uid}:{gid}::/:/bin/sh"
    return "".join(f"{line}\n" for line in lines)
