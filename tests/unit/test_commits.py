"""P27: which statements leave a transaction open, and what the server's counters say about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Making, judged

from dbdyno.checks.connections import _Session, _stays_open
from dbdyno.experiment.dialect import MYSQL, POSTGRESQL
from dbdyno.experiment.schedule import Trial


@pytest.mark.parametrize(
    ("statements", "stays_open"),
    [
        (["UPDATE t SET n = 1"], False),
        (["BEGIN", "UPDATE t SET n = 1", "COMMIT"], False),
        (["/* a */ begin work", "UPDATE t SET n = 1"], True),
        (["START TRANSACTION READ ONLY", "SELECT n FROM t"], True),
        (["BEGIN", "SAVEPOINT a", "ROLLBACK TO SAVEPOINT a"], True),
        (["BEGIN", "UPDATE t SET n = 1", "COMMIT AND CHAIN"], True),
        (["BEGIN", "UPDATE t SET n = 1", "ROLLBACK"], False),
        (["BEGIN", "CREATE TABLE u (n INT)"], False),
        (["BEGIN", "CREATE TEMPORARY TABLE u (n INT)"], True),
        (["SET @@session.autocommit := 0", "INSERT INTO t VALUES (1)"], True),
        (["SET autocommit = 0", "INSERT INTO t VALUES (1)", "SET autocommit = 1"], False),
        (["SET completion_type = 'CHAIN'", "BEGIN", "COMMIT"], True),
        (["XA START 'a'", "UPDATE t SET n = 1", "XA COMMIT 'a' ONE PHASE"], False),
    ],
)
def test_what_leaves_a_transaction_open(statements: list[str], stays_open: bool) -> None:
    assert _stays_open(_Session(MYSQL), statements) is stays_open


@pytest.mark.parametrize(
    ("statements", "stays_open"),
    [
        (["INSERT INTO t VALUES (1)"], True),
        (["SELECT n FROM t"], True),
        (["SELECT 1", "SET @a = 1"], False),
        (["INSERT INTO t VALUES (1)", "COMMIT"], False),
        (["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"], False),
        (["BEGIN", "COMMIT", "INSERT INTO t VALUES (1)"], True),
    ],
)
def test_without_autocommit_every_statement_needs_a_commit(statements: list[str], stays_open: bool) -> None:
    assert _stays_open(_Session(MYSQL, commits_itself=False), statements) is stays_open


def test_a_chain_ends_only_where_the_statement_says_so() -> None:
    session = _Session(MYSQL, chains=True)
    assert _stays_open(session, ["BEGIN", "COMMIT"])
    assert not _stays_open(session, ["BEGIN", "COMMIT AND NO CHAIN"])
    assert not _stays_open(session, ["UPDATE t SET n = 1"])


def test_postgresql_commits_no_transaction_with_a_table() -> None:
    assert _stays_open(_Session(POSTGRESQL), ["BEGIN", "CREATE TABLE u (n INT)"])
    assert not _stays_open(_Session(POSTGRESQL), ["BEGIN", "UPDATE t SET n = 1", "END"])
    assert not _stays_open(_Session(POSTGRESQL), ["BEGIN", "PREPARE TRANSACTION 'a'"])


def counters(tmp_path: Path, growth: dict[str, int], **facts: Any) -> list[dict[str, Any]]:
    """The findings P27 about a run whose server's counters grew so much in each trial of b."""

    def server(trial: Trial) -> dict[str, Any]:
        if trial.variant != "b":
            return {}
        after = {name: str(1000 + number) for name, number in growth.items()}
        return {"status_before": dict.fromkeys(growth, "1000"), "status_after": after, **facts}

    found = judged(tmp_path, Making(connections=(10,), server=server))["checks"]
    return [one for one in found if one["code"] == "P27"]


@pytest.mark.parametrize(
    "growth", [{"Handler_rollback": 2, "Com_rollback": 0}, {"pg_stat_database.xact_commit": 5}]
)
def test_what_the_server_rolled_back_at_the_end_was_not_committed(
    tmp_path: Path, growth: dict[str, int]
) -> None:
    (finding,) = counters(tmp_path, growth)
    assert (finding["level"], finding["subject"]) == ("warn", "b")
    assert "left transactions of b open in 8 trials" in finding["text"]


@pytest.mark.parametrize(
    "growth",
    [
        {"Handler_rollback": 0},
        {"Handler_rollback": 9, "Com_rollback": 9},
        {"pg_stat_database.xact_commit": 10**9},
    ],
)
def test_transactions_that_ended_are_no_finding(tmp_path: Path, growth: dict[str, int]) -> None:
    assert counters(tmp_path, growth) == []


def test_other_clients_of_a_remote_server_may_roll_back(tmp_path: Path) -> None:
    assert counters(tmp_path, {"Handler_rollback": 2}, identity={"datadir": "/x"}) == []
