"""The URL of a target: `mysql://user@host:port,host:port/database?tls=verify-ca&tls-ca=/path`.

It contains all connection settings except the password, so that one text identifies a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from pydantic import ValidationError

from dbdyno.experiment.server import SCHEMES, ConnectionSettings, has_password, hosts_and_ports
from dbdyno.servers.server import PASSWORD_FIX, ServerProblem, combine_problems

# Options of a URL: the keys of `ConnectionSettings`, written with dashes, and the path of a unix socket.
_OPTIONS = {name.replace("_", "-"): name for name in ConnectionSettings.model_fields}
_FILES = ("tls_ca", "tls_certificate", "tls_key", "server_public_key")
_BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True)
class Target:
    """The parts of a target's URL. A unix socket is written as `?socket=/path`."""

    user: str
    host: str
    port: int
    database: str
    unix_socket: str | None
    # Further hosts and ports. Connections use `host` and these in turn.
    others: tuple[tuple[str, int], ...] = ()
    connect: ConnectionSettings = field(default_factory=ConnectionSettings)
    # The protocol: "mysql" or "postgresql".
    protocol: str = "mysql"

    def hosts_and_ports(self) -> tuple[tuple[str, int], ...]:
        """Every host and port."""
        return ((self.host, self.port), *self.others)

    @property
    def place(self) -> str:
        """Where the server is, without account, database and options."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts_and_ports())
        return f"{self.protocol} {self.unix_socket or hosts}"

    def __str__(self) -> str:
        """The URL, which never contains a password."""
        options = {"socket": self.unix_socket} if self.unix_socket else {}
        settings = self.connect.model_dump(mode="json", exclude_defaults=True)
        options |= {
            name: "yes" if settings[key] is True else str(settings[key])
            for name, key in _OPTIONS.items()
            if key in settings
        }
        query = f"?{urlencode(options, safe='/')}" if options else ""
        where = ",".join(f"{bracket_ipv6(host)}:{port}" for host, port in self.hosts_and_ports())
        return f"{self.protocol}://{quote(self.user, safe='')}@{where}/{quote(self.database, safe='')}{query}"


def bracket_ipv6(host: str) -> str:
    """The host in URL syntax: an IPv6 address is put in brackets."""
    return f"[{host}]" if ":" in host else host


def parse_url(url: str) -> Target:
    """The parts of a target's URL. Raises ServerProblem with all errors.

    No message quotes the URL: a password may be in any part of a malformed one.
    """
    problems: list[ServerProblem] = []

    def add_problem(text: str, fix: str = "") -> None:
        problems.append(ServerProblem(text, fix))

    try:
        parts = urlsplit(url)
        hosts = hosts_and_ports(
            parts.netloc.rpartition("@")[2], SCHEMES.get(parts.scheme, ("mysql", 3306))[1]
        )
    except ValueError:
        hosts = None
    if has_password(url):
        add_problem("the target contains a password, which every user of this machine can read", PASSWORD_FIX)
    elif hosts is None:
        raise _invalid_url()
    if hosts is None or problems:
        raise combine_problems(problems, "--target")
    account, _, where = parts.netloc.rpartition("@")
    if parts.scheme not in SCHEMES or "://" not in url:
        add_problem(f"the target must begin with {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if not account:
        add_problem("the target has no user")
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database:
        what = "no database" if not database else "more than the name of one database after the host"
        add_problem(f"the target has {what}")
    if "#" in url or len(url.split()) != 1:
        add_problem("the target has a '#' or a space, which must be written as %23 or %20")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    socket = options.pop("socket", None)
    connect = _connect(options, add_problem)
    if connect.allow_clear_text and SCHEMES.get(parts.scheme, ("mysql", 0))[0] == "mysql":
        add_problem("the target's option allow-clear-text is for servers of PostgreSQL's protocol")
    if not where and socket is None:
        add_problem("the target has no host")
    if problems:
        problem = combine_problems(problems, "--target")
        raise ServerProblem(problem.text, problem.fix or "write it like mysql://user@host:3306/database")
    (host, port), *others = hosts
    protocol = SCHEMES[parts.scheme][0]
    return Target(unquote(account), host, port, database, socket, tuple(others), connect, protocol)


def _invalid_url() -> ServerProblem:
    return ServerProblem(
        "the target is not a URL with a port from 1 to 65535", "write it like mysql://user@host:3306/database"
    )


def _connect(options: Mapping[str, str], add_problem: Any) -> ConnectionSettings:
    """The connection settings from the URL's options; calls `add_problem` for each error."""
    settings: dict[str, Any] = {}
    for name, text in options.items():
        key = _OPTIONS.get(name)
        if key is None:
            known_words = ", ".join(["socket", *_OPTIONS])
            add_problem(f"the target has an unknown option; known options are {known_words}")
        elif key in ("allow_public_key_retrieval", "allow_clear_text"):
            settings[key] = _BOOLEANS.get(text.lower(), text)
        elif key == "zstd_level":
            settings[key] = int(text) if text.isdecimal() else text
        else:
            settings[key] = Path(text).expanduser().absolute() if key in _FILES else text
    try:
        return ConnectionSettings(**settings)
    except ValidationError as error:
        for detail in error.errors():
            name = str(detail["loc"][0]).replace("_", "-") if detail["loc"] else ""
            about = f"the target's option {name}: " if name else "the target: "
            add_problem(about + detail["msg"].removeprefix("Value error, "))
        return ConnectionSettings()
