"""A private server in a container, which runs the programs of an image on a data directory of dbdyno.

Directory, configuration, accounts and snapshots are the same as for `local`. The container mounts the
server's directory under its own path, so that all paths are the same inside and outside. The container's
first process is the server, as an unprivileged user and without capabilities. The image's entrypoint and data
are not used.

No other file imports the Docker SDK (extra `docker`). A `Container` has those methods of a child process
(`subprocess.Popen`) that `process` uses. A container never outlives dbdyno: a guardian process removes it
when its own standard input is closed, which the kernel does however dbdyno ends.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pwd
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.model import Variant
from dbdyno.experiment.server import size_bytes
from dbdyno.servers.kinds import process
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.owned_folder import DIRECTORY_VARIABLE
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.products.product import Binaries, Place, Product
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshots.directories import Snapshot
from dbdyno.servers.workspace import Workspace

# Folders in which images keep server programs and which may be missing from PATH.
_FOLDERS = "/usr/sbin:/usr/local/bin:/usr/local/mysql/bin:/usr/libexec"

# Label of dbdyno's containers, for users who list containers.
LABEL = "org.dbdyno.server"

# Maximum seconds for an answer of the Docker engine, which may be slow under load.
ANSWER_S = 120
POLL_S = 0.05
_LOG = logging.getLogger(__name__)

_GUARDIAN = """
import sys, time
sys.stdin.read()
import docker
# A container that the engine was creating when dbdyno ended appears a moment later.
for _ in range(100):
    try:
        docker.from_env().containers.get(sys.argv[1]).remove(force=True, v=True)
        break
    except docker.errors.NotFound:
        time.sleep(0.1)
    except docker.errors.DockerException:
        break
"""


@dataclass(frozen=True)
class Image:
    """An image in the Docker engine."""

    name: str
    # The hash of its content.
    id: str
    architecture: str


@dataclass(frozen=True)
class ContainerOptions:
    """How a container runs."""

    image: Image
    name: str
    # User and group, as numbers.
    user: str
    # Folders, mounted under the same paths; files, mounted under other paths.
    folders: tuple[str, ...] = ()
    files: Mapping[str, str] | None = None
    cpus: str | None = None
    cpu_limit: float | None = None
    memory_bytes: int | None = None
    open_files: int = 1024
    # "host" or "bridge".
    network: str = "host"
    # Ports of a bridge network that are published on loopback.
    ports: tuple[int, ...] = ()

    def sdk_options(self) -> dict[str, Any]:
        """The options of the SDK's `containers.create`."""
        volumes = {folder: {"bind": folder, "mode": "rw"} for folder in self.folders}
        volumes |= {path: {"bind": to, "mode": "ro"} for path, to in (self.files or {}).items()}
        slug = re.sub("[^a-z0-9]+", "-", self.name.lower()).strip("-")
        options: dict[str, Any] = {
            "detach": True,
            "user": self.user,
            "name": f"dbdyno-{slug}-{secrets.token_hex(3)}",
            "labels": {LABEL: self.name},
            "volumes": volumes,
            "network_mode": self.network,
            "environment": {"LC_ALL": "C"},
            "cap_drop": ["ALL"],
            # PostgreSQL's parallel workers use shared memory; Docker's default of 64 MB is too small.
            "shm_size": 1 << 30,
        }
        if self.folders:
            options["working_dir"] = self.folders[0]
            options["environment"][DIRECTORY_VARIABLE] = self.folders[0]
        if self.network == "bridge":
            options["ports"] = {f"{port}/tcp": ("127.0.0.1", port) for port in self.ports}
        if self.cpus is not None:
            options["cpuset_cpus"] = self.cpus
        if self.cpu_limit is not None:
            options["nano_cpus"] = round(self.cpu_limit * 1e9)
        if self.memory_bytes is not None:
            # No swap, so that the memory limit is the requested one.
            options |= {"mem_limit": self.memory_bytes, "memswap_limit": self.memory_bytes}
        return options


class Engine:
    """The Docker engine of this machine."""

    def __init__(self) -> None:
        """Raises ServerProblem if the SDK is missing or no engine answers."""
        self._sdk = _sdk()
        with _sdk_errors():
            self._client = self._sdk.from_env(timeout=ANSWER_S)
            self._client.ping()
        if not str(self._client.api.base_url).startswith(("http+docker://", "http://localhost")):
            raise ServerProblem(
                f"the Docker engine is at {self._client.api.base_url}; dbdyno needs an engine on this "
                "machine, because it shares folders with containers",
                "use the engine of this machine (unset DOCKER_HOST), or run dbdyno where that engine runs",
            )

    def image(self, name: str) -> Image:
        """An image of the engine by its name. Raises ServerProblem if there is none; dbdyno does not pull."""
        with _sdk_errors():
            try:
                image = self._client.images.get(name)
            except self._sdk.errors.ImageNotFound:
                raise ServerProblem(
                    f"the Docker engine of this machine has no image {name!r}",
                    f"run docker pull {name} or docker import first: dbdyno pulls no images",
                ) from None
            return Image(name, str(image.id), str(image.attrs.get("Architecture", "")))

    def run_script(self, image: Image, script: str) -> str:
        """The output of a shell script in a container of that image. Raises ServerProblem."""
        options = ContainerOptions(image, "programs", "0:0", network="none")
        container = self.start(options, ["/bin/sh", "-c", script])
        try:
            container.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            raise ServerProblem(
                f"image {image.name!r} did not answer within {ANSWER_S} s",
                "choose a database image",
            ) from None
        finally:
            container.remove()
        return container.output()

    def start(self, options: ContainerOptions, command: Sequence[str]) -> Container:
        """Start a command in a new container. Raises ServerProblem."""
        ulimit = self._sdk.types.Ulimit(name="nofile", soft=options.open_files, hard=options.open_files)
        core = self._sdk.types.Ulimit(name="core", soft=0, hard=0)
        create = options.sdk_options()
        # The guardian starts first, because this program may be killed right after its request.
        guardian = Guardian(create["name"])
        with _sdk_errors():
            try:
                container = self._client.containers.create(
                    options.image.id,
                    list(command[1:]),
                    entrypoint=[command[0]],
                    ulimits=[ulimit, core],
                    **create,
                )
            except self._sdk.errors.APIError:
                # The engine created no container.
                guardian.dismiss()
                raise
            started = Container(container, guardian)
            try:
                container.start()
                started.refresh()
            except BaseException:
                started.remove()
                raise
        _LOG.debug("started container %s of %s: %s", create["name"], options.image.name, shlex.join(command))
        return started


class Guardian:
    """A process that removes the named container when this program ends, even one that the engine is still
    creating.
    """

    def __init__(self, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _GUARDIAN, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        """Whether the guardian still runs."""
        return self._process.returncode is None

    def dismiss(self) -> None:
        """End the guardian. Idempotent."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None, "Popen made a pipe"
        self._process.stdin.close()


class Container:
    """A container with the interface of a child process (`Popen`), and its output."""

    def __init__(self, container: Any, guardian: Guardian) -> None:
        self._container = container
        self.returncode: int | None = None
        # Process id on this machine; 0 when the container is not running.
        self.pid = 0
        self._output = b""
        self._guardian = guardian

    @property
    def id(self) -> str:
        """The container's id in the Docker engine."""
        return str(self._container.id)

    def refresh(self) -> None:
        """Read the container's state from the engine."""
        self._container.reload()
        state = self._container.attrs["State"]
        self.pid = int(state.get("Pid") or 0)
        if state.get("Status") in ("exited", "dead"):
            self.returncode = int(state["ExitCode"])

    def poll(self) -> int | None:
        """Its exit status; None while it runs. Raises ServerProblem when the engine does not answer."""
        if self.returncode is None:
            with _sdk_errors():
                self.refresh()
                if self.returncode is not None:
                    self.remove()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired, ServerProblem."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.id, timeout or 0.0)
            time.sleep(POLL_S)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to the container's first process."""
        with _sdk_errors(), contextlib.suppress(_sdk().errors.NotFound):
            try:
                self._container.kill(signal=signal.Signals(number).name)
            except _sdk().errors.APIError as error:
                # The container may have ended meanwhile.
                if "is not running" not in str(error):
                    raise

    def kill(self) -> None:
        """Kill the container."""
        self.send_signal(signal.SIGKILL)

    def output(self) -> str:
        """The container's standard output and standard error."""
        if self._guardian.is_running and self.returncode is None:
            with _sdk_errors():
                return bytes(self._container.logs()).decode(errors="replace")
        return self._output.decode(errors="replace")

    def remove(self) -> None:
        """Remove the container, running or not, and keep its output. Idempotent."""
        with contextlib.suppress(_sdk().errors.DockerException):
            self._output = bytes(self._container.logs())
        with contextlib.suppress(_sdk().errors.NotFound):
            self._container.remove(force=True, v=True)
        # Last: until the container is removed, the guardian must be able to remove it.
        self._guardian.dismiss()


def _sdk() -> Any:
    try:
        import docker  # noqa: PLC0415 — an optional dependency.
    except ImportError as error:
        raise ServerProblem(
            "servers of kind docker need the Python package docker, which is not installed",
            "pip install 'dbdyno[docker]'",
        ) from error
    return docker


@contextlib.contextmanager
def _sdk_errors() -> Iterator[None]:
    """Raise the SDK's errors as ServerProblem."""
    try:
        yield
    except _sdk().errors.DockerException as error:
        text = " ".join(str(error).split())
        if "Error while fetching server API version" in text or "Connection aborted" in text:
            raise ServerProblem(
                f"the Docker engine does not answer: {text[:300]}",
                "start it (systemctl start docker), join the group docker, or set DOCKER_HOST",
                exit_code=3,
            ) from error
        raise ServerProblem(f"the Docker engine refused the request: {text[:500]}", exit_code=4) from error
    except OSError as error:
        # The SDK's HTTP client raises OSError too.
        raise ServerProblem(
            f"the Docker engine does not answer: {' '.join(str(error).split())[:300]}",
            "check that it runs (systemctl status docker)",
            exit_code=3,
        ) from error


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


def find_image(variant: Variant) -> tuple[Image, str]:
    """A variant's image, and the version of its server. Raises ServerProblem."""
    image = engine().image(str(variant.server.image))
    return image, _binaries(image, PRODUCTS[str(variant.server.product)])[1]


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
        options = ContainerOptions(
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
