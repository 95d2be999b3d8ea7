"""Statements per transaction of sysbench-tpcc's scripts under the drop-in, and of the bundled workload tpcc.

The scripts are those of Percona-Lab/sysbench-tpcc, in a folder that the user names; nothing of them is part
of dbdyno. Each of the five transactions is counted alone, so that the different mixes (10:10:1:1:1 in the
scripts, the specification's shares in tpcc) do not matter.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from peer import sysbench

from dbdyno.run.engine import Engine
from dbdyno.servers.server import Address

from .servers import TRANSACTIONS, engine_plan, experiment, prepare, private_server

TOLERANCE = 0.02
# Deliveries of each kind of run: a district begins with 900 orders to deliver.
DELIVERIES = 250
# The functions of the scripts.
FUNCTIONS = dict(
    zip(TRANSACTIONS, ("new_order", "payment", "orderstatus", "delivery", "stocklevel"), strict=True)
)
# The scripts have two forms of the last one: that of the specification, and (by default) one query per item.
# sysbench 1.0.20 repeats the latter forever, because the query of an item replaces the result with the items.
BY_SPECIFICATION = ('stock_level_queries="case2"', 'stock_level_queries="case1"')
# Runs one transaction of the scripts per event, and repeats it after an error, as tpcc.lua does.
EVENT = """
require("tpcc")
function event()
   while not pcall(FUNCTION) do
      con:query("ROLLBACK")
   end
end
"""
VARIABLES: dict[str, str | int] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_flush_log_at_trx_commit": 2,
    "skip_log_bin": "ON",
    "local_infile": "ON",
}
_QUERIES = re.compile(r"^\s+total:\s+(\d+)", re.MULTILINE)


def main(options: argparse.Namespace) -> int:
    """Exit code 0 if every transaction has the same number of statements within TOLERANCE, 1 otherwise."""
    with private_server("mariadb", VARIABLES, options.scratch) as address:
        theirs = _count_scripts(address, options)
    with private_server("mariadb", VARIABLES, options.scratch) as address:
        ours, shares = _count_bundled(address, options)
    print("| transaction | sysbench-tpcc | tpcc | difference |\n|---|---|---|---|")
    differences = []
    for name in TRANSACTIONS:
        difference = ours[name] / theirs[name] - 1
        differences.append(difference)
        print(f"| {name} | {theirs[name]:.2f} | {ours[name]:.2f} | {100 * difference:+.1f} % |")
    mixed = [sum(shares[name] * side[name] for name in TRANSACTIONS) for side in (theirs, ours)]
    print(
        f"| all, in the shares of tpcc | {mixed[0]:.2f} | {mixed[1]:.2f} "
        f"| {100 * (mixed[1] / mixed[0] - 1):+.1f} % |"
    )
    print("\nstock-level is counted by the specification's statement, which the scripts have as case1.")
    differences.append(mixed[1] / mixed[0] - 1)
    return 0 if all(abs(one) <= TOLERANCE for one in differences) else 1


def _count_scripts(address: Address, options: argparse.Namespace) -> dict[str, float]:
    """Transaction -> statements of the scripts, without those of connecting."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for script in options.scripts.glob("*.lua"):
            shutil.copy(script, folder)
        counts = {}
        _sysbench(address, folder, "tpcc.lua", "--threads=2", "prepare")
        stock_level = folder / "tpcc_run.lua"
        text = stock_level.read_text()
        if BY_SPECIFICATION[0] not in text:
            raise SystemExit(f"{options.scripts}: unknown version of tpcc_run.lua")
        stock_level.write_text(text.replace(*BY_SPECIFICATION))
        for name, function in FUNCTIONS.items():
            counts[name] = _count(address, folder, function, _events(name, options))
        return counts


def _events(name: str, options: argparse.Namespace) -> int:
    return min(options.events, DELIVERIES) if name == "delivery" else int(options.events)


def _count(address: Address, folder: Path, function: str, number: int) -> float:
    (folder / "one.lua").write_text(EVENT.replace("FUNCTION", function))
    per_event = []
    for events in (number, 2 * number):
        output = _sysbench(address, folder, "one.lua", "--threads=1", f"--events={events}", "--time=0", "run")
        found = _QUERIES.search(output)
        if found is None:
            raise SystemExit(f"sysbench printed no number of queries:\n{output}")
        per_event.append(int(found[1]))
    # The difference has no statements of connecting.
    return (per_event[1] - per_event[0]) / number


def _sysbench(address: Address, folder: Path, script: str, *arguments: str) -> str:
    with sysbench(address, script, "--scale=1", "--use_fk=0", *arguments) as argv:
        drop_in = [sys.executable, "-m", "dbdyno", *argv]
        done = subprocess.run(drop_in, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"sysbench {script}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _count_bundled(
    address: Address, options: argparse.Namespace
) -> tuple[dict[str, float], dict[str, float]]:
    """Transaction -> statements of tpcc, and its share of all transactions."""
    of = experiment({"warehouses": 1}, 1, 3600, 0)
    prepare(of, address)
    whole = engine_plan(of, address)
    every = whole["workload"]["sql"]["transactions"]
    statements, weights = {}, {}
    for name in TRANSACTIONS:
        # Variants such as payment-by-name belong to the transaction whose name begins theirs.
        chosen = [one for one in every if one["name"].startswith(name)]
        weights[name] = sum(one["weight"] for one in chosen)
        whole["workload"]["sql"]["transactions"] = chosen
        whole["phases"]["events"] = _events(name, options)
        result = Engine().run("run", whole, address.environment())
        if not result.done or result.end is None:
            raise SystemExit(f"dbdyno-engine run: {result.failure()}")
        totals: dict[str, Any] = result.end["phases"]["measure"]
        statements[name] = (totals["reads"] + totals["writes"] + totals["other"]) / totals["events"]
    return statements, {name: weight / sum(weights.values()) for name, weight in weights.items()}
