"""A private server on this machine, with its own directory, user, CPUs, ports and accounts.

The states of a server::

    new --restore()--> stopped, with data --start()--> running --stop()--> stopped --close()--> removed
"""

from __future__ import annotations

import atexit
import datetime
import ipaddress
import os
import secrets
import shutil
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dbdyno.experiment.base import format_cpus
from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import as_text
from dbdyno.servers import owned_folder, ports
from dbdyno.servers.admin.answers import shorten_statement
from dbdyno.servers.admin.connection import AdminConnection, ConnectFailure
from dbdyno.servers.kinds import process
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.products.product import Binaries, ConfigOptions, Failure, Place, diagnose
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.proxies.proxy import RunningProxy
from dbdyno.servers.server import Address, Description, MachineProblem, ServerProblem
from dbdyno.servers.snapshots.copying import METHOD, copy_tree
from dbdyno.servers.snapshots.directories import Snapshot, copy_or_create, software_key
from dbdyno.servers.snapshots.slots import PrivateServer, Slot
from dbdyno.servers.sources.installed import programs_folder
from dbdyno.servers.usage import Usage, host, this_machine
from dbdyno.servers.workspace import Workspace, socket_directory
from dbdyno.variables.versions import variable_of
from dbdyno.waiting import waiting_for

# Name of the load's account and schema. Every server object generates a new password.
USER = DATABASE = "dbdyno"

# Maximum seconds for a start, in which a server may recover from a crash or fill a large buffer pool, and for
# a clean stop, in which it may flush the buffer pool.
START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 300.0
KILL_TIMEOUT_S = 60.0

# Bytes that a server needs in addition to its data: temporary tables, undo, logs.
WORKING_BYTES = 200_000_000

# Bytes at the end of a log that are searched for the cause of a failure.
LOG_TAIL_BYTES = 100_000

# Longer than any server lives that dbdyno starts.
_CERTIFICATE_VALID_FOR = datetime.timedelta(days=365)

_alive: weakref.WeakSet[LocalServer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for server in list(_alive):
        server.close()


class LocalServer(PrivateServer):
    """A private server of one variant. `restore` copies `snapshot`, or creates an empty schema if it is None.

    Raises ServerProblem if the variant cannot be run.
    """

    # Characters that the path of its directory must not have, besides those of the product.
    _path_separators: ClassVar[Mapping[str, str]] = {}

    def __init__(self, variant: Variant, workspace: Workspace, snapshot: Snapshot | None) -> None:
        self.variant = variant.name
        # Seconds that the last clean stop took; the time to flush is part of a variant's cost.
        self.stop_seconds: float | None = None
        self._spec = variant.server
        self._connect = variant.session.connection_settings()
        self._declared = read_declaration(variant)
        self._product = self._declared.product
        self._binaries = self._find(workspace)
        self._workspace = workspace
        self._snapshot = snapshot
        self._process: process.Child | None = None
        self._usage: Usage | None = None
        self._admin: AdminConnection | None = None
        self._log_start = 0
        # The passwords contain only letters, digits, `-` and `_`, which need no escaping in a statement.
        self._password, self._admin_password = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._require_usable(workspace.base)
        directory = workspace.server_directory(variant.name)
        sockets = socket_directory(directory, workspace.user)
        port, admin_port = ports.reserve_pair(str(directory), self._declared.port)
        self._place = self._make_place(directory, sockets, port, admin_port)
        self._proxy: RunningProxy | None = None
        if variant.proxy is not None:
            self._proxy = RunningProxy(PROGRAMS[variant.proxy.program], variant, workspace)
            self._proxy.move(directory, sockets)
        # None if the server has its own directory, which `close` removes.
        self._slot: Slot | None = None
        _alive.add(self)

    def _require_usable(self, base: Path) -> None:
        """Raise ServerProblem if the server cannot work in a directory below `base`, because of its name."""
        reasons = {
            "\n": "which the file of a server's options cannot contain",
            "\r": "which the file of a server's options cannot contain",
            **self._product.path_separators,
            **self._path_separators,
        }
        text = str(base)
        character = next((entry for entry in text if entry in reasons or "\ud800" <= entry <= "\udfff"), None)
        if character is not None:
            reason = reasons.get(character, "which is not UTF-8")
            raise ServerProblem(
                f"the server of {self.variant!r} cannot have its data in {text!r}: the path has the "
                f"character {character!r}, {reason}",
                "choose a results directory without that character (--results DIR)",
            )

    def _find(self, workspace: Workspace) -> Binaries:
        """The server's programs."""
        return self._product.binaries(workspace.reachable(programs_folder(self._spec)))

    def _make_place(self, directory: Path, sockets: Path, port: int, admin_port: int) -> Place:
        return Place(directory, sockets / self._product.socket_name(port), port, admin_port)

    # --- place

    def occupy(self, slot: Slot) -> None:
        """See `PrivateServer`. A port that the variant declares does not change."""
        assert not self.is_running, "a running server cannot move"
        self._remove_own_place()
        self._slot = slot
        port = self._declared.port or slot.port
        self._place = self._make_place(slot.directory, slot.sockets, port, slot.admin_port)
        if self._proxy is not None:
            self._proxy.move(slot.directory, slot.sockets)

    def _remove_own_place(self) -> None:
        if self._slot is None:
            if self._place.socket.parent != self._place.directory:
                shutil.rmtree(self._place.socket.parent, ignore_errors=True)
            self._workspace.discard(self._place.directory)
            ports.release_directory(self._place.directory)

    @property
    def is_running(self) -> bool:
        """See `PrivateServer`."""
        return self._process is not None

    def place(self) -> dict[str, Any]:
        """See `PrivateServer`."""
        return {"datadir": str(self._place.data), "socket": str(self._place.socket), "port": self._place.port}

    # --- data

    def restore(self) -> None:
        """Copy the snapshot in full, or create an empty data directory. A server that still runs is killed
        first.
        """
        self.stop(clean=False)
        for path in (self._place.data, self._place.temporary):
            owned_folder.remove(path, self._workspace.root, marked=self._place.directory)
        needed = (self._snapshot.bytes if self._snapshot else 0) + WORKING_BYTES
        self._workspace.require_space(needed, f"the data of {self.variant!r}")
        try:
            self._make_directory(self._place.temporary)
            if self._snapshot is not None:
                copy_tree(self._snapshot.data, self._place.data, self._workspace.user)
        except OSError as error:
            raise MachineProblem(
                f"data of {self.variant!r} could not be copied to {self._place.directory}: {error.strerror}",
                "free some space or choose another results directory",
                exit_code=4,
            ) from error
        if self._snapshot is None:
            self._create_empty_data()

    def _make_directory(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        self._workspace.user.own(path)

    def _create_empty_data(self) -> None:
        """Create an empty data directory, with the options that determine the file format."""
        command = self._product.init_command(self._binaries, self._place, self._declared.init_options())
        key = self._empty_key([*self._binaries.command(), *command])
        if key is None:
            self._install(command)
            return
        try:
            copy_or_create(self._workspace, key, self._place.data, lambda: self._install(command))
        except OSError as error:
            raise MachineProblem(
                f"an empty data directory of {self.variant!r} could not be copied: {error.strerror}",
                "free some space or choose another results directory",
                exit_code=4,
            ) from error

    def _empty_key(self, programs: Sequence[str]) -> str | None:
        """The key of what the installer creates, from its command and the server's programs."""
        return software_key([*programs, self._workspace.user.name], self._place.directory)

    def _install(self, command: Sequence[str]) -> None:
        self._make_directory(self._place.data)
        self._launch(command, installs=True)
        assert self._process is not None, "just launched"
        try:
            status = process.wait_for_installer(self._process, f"the server of {self.variant!r}")
        finally:
            process.kill_group(self._process)
        self._process = None
        if status != 0:
            raise self._diagnose(status)

    def finish_background_work(self, tables: Sequence[str]) -> None:  # noqa: ARG002 — dbdyno created all tables.
        """See `Server`."""
        self._product.finish_background_work(self._running_admin(), DATABASE)

    def stop_for_snapshot(self) -> None:
        """Finish all background work and stop the server cleanly, so that its data can be a snapshot."""
        self.finish_background_work(())
        self._product.prepare_snapshot(self._running_admin())
        self.stop(clean=True)

    def give_data(self, target: Path) -> None:
        """Move the data directory of a cleanly stopped server to `target`, on the same file system."""
        assert self._process is None, "the data are complete only when the server is stopped"
        for path in self._place.data.rglob("*"):
            names = {path.name, path.relative_to(self._place.data).parts[0]}
            if path.is_file() and names & self._product.transient_files:
                path.unlink()
        self._place.data.rename(target)

    # --- life

    def start(self) -> None:
        """Start the server, wait until it answers, and run the variant's `init_sql`. Restore the data first
        if there are none. Does nothing if the server is running.
        """
        if self._process is not None and self._process.poll() is None:
            return
        if not self._place.data.exists():
            self.restore()
        ports.require_free(self._place.port)
        ports.require_free(self._place.admin_port)
        self._write_files()
        self._launch(self._product.start_command(self._binaries, self._place, self._spec.arguments))
        self._admin = self._product.admin(self._place, self._admin_password)
        try:
            with waiting_for(f"the server of {self.variant} to start"):
                self._wait_until_ready(self._admin)
            if error := self._product.startup_error(self._log()):
                raise ServerProblem(
                    f"the server of {self.variant!r} started, but ignored a declared setting: {error}",
                    "correct or remove that setting in the variant's variables, config or arguments",
                )
            self._product.create_accounts(self._admin, self.address())
            for statement in self._spec.init_sql:
                self._run_init_sql(statement)
            if self._proxy is not None:
                self._proxy.start(self.address())
        except BaseException:
            self.stop(clean=False)
            raise
        finally:
            self._place.init_file.unlink(missing_ok=True)

    def _write_files(self) -> None:
        options = ConfigOptions(
            self._dbdyno_options(), self._declared.config, self._declared.file_variables()
        )
        files = self._product.files(self._place, options, self.address(), self._admin_password)
        certificate_options = (
            dict(zip(self._certificate(), _create_certificate(), strict=True)) if self._offers_tls else {}
        )
        for path, text in {**files, **certificate_options}.items():
            # A server ignores option files that every user may write to, and some of these files contain
            # passwords.
            self._workspace.user.write_file(path, text)

    def _launch(self, command: Sequence[str], *, installs: bool = False) -> None:
        if not os.path.lexists(self._place.log):
            self._workspace.user.write_file(self._place.log, "")
        self._workspace.user.own(self._place.log, 0o600)
        self._log_start = self._place.log.stat().st_size
        self._process = self._spawn(command, installs=installs)
        self._usage = Usage(self._process.pid)

    def _spawn(self, command: Sequence[str], *, installs: bool) -> process.Child:
        """Start one of the server's programs as its user, on its CPUs."""
        return process.start(
            command,
            user=self._workspace.user,
            cpus=self._spec.cpus,
            directory=self._place.directory,
            output=self._place.log,
            has_children=installs,
        )

    def _wait_until_ready(self, admin: AdminConnection) -> None:
        assert self._process is not None, "launched before"
        deadline = time.monotonic() + START_TIMEOUT_S
        watch = process.StopWatch(self._process)
        while True:
            try:
                admin.open()
                return
            except ConnectFailure as failure:
                if (status := self._process.poll()) is not None:
                    raise self._diagnose(status) from failure
                if not failure.is_starting_up:
                    raise ServerProblem(
                        f"the server of {self.variant!r} runs, but refuses dbdyno's connection: "
                        f"{failure.text} ({failure.code})",
                        "remove settings and init_sql that change accounts or logins from the variant",
                    ) from failure
                watch.require_running(f"the server of {self.variant!r}")
                if time.monotonic() > deadline:
                    raise ServerProblem(
                        f"the server of {self.variant!r} did not answer within {START_TIMEOUT_S:g} s",
                        f"its log ends with: {self._log()[-300:].strip()}",
                        exit_code=4,
                    ) from failure
            time.sleep(0.02)

    def _run_init_sql(self, statement: str) -> None:
        try:
            self.query(statement)
        except ServerProblem as problem:
            raise ServerProblem(
                f"init_sql of {self.variant!r}: {problem.text}",
                f"correct {shorten_statement(statement)!r} in the variant",
            ) from problem

    def stop(self, *, clean: bool) -> None:
        """See `Server`. Raises ServerProblem when a clean stop fails or takes too long."""
        if self._proxy is not None:
            self._proxy.stop()
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self._process is None:
            return
        running, self._process, self._usage = self._process, None, None
        seconds = process.end(
            running,
            self._product.stop_signal if clean else self._product.kill_signal,
            clean=clean,
            timeout_s=STOP_TIMEOUT_S if clean else KILL_TIMEOUT_S,
        )
        if clean:
            self.stop_seconds = seconds
            if (status := running.poll()) is not None and status != 0:
                raise self._diagnose(status)

    def close(self) -> None:
        """See `Server`."""
        try:
            self.stop(clean=False)
        finally:
            _alive.discard(self)
            self._remove_own_place()

    # --- state

    def address(self) -> Address:
        """See `Server`. The load's account has all rights on its own schema and no other rights."""
        return Address(
            "127.0.0.1",
            self._place.port,
            str(self._place.socket),
            USER,
            DATABASE,
            self._password,
            connect=self._connect,
            protocol=self._product.protocol,
        )

    def load_address(self) -> Address:
        """See `Server`."""
        return self._proxy.address(self.address()) if self._proxy is not None else self.address()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Server`. If the server died, the error quotes its log."""
        return self._running_admin().query(sql)

    def is_silent(self) -> bool:
        """See `Server`."""
        return self._running_admin().is_silent()

    def status(self) -> Mapping[str, str]:
        """See `Server`."""
        return self._product.status(self._running_admin())

    def variables(self) -> Mapping[str, str]:
        """See `Server`."""
        return self._product.variables(self._running_admin())

    def _running_admin(self) -> AdminConnection:
        """The administrative connection; the server must be running."""
        if self._process is not None and (status := self._process.poll()) is not None:
            raise self._diagnose(status)
        if self._proxy is not None:
            self._proxy.require_running()
        if self._admin is None:
            raise ServerProblem(f"the server of {self.variant!r} is not running", exit_code=4)
        return self._admin

    def describe(self) -> Description:
        """See `Server`. `declared` has the variant's `variables`, and those options of its `config` and
        `arguments` that are also server variables. Other options, such as plug-ins to load, are left out.
        """
        variables = self.variables()
        declared = dict(self._declared.variables)
        for option, value in self._declared.options().items():
            resolved = variable_of(option, value, variables, self._product.name)
            if resolved is not None:
                declared.pop(option, None)
                declared[resolved[0]] = as_text(resolved[1])
        return Description(
            product=self._product.name,
            version=self._product.server_version(variables),
            identity={**self._identity(), **self._product.identity(self._running_admin(), variables)},
            declared=declared,
            set_by_dbdyno=self._dbdyno_options(),
            variables=variables,
            units=self._product.units(self._running_admin()),
            origins=self._product.origins(self._running_admin()),
            build=self._product.build(self._running_admin(), variables),
            data_bytes=self._product.data_bytes(self._running_admin(), DATABASE),
            host=this_machine(),
        )

    def _identity(self) -> dict[str, Any]:
        assert self._process is not None, "only a running server describes itself"
        return {
            **self.place(),
            "filesystem": self._workspace.filesystem,
            "pid": self._process.pid,
            "start_unix_us": round(psutil.Process(self._process.pid).create_time() * 1e6),
            "cpus": format_cpus(process.server_cpus(self._spec.cpus)),
            "user": self._workspace.user.name,
            "binary": str(self._binaries.server),
            "snapshot": self._snapshot.key if self._snapshot else None,
            "restored_by": METHOD if self._snapshot else None,
            **({"proxy": self._proxy.identity()} if self._proxy is not None else {}),
        }

    def process(self) -> Mapping[str, float]:
        """See `Server`."""
        usage = self._usage.read() if self._usage is not None else {}
        return self._proxy.with_usage(usage) if self._proxy is not None else usage

    def spent(self) -> Mapping[str, float]:
        """See `Server`."""
        spent_here = self._usage.spent() if self._usage is not None else {}
        return self._proxy.with_spent(spent_here) if self._proxy is not None else spent_here

    def watch(self) -> None:
        """See `Server`."""
        if self._usage is not None:
            self._usage.watch()
        if self._proxy is not None:
            self._proxy.watch()

    def host(self) -> Mapping[str, float]:
        """See `Server`."""
        return host(self._place.directory)

    def _dbdyno_options(self) -> dict[str, str]:
        """The options that dbdyno sets, without those that the experiment declares."""
        declared = self._declared.options()
        options = {**self._product.dbdyno_options(process.open_files_max()), **self._tls_options()}
        return {name: value for name, value in options.items() if name not in declared}

    def _certificate(self) -> tuple[Path, Path]:
        """The files of the certificate and the key that dbdyno makes."""
        return self._place.directory / "certificate.pem", self._place.directory / "key.pem"

    @property
    def _offers_tls(self) -> bool:
        """Whether the server needs a certificate: the load uses TLS, and the variant declares none."""
        options = self._product.tls_options(*self._certificate())
        return self._connect.tls != "disabled" and not options.keys() & self._declared.options().keys()

    def _tls_options(self) -> Mapping[str, str]:
        return self._product.tls_options(*self._certificate()) if self._offers_tls else {}

    def _log(self) -> str:
        """The end of the server's log since its last start."""
        with self._place.log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(self._log_start, size - LOG_TAIL_BYTES))
            return file.read().decode(errors="replace")

    def _diagnose(self, status: int) -> ServerProblem:
        options = self._declared.options()
        failure = Failure(
            self._log(),
            status,
            self._place,
            {name: value for name, value in options.items() if name not in self._declared.loose},
            self._binaries,
            self._product,
            self._workspace.user.name,
        )
        problem = diagnose(failure)
        return type(problem)(f"{self.variant}: {problem.text}", problem.fix, problem.exit_code)


def _create_certificate() -> tuple[str, str]:
    """A new self-signed certificate for loopback, and its key (P-256), both in PEM: for a server whose load
    uses TLS, if the variant has none of its own.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dbdyno")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clocks of a container may differ a little.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _CERTIFICATE_VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(encoding).decode(), private.decode()
