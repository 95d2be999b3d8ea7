"""sysbench 1.0.20 and dbdyno with the same arguments, on the same server, one after the other.

A `Case` is one command line, or several that follow each other, and what both sides find before it. Each
side is a folder with a program named `sysbench` that stands first in PATH, so that shell scripts and
`#!/usr/bin/env sysbench` find it like a DBA's do. Compared are exit code, standard output and standard error,
and what the case asks the server afterwards.

With DBDYNO_BOTH_SIDES=original in the environment both sides are the original: what then differs is the
harness's own error.
"""

from __future__ import annotations

import difflib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tests.unprinting import unprinted

from dbdyno.binary import COMPAT, find_program
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address

ORIGINAL = "/usr/bin/sysbench"
SHARE = Path("/usr/share/sysbench")
BOTH_SIDES_VARIABLE = "DBDYNO_BOTH_SIDES"
# Nothing here runs for long; a side that hangs is a finding.
TIMEOUT_S = 20.0
HANGS_MAX, HANGS_S = 3, 8.0
# What a shell says of a program that died of SIGSEGV.
CRASHED = 128 + signal.SIGSEGV

# A line of one of the original's own scripts, as Lua names it. The drop-in has other files, or none.
PLACE = re.compile(rf'(?:{SHARE}/\w+\.lua|\[string "sysbench[.\w]*\.lua"\]):\d+: ')

# An option in a list of them: its name in its column, what it is for, its default.
OPTION = re.compile(r"(  --\S+ +)\S.*?(?: (\[[^][]*\]))?")

# The beginning of a line that is told while the test runs, and that of one in CSV.
INTERVAL = re.compile(r"\[ \d+s \]|%u,(?=%u,)")
CSV = "%u,%u,"
RUNNING = re.compile(r"thds: \d+")
STARTED = "Threads started!"

# How many equal messages follow each other is a matter of luck where several threads talk.
REPEATED = re.compile(r"\(last message repeated \d+ times\)")

# The account and schema that sysbench tries when it is told none.
USER = PASSWORD = DATABASE = "sbtest"


@dataclass(frozen=True)
class Side:
    """One of the two, as a folder for PATH and options that only it knows."""

    name: str
    folder: Path
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """What both sides do. `run` is for `sh -e`; `{db}` in it is how the server is reached."""

    name: str
    run: str
    # Before each side: the tables of the schema are dropped, then these are prepared by the original.
    tables: str = ""
    sql: tuple[str, ...] = ()
    # Files in the working directory, by name; those that begin with #! can be executed.
    files: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    # Whether the clock ends the run, so that counts differ.
    timed: bool = False
    # Whether options are explained: in words of one's own, so that names and defaults are compared.
    explained: bool = False
    # Lines in any order: what several threads say at once.
    unordered: bool = False
    # With what ours ends on purpose where the original says 0 of a failure.
    failing_with: int | None = None
    # Asked of the server afterwards, for the answers to be equal.
    asked: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Said:
    """What one side did, figures hidden."""

    exit_code: int
    output: tuple[str, ...]
    errors: tuple[str, ...]
    answers: tuple[object, ...]
    raw: str

    def lines(self) -> list[str]:
        """All of it as text."""
        answers = [f"answer: {answer}" for answer in self.answers]
        return [
            f"exit code {self.exit_code}",
            *(f"out: {line}" for line in self.output),
            *(f"err: {line}" for line in self.errors),
            *answers,
        ]


class Running(Protocol):
    """A private server that is up."""

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask as its administrator."""

    def address(self) -> Address:
        """How a load reaches it."""


@dataclass(frozen=True)
class Database:
    """A private server with sysbench's account, and shims for either side. This one is MariaDB."""

    server: Running
    folder: Path

    def options(self, user: str = USER, password: str = PASSWORD) -> str:
        """How either side reaches it."""
        address = self.server.address()
        return (
            f"--mysql-host={address.host} --mysql-port={address.port} "
            f"--mysql-user={user} --mysql-password={password} --mysql-db={DATABASE}"
        )

    def empty(self) -> None:
        """A new, empty schema; a statement that a side left running in the old one is ended."""
        self.server.query(f"KILL USER {USER}")
        self.server.query(f"DROP DATABASE IF EXISTS {DATABASE}")
        self.server.query(f"CREATE DATABASE {DATABASE}")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask as the administrator."""
        return self.server.query(sql)


def give_account(server: LocalServer) -> None:
    """sysbench's own account and schema: the rights of the load's account once more.

    The lab's administrator may not GRANT, so the row is copied.
    """
    server.query(f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'")
    server.query(f"CREATE DATABASE {DATABASE}")
    ((rights,),) = server.query(
        "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns WHERE table_schema = 'mysql' "
        "AND table_name = 'db' AND column_name LIKE '%priv'"
    )
    server.query(
        f"INSERT INTO mysql.db (Host, Db, User, {rights}) SELECT '%', '{DATABASE}', '{USER}', {rights} "
        f"FROM mysql.db WHERE User = '{server.address().user}' AND Host = 'localhost'"
    )
    server.query("FLUSH PRIVILEGES")


def original(folder: Path) -> Side:
    """The peer."""
    return Side("sysbench", _link(folder / "original", Path(ORIGINAL)))


def drop_in(folder: Path, *options: str) -> Side:
    """dbdyno, or the original once more where the harness itself is on trial."""
    if os.environ.get(BOTH_SIDES_VARIABLE) == "original":
        return original(folder)
    return Side("dbdyno", _link(folder / "drop-in", Path(find_program(COMPAT)).resolve()), options)


def _link(folder: Path, program: Path) -> Path:
    folder.mkdir(exist_ok=True)
    link = folder / "sysbench"
    if not link.is_symlink():
        link.symlink_to(program)
    return folder


def said(side: Side, case: Case, database: Database | None = None, timeout_s: float = TIMEOUT_S) -> Said:
    """Let one side do it."""
    if database is not None:
        _lay_tables(case, database)
    with tempfile.TemporaryDirectory(prefix="dbdyno-peer-") as directory:
        _lay_files(case, Path(directory))
        run = case.run.replace("{db}", database.options() if database else "")
        run = run.replace("{only}", " ".join(side.options))
        environment = {
            "PATH": f"{side.folder}:/usr/bin:/bin",
            "HOME": directory,
            "LC_ALL": "C.UTF-8",
        }
        exit_code, output, errors = _run(run, directory, environment, case.stdin, timeout_s)
    answers = tuple(database.query(sql) for sql in case.asked) if database else ()
    shown, complaints = (_hidden(text, case, directory) for text in (output, errors))
    return Said(exit_code, shown, complaints, answers, output + errors)


def _run(
    run: str, directory: str, environment: Mapping[str, str], stdin: str, timeout_s: float
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a shell; what it left behind is ended with it."""
    with subprocess.Popen(
        ["sh", "-ec", run],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output, errors


def _lay_tables(case: Case, database: Database) -> None:
    if case.tables or case.sql or case.asked:
        database.empty()
    if case.tables:
        command = f"{ORIGINAL} {database.options()} {case.tables} prepare"
        subprocess.run(["sh", "-ec", command], check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
    for statement in case.sql:
        database.query(statement)


def _lay_files(case: Case, directory: Path) -> None:
    for name, text in case.files.items():
        path = directory / name
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)


def _hidden(text: str, case: Case, directory: str) -> tuple[str, ...]:
    if case.unordered:
        # A line and its end are two writes of a thread; another's may come between them.
        text = text.replace("...", "...\n")
    lines: Sequence[str] = unprinted(text.replace(directory, "DIRECTORY"), timed=case.timed)
    lines = _start_first(lines)
    if case.explained:
        lines = [_without_words(line) for line in lines]
    if case.timed:
        lines = _first_intervals(lines)
    if case.unordered:
        lines = sorted({line for line in lines if not REPEATED.fullmatch(line)})
    return tuple(lines)


def _start_first(lines: Sequence[str]) -> list[str]:
    """That the threads have started, before all else: whether it is told before their first words is luck."""
    if STARTED not in lines:
        return list(lines)
    at = lines.index(STARTED)
    return [STARTED, *lines[:at], *lines[at + 2 :]]


def _without_words(line: str) -> str:
    option = OPTION.fullmatch(line)
    return f"{option[1]}WORDS {option[2]}" if option else line


def _first_intervals(lines: Sequence[str]) -> list[str]:
    """Of the lines told while a test runs the first of each form: how many there are, and when, is luck."""
    seen: set[str] = set()
    kept = []
    for line in lines:
        form = RUNNING.sub("thds: N", INTERVAL.sub("[ Ns ]", line))
        if line.startswith(CSV):
            form = line.replace("0.00", "%.2f")
        if not INTERVAL.match(line) or form not in seen:
            kept.append(form)
        if INTERVAL.match(line):
            seen.add(form)
    return kept


_OURS = f"WHERE table_schema = '{DATABASE}' ORDER BY table_name"
# What MySQL and MariaDB know of the tables.
MYSQL_SCHEMA = (
    "SELECT table_name, column_name, column_default, is_nullable, column_type, column_key, extra "
    f"FROM information_schema.columns {_OURS}, ordinal_position",
    "SELECT table_name, index_name, non_unique, column_name, seq_in_index "
    f"FROM information_schema.statistics {_OURS}, index_name, seq_in_index",
    f"SELECT table_name, engine, table_collation FROM information_schema.tables {_OURS}",
)

# What the original said to a case on a server, for the ways of the drop-in that are held against it.
_original_said: dict[tuple[str, str], Said] = {}


def difference(case: Case, theirs: Side, ours: Side, database: Database | None = None) -> str:
    """How the sides differ, as a unified difference; empty where they do not.

    A line of the original's own files that an error names is left out; those of the case's scripts are not.
    """
    asked = repr(case), database.options() if database else ""
    expected = _original_said.get(asked)
    if expected is None:
        expected = _original_said[asked] = _patiently(theirs, case, database)
    if case.failing_with is not None and ours != theirs:
        assert expected.exit_code == 0, f"{case.name}: the original says {expected.exit_code} by itself"
        expected = replace(expected, exit_code=case.failing_with)
    got = said(ours, case, database)
    texts = [[PLACE.sub("", line) for line in side.lines()] for side in (expected, got)]
    if texts[0] == texts[1]:
        return ""
    wanted, found = texts
    shown = "\n".join(difflib.unified_diff(wanted, found, theirs.name, ours.name, lineterm="", n=3))
    return f"{case.name}: {case.run}\n{shown}\n--- all that {ours.name} said\n{got.raw[-3000:]}"


def same(at: Path | Database, case: Case, *options: str) -> None:
    """Hold that dbdyno with these options does what the original does, in a folder or on a server."""
    folder, database = (at.folder, at) if isinstance(at, Database) else (at, None)
    found = difference(case, original(folder), drop_in(folder, *options), database)
    assert not found, found


def same_either_way(database: Database, case: Case, way: tuple[str, ...]) -> None:
    """The same by one of dbdyno's two ways."""
    same(database, case, *way)


def tables_for(arguments: str) -> str:
    """What the original prepares for a run."""
    kept = [word for word in arguments.split() if "--table" in word or "auto_inc" in word]
    return " ".join([arguments.split(maxsplit=1)[0], *kept])


def _patiently(theirs: Side, case: Case, database: Database | None) -> Said:
    """The original again where it hangs or crashes, which it does now and then in a forced shutdown."""
    for _ in range(HANGS_MAX):
        try:
            found = said(theirs, case, database, HANGS_S)
        except subprocess.TimeoutExpired:
            continue
        if found.exit_code != CRASHED:
            return found
    return said(theirs, case, database)


def scripts() -> Sequence[str]:
    """Names of the bundled scripts that are tests."""
    return sorted(path.stem for path in SHARE.glob("*.lua") if path.stem != "oltp_common")
