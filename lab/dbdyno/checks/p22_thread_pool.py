"""P22: the load's connections use the server's thread pool, if it has one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.samples import open_load_connection
from dbdyno.finding import Finding
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import Server, ServerProblem

# MySQL serves connections with this privilege outside of its thread pool.
BYPASS = "TP_CONNECTION_ADMIN"
_PLUGIN = (
    "SELECT 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'thread_pool' AND PLUGIN_STATUS = 'ACTIVE'"
)


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Connections that bypass a thread pool, and the account of the load where there is a pool.

    Catches one thread per connection that is measured under the pool's name. MySQL's pool keeps connections
    with TP_CONNECTION_ADMIN in a group of their own, and root has it, as every account with all privileges
    has. The extra_port of MariaDB and Percona Server has one thread per connection, whatever thread_handling
    says.

    Rule: where the server has a thread pool, a connection to the extra port is a stop, and so is an account
    of the load with that privilege, granted directly or by a role that is active at login. Otherwise a note
    names the account and says why it uses the pool.
    """
    assert moment is Moment.READY, "the registry asks at READY only"
    server, description = context.server, context.description
    if server is None or description is None:
        return
    if description.product == "mysql" and server.query(_PLUGIN):
        yield from _check_mysql(context, server)
    elif description.variables.get("thread_handling") == "pool-of-threads":
        whose = "MariaDB" if description.product == "mariadb" else "Percona Server"
        yield from _check_built_in(context, server, whose, description.variables.get("extra_port", "0"))


def _check_mysql(context: Context, server: Server) -> Iterator[Finding]:
    with open_load_connection(server.address(), context.experiment.load.transport) as admin:
        account, roles = _account(admin)
        bypasses = _has_privilege(admin, "SHOW GRANTS")
        # For a named account, SHOW GRANTS leaves out the privileges of its roles.
        by_itself = _has_privilege(admin, f"SHOW GRANTS FOR {account}")
    if not bypasses:
        yield _note(
            context,
            f"the load logs in as {account}, which lacks {BYPASS}: its connections go through MySQL's "
            "thread pool. No role that is active at login grants the privilege.",
            user=server.address().user,
            account=account,
            privilege=BYPASS,
        )
        return
    if by_itself:
        how, fix = "", f"REVOKE {BYPASS} ON *.* FROM {account}"
    else:
        how = f" by its roles ({roles})"
        fix = (
            f"SET DEFAULT ROLE NONE TO {account}, where activate_all_roles_on_login is OFF and the role is "
            f"none of mandatory_roles, or REVOKE {BYPASS} ON *.* FROM the role"
        )
    yield _stop(
        context,
        f"the load's account {account} has {BYPASS}{how}: MySQL's thread pool serves its connections "
        "in a group of their own, as if there were no pool.",
        f"Use an account without it: {fix}.",
        accounts=[account],
        privilege=BYPASS,
        roles=[] if by_itself else roles.split(","),
    )


def _account(admin: AdminConnection) -> tuple[str, str]:
    """The load's account as the server names it, and its active roles, both as SQL."""
    ((current,),) = admin.query("SELECT CURRENT_USER()")
    name, _, host = str(current).rpartition("@")
    account = "@".join("'" + part.replace("'", "''") + "'" for part in (name, host))
    try:
        ((roles,),) = admin.query("SELECT CURRENT_ROLE()")
    except ServerProblem:
        # MySQL before 8.0 has no roles.
        return account, ""
    return account, str(roles)


def _has_privilege(admin: AdminConnection, sql: str) -> bool:
    """Whether the output of a SHOW GRANTS statement contains the privilege."""
    return any(re.match(rf"GRANT\b.*\b{BYPASS}\b.* ON \*\.\* ", str(grant)) for (grant,) in admin.query(sql))


def _check_built_in(context: Context, server: Server, whose: str, extra_port: str) -> Iterator[Finding]:
    address = server.address()
    if context.experiment.load.transport == "tcp" and str(address.port) == extra_port != "0":
        yield _stop(
            context,
            f"the load connects to port {extra_port}, the extra_port, where {whose} gives every connection "
            "its own thread, outside of the thread pool.",
            "Use the server's own port.",
            extra_port=extra_port,
        )
    else:
        yield _note(
            context,
            f"the load logs in as {address.user!r} on the server's own port: its connections go through "
            f"{whose}'s thread pool, which cannot be bypassed by a privilege.",
            user=address.user,
        )


def _stop(context: Context, text: str, fix: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="stop", text=text, evidence=evidence, subject=context.subject, fix=fix)


def _note(context: Context, text: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="note", text=text, evidence=evidence, subject=context.subject)


CHECK = Check("P22", "Connections use the thread pool", frozenset({Moment.READY}), find)
