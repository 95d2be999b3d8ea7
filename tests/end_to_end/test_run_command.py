"""`dbdyno run` against real servers: the table, the data, and, on MariaDB, every way in which it may end."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import environment, refused
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.run import pilot
from dbdyno.run.marked_tables import table_hash
from dbdyno.run.sampling import STATEMENTS
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run
from dbdyno.store.preparation import read_workers

LATENCIES = ("mean ms", "p95 ms", "p99 ms", "max ms")
# Without a pilot, which takes seconds.
SHORT = ("--time", "1s", "--warmup", "0s", "--table-size", "1000", "--workers", "1")
TIME_LIMIT_S = 120.0


def url(address: Address, database: str | None = None) -> str:
    return f"{address.protocol}://{address.user}@127.0.0.1:{address.port}/{database or address.database}"


class Running:
    """The command on one server and one results directory."""

    def __init__(self, server: LocalServer | MySQLServer, results: Path) -> None:
        self.server, self.results = server, results
        self.address = server.address()

    def command(self, *arguments: str, target: str | None = None) -> list[str]:
        place = ["--target", target or url(self.address), "--results", str(self.results)]
        return [sys.executable, "-m", "dbdyno", "run", *arguments, *place]

    def environment(self, password: str | None = None) -> dict[str, str]:
        return {**environment(), "DBDYNO_PASSWORD": self.address.password if password is None else password}

    def run(
        self, *arguments: str, target: str | None = None, password: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments, target=target),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=TIME_LIMIT_S,
            env=self.environment(password),
            check=False,
        )

    def interrupt(self, stream: str, at: str, *arguments: str) -> tuple[int, str]:
        """Run it and send SIGINT at the first line of `stream` that holds `at`: exit code and both streams.

        It is sent twice, 1 ms apart, as GNU timeout does it.
        """
        process = subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stream == "stderr" else subprocess.STDOUT,
            text=True,
            env=self.environment(),
        )
        limit = threading.Timer(TIME_LIMIT_S, process.kill)
        limit.start()
        watched = process.stderr if stream == "stderr" else process.stdout
        assert watched is not None
        lines, sent = [], False
        for line in watched:
            lines.append(line)
            if at in line and not sent:
                sent = True
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                time.sleep(0.001)
                process.send_signal(signal.SIGINT)
        limit.cancel()
        assert sent, "".join(lines)
        return process.wait(), "".join(lines)

    def tables(self) -> list[str]:
        schema = "public" if self.address.protocol == "postgresql" else self.address.database
        rows = self.server.query(
            f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'"
        )
        return sorted(str(name) for (name,) in rows)

    def drop(self, *names: str) -> None:
        for name in names:
            self.server.query(f"DROP TABLE {self.address.database}.{name}")

    def newest(self) -> Run:
        paths = sorted(self.results.glob("*/*/experiment.json"), key=lambda path: path.stat().st_mtime_ns)
        return Run.open(paths[-1].parent)


@pytest.fixture
def running(mariadb: LocalServer, tmp_path: Path) -> Iterator[Running]:
    """The command on the module's server; a test leaves no table behind, and finds none."""
    ready = Running(mariadb, tmp_path)
    assert ready.tables() == []
    yield ready
    left = ready.tables()
    ready.drop(*left)
    assert left == []


def rows(stdout: str) -> list[dict[str, float]]:
    """The table's rows by column, after its header was checked; of a bound, as in ">15.59", the number."""
    header, *lines = stdout.splitlines()
    names = re.split(r"\s{2,}", header.strip())
    assert names[0] in ("connections", "rate/s")
    assert names[1:] == ["tps", "qps", "errors", *LATENCIES]
    assert max(map(len, stdout.splitlines())) <= 80
    return [
        {name: float(cell.removeprefix(">")) for name, cell in zip(names, line.split(), strict=True)}
        for line in lines
    ]


def totals(run: Run) -> list[dict[str, Any]]:
    """The totals of the measurement of every trial, as the engine counted them."""
    return [list(trial.records())[-1]["data"]["phases"]["measure"] for trial in run.trials()]


@pytest.fixture(params=["mariadb", "mysql", "postgresql"])
def swept(request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path) -> Iterator[Running]:
    """The command on a server of each product."""
    if request.param == "mariadb":
        yield request.getfixturevalue("running")
    elif request.param == "mysql":
        yield Running(request.getfixturevalue("mysql"), tmp_path)
    else:
        spec = ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"})
        with closing(LocalServer(Variant(name="swept", server=spec), workspace, None)) as server:
            server.start()
            yield Running(server, tmp_path)


@pytest.mark.alone
def test_a_sweep_prints_the_same_table_for_every_database_and_leaves_nothing(swept: Running) -> None:
    before = swept.server.status()
    # Two transactions that delete and insert one row would be one transaction and an error.
    alone = ("--set", "workload.delete_inserts=0")
    answer = swept.run("oltp_read_write", "--connections", "2,1", "--tables", "2", *alone, *SHORT)
    assert answer.returncode == 0, answer.stderr
    table = rows(answer.stdout)
    # In the order that was asked for.
    assert [row["connections"] for row in table] == [2, 1]
    counted = totals(swept.newest())
    for row, total in zip(table, counted, strict=True):
        elapsed_s = (total["end_us"] - total["start_us"]) / 1e6
        assert elapsed_s == pytest.approx(1.0, abs=0.01)
        statements = total["reads"] + total["writes"] + total["other"]
        assert row["qps"] == pytest.approx(statements / elapsed_s, abs=0.02)
        # oltp_read_write: 14 reads, 2 updates, BEGIN and COMMIT; some transactions are cut by the edges.
        assert total["reads"] / 14 == pytest.approx(row["tps"], rel=0.05)
        assert total["writes"] / 2 == pytest.approx(row["tps"], rel=0.05)
        assert total["other"] / 2 == pytest.approx(row["tps"], rel=0.05)
        assert 0 < row["mean ms"] <= row["p95 ms"] <= row["p99 ms"] <= row["max ms"]
        # Little's law, by which no latency can be invented.
        assert row["tps"] * row["mean ms"] / 1000 == pytest.approx(row["connections"], rel=0.1)
    after = swept.server.status()
    reads, updates = (sum(total[name] for total in counted) for name in ("reads", "writes"))
    if swept.address.protocol == "postgresql":
        updated = "pg_stat_database.tup_updated"
        assert _grown(before, after, "pg_stat_database.xact_commit") >= updates / 2
        assert _grown(before, after, updated) >= updates > 0.9 * _grown(before, after, updated)
    else:
        # Before and after each of the two points, P12 logs in and measures round trips.
        selects = _grown(before, after, "Com_select") - 4 * (STATEMENTS + 2)
        assert selects >= reads > 0.9 * selects
        assert _grown(before, after, "Com_update") >= updates > 0.9 * _grown(before, after, "Com_update")
    assert swept.tables() == []


def _grown(before: Mapping[str, str], after: Mapping[str, str], name: str) -> int:
    return int(after[name]) - int(before[name])


def test_what_is_printed_is_what_is_stored(running: Running) -> None:
    answer = running.run("oltp_point_select", "--connections", "1,3", *SHORT, "--workers", "auto")
    run = running.newest()
    assert str(run.path) in answer.stderr
    assert [trial.is_done for trial in run.trials()] == [True, True]
    elapsed_s = [(total["end_us"] - total["start_us"]) / 1e6 for total in totals(run)]
    assert [row["tps"] for row in rows(answer.stdout)] == [
        pytest.approx(total["events"] / seconds, abs=0.01)
        for total, seconds in zip(totals(run), elapsed_s, strict=True)
    ]
    assert run.experiment().variants[0].server.url == url(running.address)
    assert run.verdict() is not None
    # The number of event loops, which all trials have.
    workers = read_workers(run)
    assert workers is not None
    assert f": {pilot.describe(workers['steps'])}\n" in answer.stderr
    assert f"{pilot.format_workers(workers['workers'])} of the load generator in all trials" in answer.stderr
    plans = [json.loads((trial.path / "plan.json").read_text()) for trial in run.trials()]
    assert [plan["client"]["workers"] for plan in plans] == [workers["workers"]] * 2
    # The command as an experiment file, with what was typed and no more.
    source = (run.path / "experiment.toml").read_text()
    assert "connections = [1, 3]" in source
    assert 'order = "given"' in source
    again = subprocess.run(
        [sys.executable, "-m", "dbdyno", "show", str(run.path)], capture_output=True, text=True, check=True
    )
    assert again.stdout.splitlines()[:3] == answer.stdout.splitlines()
    # Its report has the same numbers; the table of Markdown has fewer digits.
    shown = as_markdown(gather(run))
    for printed in rows(answer.stdout):
        (line,) = (
            one for one in shown.splitlines() if one.startswith(f"| target | {printed['connections']:g} con")
        )
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")[2:]]
        assert float(cells[0]) == pytest.approx(printed["tps"], abs=0.5)
        assert float(cells[1]) == pytest.approx(printed["mean ms"], abs=0.005)
        # Too few transactions have no p95 in the report; on a busy machine they may be.
        if cells[3] != "–":
            assert float(cells[3]) == pytest.approx(printed["p95 ms"], abs=0.005)


def test_the_password_is_nowhere(running: Running, tmp_path: Path) -> None:
    secret = running.address.password
    assert len(secret) > 10
    file = tmp_path / "secret"
    file.write_text(secret + "\n")
    answer = running.run(
        "oltp_point_select", "--connections", "1", "--password-file", str(file), *SHORT, "--verbose",
        password="wrong",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    # The most that a command prints.
    assert re.search(r" s  waited \d\.\d{3} s for the server's answer to '", answer.stderr)
    assert re.search(r"\d\.\d{3} s  started process \d+: \S*dbdyno-engine run\n", answer.stderr)
    file.unlink()
    told = [answer.stdout, answer.stderr, *map(str, running.command())]
    assert not any(secret in text for text in told)
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) > 5
    assert not any(secret.encode() in path.read_bytes() for path in stored)


def test_the_password_is_asked_for_on_a_terminal(running: Running) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        variables = environment()
        variables.pop("DBDYNO_PASSWORD", None)
        arguments = running.command("oltp_point_select", "--connections", "1", *SHORT)
        os.execve(sys.executable, arguments, variables)
    told = _read(terminal, until="Password of ")
    os.write(terminal, running.address.password.encode() + b"\n")
    told += _read(terminal, until="stored in")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, told
    assert running.address.password not in told


def _read(terminal: int, until: str) -> str:
    told, deadline = "", time.monotonic() + TIME_LIMIT_S
    while until not in told and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                told += os.read(terminal, 4096).decode()
            except OSError:
                break
    return told


def test_kept_tables_are_used_again_and_stay(running: Running) -> None:
    answer = running.run("oltp_read_only", "--connections", "1", "--keep-data", *SHORT)
    assert answer.returncode == 0, answer.stderr
    assert running.tables() == ["sbtest1"]
    made = running.server.query(
        "SELECT CREATE_TIME FROM information_schema.TABLES WHERE TABLE_NAME = 'sbtest1'"
    )
    again = running.run("oltp_read_write", "--connections", "2", *SHORT)
    assert again.returncode == 0, again.stderr
    assert "using the existing tables, which are not dropped" in again.stderr
    assert "loading" not in again.stderr
    kept = running.server.query(
        "SELECT CREATE_TIME FROM information_schema.TABLES WHERE TABLE_NAME = 'sbtest1'"
    )
    assert kept == made
    running.drop("sbtest1")


def foreign_table(running: Running, rows: int, index: str = ", KEY k_1 (k)") -> None:
    """A table under our name that dbdyno did not make, with the schema of sysbench."""
    running.server.query(
        f"CREATE TABLE {running.address.database}.sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT,"
        " k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL,"
        f" PRIMARY KEY (id){index})"
    )
    running.server.query(
        f"INSERT INTO {running.address.database}.sbtest1 (id, k, c, pad)"
        f" WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        " SELECT i, i, 'c', 'pad' FROM n"
    )


def test_somebody_elses_tables_are_used_when_they_fit_and_never_dropped(running: Running) -> None:
    foreign_table(running, 1000)
    answer = running.run("oltp_point_select", "--connections", "1", *SHORT)
    assert answer.returncode == 0, answer.stderr
    assert running.tables() == ["sbtest1"]
    assert running.server.query(f"SELECT COUNT(*) FROM {running.address.database}.sbtest1") == [(1000,)]
    running.drop("sbtest1")


@pytest.mark.parametrize(
    ("rows", "index", "words"),
    [
        (500, ", KEY k_1 (k)", ["500 rows, not 1,000", "ids end at 500"]),
        (1000, "", ["there is no index on k"]),
        (1000, ", KEY k_1 (k), KEY k_and_c (k, c)", ["there is an additional index k_and_c on k, c"]),
    ],
)
def test_a_table_of_another_shape_is_left_alone(
    running: Running, rows: int, index: str, words: list[str]
) -> None:
    foreign_table(running, rows, index)
    database = running.address.database
    before = running.server.query(f"CHECKSUM TABLE {database}.sbtest1")
    answer = running.run("oltp_point_select", "--connections", "1", *SHORT)
    refused(answer, 2, f"the tables in {database} do not match the options", "--table-size", *words)
    assert running.server.query(f"CHECKSUM TABLE {database}.sbtest1") == before
    running.drop("sbtest1")


def test_some_of_the_tables_are_not_enough(running: Running) -> None:
    foreign_table(running, 1000)
    answer = running.run("oltp_point_select", "--connections", "1", "--tables", "3", *SHORT)
    refused(answer, 2, "2 of 3 tables are missing", "sbtest2, sbtest3")
    assert running.tables() == ["sbtest1"]
    running.drop("sbtest1")


def test_the_remains_of_a_load_that_was_cut_short_are_replaced(running: Running) -> None:
    foreign_table(running, 10)
    own = f" table={table_hash(running.address.database, 'sbtest1')}"
    running.server.query(f"ALTER TABLE {running.address.database}.sbtest1 COMMENT = 'dbdyno loading{own}'")
    answer = running.run("oltp_point_select", "--connections", "1", *SHORT)
    assert answer.returncode == 0, answer.stderr
    assert running.tables() == []


def test_all_wrong_options_are_told_at_once(running: Running) -> None:
    answer = running.run(
        *("oltp_foo", "--connections", "2,x", "--time", "10", "--tables", "0", "--set", "poin=3"),
        target="mysql://load:canary-secret@127.0.0.1/db",
    )
    refused(
        answer,
        2,
        "6 errors",
        "--target: the target contains a password",
        "DBDYNO_PASSWORD",
        "--connections = \"2,x\": 'x' is not a whole number",
        '--time = "10": a duration is a number and a unit',
        'WORKLOAD = "oltp_foo": there is no such workload. Valid names: oltp_read_write',
        "--tables = 0: must be at least 1",
        "--set poin = 3: there is no such key",
    )
    assert "canary-secret" not in answer.stderr


def test_a_wrong_password(running: Running) -> None:
    refused(
        running.run("oltp_point_select", password="nope"),
        3,
        "access denied for user 'dbdyno' with the password from the environment variable DBDYNO_PASSWORD",
    )
    assert list(running.results.glob("*/*/experiment.json")) == []


def test_an_unreachable_server(running: Running) -> None:
    answer = running.run("oltp_point_select", target="mysql://load@127.0.0.1:1/db")
    refused(answer, 3, "127.0.0.1:1 cannot be reached", "check host, port")


def test_an_unknown_database(running: Running) -> None:
    answer = running.run("oltp_point_select", target=url(running.address, "nowhere"))
    refused(answer, 3, "no database 'nowhere'", "CREATE DATABASE")


@pytest.fixture
def few_connections(running: Running) -> Iterator[None]:
    ((before,),) = running.server.query("SELECT @@GLOBAL.max_connections")
    running.server.query("SET GLOBAL max_connections = 12")
    yield
    running.server.query(f"SET GLOBAL max_connections = {before}")


@pytest.mark.usefixtures("few_connections")
def test_more_connections_than_the_server_allows_stop_before_loading(running: Running) -> None:
    answer = running.run("oltp_point_select", "--connections", "2,64", *SHORT)
    refused(answer, 4, "P07", "max_connections is 12", "64 connections", "SET GLOBAL max_connections = ")
    largest = re.search(r"The largest point that fits is (\d+) connections", answer.stderr)
    assert largest is not None
    assert 8 <= int(largest[1]) <= 10
    assert "loading" not in answer.stderr
    # What it called the largest point does fit.
    fits = running.run("oltp_point_select", "--connections", largest[1], *SHORT)
    assert fits.returncode == 0, fits.stderr


def test_more_connections_than_this_machine_allows_stop_before_loading(running: Running) -> None:
    limited = ["bash", "-c", 'ulimit -n 100; exec "$@"', "bash"]
    answer = subprocess.run(
        [*limited, *running.command("oltp_point_select", "--connections", "2,64", *SHORT)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        env=running.environment(),
        check=False,
    )
    # 64 sockets and 50 other files, of 90.
    refused(answer, 4, "open files of the client is 100", "The largest point that fits is 40 connections")


@pytest.mark.usefixtures("few_connections")
def test_a_point_that_fails_has_a_reason_and_no_numbers(running: Running) -> None:
    answer = running.run(
        *("oltp_point_select", "--connections", "2,64,3", "--set", "override.P07=to see it", *SHORT)
    )
    assert answer.returncode == 4, answer.stderr
    assert "overridden: to see it" in answer.stderr
    header, first, failed, third = answer.stdout.splitlines()
    assert failed.startswith("         64  failed: ")
    assert "Too many connections" in failed
    assert [row["connections"] for row in rows("\n".join([header, first, third]))] == [2, 3]
    assert "1 point failed" in answer.stderr


def test_ctrl_c_in_the_middle_keeps_the_rows_and_drops_the_tables(running: Running) -> None:
    # 0.3 s after the first row: the second point is under way for 3 s, a margin of 2.7 s.
    code, told = running.interrupt(
        "stdout", "   1 ", "oltp_read_write", "--connections", "1,2,3", *SHORT, "--time", "3s"
    )
    assert code == 130, told
    assert "dbdyno: interrupted\n" in told
    assert "interrupt once more to end at once" not in told
    assert "1 finished point is stored in" in told
    assert [trial.meta["at"] for trial in running.newest().trials()] == [{"connections": 1}]
    assert running.tables() == []


def test_ctrl_c_while_loading_drops_the_tables(running: Running) -> None:
    code, told = running.interrupt(
        "stderr", "rows", "oltp_read_write", "--connections", "1", "--tables", "4", "--table-size", "300000"
    )
    assert code == 130, told
    assert "interrupt once more to end at once" not in told
    assert running.tables() == []


def test_a_server_that_dies_fails_the_points_left(
    started: Callable[..., LocalServer], tmp_path: Path
) -> None:
    server = started("dying")
    running = Running(server, tmp_path)
    pid = int(server.describe().identity["pid"])
    process = subprocess.Popen(
        running.command("oltp_point_select", "--connections", "1,2,3", "--time", "3s", "--warmup", "0s"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=running.environment(),
    )
    assert process.stdout is not None
    header, first = process.stdout.readline(), process.stdout.readline()
    time.sleep(1.0)
    os.kill(pid, signal.SIGKILL)
    rest, errors = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == 4, errors
    assert len(rows(header + first)) == 1
    assert [line.split()[:2] for line in rest.splitlines()] == [["2", "failed:"], ["3", "failed:"]]
    assert "no longer answers" in rest.splitlines()[1]
    # The tables went down with the server, or may have: said, not passed over.
    assert "could not be dropped" in errors
    assert "Traceback" not in errors


ONE_VARIANT = """
[experiment]
name = "one"
[[workload]]
name = "oltp_read_only"
table_size = 1_000
[load]
connections = [1, 2]
duration = "1s"
warmup = "0s"
[design]
blocks = 1
order = "given"
[[variant]]
name = "it"
[variant.server]
variables = { innodb_buffer_pool_size = "64M" }
"""


def _run_file(path: Path, results: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", "run", str(path), "--results", str(results), *options],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        env=environment(),
        check=False,
    )


def test_an_experiment_of_one_variant_gives_the_same_table(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE_VARIANT)
    answer = _run_file(file, results)
    assert answer.returncode == 0, answer.stderr
    assert [row["connections"] for row in rows(answer.stdout)] == [1, 2]


def test_an_experiment_of_two_variants_is_for_compare(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(ONE_VARIANT + '[[variant]]\nname = "other"\n')
    refused(_run_file(file, tmp_path), 2, "2 variants (it, other)", "dbdyno compare")


def test_options_of_a_load_are_refused_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE_VARIANT)
    answer = _run_file(file, tmp_path, "--connections", "8", "--keep-data")
    refused(
        answer, 2, "--connections, --keep-data: an experiment file was given too", "--set load.connections"
    )


@pytest.mark.alone
def test_a_rate_is_offered_and_kept(running: Running) -> None:
    answer = running.run("oltp_point_select", "--connections", "4", "--rate", "200", *SHORT, "--time", "3s")
    assert answer.returncode == 0, answer.stderr
    (row,) = rows(answer.stdout)
    # 600 Poisson arrivals: 4 standard deviations are 98.
    assert row["rate/s"] == 200
    assert row["tps"] * 3 == pytest.approx(600, abs=98)


def test_unused_options_are_not_taken_silently(running: Running) -> None:
    refused(
        running.run("oltp_point_select", "--connections", "2,4", "--rate", "100"),
        2,
        "connections is the maximum number of busy connections",
    )
