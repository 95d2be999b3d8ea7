"""Compares the client CPU per query of `dbdyno slap` with mariadb-slap and mysqlslap, in pairs of runs.

mariadb-slap runs on MariaDB, mysqlslap on MySQL. Both sides of a pair get the same options: the clients
select rows by key, as text, over TCP without TLS, and create and drop no tables. The CPU time includes
the start of the process and its connections.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

from results import machine, write_section

from dbdyno.binary import COMPAT, find_program
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.server import Address
from dbdyno.stats.signed_rank import hodges_lehmann, interval, percent

MYSQL = Path(__file__).resolve().parents[1] / ".servers" / "mysql-9.7"
# Number of clients, and total number of their queries: a few seconds per run.
LEVELS = {1: 20_000, 16: 50_000, 256: 50_000}
ROWS = 1000
# dbdyno's CPU per query must be less than this multiple of the original client's.
TARGET = 1.0


@dataclass(frozen=True)
class Client:
    """An original client, its server, and the options with which it connects without TLS."""

    name: str
    link: str
    command: tuple[str, ...]
    server: ServerSpec
    options: tuple[str, ...]


@dataclass(frozen=True)
class RunCost:
    """One run: CPU per query in microseconds, and the seconds that the program reports for the iteration."""

    cpu_us: float
    seconds: float


def clients() -> Iterator[Client]:
    """The installed clients."""
    mariadb = ServerSpec(
        product="mariadb", variables={"innodb_buffer_pool_size": "256M", "max_connections": 600}
    )
    yield Client("mariadb-slap", "mariadb-slap", ("mariadb-slap",), mariadb, ("--skip-ssl",))
    program = MYSQL / "usr" / "bin" / "mysqlslap"
    if not program.is_file():
        print(
            f"{program} does not exist, so only mariadb-slap is compared. Fix: scripts/mysql-root {MYSQL}",
            file=sys.stderr,
        )
        return
    loader = next(MYSQL.glob("usr/lib*/ld-linux*.so.*"))
    folders = sorted({str(path.parent) for path in (MYSQL / "usr").rglob("*.so*")})
    command = (str(loader), "--library-path", ":".join(folders), str(program))
    mysql = ServerSpec(
        product="mysql",
        basedir=MYSQL,
        variables={"innodb_buffer_pool_size": "256M", "max_connections": 600},
    )
    yield Client("mysqlslap", "mysqlslap", command, mysql, ("--ssl-mode=DISABLED", "--get-server-public-key"))


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    lines = [
        "# Client CPU per query: `dbdyno slap`, mariadb-slap and mysqlslap\n",
        f"{machine()}. {options.pairs} pairs in alternating order. Each query reads one row by its key, as "
        "text, over TCP. CPU and seconds are medians; the ratio dbdyno / client is the Hodges-Lehmann "
        "estimate with its signed-rank interval. "
        f"{options.about}".strip()
        + "\n",
        "| program | clients | CPU per query, us: dbdyno | program | ratio | interval | target "
        "| seconds: dbdyno | program |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    held = True
    for client in clients():
        with ExitStack() as stack:
            sides = _sides(client, stack, options.scratch)
            for count, queries in LEVELS.items():
                pairs = _pairs(sides, count, queries, options.pairs)
                held &= _row(client, count, pairs, lines)
    print("\n".join(lines))
    if options.output:
        write_section(options.output, "slap", "\n".join(lines))
    return 0 if held else 1


def _sides(
    client: Client, stack: ExitStack, scratch: Path | None
) -> tuple[Callable[[int, int], RunCost], ...]:
    """Functions that run dbdyno and the client, on a server with a loaded table."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=scratch)))
    folder.chmod(0o711)
    workspace = stack.enter_context(closing(Workspace.open(folder)))
    variant = Variant(name="slap", server=client.server)
    server = stack.enter_context(closing(open_server(variant, workspace, None)))
    server.restore()
    server.start()
    address = server.address()
    server.query(f"CREATE TABLE {address.database}.item (id INT PRIMARY KEY, name VARCHAR(100))")
    rows = ", ".join(f"({number}, REPEAT('x', 100))" for number in range(ROWS))
    server.query(f"INSERT INTO {address.database}.item VALUES {rows}")
    common = _common_options(client, address, folder)
    link = folder / client.link
    link.symlink_to(find_program(COMPAT))
    return tuple(
        lambda count, queries, command=command: _run([*command, *common], count, queries)
        for command in ((str(link),), client.command)
    )


def _common_options(client: Client, address: Address, folder: Path) -> list[str]:
    """The options of both sides; a file contains the password."""
    login = folder / "login.cnf"
    login.touch(mode=0o600)
    login.write_text(
        f"[client]\nhost={address.host}\nport={address.port}\nuser={address.user}\npassword={address.password}\n"
    )
    queries = folder / "queries.sql"
    queries.write_text(
        "\n".join(f"SELECT name FROM item WHERE id = {number * 7 % ROWS}" for number in range(100))
    )
    return [
        f"--defaults-file={login}",
        *client.options,
        f"--create-schema={address.database}",
        f"--query={queries}",
        "--csv",
    ]


def _run(command: Sequence[str], count: int, queries: int) -> RunCost:
    """One run of one side."""
    process = subprocess.Popen(
        [*command, f"--concurrency={count}", f"--number-of-queries={queries}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cells = output.strip().split(",")
    if process.returncode != 0 or len(cells) != 7:
        raise SystemExit(f"{command[0]} ended with {process.returncode}: {output}")
    done = count * int(cells[6])
    return RunCost((usage.ru_utime + usage.ru_stime) * 1e6 / done, float(cells[2]))


def _pairs(
    sides: Sequence[Callable[[int, int], RunCost]], count: int, queries: int, pairs: int
) -> list[tuple[RunCost, RunCost]]:
    """(dbdyno, client) of each pair; the order alternates. A short run warms up each side."""
    for side in sides:
        side(count, queries // 10)
    found = []
    for number in range(pairs):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        took = {which: sides[which](count, queries) for which in order}
        found.append((took[0], took[1]))
        print(f"  {count} clients, pair {number + 1} of {pairs}: {found[-1]}", file=sys.stderr)
    return found


def _row(client: Client, count: int, pairs: Sequence[tuple[RunCost, RunCost]], lines: list[str]) -> bool:
    ours, theirs = ([side.cpu_us for side in sides] for sides in zip(*pairs, strict=True))
    ratios = [log(own) - log(other) for other, own in zip(theirs, ours, strict=True)]
    ratio = _factor(hodges_lehmann(ratios))
    # With five pairs 93.75 % is the highest possible confidence.
    bounds = interval(ratios, 0.0625 if len(pairs) < 6 else 0.05)
    shown = "" if bounds is None else f"{_factor(bounds.low):.3f} to {_factor(bounds.high):.3f}"
    held = ratio < TARGET
    seconds = [f"{median(side.seconds for side in sides):.2f}" for sides in zip(*pairs, strict=True)]
    cells = [
        client.name,
        str(count),
        f"{median(ours):.2f}",
        f"{median(theirs):.2f}",
        f"{ratio:.3f}",
        shown,
        f"below {TARGET:g}: {'met' if held else 'MISSED'}",
        *seconds,
    ]
    lines.append(f"| {' | '.join(cells)} |")
    return held


def _factor(log_ratio: float) -> float:
    return 1 + percent(log_ratio) / 100


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Client CPU per query of dbdyno slap and the real clients.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the servers' data")
    parser.add_argument(
        "--output", type=Path, default=None, help="Markdown file; its section on slap is replaced"
    )
    parser.add_argument(
        "--about", default="", help="a sentence about the measurement, printed above the table"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
