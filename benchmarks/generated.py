"""Compares how dbdyno-engine and INSERT ... SELECT doublings fill a table, in pairs on one server.

Doubling is a common way to fill a test table: a cross join inserts 10,000 rows, and the table is then
inserted into itself ten times, which gives 10,240,000 rows. dbdyno generates the values of every row, while
doublings copy them. The time is that of the complete client command and includes CREATE TABLE.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import loading
import pymysql
from results import machine, write_section

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import Engine
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.server import Address

CREATE = """CREATE TABLE large_table (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    user_id INT NOT NULL,
    product_id INT NOT NULL,
    quantity INT DEFAULT 1,
    price DECIMAL(10,2) NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB"""
DROP = "DROP TABLE IF EXISTS large_table"
VARIABLES: dict[str, dict[str, str | int | float | bool]] = {
    "mariadb": loading.VARIABLES,
    "mysql": {
        "innodb_buffer_pool_size": "2G",
        "innodb_flush_log_at_trx_commit": 2,
        "innodb_redo_log_capacity": "4G",
        "local_infile": "ON",
        "skip_log_bin": "ON",
    },
}
MYSQL = Path(__file__).resolve().parents[1] / ".servers" / "mysql-9.7"
BASE = 10_000
"""Rows before the first doubling."""
COLUMNS: tuple[dict[str, Any], ...] = (
    {"name": "id", "values": {"sequence": {}}},
    {"name": "user_id", "values": {"integer": {"low": 0, "high": 999_999}}},
    {"name": "product_id", "values": {"integer": {"low": 0, "high": 9_999}}},
    {"name": "quantity", "values": {"integer": {"low": 1, "high": 10}}},
    {"name": "price", "values": {"decimal": {"low": 0, "high": 500}}},
    {"name": "created_at", "values": {"timestamp": {"from": "2024-01-01", "to": "2024-06-24"}}},
)


@dataclass(frozen=True)
class LoadTime:
    """Seconds of one load, and the loading method."""

    seconds: float
    method: str


def dbdyno(address: Address, doublings: int, streams: int) -> LoadTime:
    """One `prepare` of the engine; drops the table afterwards."""
    rows = BASE * 2**doublings
    plan: dict[str, Any] = {
        "schema": 1,
        "target": address.target(),
        "workload": {
            "name": "sql",
            "sql": {
                "setup": [CREATE],
                "tables": [{"name": "large_table", "rows": rows, "columns": COLUMNS}],
                "cleanup": [DROP],
                "transactions": [{"statements": [{"sql": "DO 1"}]}],
            },
        },
        "load": {"connections": 1},
        "phases": {"measure_us": 1_000_000},
        "seed": 1,
        "loading": {"streams": streams},
    }
    loaded: list[Any] = []

    def keep(record: Any) -> None:
        if record["type"] == "loaded":
            loaded.append(record["data"])

    began = time.monotonic()
    result = Engine().run("prepare", plan, address.environment(), keep)
    took = time.monotonic() - began
    if not result.done:
        raise SystemExit(f"dbdyno-engine prepare: {result.failure()}")
    _require(address, rows)
    if not Engine().run("cleanup", plan, address.environment(), keep).done:
        raise SystemExit("dbdyno-engine cleanup failed")
    return LoadTime(took, loaded[0]["way"])


def doubled(address: Address, doublings: int, _streams: int) -> LoadTime:
    """One load by doublings; drops the table afterwards."""
    columns = "user_id, product_id, quantity, price"
    ten = " UNION ALL ".join(f"SELECT {number}" for number in range(1, 11))
    began = time.monotonic()
    with closing(_connect(address)) as connection, connection.cursor() as cursor:
        cursor.execute(CREATE)
        cursor.execute(
            f"INSERT INTO large_table ({columns}) SELECT FLOOR(RAND() * 1000000), FLOOR(RAND() * 10000), "
            f"FLOOR(RAND() * 10) + 1, ROUND(RAND() * 500, 2) FROM ({ten}) a, ({ten}) b, ({ten}) c, ({ten}) d"
        )
        for _ in range(doublings):
            cursor.execute(
                f"INSERT INTO large_table ({columns}, created_at) "
                f"SELECT {columns}, created_at FROM large_table"
            )
        took = time.monotonic() - began
        _require(address, BASE * 2**doublings)
        cursor.execute(DROP)
    return LoadTime(took, "insert-select")


def _connect(address: Address) -> pymysql.Connection[Any]:
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        database=address.database,
        autocommit=True,
    )


def _require(address: Address, rows: int) -> None:
    with closing(_connect(address)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM large_table")
        found = cursor.fetchone()
    if found != (rows,):
        raise SystemExit(f"large_table has {found} rows; {rows} were loaded")


def main() -> int:
    """Exit code 0 if dbdyno takes less time, 1 otherwise."""
    options = _options()
    pairs = _pairs(options)
    ratios = [theirs.seconds / ours.seconds for ours, theirs in pairs]
    held = median(ratios) > 1
    rows = BASE * 2**options.doublings
    methods = ", ".join(sorted({ours.method for ours, _ in pairs}))
    medians = [median(side.seconds for side in sides) for sides in zip(*pairs, strict=True)]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    lines = [
        "# Generated rows\n",
        f"{machine()}\n",
        f"## {options.product}, {rows:,} rows of six columns, {options.streams} streams\n",
        f"{len(pairs)} pairs; dbdyno loads by {methods}. All figures but those of each pair are medians.\n",
        "| | dbdyno | INSERT ... SELECT | times as fast | times as fast, each pair | times as fast, target |",
        "|---|---|---|---|---|---|",
        f"| seconds | {medians[0]:.2f} | {medians[1]:.2f} | {median(ratios):.2f} | {each} | "
        f"1: {'met' if held else 'MISSED'} |",
        "",
    ]
    print("\n".join(lines), flush=True)
    if options.output:
        write_section(options.output, "generated", "\n".join(lines))
    return 0 if held else 1


def _pairs(options: argparse.Namespace) -> Sequence[tuple[LoadTime, LoadTime]]:
    """(dbdyno, doublings) of each pair; the order alternates. One short load by each side warms up."""
    pairs = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as directory:
        Path(directory).chmod(0o711)
        workspace = Workspace.open(Path(directory))
        spec = ServerSpec(product=options.product, variables=VARIABLES[options.product], **_root(options))
        variant = Variant(name="generated", server=spec)
        with closing(workspace), closing(open_server(variant, workspace, None)) as server:
            server.restore()
            server.start()
            address = server.address()
            for side in (dbdyno, doubled):
                side(address, 2, options.streams)
            for number in range(options.pairs):
                sides = (dbdyno, doubled) if number % 2 == 0 else (doubled, dbdyno)
                took = {side: side(address, options.doublings, options.streams) for side in sides}
                pairs.append((took[dbdyno], took[doubled]))
                times = json.dumps([vars(t) for t in pairs[-1]])
                print(f"  pair {number + 1} of {options.pairs}: {times}", file=sys.stderr)
    return pairs


def _root(options: argparse.Namespace) -> dict[str, Any]:
    return {"basedir": options.basedir or MYSQL} if options.product == "mysql" else {}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare filling a table by dbdyno-engine with INSERT ... SELECT doublings."
    )
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--doublings", type=int, default=10, help="how often 10,000 rows are doubled")
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--product", choices=("mariadb", "mysql"), default="mysql")
    parser.add_argument("--basedir", type=Path, default=None, help="folder of the unpacked server")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument(
        "--output", type=Path, default=None, help="Markdown file; its section on generated rows is replaced"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
