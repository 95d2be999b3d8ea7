"""Command lines and a shell script as they are found in the field, on the drop-in, at small sizes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.end_to_end.differential import Database, drop_in

from dbdyno.reading.document import load
from dbdyno.reading.formats import find_results

SWEEP = Path(__file__).resolve().parents[1] / "fixtures" / "sweep.sh"
BUNDLED = "/usr/share/sysbench/oltp_read_write.lua"
SIZES = {"TABLE_SIZE": "200", "TABLES": "4", "REPORT_INTERVAL": "1", "TEST_TIME": "1", "THREADS": "2 8 64"}

# How people in three write-ups call it, options before and behind the words, hyphens and underscores mixed.
FIELD = {
    "from the path of the script": [
        f"{BUNDLED} --table-size=200 --tables=3 --time=1 --report-interval=1 --rand-type=uniform "
        f"--db-driver=mysql {{db}} --threads=4 {command}"
        for command in ("prepare", "run", "cleanup")
    ],
    "options first": [
        f"{{db}} --threads=3 --table-size=200 --tables=3 --time=1 {BUNDLED} {command}"
        for command in ("prepare", "run", "cleanup")
    ],
    "by name, underscores": [
        "--db-driver=mysql {db} --table_size=200 --tables=3 --events=0 --time=1 --threads=2 "
        f"--percentile=95 --report-interval=1 {rest}"
        for rest in (
            "oltp_read_write prepare",
            "oltp_write_only run",
            "--skip-trx=1 oltp_read_only run",
            "oltp_read_write run",
            "oltp_read_write cleanup",
        )
    ],
}


def environment(database: Database, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{drop_in(database.folder).folder}:/usr/bin:/bin", **more}


def test_a_sweep_fills_every_column(sbtest: Database, tmp_path: Path) -> None:
    sbtest.empty()
    address = sbtest.server.address()
    where = {"HOST": str(address.host), "PORT": str(address.port)}
    done = subprocess.run(
        [SWEEP],
        cwd=tmp_path,
        env=environment(sbtest, **where, **SIZES),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    head, *rows = (line.split() for line in done.stdout.splitlines())
    assert [row[0] for row in rows] == SIZES["THREADS"].split()
    assert not done.stderr
    for row in rows:
        figures = dict(zip(head, row, strict=True))
        assert re.fullmatch(r"\d+\.\d{4}s", figures["elaptime"])
        # Two of twenty statements begin and end the transaction, and fourteen read.
        reads, writes, others = (int(figures[name]) for name in ("reads", "writes", "others"))
        assert reads > writes > 0
        assert others > 0
        assert float(figures["tps"]) > 0
        assert float(figures["qps"]) > float(figures["tps"])
        low, mean, high = (float(figures[name]) for name in ("min", "avg", "max"))
        assert 0 < low <= mean <= high
        assert float(figures["p95"]) > 0
        # dbdyno read finds in the output what the script cuts out of it.
        (result,) = find_results(load(tmp_path / f"result_{figures['thc']}"))
        names = {
            "tps": "tps",
            "qps": "qps",
            "mean_ms": "avg",
            "max_ms": "max",
            "p95_ms": "p95",
            "reads": "reads",
        }
        assert {name: result.value(name) for name in names} == {
            name: float(figures[column]) for name, column in names.items()
        }
        assert result.connections == int(figures["thc"])
    assert sbtest.server.query(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sbtest'"
    ) == [(0,)]


@pytest.mark.parametrize("name", FIELD)
def test_command_lines(sbtest: Database, tmp_path: Path, name: str) -> None:
    sbtest.empty()
    for arguments in FIELD[name]:
        done = subprocess.run(
            ["sh", "-c", f"sysbench {arguments.replace('{db}', sbtest.options())}"],
            cwd=tmp_path,
            env=environment(sbtest),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        if arguments.endswith("run"):
            assert re.search(r"^    transactions: +[1-9]\d* +\(\d+\.\d\d per sec\.\)$", done.stdout, re.M)
            assert re.search(r"^         95th percentile: +\d+\.\d\d$", done.stdout, re.M)
