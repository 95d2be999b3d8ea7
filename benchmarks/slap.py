"""`dbdyno slap` against the real clients in pairs: client CPU per query, each on a server of its own make.

Both sides are the same command line: clients that look up rows by their keys, as text, over TCP without
encryption, and nothing is made or dropped by them. CPU is that of the whole process, start and connecting
included.
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

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import find_engine
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.server import Address
from dbdyno.stats.signed_rank import hodges_lehmann, interval, percent

MYSQL = Path(__file__).resolve().parents[1] / ".servers" / "mysql-9.7"
# Clients, and queries of all of them together: some seconds each.
LEVELS = {1: 20_000, 16: 50_000, 256: 50_000}
ROWS = 1000
# Of the real client's CPU per query dbdyno may need at most this much.
BAR = 1.0


@dataclass(frozen=True)
class Client:
    """A real client, the server it is made for, and the options by which both sides reach that plainly."""

    name: str
    link: str
    command: tuple[str, ...]
    server: ServerSpec
    options: tuple[str, ...]


@dataclass(frozen=True)
class Took:
    """One run: CPU of the process per query in microseconds, and seconds of the iteration as it says."""

    cpu_us: float
    seconds: float


def clients() -> Iterator[Client]:
    """Those that are there."""
    mariadb = ServerSpec(
        product="mariadb", variables={"innodb_buffer_pool_size": "256M", "max_connections": 600}
    )
    yield Client("mariadb-slap", "mariadb-slap", ("mariadb-slap",), mariadb, ("--skip-ssl",))
    program = MYSQL / "usr" / "bin" / "mysqlslap"
    if not program.is_file():
        print(f"{program} is not there (scripts/mysql-root {MYSQL}): MariaDB's client alone", file=sys.stderr)
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
    """Exit code 0 when every bar holds, 1 otherwise."""
    options = _options()
    lines = [
        "# Client CPU per query against the slap clients\n",
        f"{machine()}. {options.pairs} pairs, order alternating; look-ups of one row by its key, as text, by "
        "TCP. Medians; ratios dbdyno / client by Hodges-Lehmann with their signed-rank interval. "
        f"{options.about}".strip()
        + "\n",
        "| client | clients | CPU per query, us: dbdyno | theirs | ratio | interval | bar "
        "| seconds: dbdyno | theirs |",
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


def _sides(client: Client, stack: ExitStack, scratch: Path | None) -> tuple[Callable[[int, int], Took], ...]:
    """dbdyno and the client, on a server with a table that is there."""
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
    given = _given(client, address, folder)
    link = folder / client.link
    link.symlink_to(find_engine().resolve())
    return tuple(
        lambda count, queries, command=command: _run([*command, *given], count, queries)
        for command in ((str(link),), client.command)
    )


def _given(client: Client, address: Address, folder: Path) -> list[str]:
    """Options of both sides; the password is in a file."""
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


def _run(command: Sequence[str], count: int, queries: int) -> Took:
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
    return Took((usage.ru_utime + usage.ru_stime) * 1e6 / done, float(cells[2]))


def _pairs(
    sides: Sequence[Callable[[int, int], Took]], count: int, queries: int, pairs: int
) -> list[tuple[Took, Took]]:
    """(dbdyno, client) per pair; who goes first alternates. A tenth of a run of each warms up."""
    for side in sides:
        side(count, queries // 10)
    found = []
    for number in range(pairs):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        took = {which: sides[which](count, queries) for which in order}
        found.append((took[0], took[1]))
        print(f"  {count} clients, pair {number + 1} of {pairs}: {found[-1]}", file=sys.stderr)
    return found


def _row(client: Client, count: int, pairs: Sequence[tuple[Took, Took]], lines: list[str]) -> bool:
    ours, theirs = ([side.cpu_us for side in sides] for sides in zip(*pairs, strict=True))
    ratios = [log(own) - log(other) for other, own in zip(theirs, ours, strict=True)]
    ratio = _factor(hodges_lehmann(ratios))
    # Five pairs reach 93.75 % at best.
    reach = interval(ratios, 0.0625 if len(pairs) < 6 else 0.05)
    shown = "" if reach is None else f"{_factor(reach.low):.3f} to {_factor(reach.high):.3f}"
    held = ratio < BAR
    seconds = [f"{median(side.seconds for side in sides):.2f}" for sides in zip(*pairs, strict=True)]
    cells = [
        client.name,
        str(count),
        f"{median(ours):.2f}",
        f"{median(theirs):.2f}",
        f"{ratio:.3f}",
        shown,
        f"below {BAR:g}: {'holds' if held else 'MISSED'}",
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
    parser.add_argument("--output", type=Path, default=None, help="Markdown file whose part on slap to write")
    parser.add_argument("--about", default="", help="a sentence on the circumstances, for the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
