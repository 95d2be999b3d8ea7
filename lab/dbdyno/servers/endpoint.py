"""Servers that are only reached: somebody else's, named by a URL. Settings are read, and changed only where
the experiment says so (`set_global`), for as long as its groups last.

The load and the administration share one account here, since it is the only one we are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.admin import Refused
from dbdyno.servers.configuration import normal
from dbdyno.servers.declared import all_of
from dbdyno.servers.product import Product
from dbdyno.servers.reached import PROTOCOLS
from dbdyno.servers.server import PASSWORD_WAY_OUT, Address, Description, Server, ServerProblem
from dbdyno.servers.snapshot import Snapshot
from dbdyno.servers.url import Target, parse_url
from dbdyno.servers.workspace import Workspace


def password(
    file: Path | None, ask: Callable[[], str] | None, environment: Mapping[str, str] | None = None
) -> str:
    """The password of a target: from the file, else the environment, else by asking, else the empty one.

    `ask` is None where nobody can answer. One trailing line end of the file is cut off. Raises ServerProblem.
    """
    if file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise ServerProblem(
                f"the password file {str(file)!r} cannot be read: {why}", PASSWORD_WAY_OUT
            ) from error
        return text.removesuffix("\n").removesuffix("\r")
    variables = os.environ if environment is None else environment
    if Address.PASSWORD_VARIABLE in variables:
        return variables[Address.PASSWORD_VARIABLE]
    return ask() if ask is not None else ""


def variant_password(variant: Variant) -> str:
    """The password of a variant's server, from where the variant says. Raises ServerProblem."""
    name = variant.server.password_env
    if name is None:
        return password(variant.server.password_file, None)
    if name not in os.environ:
        raise ServerProblem(
            f"variant {variant.name!r}: the password is to come from the variable {name}, which is not set",
            f"set it, or name a file as password_file, or leave both out and set {Address.PASSWORD_VARIABLE}",
        )
    return os.environ[name]


def variant_target(variant: Variant) -> Target:
    """A variant's URL, with what the variant says of connections beside it. Raises ServerProblem."""
    assert variant.server.url is not None, "a server that is reached has a URL"
    try:
        target = parse_url(variant.server.url)
    except ServerProblem as problem:
        text = problem.text.removeprefix("--target: ")
        raise ServerProblem(f"variant {variant.name!r}, server.url: {text}", problem.fix) from problem
    given = {**target.connect.model_dump(), **variant.server.connect().model_dump(exclude_defaults=True)}
    return Target(**{**vars(target), "connect": type(target.connect)(**given)})


def open_endpoint(url: str, password: str) -> Server:
    """The server behind a URL; nothing is connected before `start`. Raises ServerProblem for a wrong URL."""
    return EndpointServer(parse_url(url), password)


class EndpointServer(Server):
    """A server that was there before us and stays after us."""

    def __init__(self, target: Target, password: str, name: str = "", spec: ServerSpec | None = None) -> None:
        self.variant = name or str(target)
        self._target = target
        self._password = password
        self._spec = spec or ServerSpec(kind="remote", url=str(target))
        self._reached = PROTOCOLS[target.protocol]
        self._admin = self._reached.admin(target, password)
        # What its changed variables were before.
        self._changed: dict[str, str] = {}

    def restore(self) -> None:
        """Nothing: the data of a server that is only reached are kept."""

    def start(self) -> None:
        """Connect, and set what may be set. Raises ServerProblem, with exit code 3 where nothing answers."""
        try:
            self._admin.open()
        except Refused as refused:
            raise self._reached.refusal(
                self._target, refused.code, refused.text, with_password=bool(self._password)
            ) from refused
        if self._spec.set_global:
            self._change()

    def _change(self) -> None:
        for option, value in self._spec.variables.items():
            name = normal(option)
            if name in self._changed:
                continue
            try:
                self._changed[name] = self._reached.change(self._admin, name, value)
            except ServerProblem as problem:
                raise ServerProblem(
                    f"{self.variant}: {name} could not be set on the server: {problem.text}",
                    problem.fix
                    or "give the account the right to it (SYSTEM_VARIABLES_ADMIN, SUPER, ALTER SYSTEM), or "
                    "set it yourself and leave out set_global",
                    problem.exit_code,
                ) from problem

    def _take_back(self) -> list[ServerProblem]:
        """Set every changed variable to what it was; what stays changed, with the way to do it by hand."""
        left: list[ServerProblem] = []
        while self._changed:
            name, before = self._changed.popitem()
            try:
                self._reached.take_back(self._admin, name, before)
            except ServerProblem as problem:
                was = repr(before) if before else "not set"
                left.append(
                    ServerProblem(
                        f"{name} was {was} before, and what dbdyno has set could not be taken back: "
                        f"{problem.text}",
                        f"set it yourself: {self._reached.statements_back(name, before)}",
                        exit_code=4,
                    )
                )
        return left

    def settle(self, tables: Sequence[str]) -> None:
        """As far as the account may: vacuum and statistics where the protocol has them."""
        self._reached.settle(self._admin, tables)

    def stop(self, *, clean: bool) -> None:  # noqa: ARG002 — it is not ours to stop.
        """Take back what was set, and disconnect; the server goes on.

        Raises ServerProblem with every variable that stays changed, its old value and the statement for it.
        """
        left = self._take_back()
        self._admin.close()
        if left:
            raise all_of(left, self.variant)

    def close(self) -> None:
        """As `stop`."""
        self.stop(clean=True)

    def address(self) -> Address:
        """The account of the URL."""
        target = self._target
        return Address(
            target.host,
            target.port,
            target.unix_socket,
            target.user,
            target.database,
            self._password,
            target.others,
            target.connect,
            target.protocol,
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Server`."""
        return self._admin.query(sql)

    def _product(self, variables: Mapping[str, str]) -> Product:
        return self._reached.product(variables)

    def variables(self) -> Mapping[str, str]:
        """See `Server`."""
        return self._product({}).variables(self._admin)

    def status(self) -> Mapping[str, str]:
        """See `Server`."""
        return self._product({}).status(self._admin)

    def describe(self) -> Description:
        """See `Server`. Product and version are the server's own words; a proxy may answer for another."""
        variables = self.variables()
        product = self._product(variables)
        origins: Mapping[str, str] = {}
        # Not every account may ask where settings come from.
        with suppress(ServerProblem):
            origins = product.origins(self._admin)
        return Description(
            product=product.name,
            version=product.release(variables),
            identity={**self._reached.identity(self._admin, variables), "url": str(self._target)},
            declared={normal(name): str(value) for name, value in self._spec.variables.items()},
            harness={},
            variables=variables,
            units=product.units(self._admin),
            origins=origins,
            data_bytes=product.data_bytes(self._admin, self._target.database),
            host=self._host(variables),
        )

    def _host(self, variables: Mapping[str, str]) -> Mapping[str, Any]:
        return self._reached.host(self._admin, variables)

    def process(self) -> Mapping[str, float]:
        """Nothing: the process is somebody else's."""
        return {}


class RemoteServer(EndpointServer):
    """The server of a variant of kind `remote`."""

    def __init__(self, variant: Variant, workspace: Workspace, snapshot: Snapshot | None) -> None:  # noqa: ARG002
        super().__init__(variant_target(variant), variant_password(variant), variant.name, variant.server)
