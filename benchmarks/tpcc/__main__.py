"""`python -m benchmarks.tpcc terminals`, or `python -m benchmarks.tpcc sysbench FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import sysbench_tpcc, terminals


def main() -> int:
    """Run the chosen benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpcc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    many = commands.add_parser("terminals", help="many terminals from one process")
    many.add_argument("--terminals", type=int, default=10_000)
    many.add_argument("--warehouses", type=int, default=20)
    many.add_argument("--items", type=int, default=100_000, help="fewer are off-specification")
    many.add_argument("--customers", type=int, default=3_000, help="of each district")
    many.add_argument("--warmup", type=int, default=60, help="seconds")
    many.add_argument("--seconds", type=int, default=120)
    same = commands.add_parser("sysbench", help="statements per transaction, compared with sysbench-tpcc")
    same.add_argument(
        "scripts", type=Path, help="folder with tpcc.lua, tpcc_common.lua, tpcc_run.lua, tpcc_check.lua"
    )
    same.add_argument("--events", type=int, default=2_000, help="transactions of each kind")
    for one in (many, same):
        one.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    options = parser.parse_args()
    return terminals.main(options) if options.command == "terminals" else sysbench_tpcc.main(options)


if __name__ == "__main__":
    sys.exit(main())
