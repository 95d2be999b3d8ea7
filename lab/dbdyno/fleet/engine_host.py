"""What runs on a host of a fleet: it starts one engine after the other, keeps its output, and stops it.

The module is sent to hosts that have Python and Ray, but not dbdyno, so it imports only the standard library.
"""

from __future__ import annotations

import hashlib
import os
import platform
import queue
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

# An engine whose records nobody has asked for during this time is killed: the driver has ended, or the
# network is down. So no connection of a part of a fleet stays open.
UNREAD_S_MAX = 3.0
# An engine that is stopped for this time, by SIGSTOP or a debugger, is killed: it makes no load, and a server
# that is slow, which may leave it without a record for hours, does not stop it. So is one whose raylet is
# stopped: Ray is going to count the host as lost.
STOPPED_S_MAX = 1.0
# Seconds for an engine to stop after SIGINT, before it is killed.
STOP_S_MAX = 1.0
# Seconds for an engine to cancel its statements after the end of its standard input, before it is killed.
INPUT_END_S_MAX = 1.2
# Characters of standard error that are kept, and maximum bytes of one answer of `read`.
STDERR_MAX, READ_BYTES_MAX = 20_000, 8 << 20
# A program that was not used for this time is removed.
UNUSED_S_MAX = 7 * 86_400.0
_CHECK_S = 0.25
_TICK = b'{"type":"tick"'
# A program that kills an engine when the process that started it has ended, hangs or is stopped: then it no
# longer writes to the program's standard input, or that ends. `.` is a sign of life, `q` the end of the
# engine. The engine itself cannot end while it is stopped. The instant of its start tells it from a later
# process with the same number.
_GUARD = """
import os, select, signal, sys
engine, seconds = int(sys.argv[1]), float(sys.argv[2])
def start():
    with open(f"/proc/{engine}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]
began = start()
while select.select([0], [], [], seconds)[0]:
    signs = os.read(0, 4096)
    if b"q" in signs:
        sys.exit()
    if not signs:
        break
if start() == began:
    os.killpg(engine, signal.SIGKILL)
"""


class Batch(NamedTuple):
    """What an engine has written since the last call."""

    # Lines of its standard output, each with its end.
    lines: list[bytes]
    # Its exit status, in the last batch; negative: a signal.
    status: int | None
    # Its standard error, in the last batch.
    stderr: str


class EngineHost:
    """Runs engines on this host, one at a time. Its methods may be called from several threads."""

    def __init__(self) -> None:
        base = _own_folder()
        self._programs = base / "programs"
        self._programs.mkdir(exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base))
        # Limit of open files as for an engine on the driver's machine: it needs a socket per connection.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        # A core file would contain the password (see `dbdyno.passwords`).
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (1 if hard else 0, hard))
        self._cpus: set[int] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr = ""
        self._error_reader = threading.Thread()
        self._read_at = time.monotonic()
        self._lock = threading.Lock()

    def facts(self) -> dict[str, Any]:
        """The host: name, versions, CPUs, and the limit of open files."""
        ray = sys.modules.get("ray")
        return {
            "node": ray.util.get_node_ip_address() if ray is not None else socket.gethostname(),
            "host": socket.gethostname(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "ray": getattr(ray, "__version__", None),
            "cpus": len(self._host_cpus()),
            "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "process": os.getpid(),
        }

    @staticmethod
    def clock_us() -> int:
        """Wall time in microseconds since 1970."""
        return time.time_ns() // 1000

    @staticmethod
    def round_trip_us(host: str, port: int, timeout_s: float) -> float | str:
        """Microseconds to open a TCP connection, the least of three; the reason as text if that fails."""
        times = []
        for _ in range(3):
            began = time.perf_counter()
            try:
                socket.create_connection((host, port), timeout_s).close()
            except OSError as error:
                return error.strerror or str(error)
            times.append((time.perf_counter() - began) * 1e6)
        return min(times)

    def find_program(self, name: str, digest: str) -> str | None:
        """The path of a program that this host has already. `digest`: SHA-256 of its content, hexadecimal."""
        path = self._program_path(name, digest)
        if not path.exists():
            return None
        with suppress(OSError):
            os.utime(path.parent)
        return str(path)

    def install(self, name: str, content: bytes) -> str:
        """Write a program, and return its path. Programs that nobody has used for days are removed."""
        path = self._program_path(name, hashlib.sha256(content).hexdigest())
        path.parent.mkdir(exist_ok=True)
        # Several engines of a host may install it at the same time.
        unfinished = path.with_name(f"{name}.{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.chmod(0o700)
        unfinished.rename(path)
        for program in self._programs.iterdir():
            if time.time() - program.stat().st_mtime > UNUSED_S_MAX:
                shutil.rmtree(program, ignore_errors=True)
        return str(path)

    def _program_path(self, name: str, digest: str) -> Path:
        return self._programs / digest[:16] / name

    def write_files(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Write files that only this user can read, in place of earlier ones; returns name -> path."""
        folder = self._folder / "files"
        shutil.rmtree(folder, ignore_errors=True)
        paths = {}
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(0o600)
            path.write_bytes(content)
            paths[name] = str(path)
        return paths

    def pin(self) -> dict[str, list[int]]:
        """Keep a CPU for the processes that belong to Ray, and give the others to engines; with one CPU they
        share it. Returns both sets.
        """
        cpus = self._host_cpus()
        if len(cpus) < 2:
            return {"daemons": cpus, "engines": cpus}
        for process in _relatives():
            _set_cpus(process, cpus[:1])
        self._cpus = set(cpus[1:])
        return {"daemons": cpus[:1], "engines": cpus[1:]}

    def unpin(self) -> None:
        """Give all processes all CPUs again."""
        self._cpus = None
        for process in _relatives():
            _set_cpus(process, self._host_cpus())

    def _host_cpus(self) -> list[int]:
        """The CPUs that Ray was started on. Its processes inherit the raylet's CPUs, which `pin` changes, so
        the first call for a raylet notes them in a file.
        """
        cpus, raylet = sorted(os.sched_getaffinity(0)), _raylet()
        if raylet is None:
            return cpus
        # The number of a process begins the name: the file is removed when that process has ended.
        note = self._folder.parent / f"{raylet}-cpus"
        with suppress(OSError, ValueError):
            return [int(cpu) for cpu in note.read_text().split()]
        with suppress(OSError):
            note.write_text(" ".join(map(str, cpus)))
        return cpus

    @staticmethod
    def daemon_cpu_s() -> float:
        """CPU time in seconds of this process and of the other processes of Ray on this host."""
        ticks = os.sysconf("SC_CLK_TCK")
        return sum(_cpu_ticks(process) for process in _relatives()) / ticks

    def start(
        self, command: Sequence[str], plan: bytes, environment: Mapping[str, str], cpus: Iterable[int] | None
    ) -> None:
        """Start an engine and send it its plan. `cpus`: by default those of `pin`. Raises OSError."""
        self.kill()
        chosen = set(cpus) if cpus is not None else self._cpus
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            process_group=0,
        )
        try:
            guard = _start_guard(process.pid)
        except OSError:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if chosen:
            _set_cpus(process.pid, chosen)
        with self._lock:
            self._process, self._lines, self._stderr = process, queue.SimpleQueue(), ""
            self._read_at = time.monotonic()
        self._error_reader = threading.Thread(target=self._keep_errors, args=(process,), daemon=True)
        threads = [
            self._error_reader,
            threading.Thread(target=self._keep_lines, args=(process, self._lines), daemon=True),
            threading.Thread(target=self._watch, args=(process, guard), daemon=True),
        ]
        for thread in threads:
            thread.start()
        self.send(plan)

    def send(self, line: bytes) -> None:
        """Send one line to the engine. If the engine has ended, its output has the reason."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            with suppress(BrokenPipeError):
                process.stdin.close()

    def read(self, wait_s: float) -> Batch:
        """What the engine has written since the last call. Waits up to `wait_s` for a record that is not a
        tick: a call costs more CPU time than the ten ticks of a second.
        """
        self._read_at = time.monotonic()
        lines: list[bytes] = []
        size, deadline = 0, self._read_at + wait_s
        with suppress(queue.Empty):
            while size < READ_BYTES_MAX:
                left = deadline - time.monotonic()
                line = self._lines.get(timeout=left) if left > 0.0 else self._lines.get_nowait()
                if line is None:
                    return self._end(lines)
                lines.append(line)
                size += len(line)
                if not line.startswith(_TICK):
                    deadline = 0.0
        self._read_at = time.monotonic()
        return Batch(lines, None, "")

    def _end(self, lines: list[bytes]) -> Batch:
        process = self._process
        assert process is not None, "its output has ended, so it was started"
        try:
            status = process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            status = process.wait()
        self._error_reader.join(STOP_S_MAX)
        return Batch(lines, status, self._stderr)

    def stop(self) -> None:
        """Let the engine stop and write its last records; kill it if it does not."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S_MAX)
        self.kill()

    def kill(self) -> None:
        """Kill the engine, if it runs."""
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _abandon(self, process: subprocess.Popen[bytes]) -> None:
        """End an engine whose driver is gone: it cancels its statements at the end of its standard input."""
        if process.stdin is not None:
            with suppress(OSError, ValueError):
                process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(INPUT_END_S_MAX)
        self.kill()

    def close(self) -> None:
        """Kill the engine and remove its files."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _keep_lines(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
        assert process.stdout is not None, "standard output is a pipe"
        for line in process.stdout:
            # A process that was killed may have written a part of a line.
            if line.endswith(b"\n"):
                lines.put(line)
        lines.put(None)

    def _keep_errors(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None, "standard error is a pipe"
        for line in process.stderr:
            if process is self._process:
                self._stderr = (self._stderr + line.decode(errors="replace"))[-STDERR_MAX:]

    def _watch(self, process: subprocess.Popen[bytes], guard: subprocess.Popen[bytes]) -> None:
        """Kill the engine if nobody reads its records, or if it or its raylet is stopped."""
        parts = {"its process": process.pid, "the raylet of its host": _raylet()}
        ran_at = dict.fromkeys(parts, time.monotonic())
        while process.poll() is None:
            now = time.monotonic()
            for name, part in parts.items():
                if part is None or not _is_stopped(part):
                    ran_at[name] = now
            stopped = [name for name, at in ran_at.items() if now - at > STOPPED_S_MAX]
            if process is self._process and (stopped or now - self._read_at > UNREAD_S_MAX):
                if stopped:
                    self._stderr = f"{stopped[0]} was stopped (SIGSTOP)"
                    self.kill()
                else:
                    self._abandon(process)
            _write(guard, b".")
            time.sleep(_CHECK_S)
        _write(guard, b"q")
        try:
            guard.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait()
        assert guard.stdin is not None, "standard input is a pipe"
        guard.stdin.close()


def _start_guard(engine: int) -> subprocess.Popen[bytes]:
    """Start the process that kills an engine which this one cannot kill any more."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GUARD, str(engine), str(UNREAD_S_MAX)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )


def _write(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Write to a process that may have ended."""
    assert process.stdin is not None, "standard input is a pipe"
    with suppress(OSError):
        os.write(process.stdin.fileno(), content)


def _own_folder() -> Path:
    """The folder of this user for programs and files of engines, without those of ended processes."""
    base = Path(tempfile.gettempdir()) / f"dbdyno-fleet-{os.geteuid()}"
    with suppress(FileExistsError):
        base.mkdir(mode=0o700)
    status = base.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or not base.is_dir() or base.is_symlink():
        # Another user may have created it.
        return Path(tempfile.mkdtemp(prefix="dbdyno-fleet-"))
    for folder in base.iterdir():
        if folder.is_symlink():
            # dbdyno creates none.
            continue
        process = folder.name.partition("-")[0]
        if process.isdecimal() and not Path(f"/proc/{process}").exists():
            with suppress(OSError):
                folder.unlink()
            shutil.rmtree(folder, ignore_errors=True)
    return base


def _raylet() -> int | None:
    """The process of Ray that started this one; None if it is not part of Ray."""
    parent = os.getppid()
    return parent if b"raylet" in _command_line(parent) else None


def _relatives() -> list[int]:
    """The ids of this process, the raylet that started it, and the raylet's other children."""
    raylet = _raylet()
    if raylet is None:
        return [os.getpid()]
    processes = [raylet]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _parent(int(entry.name)) == raylet:
            processes.append(int(entry.name))
    return processes


def _set_cpus(process: int, cpus: Iterable[int]) -> None:
    """Let all threads of a process run on these CPUs only."""
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), cpus)


def _command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _fields(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty if the process has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_stopped(process: int) -> bool:
    """Whether a signal or a debugger has stopped a process."""
    fields = _fields(process)
    return bool(fields) and fields[0] in "Tt"


def _parent(process: int) -> int:
    fields = _fields(process)
    return int(fields[1]) if fields else 0


def _cpu_ticks(process: int) -> int:
    fields = _fields(process)
    return int(fields[11]) + int(fields[12]) if fields else 0
