"""--quiet and --verbose."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from dbdyno import waiting
from dbdyno.problem import Problem
from dbdyno.servers.admin.answers import shorten_statement
from dbdyno.terminal.messages import announce, is_verbose, set_verbosity

LOG = logging.getLogger("dbdyno")


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    yield
    LOG.handlers.clear()
    LOG.setLevel(logging.NOTSET)


def test_verbose_prints_steps_and_actions_with_their_time(capsys: pytest.CaptureFixture[str]) -> None:
    set_verbosity("--verbose")
    announce("loading 100 % of the rows")
    with waiting.waiting_for("the server's answer to 'SELECT 1'"):
        pass
    with waiting.waiting_for("a record", is_logged=False):
        pass
    step, action = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r" *\d+\.\d{3} s  loading 100 % of the rows", step)
    answer = r"waited \d+\.\d{3} s for the server's answer to 'SELECT 1'"
    assert re.fullmatch(rf" *\d+\.\d{{3}} s  {answer}", action)


def test_quiet_prints_no_step_and_other_commands_no_action(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting.waiting_for("the login at the server"):
        announce("loading")
    set_verbosity("--quiet")
    announce("starting")
    assert not is_verbose()
    assert capsys.readouterr().err == "loading\n"


def test_a_command_is_not_quiet_and_verbose() -> None:
    set_verbosity("--quiet")
    with pytest.raises(Problem, match="--quiet and --verbose"):
        set_verbosity("--verbose")


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("CREATE USER b@'%' IDENTIFIED BY 's3cr3t'", "CREATE USER b@'%' IDENTIFIED BY …"),
        ("ALTER USER b identified with mysql_native_password\n AS '*s3cr3t'",
         "ALTER USER b identified with mysql_native_password AS …"),
        ("ALTER ROLE b LOGIN PASSWORD 's3cr3t'", "ALTER ROLE b LOGIN PASSWORD …"),
        ("ALTER ROLE b PASSWORD $$s3cr3t$$ LOGIN", "ALTER ROLE b PASSWORD …"),
        ("SET PASSWORD FOR b@localhost = PASSWORD('s3cr3t')", "SET PASSWORD FOR b@localhost = …"),
        ("SET PASSWORD = 's3cr3t'", "SET PASSWORD = …"),
        ("CHANGE MASTER TO MASTER_PASSWORD='s3cr3t'", "CHANGE MASTER TO MASTER_PASSWORD= …"),
        ("SELECT password, name FROM accounts", "SELECT password, name FROM accounts"),
        ("SELECT c FROM t WHERE id = 1", "SELECT c FROM t WHERE id = 1"),
    ],
)  # fmt: skip
def test_a_shown_statement_has_no_password(sql: str, shown: str) -> None:
    assert shorten_statement(sql) == shown
