"""P22: the load's connections must use the server's thread pool, if it has one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.samples import open_load_connection
from dbdyno.finding import Finding
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import Server, ServerProblem
from dbdyno.text import compose, mark

# MySQL serves connections with this privilege outside of its thread pool.
BYPASS_PRIVILEGE = "TP_CONNECTION_ADMIN"
_QUERY_PLUGIN = (
    "SELECT 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'thread_pool' AND PLUGIN_STATUS = 'ACTIVE'"
)


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds connections that bypass the thread pool.

    Catches results that are attributed to the thread pool although every connection had its own thread.
    MySQL serves connections with TP_CONNECTION_ADMIN outside of its pool; root and every account with all
    privileges have this privilege. MariaDB and Percona Server use one thread per connection on the
    extra_port, even with thread_handling = pool-of-threads.

    Rule: if the server has a thread pool, the load must not use the extra_port, and its account must not have
    the privilege, granted directly or by a role that is active at login. Otherwise the finding is a stop. If
    the load uses the pool, a note names the account and says why.
    """
    assert moment is Moment.READY, "P22 is registered for READY only"
    server, description = context.server, context.description
    if server is None or description is None:
        return
    if description.product == "mysql" and server.query(_QUERY_PLUGIN):
        yield from _check_mysql(context, server)
    elif description.variables.get("thread_handling") == "pool-of-threads":
        product = "MariaDB" if description.product == "mariadb" else compose("Percona Server")
        yield from _check_built_in(context, server, product, description.variables.get("extra_port", "0"))


def _check_mysql(context: Context, server: Server) -> Iterator[Finding]:
    with open_load_connection(server.address(), context.load.transport) as admin:
        account, roles = _account(admin)
        bypasses = _has_privilege(admin, "SHOW GRANTS")
        # For a named account, SHOW GRANTS leaves out the privileges of its roles.
        is_granted_directly = _has_privilege(admin, f"SHOW GRANTS FOR {account}")
    if not bypasses:
        yield _note(
            context,
            compose(
                "the load logs in as {account}, which lacks {bypass_privilege}: its connections go "
                "through MySQL's thread pool. No role that is active at login grants the privilege",
                account=account,
                bypass_privilege=BYPASS_PRIVILEGE,
            ),
            user=server.address().user,
            account=account,
            privilege=BYPASS_PRIVILEGE,
        )
        return
    if is_granted_directly:
        through, fix = "", f"REVOKE {BYPASS_PRIVILEGE} ON *.* FROM {account}"
    else:
        through = compose(" through its roles ({roles})", roles=roles)
        fix = compose(
            "SET DEFAULT ROLE NONE TO {account}, if activate_all_roles_on_login is OFF and the role is "
            "not in mandatory_roles, or REVOKE {privilege} ON *.* FROM the role",
            account=account,
            privilege=BYPASS_PRIVILEGE,
        )
    yield _stop(
        context,
        compose(
            "the load's account {account} has {bypass_privilege}{through}: MySQL serves its "
            "connections in a group of their own, as if there were no thread pool",
            account=account,
            bypass_privilege=BYPASS_PRIVILEGE,
            through=through,
        ),
        compose("Use an account without it: {fix}", fix=fix),
        accounts=[account],
        privilege=BYPASS_PRIVILEGE,
        roles=[] if is_granted_directly else roles.split(","),
    )


def _account(admin: AdminConnection) -> tuple[str, str]:
    """The load's account as the server names it, and its active roles, both as SQL."""
    name, _, host = answers.value(admin.query, "SELECT CURRENT_USER()", answers.text).rpartition("@")
    account = "@".join("'" + part.replace("'", "''") + "'" for part in (name, host))
    try:
        roles = answers.value(admin.query, "SELECT CURRENT_ROLE()", answers.text)
    except ServerProblem:
        # MySQL before 8.0 has no roles.
        return account, ""
    return account, roles


def _has_privilege(admin: AdminConnection, sql: str) -> bool:
    """Whether the output of a SHOW GRANTS statement contains the privilege."""
    return any(
        re.match(rf"GRANT\b.*\b{BYPASS_PRIVILEGE}\b.* ON \*\.\* ", grant)
        for (grant,) in answers.rows(admin.query, sql, answers.text)
    )


def _check_built_in(context: Context, server: Server, product: str, extra_port: str) -> Iterator[Finding]:
    address = server.address()
    if context.load.transport == "tcp" and str(address.port) == extra_port != "0":
        yield _stop(
            context,
            compose(
                "the load connects to port {extra_port}, the extra_port, where {product} gives every "
                "connection its own thread, outside of the thread pool",
                extra_port=extra_port,
                product=product,
            ),
            compose("Connect to the main port of the server"),
            extra_port=extra_port,
        )
    else:
        yield _note(
            context,
            compose(
                "the load logs in as {user} and does not use extra_port, so {product}'s thread pool "
                "serves all its connections; no privilege exempts a user from it",
                user=repr(address.user),
                product=product,
            ),
            user=address.user,
        )


def _stop(context: Context, text: str, fix: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="stop", text=text, evidence=evidence, subject=context.subject, fix=fix)


def _note(context: Context, text: str, **evidence: object) -> Finding:
    return Finding(code="P22", level="note", text=text, evidence=evidence, subject=context.subject)


CHECK = Check(
    "P22",
    "Connections use the thread pool",
    frozenset({Moment.READY}),
    find,
    caveat=mark("the sessions of the variants differ"),
)
