"""P22: the load's connections go the way that the experiment asks about."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks.finding import Check, Context, Finding, Moment
from dbdyno.servers.server import Server

# The privilege whose connections get a thread of their own beside MySQL's pool.
PASSES_BY = "TP_CONNECTION_ADMIN"


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Connections that pass a thread pool by, and the account that was used where there is a pool.

    Catches measuring one thread per connection under the pool's name. Seed 000 warns its readers: root, and
    whoever has all privileges, has TP_CONNECTION_ADMIN, whose connections MySQL's pool keeps in a group of
    their own; and MariaDB's extra_port has one thread per connection whatever thread_handling says.

    Rule: where a server has a thread pool, an account of the load with that privilege, or a connection to the
    extra port, is a stop. Otherwise a note says which account it was, and why it is right.
    """
    assert moment is Moment.READY, "the registry asks at READY only"
    server, description = context.server, context.description
    if server is None or description is None:
        return
    if description.product == "mysql" and _has_plugin(server):
        yield from _mysql(context, server)
    elif (
        description.product == "mariadb" and description.variables.get("thread_handling") == "pool-of-threads"
    ):
        yield from _mariadb(context, server, description.variables.get("extra_port", "0"))


def _has_plugin(server: Server) -> bool:
    return bool(
        server.query(
            "SELECT 1 FROM information_schema.PLUGINS "
            "WHERE PLUGIN_NAME = 'thread_pool' AND PLUGIN_STATUS = 'ACTIVE'"
        )
    )


def _mysql(context: Context, server: Server) -> Iterator[Finding]:
    user = server.address().user
    rows = server.query(
        f"SELECT GRANTEE FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = '{PASSES_BY}'"
    )
    granted = [str(grantee) for (grantee,) in rows]
    if server.ours:
        # 'user'@'host', as SQL writes it.
        accounts = sorted(grantee for grantee in granted if grantee.startswith(f"'{user}'@"))
    else:
        # There we are the load's own account.
        ((current,),) = server.query("SELECT CURRENT_USER()")
        name, _, host = str(current).rpartition("@")
        accounts = [grantee for grantee in granted if grantee == f"'{name}'@'{host}'"]
    if accounts:
        yield _stop(
            context,
            f"the load's account {accounts[0]} has {PASSES_BY}: MySQL's thread pool serves its connections "
            "in a group of their own, as if there were no pool. Use an account without it: "
            f"REVOKE {PASSES_BY} ON *.* FROM {accounts[0]}.",
            accounts=accounts,
            privilege=PASSES_BY,
        )
    else:
        yield _note(
            context,
            f"the load logs in as {user!r}, which lacks {PASSES_BY}: its connections go through MySQL's "
            "thread pool.",
            user=user,
            privilege=PASSES_BY,
        )


def _mariadb(context: Context, server: Server, extra_port: str) -> Iterator[Finding]:
    address = server.address()
    if context.experiment.load.transport == "tcp" and str(address.port) == extra_port != "0":
        yield _stop(
            context,
            f"the load connects to port {extra_port}, the extra_port, where MariaDB gives every connection a "
            "thread of its own beside the thread pool. Use the server's own port.",
            extra_port=extra_port,
        )
    else:
        yield _note(
            context,
            f"the load logs in as {address.user!r} on the server's own port: its connections go through "
            "MariaDB's thread pool, which no privilege passes by.",
            user=address.user,
        )


def _stop(context: Context, text: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="stop", text=text, evidence=evidence, subject=context.subject)


def _note(context: Context, text: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="note", text=text, evidence=evidence, subject=context.subject)


CHECK = Check("P22", "Through the pool", frozenset({Moment.READY}), find)
