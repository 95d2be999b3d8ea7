"""P26 lists in one note what a server of another product does not report."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.server import Server, ServerProblem, StatementRefused
from dbdyno.servers.url import parse_url

VERSION = "14.0-another"


class Wire:
    """Answers what another product would: refuses most statements, and counts them."""

    def __init__(self, answers: dict[str, list[tuple[Any, ...]]]) -> None:
        self.answers, self.asked = answers, list[str]()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        for part, rows in self.answers.items():
            if part in sql:
                return rows
        raise StatementRefused(f"the server refused {sql[:20]!r}: no such table (error 42P01)", exit_code=4)

    def pairs(self, sql: str) -> dict[str, str]:
        return {str(row[0]): str(row[1]) for row in self.query(sql)}

    def server_version(self) -> str:
        return VERSION


def remote(answers: dict[str, list[tuple[Any, ...]]]) -> tuple[RemoteServer, Wire]:
    server = RemoteServer(parse_url("postgresql://u@127.0.0.1:1/d"), Password(""), "A")
    wire = Wire(answers)
    server._admin = cast(Any, wire)
    return server, wire


def context(server: Server) -> Context:
    variant = Variant(name="A", server=ServerSpec(kind="remote", url="postgresql://u@127.0.0.1:1/d"))
    experiment = Experiment(
        name="test",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=(variant,),
    )
    return Context(experiment, variant=variant, server=server, description=server.describe())


def test_a_server_that_refuses_every_question_is_described_by_its_login() -> None:
    server, _ = remote({})
    description = server.describe()
    assert (description.product, description.version) == ("postgresql", VERSION)
    assert description.identity == {"url": "postgresql://u@127.0.0.1:1/d"}
    assert (description.variables, description.data_bytes, server.status()) == ({}, None, {})
    assert set(description.unreported) == {"settings", "counters", "size", "units", "host"}


def test_a_refused_question_is_asked_once() -> None:
    server, wire = remote({})
    server.describe()
    count = len(wire.asked)
    assert server.status() == {}
    assert server.variables() == {}
    assert len(wire.asked) == count


def test_an_answer_in_another_form_is_none() -> None:
    server, _ = remote({"SELECT version()": [], "pg_database_size": [(None,)]})
    description = server.describe()
    assert "instead of one row" in description.unreported["host"]
    assert "instead of" in description.unreported["size"]


def test_what_is_not_reported_is_one_note() -> None:
    server, _ = remote({"pg_settings": [("work_mem", "4MB")]})
    (note,) = checks.run(Moment.READY, context(server), ["P26"])
    assert (note.code, note.level) == ("P26", "note")
    assert "its counters (a change has no reasons from them)" in note.text
    assert "its settings" not in note.text
    assert "no such table" in note.evidence["answers"]["counters"]


def test_a_check_whose_statement_is_refused_is_a_note() -> None:
    server, _ = remote({"WHERE 1 = 0": [(0,)]})
    columns, rows = checks.run(Moment.READY, context(server), ["P02"])
    assert (columns.code, columns.level) == (rows.code, rows.level) == ("P02", "note")
    assert "the server has no catalogue" in columns.text
    assert "not checked, because the server refused" in rows.text


def test_tables_that_are_not_there_are_missing() -> None:
    server, _ = remote({})
    (stop,) = checks.run(Moment.READY, context(server), ["P02"])
    assert stop.level == "stop"
    assert "1 of 1 tables are missing" in stop.text


def test_a_lost_server_is_still_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    server, wire = remote({})
    given = context(server)

    def lost(_sql: str) -> list[tuple[Any, ...]]:
        raise ServerProblem("the connection is lost", exit_code=4)

    monkeypatch.setattr(wire, "query", lost)
    with pytest.raises(ServerProblem, match="the connection is lost"):
        checks.run(Moment.READY, given, ["P02"])
