"""Remote servers, to which dbdyno connects by a URL and which it neither starts nor stops.

dbdyno reads their settings. It changes only the variables in `set_global`, and restores them when a group
ends. Load and administration both use the account of the URL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from dbdyno import passwords
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.experiment.quantities import variable_name
from dbdyno.finding import FreeForm
from dbdyno.servers.admin.answers import UnexpectedAnswer
from dbdyno.servers.admin.connection import AdminConnection, ConnectFailure
from dbdyno.servers.kinds.remote_changes import RemoteChanges
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS, open_load_connection
from dbdyno.servers.products.product import Product
from dbdyno.servers.server import (
    PASSWORD_FIX,
    Address,
    Description,
    Server,
    ServerProblem,
    StatementRefused,
    combine_problems,
)
from dbdyno.servers.snapshots.directories import Snapshot
from dbdyno.servers.url import Target, parse_url
from dbdyno.servers.workspace import Workspace
from dbdyno.variables.versions import without_log_suffix

_Fact = TypeVar("_Fact")


@dataclass(frozen=True)
class Password:
    """A password and, for messages, its source; the source is empty if no source had a password."""

    text: str = field(repr=False)
    source: str = ""

    def description(self) -> str:
        """For a refused login: `with the password from …`, or `without a password`."""
        if not self.text:
            return f"with the empty password {self.source}" if self.source else "without a password"
        return f"with the password {self.source}" if self.source else "with a password"


def read_password(file: Path | None, ask: Callable[[], str] | None) -> Password:
    """The password of a target, from the first of these: `file`, the environment, `ask`. Empty if none has
    one.

    `ask` prompts the user; it is None without a terminal. One line break at the end of the file is removed.
    Raises ServerProblem.
    """
    if file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ServerProblem(
                f"the password file {str(file)!r} cannot be read: {why}", PASSWORD_FIX
            ) from error
        return Password(text.removesuffix("\n").removesuffix("\r"), f"from the file {str(file)!r}")
    if (variable := _from_variable(passwords.VARIABLE)) is not None:
        return variable
    return Password(ask(), "that you typed") if ask is not None else Password("")


def _from_variable(name: str) -> Password | None:
    text = passwords.read(name)
    return None if text is None else Password(text, f"from the environment variable {name}")


def variant_password(variant: Variant) -> Password:
    """The password of a variant's server, from the source that the variant names. Raises ServerProblem."""
    name = variant.server.password_env
    if name is None:
        return read_password(variant.server.password_file, None)
    password = _from_variable(name)
    if password is None:
        raise ServerProblem(
            f"variant {variant.name!r}: password_env is {name!r}, but this environment variable is not set",
            f"set it, name a file as password_file, or omit both and set {passwords.VARIABLE}",
        )
    return password


def variant_target(variant: Variant) -> Target:
    """A variant's URL with the variant's other connection settings. Raises ServerProblem."""
    assert variant.server.url is not None, "a remote server has a URL"
    try:
        target = parse_url(variant.server.url)
    except ServerProblem as problem:
        text = problem.text.removeprefix("--target: ")
        raise ServerProblem(f"variant {variant.name!r}, server.url: {text}", problem.fix) from problem
    settings = {
        **target.connect.model_dump(),
        **variant.session.connection_settings().model_dump(exclude_defaults=True),
    }
    return Target(**{**vars(target), "connect": type(target.connect)(**settings)})


def open_remote(url: str, password: str) -> Server:
    """The server that a URL names, not connected yet. Raises ServerProblem for an invalid URL."""
    return RemoteServer(parse_url(url), Password(password))


class RemoteServer(Server):
    """A server that ran before dbdyno connected and keeps running."""

    def __init__(
        self,
        target: Target,
        password: Password,
        name: str = "",
        spec: ServerSpec | None = None,
        run: str = "",
    ) -> None:
        """`run` is the folder of the run for which dbdyno changes settings of the server."""
        self.variant = name or str(target)
        self._target = target
        self._password = password
        self._spec = spec or ServerSpec(kind="remote", url=str(target))
        self._protocol = PROTOCOLS[target.protocol]
        self._admin = self._protocol.admin(target, password.text)
        self.changes = RemoteChanges(
            self._admin,
            target,
            self._identity,
            variant=self.variant,
            run=run,
            open_load=self._open_load_connection,
        )
        # See `Description.unreported`.
        self._unreported: dict[str, str] = {}

    @classmethod
    def from_variant(cls, variant: Variant, workspace: Workspace, _snapshot: Snapshot | None) -> Self:
        """The server of a variant. A remote server uses no snapshot. Raises ServerProblem."""
        target, password = variant_target(variant), variant_password(variant)
        return cls(target, password, variant.name, variant.server, workspace.run)

    def restore(self) -> None:
        """Does nothing: a remote server keeps its data."""

    def connect(self) -> None:
        """Connect, for reading. Raises ServerProblem; exit code 3 means that no server answers."""
        try:
            self._admin.open()
        except ConnectFailure as failure:
            raise self._protocol.explain_failure(
                self._target, failure.code, failure.text, with_password=self._password.description()
            ) from failure

    def start(self) -> None:
        """Connect, and set the variables in `set_global`.

        Raises ServerProblem, also if an earlier process has not restored variables of this server.
        """
        self.connect()
        self.notes = self.changes.require_undone()
        if self._spec.set_global:
            self.changes.make(self._spec.variables)

    def finish_background_work(self, tables: Sequence[str]) -> None:
        """Vacuum and analyse the tables, if the product needs this."""
        self._protocol.finish_background_work(self._admin, tables)

    def change_data(self, after: Sequence[str], undo: Sequence[str]) -> None:
        """See `Server`."""
        self.changes.change_data(after, undo)

    def stop(self, *, clean: bool) -> None:  # noqa: ARG002 — dbdyno does not stop it.
        """Undo changes of data and variables and disconnect; the server keeps running.

        If something could not be undone, raises ServerProblem with the statements that undo it, and the old
        value of each variable.
        """
        problems = self.changes.undo()
        self._admin.close()
        if problems:
            raise combine_problems(problems, self.variant)

    def close(self) -> None:
        """Does the same as `stop`."""
        self.stop(clean=True)

    def address(self) -> Address:
        """Host, database and account of the URL, with the password."""
        return Address(**vars(self._target), password=self._password.text)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Server`."""
        return self._admin.query(sql)

    def is_silent(self) -> bool:
        """See `Server`."""
        return self._admin.is_silent()

    def _product(self, variables: Mapping[str, str]) -> Product:
        return self._protocol.product(variables)

    def variables(self) -> Mapping[str, str]:
        """See `Server`; empty if the server reports none."""
        return self._ask("settings", self._product({}).variables, {})

    def status(self) -> Mapping[str, str]:
        """See `Server`; empty if the server reports none."""
        return self._ask("counters", self._product({}).status, {})

    def _ask(self, name: str, read: Callable[[AdminConnection], _Fact], nothing: _Fact) -> _Fact:
        """What the server reports, or `nothing` if it knows only a part of its product's statements.

        Servers that speak a protocol and are another product lack catalogues, views and functions. A question
        that such a server has refused is not asked again.
        """
        if name in self._unreported:
            return nothing
        try:
            return read(self._admin)
        except (StatementRefused, UnexpectedAnswer) as refusal:
            self._unreported[name] = refusal.text
        return nothing

    def describe(self) -> Description:
        """See `Server`. A proxy may report another product and version than the server behind it."""
        variables = self.variables()
        product = self._product(variables)
        # Some accounts may not read where settings come from, or how the server was built.
        nothing: Mapping[str, str] = {}
        origins = self._ask("origins", product.origins, nothing)
        build = self._ask("build", lambda admin: product.build(admin, variables), nothing)
        identity = self._protocol.identity(self._admin, variables)
        units = self._ask("units", product.units, nothing)
        size = self._ask("size", lambda admin: product.data_bytes(admin, self._target.database), None)
        host = self._host(variables)
        # P26 reports what the server refuses, before the first trial reads the counters.
        self.status()
        return Description(
            product=product.name,
            version=product.server_version(variables) or without_log_suffix(self._admin.server_version()),
            identity={**identity, "url": str(self._target)},
            declared={variable_name(name): str(value) for name, value in self._spec.variables.items()},
            set_by_dbdyno={},
            variables=variables,
            units=units,
            origins=origins,
            build=build,
            data_bytes=size,
            host=host,
            unreported={
                name: why for name, why in self._unreported.items() if name not in ("origins", "build")
            },
        )

    def _open_load_connection(self, url: str) -> AbstractContextManager[AdminConnection]:
        """A connection to the database of a URL of this server, with the account of this one."""
        target = parse_url(url)
        return open_load_connection(replace(self.address(), database=target.database))

    def _identity(self) -> Mapping[str, Any]:
        return self._protocol.identity(self._admin, self.variables())

    def _host(self, variables: Mapping[str, str]) -> FreeForm:
        return self._ask("host", lambda admin: self._protocol.host(admin, variables), {})
