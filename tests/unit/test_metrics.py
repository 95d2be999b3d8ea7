"""`dbdyno metrics`: the values of a run in progress over HTTP, read by the parser of another program."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.unit.stored_run import Arms, Making, experiment, make, stream

from dbdyno.commands.metrics import metrics
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.problem import Problem
from dbdyno.store import Run
from dbdyno.store.trial import TrialWriter

MAKING = Making(blocks=6, connections=(10, 20), absent=lambda trial: trial.index >= 5)
TOKEN = "0123456789abcdef"
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def begin(run: Run) -> tuple[TrialWriter, Trial, list[bytes]]:
    """The sixth trial of a run, without records, and its records."""
    plan = experiment(MAKING)
    trial = schedule(plan)[5]
    records = [json.dumps(one).encode() + b"\n" for one in stream(trial, plan, Arms())]
    return run.begin(trial, {}), trial, records


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of `dbdyno metrics`."""
    command = [sys.executable, "-m", "dbdyno", "metrics", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 130


def fetch(address: str, token: str = "") -> str:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        return str(answer.read().decode())


def values(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def test_the_values_follow_a_running_trial(tmp_path: Path) -> None:
    run = make(tmp_path, MAKING)
    writer, trial, records = begin(run)
    labels = (
        ("point", f"connections={trial.point.connections}"),
        ("variant", trial.variant),
        ("workload", trial.workload),
    )

    def of_trial(known: Values, name: str, **more: str) -> float:
        return known[name, tuple(sorted([*labels, *more.items()]))]

    with serving(str(run.path), "--listen", "127.0.0.1:0") as address:
        assert address.startswith("http://127.0.0.1:")
        known = values(fetch(address))
        assert known["dbdyno_running", ()] == 1
        assert known["dbdyno_trials", (("state", "done"),)] == 5
        assert known["dbdyno_trials", (("state", "running"),)] == 1
        assert known["dbdyno_trials_planned", ()] == 24
        assert known["dbdyno_blocks_planned", ()] == 6
        assert known["dbdyno_block", ()] == trial.block + 1 == 2
        assert of_trial(known, "dbdyno_connections") == trial.point.connections
        assert of_trial(known, "dbdyno_transactions_total") == 0
        assert not any(name == "dbdyno_latency_seconds" for name, _ in known)
        sent = [index for index, one in enumerate(records) if b'"interval"' in one]
        rate = 1000.0 if trial.variant == "a" else 900.0
        so_far = 0
        for number, end in enumerate(sent, start=1):
            for line in records[so_far : end + 1]:
                writer.append_event(line)
            so_far = end + 1
            phase = "warmup" if number <= 2 else "measure"
            known = values(fetch(address))
            assert of_trial(known, "dbdyno_transactions_total") == number * rate
            assert of_trial(known, "dbdyno_throughput_transactions_per_second", phase=phase) == rate
            median_s = of_trial(known, "dbdyno_latency_seconds", phase=phase, quantile="0.5")
            assert median_s == pytest.approx(trial.point.connections / rate, rel=0.002)
        writer.finish("done")
        known = values(fetch(address))
        assert known["dbdyno_trials", (("state", "done"),)] == 6
        assert not any(name == "dbdyno_transactions_total" for name, _ in known)
        run.release()
        assert values(fetch(address))["dbdyno_running", ()] == 0


def test_without_a_name_the_newest_run_is_served(tmp_path: Path) -> None:
    first = make(tmp_path, MAKING)
    first.release()
    with serving("--results", str(tmp_path), "--listen", "127.0.0.1:0") as address:
        assert f'run="{first.path.name}"' in fetch(address)
        second = make(tmp_path, MAKING)
        assert f'run="{second.path.name}"' in fetch(address)
        (second.path / "schedule.json").write_text("{")
        with pytest.raises(urllib.error.HTTPError, match="503") as failed:
            fetch(address)
        assert "changed since it was measured: schedule.json" in failed.value.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(address.replace("/metrics", "/"))


def test_a_token_is_demanded(tmp_path: Path) -> None:
    run = make(tmp_path, MAKING)
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    with serving(str(run.path), "--listen", "127.0.0.1:0", "--token-file", str(token)) as address:
        assert "dbdyno_running" in fetch(address, TOKEN)
        for wrong in ("", "wrong", TOKEN[:-1], "\u00e9"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                fetch(address, wrong)


def test_other_addresses_need_a_token(tmp_path: Path) -> None:
    run = make(tmp_path, MAKING)
    token = tmp_path / "token"
    token.write_text("short")

    def refused(listen: str, message: str, token_file: Path | None = None) -> None:
        with pytest.raises(Problem, match=message):
            metrics(run.path, listen=listen, token_file=token_file)

    for listen in ("0.0.0.0:0", "[::]:0", "192.0.2.1:9400", "example.org:9400"):
        refused(listen, "is not a loopback address")
    refused("0.0.0.0:0", "fewer than 16 ASCII characters", token)
    for listen in ("9400", "127.0.0.1", "127.0.0.1:99999", "::1:9400"):
        refused(listen, "must be ADDRESS:PORT")


def test_a_port_in_use_and_a_missing_package_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make(tmp_path, MAKING)
    with serving(str(run.path), "--listen", "127.0.0.1:0") as address:
        port = address.removesuffix("/metrics").rpartition(":")[2]
        with pytest.raises(Problem, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            metrics(run.path, listen=f"127.0.0.1:{port}")
    found: Callable[[str], object] = importlib.util.find_spec
    monkeypatch.setattr(
        "dbdyno.exports.find_spec", lambda name: None if name == "prometheus_client" else found(name)
    )
    with pytest.raises(Problem, match="needs the Python package prometheus_client") as problem:
        metrics(run.path)
    assert problem.value.fix == "pip install 'dbdyno[metrics]'"


def test_a_request_for_another_host_is_refused(tmp_path: Path) -> None:
    """A page of another site whose name leads here must not read the values (DNS rebinding)."""
    make(tmp_path, MAKING)
    with serving("--results", str(tmp_path), "--listen", "127.0.0.1:0") as address:
        assert fetch(address)
        for host in ("rebound.example", "rebound.example:9400", ""):
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(urllib.request.Request(address, headers={"Host": host}), timeout=30)
            assert error.value.code == 403
