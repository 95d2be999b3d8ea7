"""P27: every transaction of the load ends on the server when the load generator counts it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.samples import open_load_connection
from dbdyno.experiment.model import OltpWorkload, SqlWorkload, Workload
from dbdyno.experiment.sql_text import Dialect, first_word
from dbdyno.experiment.sql_workload import DIALECTS
from dbdyno.finding import Finding
from dbdyno.run.description import describe
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import ServerProblem
from dbdyno.text import compose, join, join_some, mark

# Maximum number of statements and transactions that a text names.
_NAMED_MAX = 3
# Statements with which MySQL and MariaDB commit the open transaction implicitly.
_COMMITTING = frozenset(
    {"ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE", "LOCK", "ANALYZE", "OPTIMIZE"}
)
# Statements that need no transaction.
_WITHOUT = frozenset({"SET", "SHOW", "USE", "DO", "DEALLOCATE", "PREPARE", "SAVEPOINT", "RELEASE", "EXPLAIN"})
_AUTOCOMMIT = re.compile(r"\bautocommit\b\W*=\s*'?(\w+)", re.IGNORECASE)
_COMPLETION = re.compile(r"\bcompletion_type\b\W*=\s*'?(\w+)", re.IGNORECASE)
_OFF = frozenset({"0", "OFF", "FALSE"})


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
        is_mysql = self.dialect == "mysql"
        if word in ("BEGIN", "START") or text.startswith(("XA BEGIN", "XA START")):
            self.is_open = True
        elif word in ("COMMIT", "ROLLBACK", "END", "ABORT") or text.startswith("XA COMMIT"):
            is_whole = not re.search(r"\b(TO|PREPARED)\b", text)
            chains = self.chains and "NO CHAIN" not in text and not text.startswith("XA")
            if is_whole:
                self.is_open = chains or (" AND CHAIN" in text and word != "XA")
        elif word == "PREPARE" and "PREPARE TRANSACTION" in text:
            self.is_open = False
        elif is_mysql and word == "SET":
            self._set(sql)
        elif is_mysql and word in _COMMITTING and "TEMPORARY" not in text:
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


def find(moment: Moment, context: Context) -> Iterator[Finding]:
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
    assert moment is Moment.READY, "P27 is registered for READY only"
    if context.server is None or context.description is None or context.first_description is not None:
        return
    protocol = context.server.address().protocol
    for workload in context.workloads:
        transactions = dict(_transactions(context, workload, protocol))
        if not transactions:
            continue
        try:
            with open_load_connection(context.server.address(), context.load.transport) as admin:
                session = _start(admin, context, workload, protocol)
        except ServerProblem:
            # P04 and P09 report a session that cannot be opened.
            continue
        yield from _findings(context, workload, transactions, session)


def _transactions(context: Context, workload: Workload, protocol: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Name -> statements of the workload's transactions."""
    if isinstance(workload, OltpWorkload):
        statements = describe(context.experiment, workload, protocol).statements
        yield workload.title, [one.sql for one in statements if one.per_transaction]
    elif isinstance(workload, SqlWorkload):
        for number, one in enumerate(workload.transactions, 1):
            yield one.name or f"transaction{number}", [statement.sql for statement in one.statements]


def _start(admin: AdminConnection, context: Context, workload: Workload, protocol: str) -> _Session:
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


def _findings(
    context: Context, workload: Workload, transactions: dict[str, Sequence[str]], session: _Session
) -> Iterator[Finding]:
    left_open = [name for name, statements in transactions.items() if _stays_open(session, statements)]
    if not left_open:
        return
    reasons, fixes = zip(*_reasons(session), strict=True)
    yield Finding(
        "P27",
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
        context.subject,
        fix=join("; ", fixes),
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


CHECK = Check(
    "P27",
    "Transactions end when they are counted",
    frozenset({Moment.READY}),
    find,
    caveat=mark("transactions count that were not committed"),
)
