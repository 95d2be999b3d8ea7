"""`dbdyno metrics` beside a real comparison: values change while it runs, and agree with its records."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.end_to_end.comparing import TIME_LIMIT_S, environment, left_running

SHORT = "--connections 2 --time 3s --warmup 200ms --tables 1 --table-size 1000 --blocks 1 --no-report"


def sample(text: str, name: str) -> list[float]:
    """The values of a metric, one for each of its label sets."""
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return [one.value for family in families for one in family.samples if one.name == name]


def test_the_values_of_a_comparison_change_while_it_runs(results: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dbdyno"]
    servers = ["--a", "mariadb", "--b", "mariadb:thread_handling=pool-of-threads"]
    arguments = [*servers, "--workload", "oltp_point_select", *SHORT.split(), "--results", str(results)]
    deadline = time.monotonic() + TIME_LIMIT_S
    with subprocess.Popen([*command, "compare", *arguments], cwd=tmp_path, env=environment()) as comparison:
        while not list(results.glob("*/*/experiment.json")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        listening = [*command, "metrics", "--listen", "127.0.0.1:0", "--results", str(results)]
        with subprocess.Popen(listening, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            seen: list[str] = []
            while comparison.poll() is None:
                assert time.monotonic() < deadline
                with urllib.request.urlopen(address, timeout=30) as answer:
                    seen.append(answer.read().decode())
                time.sleep(0.3)
            with urllib.request.urlopen(address, timeout=30) as answer:
                last = answer.read().decode()
            server.terminate()
    assert comparison.returncode == 0
    totals = {value for text in seen for value in sample(text, "dbdyno_transactions_total")}
    assert len(totals) > 2, "the counter grows within a trial"
    throughputs = [one for text in seen for one in sample(text, "dbdyno_throughput_transactions_per_second")]
    assert throughputs
    assert all(one > 0 for one in throughputs)
    latencies = [one for text in seen for one in sample(text, "dbdyno_latency_seconds")]
    assert latencies
    assert all(0 < one < 10 for one in latencies)
    # The first answers may be older than the lock of the run.
    assert [1] in [sample(text, "dbdyno_running") for text in seen]
    assert sample(last, "dbdyno_running") == [0]
    assert sample(last, "dbdyno_trials_planned") == [2]
    assert sorted(sample(last, "dbdyno_trials")) == [0, 0, 0, 2]
    assert left_running(results) == []
