"""The Docker engine, through its SDK: the only file that imports it (extra `docker`).

A container of ours is like a child process: it has the interface of one (`subprocess.Popen`, as far as
`process` uses it), and does not outlive this program, however that ends. A small guardian process sees to
the latter: it waits for the end of its standard input, which only our own end brings about, and removes the
container.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.servers.server import PASSWORD_VARIABLE, ServerProblem

# Marks what is ours, for people who look at their containers.
LABEL = "org.dbdyno.server"

# An engine under load may take its time; a local one answers at once otherwise.
ANSWER_S = 120
POLL_S = 0.05

_GUARDIAN = """
import sys, time
sys.stdin.read()
import docker
# A container that was being made when the end came is there a moment later.
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
    """An image that is there."""

    name: str
    # The hash of its content.
    id: str
    architecture: str


@dataclass(frozen=True)
class Options:
    """How a container of ours runs."""

    image: Image
    name: str
    # User and group, as numbers.
    user: str
    # Folders that it sees under their own names, and files it sees under another.
    folders: tuple[str, ...] = ()
    files: Mapping[str, str] | None = None
    cpus: str | None = None
    cpu_limit: float | None = None
    memory_bytes: int | None = None
    open_files: int = 1024
    # "host", or "bridge" with these ports published on loopback.
    network: str = "host"
    ports: tuple[int, ...] = ()

    def asked(self) -> dict[str, Any]:
        """The options of the SDK's `containers.create`."""
        volumes = {folder: {"bind": folder, "mode": "rw"} for folder in self.folders}
        volumes |= {path: {"bind": to, "mode": "ro"} for path, to in (self.files or {}).items()}
        slug = re.sub("[^a-z0-9]+", "-", self.name.lower()).strip("-")
        asked: dict[str, Any] = {
            "detach": True,
            "user": self.user,
            "name": f"dbdyno-{slug}-{secrets.token_hex(3)}",
            "labels": {LABEL: self.name},
            "volumes": volumes,
            "network_mode": self.network,
            "environment": {"LC_ALL": "C"},
            "cap_drop": ["ALL"],
            # PostgreSQL's parallel workers share memory there; Docker's own 64 MB are too few.
            "shm_size": 1 << 30,
        }
        if self.folders:
            asked["working_dir"] = self.folders[0]
        if self.network == "bridge":
            asked["ports"] = {f"{port}/tcp": ("127.0.0.1", port) for port in self.ports}
        if self.cpus is not None:
            asked["cpuset_cpus"] = self.cpus
        if self.cpu_limit is not None:
            asked["nano_cpus"] = round(self.cpu_limit * 1e9)
        if self.memory_bytes is not None:
            # Swapping would be another limit than the one that was asked for.
            asked |= {"mem_limit": self.memory_bytes, "memswap_limit": self.memory_bytes}
        return asked


class Engine:
    """The Docker engine of this machine."""

    def __init__(self) -> None:
        """Raises ServerProblem where the SDK is missing or no engine answers."""
        self._sdk = _sdk()
        with _plainly():
            self._client = self._sdk.from_env(timeout=ANSWER_S)
            self._client.ping()
        if not str(self._client.api.base_url).startswith(("http+docker://", "http://localhost")):
            raise ServerProblem(
                f"the Docker engine is at {self._client.api.base_url}, and dbdyno shares folders with its "
                "containers",
                "use the engine of this machine (unset DOCKER_HOST), or run dbdyno beside that engine",
            )

    def image(self, name: str) -> Image:
        """An image by its name. Nothing is pulled. Raises ServerProblem where it is not there."""
        with _plainly():
            try:
                found = self._client.images.get(name)
            except self._sdk.errors.ImageNotFound:
                raise ServerProblem(
                    f"there is no image {name!r} in this machine's Docker engine",
                    f"get it first: docker pull {name} (dbdyno pulls nothing by itself), or docker import",
                ) from None
            return Image(name, str(found.id), str(found.attrs.get("Architecture", "")))

    def tell(self, image: Image, script: str) -> str:
        """What a shell script says in a container of that image. Raises ServerProblem."""
        options = Options(image, "asking", "0:0", network="none")
        container = self.start(options, ["/bin/sh", "-c", script])
        try:
            container.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            raise ServerProblem(
                f"image {image.name!r} did not answer within {ANSWER_S} s", "choose an image of a server"
            ) from None
        finally:
            container.remove()
        return container.words()

    def start(self, options: Options, command: Sequence[str]) -> Container:
        """Start a command in a new container. Raises ServerProblem."""
        ulimit = self._sdk.types.Ulimit(name="nofile", soft=options.open_files, hard=options.open_files)
        core = self._sdk.types.Ulimit(name="core", soft=0, hard=0)
        asked = options.asked()
        # Before there is anything to guard: this program may be killed right after it has asked.
        guardian = Guardian(asked["name"])
        with _plainly():
            try:
                made = self._client.containers.create(
                    options.image.id,
                    list(command[1:]),
                    entrypoint=[command[0]],
                    ulimits=[ulimit, core],
                    **asked,
                )
            except self._sdk.errors.APIError:
                # It has said no: there is none.
                guardian.dismiss()
                raise
            started = Container(made, guardian)
            try:
                made.start()
                started.refresh()
            except BaseException:
                started.remove()
                raise
        return started


class Guardian:
    """A process that removes the container of a name when this program ends, however it ends, and also one
    that the engine is still making then.
    """

    def __init__(self, name: str) -> None:
        hidden = {name: value for name, value in os.environ.items() if name != PASSWORD_VARIABLE}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _GUARDIAN, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=hidden,
            start_new_session=True,
        )

    @property
    def watches(self) -> bool:
        """Whether it has not been dismissed."""
        return self._process.returncode is None

    def dismiss(self) -> None:
        """There is nothing to guard any more. Idempotent."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None, "it was given a pipe"
        self._process.stdin.close()


class Container:
    """A container as a child process: `Popen`'s interface, and what it says."""

    def __init__(self, made: Any, guardian: Guardian) -> None:
        self._made = made
        self.returncode: int | None = None
        # On this machine; 0 when it is not running.
        self.pid = 0
        self._words = b""
        self._guardian = guardian

    @property
    def id(self) -> str:
        """The engine's own name for it."""
        return str(self._made.id)

    def refresh(self) -> None:
        """Ask the engine how it is."""
        self._made.reload()
        state = self._made.attrs["State"]
        self.pid = int(state.get("Pid") or 0)
        if state.get("Status") in ("exited", "dead"):
            self.returncode = int(state["ExitCode"])

    def poll(self) -> int | None:
        """Its exit status; None while it runs. Raises ServerProblem when the engine does not answer."""
        if self.returncode is None:
            with _plainly():
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
        """Send its first process a signal."""
        with _plainly(), contextlib.suppress(_sdk().errors.NotFound):
            try:
                self._made.kill(signal=signal.Signals(number).name)
            except _sdk().errors.APIError as error:
                # It has ended meanwhile.
                if "is not running" not in str(error):
                    raise

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def words(self) -> str:
        """What it has said on standard output and standard error."""
        if self._guardian.watches and self.returncode is None:
            with _plainly():
                return bytes(self._made.logs()).decode(errors="replace")
        return self._words.decode(errors="replace")

    def remove(self) -> None:
        """Remove it, dead or alive, and keep its words. Idempotent."""
        with contextlib.suppress(_sdk().errors.DockerException):
            self._words = bytes(self._made.logs())
        with contextlib.suppress(_sdk().errors.NotFound):
            self._made.remove(force=True, v=True)
        # Last: until here it is the guardian who sees to it.
        self._guardian.dismiss()


def _sdk() -> Any:
    try:
        import docker  # noqa: PLC0415 — an extra: only who uses it needs it.
    except ImportError as error:
        raise ServerProblem(
            "servers of kind docker need the Python package docker, which is not installed",
            "pip install 'dbdyno[docker]'",
        ) from error
    return docker


@contextlib.contextmanager
def _plainly() -> Iterator[None]:
    """The SDK's errors in the user's terms."""
    try:
        yield
    except _sdk().errors.DockerException as error:
        words = " ".join(str(error).split())
        if "Error while fetching server API version" in words or "Connection aborted" in words:
            raise ServerProblem(
                f"the Docker engine does not answer: {words[:300]}",
                "start it (systemctl start docker), be allowed to use it (group docker), or set DOCKER_HOST",
                exit_code=3,
            ) from error
        raise ServerProblem(f"the Docker engine refuses: {words[:500]}", exit_code=4) from error
    except OSError as error:
        # What the SDK's own HTTP client raises is an OSError too.
        raise ServerProblem(
            f"the Docker engine does not answer: {' '.join(str(error).split())[:300]}",
            "see that it runs (systemctl status docker)",
            exit_code=3,
        ) from error
