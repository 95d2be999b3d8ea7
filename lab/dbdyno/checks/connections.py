"""Checks of the load's connections: the server's thread pool (P22), a proxy (P25), and open transactions
(P27).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.experiment.dialect import DIALECTS, Dialect
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload, Variant, Workload
from dbdyno.experiment.sql_reading import dialect_of
from dbdyno.experiment.sql_text import first_word
from dbdyno.finding import Finding
from dbdyno.run.description import describe
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.kinds.remote_protocol import open_load_connection
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.proxies.proxy import Pool
from dbdyno.servers.server import Description, Server, ServerProblem
from dbdyno.text import compose, join, join_some, mark

# MySQL serves connections with this privilege outside of its thread pool.
BYPASS_PRIVILEGE = "TP_CONNECTION_ADMIN"
_QUERY_PLUGIN = (
    "SELECT 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'thread_pool' AND PLUGIN_STATUS = 'ACTIVE'"
)

# Besides the load one client of dbdyno connects, to see that the proxy answers.
_OWN_CLIENTS = 1

# Maximum number of statements and transactions that a text names.
_NAMED_MAX = 3
# Statements that need no transaction.
_WITHOUT = frozenset({"SET", "SHOW", "USE", "DO", "DEALLOCATE", "PREPARE", "SAVEPOINT", "RELEASE", "EXPLAIN"})
_AUTOCOMMIT = re.compile(r"\bautocommit\b\W*=\s*'?(\w+)", re.IGNORECASE)
_COMPLETION = re.compile(r"\bcompletion_type\b\W*=\s*'?(\w+)", re.IGNORECASE)
_OFF = frozenset({"0", "OFF", "FALSE"})


@check(
    "P22",
    "Connections use the thread pool",
    Moment.READY,
    caveat=mark("the sessions of the variants differ"),
)
def thread_pool(context: Context, server: Server, description: Description) -> Iterator[Finding]:
    """Finds connections that bypass the thread pool.

    Catches results that are attributed to the thread pool although every connection had its own thread.
    MySQL serves connections with TP_CONNECTION_ADMIN outside of its pool; root and every account with all
    privileges have this privilege. MariaDB and Percona Server use one thread per connection on the
    extra_port, even with thread_handling = pool-of-threads.

    Rule: if the server has a thread pool, the load must not use the extra_port, and its account must not have
    the privilege, granted directly or by a role that is active at login. Otherwise the finding is a stop. If
    the load uses the pool, a note names the account and says why.
    """
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
        yield make_finding(
            "note",
            compose(
                "the load logs in as {account}, which lacks {bypass_privilege}: its connections go "
                "through MySQL's thread pool. No role that is active at login grants the privilege",
                account=account,
                bypass_privilege=BYPASS_PRIVILEGE,
            ),
            {"user": server.address().user, "account": account, "privilege": BYPASS_PRIVILEGE},
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
    yield make_finding(
        "stop",
        compose(
            "the load's account {account} has {bypass_privilege}{through}: MySQL serves its "
            "connections in a group of their own, as if there were no thread pool",
            account=account,
            bypass_privilege=BYPASS_PRIVILEGE,
            through=through,
        ),
        {
            "accounts": [account],
            "privilege": BYPASS_PRIVILEGE,
            "roles": [] if is_granted_directly else roles.split(","),
        },
        compose("Use an account without it: {fix}", fix=fix),
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
        yield make_finding(
            "stop",
            compose(
                "the load connects to port {extra_port}, the extra_port, where {product} gives every "
                "connection its own thread, outside of the thread pool",
                extra_port=extra_port,
                product=product,
            ),
            {"extra_port": extra_port},
            compose("Connect to the main port of the server"),
        )
    else:
        yield make_finding(
            "note",
            compose(
                "the load logs in as {user} and does not use extra_port, so {product}'s thread pool "
                "serves all its connections; no privilege exempts a user from it",
                user=repr(address.user),
                product=product,
            ),
            {"user": address.user},
        )


@check(
    "P25",
    "The proxy can serve the load",
    Moment.READY,
    caveat=mark("the proxy does not keep session settings"),
)
def proxy(context: Context, description: Description, variant: Variant) -> Iterator[Finding]:
    """Finds limits and modes of a proxy with which the load would wait, fail, or run with other settings.

    Catches a pooler in session mode with fewer connections to the server than the load has: the rest of the
    load waits for ever. Catches prepared statements in transaction mode with a pooler that does not follow
    them, and statements of the session, such as SET, which then reach only one of the pooler's connections.

    Rule: a proxy must admit one client more than the load has connections. If a client keeps its connection
    to the server, there must be as many of these; otherwise the workload must not prepare statements, unless
    the proxy prepares them again. Otherwise the finding is a stop. Statements of the session in a pool whose
    connections change are a warning. A note names the proxy, its version, and what dbdyno set.
    """
    facts = description.identity.get("proxy")
    if variant.proxy is None or facts is None:
        return
    program = PROGRAMS[variant.proxy.program]
    pool = program.pool(facts["settings"], facts["version"])
    title = f"{program.title} {facts['version']}"
    for workload in context.workloads:
        yield from _proxy_limits(title, pool, _clients(context.experiment, workload, variant))
        if not pool.is_per_session:
            yield from _proxy_mode(context, title, pool, workload, variant)
    assignments = ", ".join(f"{name} = {text}" for name, text in facts["set_by_dbdyno"].items())
    text = compose("the load connects to {title}", title=title)
    if assignments:
        text = compose("{text}; dbdyno set {own}", text=text, own=assignments)
    evidence = {key: facts[key] for key in ("program", "version", "binary", "settings", "set_by_dbdyno")}
    yield make_finding("note", text, evidence)


def _clients(experiment: Experiment, workload: Workload, variant: Variant) -> int:
    """The most connections that the load of a workload has, with its background loads."""
    connections_of_load = max(point.connections for point in experiment.load.points())
    return connections_of_load + sum(
        background.connections for background in experiment.backgrounds(variant, workload.title)
    )


def server_connections(variant: Variant, connections: int) -> int:
    """How many of the server's connections that many connections of the load need."""
    if variant.proxy is None:
        return connections
    settings = PROGRAMS[variant.proxy.program].declared(variant.proxy, variant.name)
    size = PROGRAMS[variant.proxy.program].pool(settings, "0").size
    return min(connections, size) if size else connections


def _proxy_limits(title: str, pool: Pool, number: int) -> Iterator[Finding]:
    limits = [(pool.clients_setting, pool.clients, number + _OWN_CLIENTS)]
    if pool.is_per_session:
        limits.append((pool.size_setting, pool.size, number))
    for name, limit, need in limits:
        if 0 < limit < need:
            yield make_finding(
                "stop",
                compose(
                    "{name} of {title} is {limit:,}, and the load needs {need:,}: the other connections "
                    "would wait",
                    name=name,
                    title=title,
                    limit=limit,
                    need=need,
                ),
                {},
                compose(
                    "Set {name} = {need} under [variant.proxy.settings], or lower [load] connections",
                    name=name,
                    need=need,
                ),
            )


def _proxy_mode(
    context: Context, title: str, pool: Pool, workload: Workload, variant: Variant
) -> Iterator[Finding]:
    protocol = dialect_of(variant.server).protocol
    uses_prepared = isinstance(workload, ScriptWorkload) or bool(
        describe(context.experiment, workload, protocol, variant).prepared_per_connection
    )
    if uses_prepared and not pool.keeps_prepared:
        yield make_finding(
            "stop",
            compose(
                "{workload} prepares statements, and {title} gives a client another connection to the server "
                "for each transaction, where they do not exist",
                workload=workload.title,
                title=title,
            ),
            {},
            compose("Write prepared = false under [variant.session], or use {fix}", fix=pool.prepared_fix),
        )
    session_sql = workload.session if isinstance(workload, SqlWorkload) else ()
    if statements := (*session_sql, *variant.session.statements(protocol)):
        yield make_finding(
            "warn",
            compose(
                "{title} gives a client another connection to the server for each transaction: {statement} "
                "of the session holds only in some of them",
                title=title,
                statement=repr(statements[0]),
            ),
            {},
            compose("Set it for the account or the server, or let the proxy pool sessions"),
        )


@check(
    "P27",
    "Transactions end when they are counted",
    Moment.READY,
    in_sweep=(Moment.READY,),
    at_first_start=True,
    caveat=mark("transactions count that were not committed"),
)
def open_transactions(context: Context, server: Server) -> Iterator[Finding]:
    """Finds transactions that are still open when the load generator counts them.

    Catches work that was never committed and counts as transactions. With autocommit = OFF, which a server,
    its init_connect or a session may set, single statements looked 25 times as fast, and their work was lost
    at the end. The same holds for BEGIN without COMMIT, and for completion_type = CHAIN.

    Rule: a connection of the load's account with the session's statements must have no open transaction, and
    must not have one after the statements of any transaction of the workload. Otherwise the finding is a
    warning. Statements of scripts and replays are not known before the run. After the run, a server that
    dbdyno started must not have rolled back transactions when the connections were closed, and PostgreSQL
    must have ended as many transactions as the load generator has counted.
    """
    protocol = server.address().protocol
    for workload in context.workloads:
        transactions = dict(_transactions(context, workload, protocol))
        if not transactions:
            continue
        try:
            with open_load_connection(server.address(), context.load.transport) as admin:
                session = _start_session(admin, context, workload, protocol)
        except ServerProblem:
            # P04 and P09 report a session that cannot be opened.
            continue
        yield from _open_findings(context, workload, transactions, session)


def _transactions(context: Context, workload: Workload, protocol: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Name -> statements of the workload's transactions."""
    if isinstance(workload, OltpWorkload):
        statements = describe(context.experiment, workload, protocol).statements
        yield workload.title, [statement.sql for statement in statements if statement.per_transaction]
    elif isinstance(workload, SqlWorkload):
        for number, transaction in enumerate(workload.transactions, 1):
            yield (
                transaction.name or f"transaction{number}",
                [statement.sql for statement in transaction.statements],
            )


def _start_session(admin: AdminConnection, context: Context, workload: Workload, protocol: str) -> _Session:
    """The state of a session of the load before its first transaction."""
    admin.use_default_autocommit()
    variant = context.variant
    for sql in (
        *(workload.session if isinstance(workload, SqlWorkload) else ()),
        *(variant.session.statements(protocol) if variant is not None else ()),
    ):
        admin.query(sql)
    is_open, commits_itself = admin.has_open_transaction(), admin.commits_itself()
    # With completion_type = RELEASE the server closes the connection after it.
    for sql in ("BEGIN", "COMMIT"):
        admin.query(sql)
    return _Session(DIALECTS[protocol], is_open, commits_itself, admin.has_open_transaction())


def _open_findings(
    context: Context, workload: Workload, transactions: dict[str, Sequence[str]], session: _Session
) -> Iterator[Finding]:
    left_open = [name for name, statements in transactions.items() if _stays_open(session, statements)]
    if not left_open:
        return
    reasons, fixes = zip(*_reasons(session), strict=True)
    yield make_finding(
        "warn",
        compose(
            "{number} of {number_2} transactions of {title} on {subject} are still open when they are "
            "counted ({named}): {reason}. So transactions may count whose work is never committed",
            number=len(left_open),
            number_2=len(transactions),
            title=workload.title,
            subject=context.subject,
            named=join_some(left_open, _NAMED_MAX),
            reason=join(", ", reasons),
        ),
        {"workload": workload.title, "transactions": left_open[:_NAMED_MAX], "count": len(left_open)},
        join("; ", fixes),
    )


def _stays_open(session: _Session, statements: Iterable[str]) -> bool:
    now = _Session(session.dialect, session.is_open, session.commits_itself, session.chains)
    for sql in statements:
        now.execute(sql)
    return now.is_open


def _reasons(session: _Session) -> Iterator[tuple[str, str]]:
    """Why transactions stay open, and how to end them."""
    if not session.commits_itself:
        yield (
            compose("autocommit is OFF in the sessions of the load"),
            compose(
                "Set autocommit = ON on the server, in init_connect and in [variant.session], or end the "
                "transactions with COMMIT"
            ),
        )
    elif session.chains:
        yield (
            compose("COMMIT begins another transaction (completion_type = CHAIN)"),
            compose("Set completion_type = NO_CHAIN"),
        )
    elif session.is_open:
        yield (
            compose("the statements of the session begin a transaction"),
            compose("Remove BEGIN from the session's statements"),
        )
    else:
        yield compose("they begin and have no COMMIT"), compose("End them with COMMIT or ROLLBACK")


@dataclass
class _Session:
    """What decides whether a session has an open transaction."""

    dialect: Dialect
    is_open: bool = False
    commits_itself: bool = True
    # Whether a new transaction begins with each COMMIT.
    chains: bool = False

    def execute(self, sql: str) -> None:
        """Follow one statement."""
        word = first_word(sql, self.dialect)
        text = " ".join(sql.upper().split()).rstrip("; ")
        if word in ("BEGIN", "START") or text.startswith(("XA BEGIN", "XA START")):
            self.is_open = True
        elif word in ("COMMIT", "ROLLBACK", "END", "ABORT") or text.startswith("XA COMMIT"):
            is_whole = not re.search(r"\b(TO|PREPARED)\b", text)
            chains = self.chains and "NO CHAIN" not in text and not text.startswith("XA")
            if is_whole:
                self.is_open = chains or (" AND CHAIN" in text and word != "XA")
        elif word == "PREPARE" and "PREPARE TRANSACTION" in text:
            self.is_open = False
        elif word == "SET":
            self._set(sql)
        elif word in self.dialect.committing and "TEMPORARY" not in text:
            self.is_open = False
        elif not self.commits_itself and word not in _WITHOUT and not _is_constant(word, text):
            self.is_open = True

    def _set(self, sql: str) -> None:
        if match := _COMPLETION.search(sql):
            self.chains = match[1].upper() in ("1", "CHAIN")
        if match := _AUTOCOMMIT.search(sql):
            self.commits_itself = match[1].upper() not in _OFF
            self.is_open = self.is_open and not self.commits_itself


def _is_constant(word: str, text: str) -> bool:
    """Whether a statement reads no table."""
    return word == "SELECT" and " FROM " not in text
