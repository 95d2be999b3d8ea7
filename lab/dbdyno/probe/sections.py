"""Finds out what a server that speaks one of the protocols can do for a benchmark: `dbdyno probe`.

The load generator itself tries its logins, protocols and ways to load; a connection of dbdyno tries
statements.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dbdyno.checks.server import PERMANENT_FACTS, STARTED
from dbdyno.experiment.model import Experiment, Load, Loading, OltpWorkload, Variant
from dbdyno.probe.statements import Answer, ask_statements
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.plan import plan
from dbdyno.servers.load_connection import open_load_connection
from dbdyno.servers.server import Address, Description, Server, ServerProblem, StatementRefused

# Rows of the tables that the load generator loads, and how long each of its loads runs.
ROWS, LOAD_S = 200, 0.5
# Its first table.
_TABLE = "sbtest1"


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
        name = "COPY" if self._address.protocol == "postgresql" else "LOAD DATA LOCAL"
        # INSERT last: its tables are those of the load.
        for method, title in (("load-data", name), ("insert", "INSERT")):
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
                admin.query(f"DROP TABLE {_TABLE}")

    def _exists(self) -> bool:
        try:
            with open_load_connection(self._address) as admin:
                admin.query(f"SELECT COUNT(*) FROM {_TABLE} WHERE 1 = 0")
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
        if self._address.protocol == "postgresql" and document["loading"]["method"] == "load-data":
            document["loading"]["method"] = "copy"
        return self._engine.run(command, document, self._address.environment())

    @staticmethod
    def _answer(question: str, result: EngineResult) -> Answer:
        measured = (result.end or {}).get("phases", {}).get("measure") if result.done else None
        if measured is None:
            return Answer(question, result.done, result.failure())
        errors = ", ".join(f"{count} x {code}" for code, count in measured["errors"].items())
        detail = f"{measured['events']} transactions, {f'errors: {errors}' if errors else 'no errors'}"
        return Answer(question, result.done, detail)
