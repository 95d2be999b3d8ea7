"""Finds out what a server that speaks one of the protocols can do for a benchmark: `dbdyno probe`.

The load generator itself tries its logins, protocols and ways to load; a connection of dbdyno tries
statements. The latter use one table of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, get_args

from dbdyno.checks.server import PERMANENT_FACTS, STARTED
from dbdyno.experiment.dialect import Dialect, IsolationLevel
from dbdyno.experiment.model import Experiment, Load, Loading, OltpWorkload, Variant
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.plan import plan
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.kinds.remote_protocol import open_load_connection
from dbdyno.servers.server import Address, Description, Server, ServerProblem, StatementRefused

# Rows of the tables that the load generator loads, and how long each of its loads runs.
ROWS, LOAD_S = 200, 0.5
# Its first table.
_LOAD_TABLE = "sbtest1"


@dataclass(frozen=True)
class Section:
    """Answers about one subject."""

    title: str
    answers: tuple[Answer, ...]


def probe(server: Server, engine: Engine) -> Iterator[Section]:
    """Ask a started server everything, one section after another. Its tables are dropped at the end.

    Raises ServerProblem if the server no longer answers, or has tables of the same names.
    """
    yield Section("What it reports", tuple(_reports(server.describe(), server.status())))
    # A proxy answers for the server.
    address = server.load_address()
    probing = _EngineProbe(address, engine)
    yield Section("The load generator", tuple(probing.answers()))
    yield Section("Statements and errors", tuple(ask_statements(address, probing.error_classes())))


def _reports(description: Description, status: Mapping[str, str]) -> Iterator[Answer]:
    """The facts of a description, with the answers of the server to those that it does not report."""
    missing = description.unreported
    yield Answer("version", bool(description.version), f"{description.product} {description.version}")
    # Without paths and ports, which belong to one machine.
    permanent = [key for key in (*PERMANENT_FACTS, STARTED) if key in description.identity]
    named = ", ".join(key for key in permanent if key != "proxy")
    yield Answer("what identifies it", bool(permanent), named)
    counts = {"settings": len(description.variables), "counters": len(status)}
    for name, count in counts.items():
        yield Answer(name, count > 0, missing.get(name, f"{count}"))
    size = description.data_bytes
    text = "it answers nothing" if size is None else f"{size} bytes"
    yield Answer("size of the data", size is not None, missing.get("size", text))
    built = "; ".join(filter(None, map(str, (description.host or description.build).values())))
    yield Answer("what it says about itself", bool(built), missing.get("host", built))


class _EngineProbe:
    """Short runs of the load generator."""

    def __init__(self, address: Address, engine: Engine) -> None:
        self._engine, self._address, self._target = engine, address, address.target()
        self._is_own = not self._exists()

    def answers(self) -> Iterator[Answer]:
        """Whether it can load tables, and run reads and writes in both protocols."""
        loaded = False
        # INSERT last: its tables are those of the load.
        for method, title in (("load-data", self._address.dialect.bulk_statement), ("insert", "INSERT")):
            result = self._run("prepare", self._experiment(method=method))
            yield self._answer(f"loading by {title}", result)
            if loaded := result.done:
                if method == "load-data":
                    self._run("cleanup", self._experiment())
                    result = self._run("prepare", self._experiment(method="insert"))
                    yield self._answer("loading by INSERT", result)
                break
            self._drop()
        if not loaded:
            return
        for mode in ("prepared", "text"):
            for name in ("oltp_point_select", "oltp_read_write"):
                result = self._run("run", self._experiment(name, mode))
                yield self._answer(f"{name}, {mode} statements", result)
        yield self._answer("dropping its tables by their mark", self._run("cleanup", self._experiment()))
        self._drop()

    def _drop(self) -> None:
        """Drop the table of the load, which did not exist before, although it may have no mark."""
        if self._is_own:
            with suppress(ServerProblem), open_load_connection(self._address) as admin:
                admin.query(f"DROP TABLE {_LOAD_TABLE}")

    def _exists(self) -> bool:
        try:
            with open_load_connection(self._address) as admin:
                admin.query(f"SELECT COUNT(*) FROM {_LOAD_TABLE} WHERE 1 = 0")
        except StatementRefused:
            return False
        return True

    def error_classes(self) -> Mapping[str, str]:
        """The engine's classes of error codes."""
        document = json.dumps(self._plan(self._experiment()))
        answer = subprocess.run(
            [str(self._engine.binary), "describe"], input=document, capture_output=True, text=True, check=True
        )
        classes: Mapping[str, str] = json.loads(answer.stdout)["error_classes"]
        return classes

    def _experiment(
        self, name: Any = "oltp_read_write", statements: Any = "prepared", method: Any = "auto"
    ) -> Experiment:
        workload = OltpWorkload(name=name, tables=1, table_size=ROWS, statements=statements)
        return Experiment(
            name="probe",
            workloads=(workload,),
            load=Load(connections=(2,), duration_s=LOAD_S, warmup_s=0.0, give_up_s=1.0),
            loading=Loading(method=method, streams=1),
            variants=(Variant(name="probe"),),
        )

    def _plan(self, experiment: Experiment) -> dict[str, Any]:
        return plan(experiment, experiment.workloads[0], self._target)

    def _run(self, command: Any, experiment: Experiment) -> EngineResult:
        document = self._plan(experiment)
        if command == "run":
            document = plan(
                experiment, experiment.workloads[0], self._target, point=experiment.load.points()[0]
            )
        if document["loading"]["method"] == "load-data":
            document["loading"]["method"] = self._address.dialect.bulk_method
        return self._engine.run(command, document, self._address.environment())

    @staticmethod
    def _answer(question: str, result: EngineResult) -> Answer:
        measured = (result.end or {}).get("phases", {}).get("measure") if result.done else None
        if measured is None:
            return Answer(question, result.done, result.failure())
        errors = ", ".join(f"{count} x {code}" for code, count in measured["errors"].items())
        detail = f"{measured['events']} transactions, {f'errors: {errors}' if errors else 'no errors'}"
        return Answer(question, result.done, detail)


TABLE = "dbdyno_probe"
# Maximum seconds for a statement; two transactions that wait for each other end then, if the server lets
# them.
ANSWER_S = 5.0
_CODE = re.compile(r"\(error (\w+)\)")


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


def _questions(dialect: Dialect) -> Iterator[_Question]:
    """In this order: later ones use the rows of earlier ones."""
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
    yield _Question("statistics (ANALYZE)", [[f"{dialect.analyze} {TABLE}"]])
    yield _Question("EXPLAIN", [[f"{form} {by_key}"] for form in dialect.explain])
    yield _Question(
        "information_schema.tables",
        [[f"SELECT table_name FROM information_schema.tables WHERE table_name = '{TABLE}'"]],
        lambda rows: len(rows) == 1,
    )
    for level in get_args(IsolationLevel):
        yield _Question(f"isolation level {level}", [[dialect.set_isolation(level)]])


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
            for question in _questions(address.dialect):
                yield _ask(admin, question)
            yield from _errors(address, admin, classes)
        finally:
            admin.query(f"DROP TABLE {TABLE}")
        yield _ask(
            admin,
            _Question(
                "ids that the server gives",
                [[f"CREATE TABLE {TABLE} ({address.dialect.generated_id}, k INT)", f"DROP TABLE {TABLE}"]],
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
        address.dialect.set_isolation("serializable"),
        "BEGIN",
        f"SELECT k FROM {TABLE} WHERE id = 1",
    ]
    change = [f"UPDATE {TABLE} SET k = k + 1 WHERE id = 1", "COMMIT"]
    return _race(address, level, level, change, change)


def _race(address: Address, earlier: list[str], later: list[str], *ends: list[str]) -> str:
    """The first error of two connections: both begin one after the other, and end at the same time."""
    with _connected(address) as first, _connected(address) as second:
        if error := _refusal(first, earlier) or _refusal(second, later):
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
