"""What identifies a server in the stored changes, and values of variables as texts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.servers.kinds import remote_changes
from dbdyno.servers.kinds.remote_changes import (
    Change,
    Record,
    StoredChanges,
    _are_related,
    _is_equal,
    _is_same_server,
    _may_hold_password,
    stored_changes,
)
from dbdyno.servers.kinds.remote_protocol import MySQLVariables, PostgreSQLVariables, Setting, split_names
from dbdyno.servers.server import ServerProblem

MYSQL = {"server_uuid": "a", "hostname": "h", "datadir": "/d/", "port": "3306"}
POSTGRESQL = {"system_identifier": "7", "data_directory": "/d", "port": "5432"}
CHANGE = Change(name="x", before="1", expected="2", undo="SET GLOBAL x = 1")


def record(**identity: str) -> Record:
    return Record(url="mysql://u@h:1/d", identity=identity, run="/run", variant="v", changes=(CHANGE,))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return remote_changes.directory()


@pytest.mark.parametrize(
    ("stored", "now", "at_same_place", "expected"),
    [
        (MYSQL, MYSQL, False, True),
        # It has started again with another port.
        (MYSQL, {**MYSQL, "port": "3307"}, False, True),
        # A copy of its data directory.
        (MYSQL, {**MYSQL, "datadir": "/copy/"}, True, False),
        (MYSQL, {**MYSQL, "server_uuid": "b"}, True, False),
        (POSTGRESQL, POSTGRESQL, False, True),
        # An account that may not read the data directory.
        (POSTGRESQL, {"system_identifier": "7", "port": "5432"}, False, True),
        (POSTGRESQL, {"system_identifier": "7", "port": "5433"}, False, False),
        # Nothing unique is common: every PostgreSQL has this port.
        ({"port": "5432"}, POSTGRESQL, False, False),
        ({"port": "5432"}, POSTGRESQL, True, True),
        ({}, {}, False, False),
        ({}, {}, True, True),
    ],
)
def test_a_server_is_recognised(
    stored: dict[str, str], now: dict[str, str], at_same_place: bool, expected: bool
) -> None:
    before = record(**stored)
    assert _is_same_server(before, now, before.place if at_same_place else "elsewhere") is expected


def test_changes_are_stored_found_and_removed(folder: Path) -> None:
    assert stored_changes() == []
    stored = StoredChanges.for_server(record(**MYSQL))
    assert stored_changes() == []
    assert stored.acquire()
    other = StoredChanges.for_server(record(**MYSQL))
    assert (other.acquire(), other.read_again()) == (False, False)
    stored.write(run="/other")
    # A process that is killed while it writes.
    stored.path.with_suffix(".partial").write_text("{")
    (found,) = stored_changes()
    assert (
        found.record
        == stored.record
        == record(**MYSQL).model_copy(update={"run": "/other", "unix_s": stored.record.unix_s})
    )
    assert remote_changes.has_left_changes("/other")
    assert not remote_changes.has_left_changes("/run")
    stored.remove()
    stored.release()
    assert (stored_changes(), other.acquire(), other.read_again()) == ([], True, False)
    other.release()


def test_files_that_are_no_records_are_refused(folder: Path, tmp_path: Path) -> None:
    stored = StoredChanges.for_server(record(**MYSQL))
    stored.write()
    path = folder / "other.json"
    for text in ("", "{", "[]", stored.path.read_text().replace('"version": 1', '"version": 2')):
        path.write_text(text)
        with pytest.raises(ServerProblem, match="json, which says what dbdyno has changed") as caught:
            stored_changes()
        assert caught.value.exit_code == 4
    path.unlink()
    path.symlink_to(stored.path)
    with pytest.raises(ServerProblem, match="Too many levels of symbolic links"):
        stored_changes()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ServerProblem, match="not a regular file"):
        stored_changes()
    path.unlink()
    folder.chmod(0o777)
    with pytest.raises(ServerProblem, match="other users can write to this folder"):
        StoredChanges.for_server(record(**MYSQL))


def test_names_of_passwords() -> None:
    for name in ("primary_conninfo", "ssl_passphrase_command", "report_password", "x_bind_root_pwd"):
        assert _may_hold_password(name)
    for name in ("password_encryption", "validate_password.length", "default_password_lifetime", "sql_mode"):
        assert not _may_hold_password(name)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("public", ["public"]),
        ('"$user", Public', ["$user", "public"]),
        ('"a""b,c" , d', ['a"b,c', "d"]),
        ('"open', ['"open']),
        ("a b", ["a b"]),
    ],
)
def test_a_list_of_names_is_split(text: str, names: list[str]) -> None:
    assert split_names(text) == names


@pytest.mark.parametrize(
    ("setting", "literal"),
    [
        (Setting("1"), "'1'"),
        (Setting("1", is_text=False), "1"),
        (Setting("-1.5e-3", is_text=False), "-1.5e-3"),
        (Setting("on", is_text=False), "on"),
        (Setting("AUTO", is_text=False), "'AUTO'"),
        (Setting("ON"), "'ON'"),
        (Setting(None), "NULL"),
        (Setting("it's"), "'it''s'"),
        (Setting("\\", is_text=True), "CONVERT(0x5c USING utf8mb4)"),
        (Setting(""), "''"),
    ],
)
def test_a_value_is_written_for_mysql(setting: Setting, literal: str) -> None:
    assert MySQLVariables().statement("x", setting) == f"SET GLOBAL x = {literal}"


def test_a_value_is_written_for_postgresql() -> None:
    statement = PostgreSQLVariables().statement
    assert statement("work_mem", Setting("8MB")) == "ALTER SYSTEM SET work_mem = '8MB'"
    assert statement("work_mem", Setting(None)) == "ALTER SYSTEM RESET work_mem"
    assert statement("search_path", Setting('"$user", a')) == "ALTER SYSTEM SET search_path = '$user', 'a'"
    assert statement("log_line_prefix", Setting("a, 'b'")) == "ALTER SYSTEM SET log_line_prefix = 'a, ''b'''"


def test_sizes_are_numbers_only_where_the_variable_is_one() -> None:
    requested = MySQLVariables().requested
    assert requested("x", "16MiB", Setting("1", is_text=False)) == Setting("16777216", is_text=False)
    assert requested("x", "2k", Setting("1", is_text=False)) == Setting("2048", is_text=False)
    assert requested("x", "2k", Setting("text")) == Setting("2k")
    assert requested("x", True, Setting("OFF")) == Setting("ON", is_text=False)


def test_equal_values_and_related_variables() -> None:
    for one, other in (("75", "75.000000"), ("ON", "1"), ("off", "FALSE"), ("row", "ROW"), ("", "")):
        assert _is_equal(one, other)
    for one, other in (("1", "2"), ("ON", "0"), ("", "0"), ("a", "b")):
        assert not _is_equal(one, other)
    assert _are_related("innodb_io_capacity_max", ["innodb_io_capacity"])
    assert _are_related("collation_server", ["character_set_server"])
    assert not _are_related("max_connections", ["innodb_io_capacity"])
