"""P22: the load's connections go the way that the experiment asks about."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.samples import logged_in
from dbdyno.finding import Finding
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import Server, ServerProblem

# The privilege whose connections get a thread of their own beside MySQL's pool.
PASSES_BY = "TP_CONNECTION_ADMIN"


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Connections that pass a thread pool by, and the account that was used where there is a pool.

    Catches measuring one thread per connection under the pool's name. Seed 000 warns its readers: root, like
    every account with all privileges, has TP_CONNECTION_ADMIN, and MySQL's pool keeps such connections in a
    group of their own; and the extra_port of MariaDB and Percona Server has one thread per connection,
    whatever thread_handling says.

    Rule: where a server has a thread pool, an account of the load with that privilege, by itself or by a role
    that is active when it logs in, or a connection to the extra port, is a stop. Otherwise a note says which
    account it was, and why it is right.
    """
    assert moment is Moment.READY, "the registry asks at READY only"
    server, description = context.server, context.description
    if server is None or description is None:
        return
    if description.product == "mysql" and _has_plugin(server):
        yield from _mysql(context, server)
    elif description.variables.get("thread_handling") == "pool-of-threads":
        whose = "MariaDB" if description.product == "mariadb" else "Percona Server"
        yield from _built_in(context, server, whose, description.variables.get("extra_port", "0"))


def _has_plugin(server: Server) -> bool:
    return bool(
        server.query(
            "SELECT 1 FROM information_schema.PLUGINS "
            "WHERE PLUGIN_NAME = 'thread_pool' AND PLUGIN_STATUS = 'ACTIVE'"
        )
    )


def _mysql(context: Context, server: Server) -> Iterator[Finding]:
    with logged_in(server.address(), context.experiment.load.transport) as admin:
        account, roles = _account(admin)
        passes_by = _grants(admin, "SHOW GRANTS")
        # Named, an account is shown without what its roles bring.
        by_itself = _grants(admin, f"SHOW GRANTS FOR {account}")
    if not passes_by:
        yield _note(
            context,
            f"the load logs in as {account}, which lacks {PASSES_BY}: its connections go through MySQL's "
            "thread pool. No role that is active when it logs in brings the privilege.",
            user=server.address().user,
            account=account,
            privilege=PASSES_BY,
        )
        return
    if by_itself:
        how, fix = "", f"REVOKE {PASSES_BY} ON *.* FROM {account}"
    else:
        how = f" by its roles ({roles})"
        fix = (
            f"SET DEFAULT ROLE NONE TO {account}, where activate_all_roles_on_login is OFF and the role is "
            f"none of mandatory_roles, or REVOKE {PASSES_BY} ON *.* FROM the role"
        )
    yield _stop(
        context,
        f"the load's account {account} has {PASSES_BY}{how}: MySQL's thread pool serves its connections "
        f"in a group of their own, as if there were no pool. Use an account without it: {fix}.",
        accounts=[account],
        privilege=PASSES_BY,
        roles=[] if by_itself else roles.split(","),
    )


def _account(admin: AdminConnection) -> tuple[str, str]:
    """The account that the server has taken for the load's, and its active roles, both as SQL writes them."""
    ((current,),) = admin.query("SELECT CURRENT_USER()")
    name, _, host = str(current).rpartition("@")
    account = "@".join("'" + part.replace("'", "''") + "'" for part in (name, host))
    try:
        ((roles,),) = admin.query("SELECT CURRENT_ROLE()")
    except ServerProblem:
        # MySQL before 8.0 has none.
        return account, ""
    return account, str(roles)


def _grants(admin: AdminConnection, sql: str) -> bool:
    """Whether what a statement shows of an account passes the pool by."""
    return any(
        re.match(rf"GRANT\b.*\b{PASSES_BY}\b.* ON \*\.\* ", str(grant)) for (grant,) in admin.query(sql)
    )


def _built_in(context: Context, server: Server, whose: str, extra_port: str) -> Iterator[Finding]:
    address = server.address()
    if context.experiment.load.transport == "tcp" and str(address.port) == extra_port != "0":
        yield _stop(
            context,
            f"the load connects to port {extra_port}, the extra_port, where {whose} gives every connection "
            "a thread of its own beside the thread pool. Use the server's own port.",
            extra_port=extra_port,
        )
    else:
        yield _note(
            context,
            f"the load logs in as {address.user!r} on the server's own port: its connections go through "
            f"{whose}'s thread pool, which no privilege passes by.",
            user=address.user,
        )


def _stop(context: Context, text: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="stop", text=text, evidence=evidence, subject=context.subject)


def _note(context: Context, text: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="note", text=text, evidence=evidence, subject=context.subject)


CHECK = Check("P22", "Through the pool", frozenset({Moment.READY}), find)
