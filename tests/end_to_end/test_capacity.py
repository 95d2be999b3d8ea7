"""`dbdyno capacity` on a server that is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.comparing import environment

from dbdyno.servers.kinds.local import LocalServer

WORKLOAD = ("--workload", "oltp_point_select", "--table-size", "500", "--connections", "4")
SHORT = ("--time", "500ms", "--warmup", "100ms", "--blocks", "2", "--no-report")
NUMBER = r"[\d,.]+"


def test_the_capacity_of_a_server_is_one_sentence(
    mariadb: LocalServer, results: Path, tmp_path: Path
) -> None:
    address = mariadb.address()
    target = f"mysql://{address.user}@127.0.0.1:{address.port}/{address.database}"
    command = [sys.executable, "-m", "dbdyno", "capacity", "--target", target, "--p95", "50ms"]
    answer = subprocess.run(
        [*command, *WORKLOAD, *SHORT, "--results", str(results)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**environment(), **address.environment(), "DBDYNO_PASSWORD": address.password or ""},
    )
    assert answer.returncode == 0, answer.stderr
    assert re.search(
        rf" serves (more than |fewer than )?{NUMBER} transactions/s while p95 latency stays below 50 ms",
        answer.stdout,
    ), answer.stdout
    assert "; 2 blocks" in answer.stdout
    (run,) = (path.parent for path in results.glob("oltp_point_select-*/*/verdict.json"))
    verdict = json.loads((run / "verdict.json").read_text())
    (capacity,) = verdict["capacities"]
    assert capacity["metric"] == "latency_p95_us"
    assert capacity["blocks"] == 2
    assert capacity["interval"] is None
    measured = [rate for rate in capacity["capacity"] if rate is not None]
    assert measured
    assert all(rate > 10 for rate in measured)
    # The tables are dropped, and the file can be run again.
    assert mariadb.query(f"SHOW TABLES FROM {address.database}") == []
    assert "latency_objective" in next(tmp_path.glob("*.toml")).read_text()
