"""The statements with which `dbdyno probe` finds out what a server does, and the errors that clients retry.

All of them use one table of their own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, get_args

from dbdyno.experiment.variant import IsolationLevel, isolation_statement
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.load_connection import open_load_connection
from dbdyno.servers.server import Address, ServerProblem

TABLE = "dbdyno_probe"
# Maximum seconds for a statement; two transactions that wait for each other end then, if the server lets
# them.
ANSWER_S = 5.0
_CODE = re.compile(r"\(error (\w+)\)")
_IDS = {"mysql": "id INT AUTO_INCREMENT PRIMARY KEY", "postgresql": "id SERIAL PRIMARY KEY"}


@dataclass(frozen=True)
class Answer:
    """What a server answers to one question."""

    question: str
    works: bool
    # How it works, or the server's error.
    detail: str = ""


@dataclass(frozen=True)
class _Question:
    """Statements that are tried in this order until one works, and what the last of each must return."""

    title: str
    ways: Sequence[Sequence[str]]
    expected: Callable[[Sequence[Any]], bool] = lambda _rows: True


def _questions(protocol: str) -> Iterator[_Question]:
    """In this order: later ones use the rows of earlier ones."""
    explain = {
        "mysql": ["EXPLAIN FORMAT=JSON", "EXPLAIN", "EXPLAIN FORMAT=TREE"],
        "postgresql": ["EXPLAIN (FORMAT JSON)", "EXPLAIN"],
    }[protocol]
    yield _Question("several rows in one INSERT", [[f"INSERT INTO {TABLE} VALUES (1, 1, 'a'), (2, 2, 'b')"]])
    by_key = f"SELECT c FROM {TABLE} WHERE id = 2"
    yield _Question("a row by its key", [[by_key]], lambda rows: [row[0].strip() for row in rows] == ["b"])
    yield _Question(
        "a range with ORDER BY", [[f"SELECT id FROM {TABLE} WHERE id BETWEEN 1 AND 2 ORDER BY c"]]
    )
    read = f"SELECT k FROM {TABLE} WHERE id = 2"
    change = f"UPDATE {TABLE} SET k = 7 WHERE id = 2"
    yield _Question("UPDATE", [[change, read]], lambda rows: [row[0] for row in rows] == [7])
    yield _Question(
        "ROLLBACK of a transaction",
        [
            [
                "BEGIN",
                f"UPDATE {TABLE} SET k = 9 WHERE id = 2",
                "ROLLBACK",
                read,
            ]
        ],
        lambda rows: [row[0] for row in rows] == [7],
    )
    yield _Question("SELECT … FOR UPDATE", [["BEGIN", f"{by_key} FOR UPDATE", "COMMIT"]])
    yield _Question("DELETE", [[f"DELETE FROM {TABLE} WHERE id = 2", f"SELECT id FROM {TABLE}"]],
                    lambda rows: [row[0] for row in rows] == [1])  # fmt: skip
    yield _Question("secondary index", [[f"CREATE INDEX {TABLE}_k ON {TABLE} (k)"]])
    yield _Question(
        "statistics (ANALYZE)", [[f"ANALYZE TABLE {TABLE}" if protocol == "mysql" else f"ANALYZE {TABLE}"]]
    )
    yield _Question("EXPLAIN", [[f"{form} {by_key}"] for form in explain])
    yield _Question(
        "information_schema.tables",
        [[f"SELECT table_name FROM information_schema.tables WHERE table_name = '{TABLE}'"]],
        lambda rows: len(rows) == 1,
    )
    for level in get_args(IsolationLevel):
        yield _Question(f"isolation level {level}", [[isolation_statement(protocol, level)]])


def ask_statements(address: Address, classes: Mapping[str, str]) -> Iterator[Answer]:
    """Every question about statements and errors; `classes` are the engine's classes of error codes.

    The table is dropped at the end. Raises ServerProblem if a table of that name exists, which is not
    dbdyno's.
    """
    with _connected(address) as admin:
        created = _first_that_works(
            admin,
            [
                [f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(20) NOT NULL)"],
                [f"CREATE TABLE {TABLE} (id INT, k INT, c VARCHAR)"],
            ],
        )
        yield Answer("CREATE TABLE with a primary key", created.endswith("NOT NULL)"), created)
        if not created.startswith("CREATE"):
            return
        try:
            for question in _questions(address.protocol):
                yield _ask(admin, question)
            yield from _errors(address, admin, classes)
        finally:
            admin.query(f"DROP TABLE {TABLE}")
        yield _ask(
            admin,
            _Question(
                "ids that the server gives",
                [[f"CREATE TABLE {TABLE} ({_IDS[address.protocol]}, k INT)", f"DROP TABLE {TABLE}"]],
            ),
        )


@contextmanager
def _connected(address: Address) -> Iterator[AdminConnection]:
    with answers_within(ANSWER_S), open_load_connection(address) as admin:
        yield admin


def _ask(admin: AdminConnection, question: _Question) -> Answer:
    detail = _first_that_works(admin, question.ways, question.expected)
    works = detail in [way[0] for way in question.ways]
    several = len(question.ways) > 1
    return Answer(question.title, works, "" if works and not several else detail)


def _first_that_works(
    admin: AdminConnection,
    ways: Sequence[Sequence[str]],
    expected: Callable[[Sequence[Any]], bool] = lambda _rows: True,
) -> str:
    """The first statement of the way that works; otherwise the reason why the first way does not."""
    reason = ""
    for way in ways:
        rows: Sequence[Any] = []
        try:
            for sql in way:
                rows = admin.query(sql)
        except ServerProblem as problem:
            reason = reason or problem.text
            with suppress(ServerProblem):
                admin.query("ROLLBACK")
            continue
        if expected(rows):
            return way[0]
        reason = reason or f"{way[-1]} returned {rows[:3]!r}"
    return reason


# --- errors


def _errors(address: Address, admin: AdminConnection, classes: Mapping[str, str]) -> Iterator[Answer]:
    """The codes of errors that clients retry."""
    for title, provoke in (
        ("a duplicate key", _duplicate),
        ("a deadlock", _deadlock),
        ("a conflict of two transactions", _conflict),
    ):
        text = provoke(address, admin)
        code = _CODE.search(text)
        of_class = classes.get(code[1], classes.get(code[1][:2], "other")) if code else ""
        detail = f"error {code[1]}, class {of_class}" if code else text or "no error"
        yield Answer(f"error of {title}", code is not None and of_class != "other", detail)


def _duplicate(_address: Address, admin: AdminConnection) -> str:
    return _refusal(admin, [f"INSERT INTO {TABLE} VALUES (1, 1, 'a')"])


def _deadlock(address: Address, admin: AdminConnection) -> str:
    """Two transactions change two rows in opposite orders."""
    _refusal(admin, [f"INSERT INTO {TABLE} VALUES (3, 3, 'c')"])
    first, last = (f"UPDATE {TABLE} SET k = k + 1 WHERE id = {key}" for key in (1, 3))
    return _race(address, ["BEGIN", first], ["BEGIN", last], [last, "COMMIT"], [first, "COMMIT"])


def _conflict(address: Address, _admin: AdminConnection) -> str:
    """Two serializable transactions read a row and then change it."""
    level = [
        isolation_statement(address.protocol, "serializable"),
        "BEGIN",
        f"SELECT k FROM {TABLE} WHERE id = 1",
    ]
    change = [f"UPDATE {TABLE} SET k = k + 1 WHERE id = 1", "COMMIT"]
    return _race(address, level, level, change, change)


def _race(address: Address, one: list[str], other: list[str], *ends: list[str]) -> str:
    """The first error of two connections: both begin one after the other, and end at the same time."""
    with _connected(address) as first, _connected(address) as second:
        if error := _refusal(first, one) or _refusal(second, other):
            return error
        errors = ["", ""]

        def end(number: int, admin: AdminConnection, statements: Sequence[str]) -> None:
            with answers_within(ANSWER_S):
                errors[number] = _refusal(admin, statements)

        pairs = zip(range(2), (first, second), ends, strict=True)
        threads = [threading.Thread(target=end, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return errors[0] or errors[1]


def _refusal(admin: AdminConnection, statements: Sequence[str]) -> str:
    """The error of the first statement that fails, after a ROLLBACK; empty if all work."""
    try:
        for sql in statements:
            admin.query(sql)
    except ServerProblem as problem:
        with suppress(ServerProblem):
            admin.query("ROLLBACK")
        return problem.text
    return ""
