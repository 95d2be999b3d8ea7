"""The model of `[variant.server]`: the server and its configuration; and of connections to servers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from dbdyno.experiment.base import CpuList, Duration, Model, VariableValue

# The products that dbdyno can run, and their protocols. `servers/products` has a module for each.
PRODUCTS: Mapping[str, str] = {
    "mariadb": "mysql",
    "mysql": "mysql",
    "postgresql": "postgresql",
    "seekdb": "mysql",
}
# Products that listen on all interfaces, which no option changes. A private server of such a product has a
# network of its own, which only its unix socket leaves.
UNIX_SOCKET_ONLY = frozenset({"seekdb"})
if TYPE_CHECKING:
    Product = str
else:
    Product = Literal[tuple(PRODUCTS)]
State = Literal["preserve", "restart", "reset", "restore"]
Kind = Literal["local", "docker", "remote", "command"]

_SIZE = re.compile(r"([1-9][0-9]*)([KMGT]?)i?B?")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def size_bytes(text: str) -> int:
    """Bytes of a size such as "512M" or "2G", in powers of 1024. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError('a size is a number and a letter, as in "512M" or "2G"')
    return int(match[1]) * int(1024 ** _POWERS[match[2]])


def _size(text: str) -> str:
    size_bytes(text)
    return text


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if words and not words[0]:
        raise ValueError("a command begins with the name of a program")
    return words


# A program and its arguments, which run without a shell. Empty for no command.
Argv = Annotated[tuple[str, ...], AfterValidator(_command)]


class ConnectionSettings(Model):
    """How connections to a server are made: encryption, compression, and protection of the password."""

    tls: Literal["disabled", "preferred", "required", "verify-ca", "verify-identity"] = "disabled"
    """How connections are encrypted; a private server whose variables name no certificate gets one."""
    tls_ca: Path | None = None
    """PEM file with the trusted CA certificates, for the modes that verify."""
    tls_certificate: Path | None = None
    """PEM file with the client's certificate."""
    tls_key: Path | None = None
    """PEM file with the client's key."""
    compression: Literal["none", "zlib", "zstd"] = "none"
    """Compression of the load's connections."""
    zstd_level: int = Field(default=3, ge=1, le=22)
    """Level of `compression = "zstd"`."""
    server_public_key: Path | None = None
    """File with the server's RSA key, which encrypts the password on unencrypted connections."""
    allow_public_key_retrieval: bool = False
    """Request the server's RSA key from a server on another machine."""
    allow_clear_text: bool = False
    """PostgreSQL: send the password in clear text over any connection, if the server asks for it."""

    @model_validator(mode="after")
    def _goes_together(self) -> ConnectionSettings:
        verifies = self.tls.startswith("verify-")
        if verifies and self.tls_ca is None:
            raise ValueError(
                f"tls {self.tls} needs tls_ca, the certificate of the authority that signed the server's"
            )
        if self.tls_ca is not None and not verifies:
            raise ValueError(f"tls_ca has no effect with tls {self.tls}; use verify-ca")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key need each other")
        if self.tls_certificate is not None and self.tls == "disabled":
            raise ValueError("tls_certificate has no effect with tls disabled")
        return self

    def plan(self) -> dict[str, Any]:
        """The keys of `target` in an engine plan; defaults are left out."""
        target: dict[str, Any] = {}
        if self.tls != "disabled":
            files = {"ca": self.tls_ca, "certificate": self.tls_certificate, "key": self.tls_key}
            target["tls"] = {"mode": self.tls} | {name: str(path) for name, path in files.items() if path}
        if self.compression != "none":
            zstd = {"zstd": {"level": self.zstd_level}}
            target["compression"] = zstd if self.compression == "zstd" else self.compression
        if self.server_public_key is not None:
            target["server_public_key"] = str(self.server_public_key)
        if self.allow_public_key_retrieval:
            target["allow_public_key_retrieval"] = True
        if self.allow_clear_text:
            target["allow_clear_text_password"] = True
        return target


# The protocol and the default port of each URL scheme.
SCHEMES = {
    "mysql": ("mysql", 3306),
    "mariadb": ("mysql", 3306),
    "postgresql": ("postgresql", 5432),
    "postgres": ("postgresql", 5432),
}
_HOST_PORT = re.compile(r"(\[[\w:.%-]+\]|[\w.-]*)(?::(\d+))?")


# What may stand before `user:password@host`.
_SCHEME = re.compile(rf"\s*(?:\w+:/+|(?:{'|'.join(SCHEMES)}):)")
_PASSWORD_OPTION = re.compile(r"(?:pass\w*|pwd)=", re.IGNORECASE)


def has_password(url: str) -> bool:
    """Whether a server's URL may contain a password, in any encoding: as `user:password@host`, also without
    a scheme, or as an option.
    """
    if _PASSWORD_OPTION.search(rest := _SCHEME.sub("", url, count=1)):
        return True
    network_location = re.split(r"[/?#]", rest, maxsplit=1)[0]
    accounts = (*rest.split("@", 1)[:-1], network_location.rpartition("@")[0])
    if any(":" in account for account in accounts):
        return True
    decoded = unquote(url)
    return decoded != url and has_password(decoded)


def hosts_and_ports(where: str, default: int) -> tuple[tuple[str, int], ...] | None:
    """Hosts and ports of `host:port,[::1]:port` in a URL; None if they are invalid."""
    hosts = []
    for text in where.split(","):
        match = _HOST_PORT.fullmatch(text)
        port = int(match[2] or default) if match else 0
        if match is None or not 1 <= port <= 65_535 or ("," in where and not match[1]):
            return None
        hosts.append((match[1].strip("[]").lower() or "localhost", port))
    return tuple(hosts)


# Hosts with ports, the path of a unix socket, and the database.
Location = tuple[tuple[tuple[str, int], ...], str | None, str]
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def location(hosts: Sequence[tuple[str, int]], unix_socket: str | None, database: str) -> Location:
    """Where a database is; names of the loopback address are one."""
    same = tuple(("localhost" if host in _THIS_MACHINE else host.lower(), port) for host, port in hosts)
    return same, unix_socket, database


def may_be_one_database(first: Location, second: Location) -> bool:
    """Whether two locations may be one database: a unix socket does not tell the port of its server."""
    has_socket = first[1] is not None, second[1] is not None
    return first == second or (first[2] == second[2] and has_socket[0] != has_socket[1])


# Keys that are valid only for some kinds of server; all others are valid for every kind.
_STARTED: tuple[Kind, ...] = ("local", "docker")
_REACHED: tuple[Kind, ...] = ("remote", "command")
_KEYS_OF: dict[tuple[Kind, ...], str] = {
    _REACHED: "url password_env password_file set_global",
    ("docker",): "image memory cpu_limit network",
    ("local",): "basedir",
    _STARTED: "cpus config arguments init_sql",
    ("command",): "start stop restore describe sample command_timeout_s start_timeout_s",
}
ONLY_FOR = {name: kinds for kinds, names in _KEYS_OF.items() for name in names.split()}
NEEDED: dict[Kind, tuple[str, ...]] = {"docker": ("image",), "remote": ("url",), "command": ("url",)}


class Hooks(Model):
    """The user's commands around each trial, for example to drop caches or to run a profiler."""

    before_trial: Argv = ()
    """Command line to run before the load connects; if it fails, the trial fails."""
    during_trial: Argv = ()
    """Command line to start when the measurement begins; SIGINT stops it when the measurement ends."""
    after_trial: Argv = ()
    """Command line to run after the trial."""
    hook_environment: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    """Further environment variables of dbdyno that its hooks and commands get."""
    hook_timeout_s: Duration = 60.0
    """Timeout of a hook, and of `during_trial` after SIGINT."""

    @property
    def has_commands(self) -> bool:
        """Whether there is any command."""
        return bool(self.before_trial or self.during_trial or self.after_trial)


class ServerSpec(Hooks):
    """The server of a variant: its kind and its configuration."""

    kind: Kind = "local"
    """Who starts it: dbdyno a process, or a container; nobody, it already runs; or your own commands."""
    # For other servers the URL determines it.
    product: Product | None = None
    """Product of a private server, by default `mariadb`."""
    version: str | None = Field(default=None, min_length=1)
    """Chooses an installed version, by how it begins, as in `"18"`; a server of another one is refused."""
    cpus: CpuList | None = None
    """CPUs to which the server is pinned, by default all except the load generator's."""
    variables: dict[str, VariableValue] = Field(default_factory=dict)
    """Settings of the server, set on private servers and with `set_global`, and always compared (P04)."""
    config: Path | None = None
    """Your my.cnf or postgresql.conf; `variables` override it."""
    arguments: tuple[str, ...] = ()
    """Further options for the server's command line."""
    init_sql: tuple[str, ...] = ()
    """Statements that the administrator runs after each start; for their database see below."""
    basedir: Path | None = None
    """Folder of a server that is not on PATH: an unpacked tarball, or a root file system."""

    image: str | None = Field(default=None, min_length=1)
    """Image of the container; it must exist locally."""
    memory: Annotated[str, AfterValidator(_size)] | None = None
    """Memory limit of the container, as in `"2G"`."""
    cpu_limit: float | None = Field(default=None, gt=0, le=4096)
    """Number of CPUs that the container may use."""
    network: Literal["host", "bridge"] = "host"
    """Network of the container: the host's, or a bridge with the port published on loopback."""

    url: str | None = None
    """`mysql://user@host:3306/database` or `postgresql://…`, as for `--target`; never with a password."""
    password_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Environment variable with the password, by default `DBDYNO_PASSWORD`."""
    password_file: Path | None = None
    """File with the password."""
    set_global: bool = False
    """Set `variables` on the server before each of the variant's groups, and restore them afterwards."""

    start: Argv = ()
    """Command line that starts the server; without it the server must already run and is never stopped."""
    stop: Argv = ()
    """Command line that stops the server."""
    restore: Argv = ()
    """Command line that restores the data while the server is stopped; `state = "restore"` requires it."""
    describe: Argv = ()
    """Command line that prints facts about the machine, which are stored in server.json."""
    sample: Argv = ()
    """Command line that prints counters of the server's processes."""
    command_timeout_s: Duration = 600.0
    """Timeout of each of these five commands."""
    start_timeout_s: Duration = 300.0
    """Longest time from the end of `start` to the server's first answer."""

    @field_validator("url")
    @classmethod
    def _has_no_password(cls, url: str | None) -> str | None:
        if url is not None and has_password(url):
            raise ValueError(
                "this contains a password, which would be stored with every run; put it into the variable "
                "DBDYNO_PASSWORD, or name password_env or password_file"
            )
        return url

    @model_validator(mode="after")
    def _belongs_together(self) -> ServerSpec:
        fields = ServerSpec.model_fields
        changed = [name for name in ONLY_FOR if getattr(self, name) != fields[name].get_default()]
        foreign = [name for name in changed if self.kind not in ONLY_FOR[name]]
        wrong = [f"{name.removesuffix('_s')} is for kind = {' or '.join(ONLY_FOR[name])}" for name in foreign]
        lacking = [name for name in NEEDED.get(self.kind, ()) if getattr(self, name) is None]
        wrong += [f"{name} is missing" for name in lacking]
        if self.password_env is not None and self.password_file is not None:
            wrong.append("password_env and password_file exclude each other")
        if self.set_global and not self.variables:
            wrong.append("set_global needs variables")
        if bool(self.start) != bool(self.stop):
            wrong.append("start and stop need each other")
        if wrong:
            raise ValueError(f"a server of kind {self.kind}: {'; '.join(wrong)}")
        if self.kind in _STARTED and self.product is None:
            object.__setattr__(self, "product", "mariadb")
        return self

    @property
    def is_private(self) -> bool:
        """Whether dbdyno itself starts the server."""
        return self.kind in _STARTED

    @property
    def data_location(self) -> Location | None:
        """Server and database of `url`, without the account and how to connect, as `Address.location`; None
        for a private server and an invalid URL.
        """
        if self.is_private or self.url is None:
            return None
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return None
        port = SCHEMES.get(parts.scheme, ("mysql", 3306))[1]
        hosts = hosts_and_ports(parts.netloc.rpartition("@")[2], port)
        (socket,) = parse_qs(parts.query).get("socket", [None])[-1:]
        return None if hosts is None else location(hosts, socket, unquote(parts.path.removeprefix("/")))

    def states(self) -> tuple[State, ...]:
        """The values of `state` that this server supports."""
        if self.is_private:
            return "restore", "restart", "reset", "preserve"
        able: list[State] = ["reset", "preserve"]
        if self.start:
            able.append("restart")
        if self.restore:
            able.append("restore")
        return tuple(able)

    def hooks(self) -> Hooks:
        """The commands around each of its trials."""
        return Hooks(**{name: getattr(self, name) for name in Hooks.model_fields})
