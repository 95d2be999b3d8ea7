"""Connections with the account, database and session of the load, for what must happen as the load would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from dbdyno.experiment.model import SqlWorkload, Variant
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS
from dbdyno.servers.server import Address, Server
from dbdyno.servers.url import Target


@contextmanager
def open_load_session(
    server: Server, workload: SqlWorkload, variant: Variant | None
) -> Iterator[AdminConnection]:
    """A connection with the account, database and session statements of the load."""
    address = server.address()
    own = variant.session.statements(address.protocol) if variant is not None else []
    with open_load_connection(address) as admin:
        for sql in (*workload.session, *own):
            admin.query(sql)
        yield admin


@contextmanager
def open_load_connection(address: Address, transport: str | None = None) -> Iterator[AdminConnection]:
    """A connection to the load's database with the load's account. Over TCP the server may select another
    account than over a unix socket. Raises ServerProblem.
    """
    socket = None if transport == "tcp" else address.unix_socket
    target = {field.name: getattr(address, field.name) for field in fields(Target)}
    whole = Target(**target | {"unix_socket": socket})
    admin = PROTOCOLS[address.protocol].admin(whole, address.password)
    try:
        admin.query("SELECT 1")
        yield admin
    finally:
        admin.close()
