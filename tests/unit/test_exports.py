"""Results in the formats of other programs, read by other readers and compared with verdict.json."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, get_args

import jsonschema_rs
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.unit.stored_run import Arms, Making, make, verdict_of

from dbdyno.commands.report import Format
from dbdyno.experiment.schedule import Trial
from dbdyno.exports import WRITERS
from dbdyno.exports.trackers import otava_row, write_rows
from dbdyno.problem import Problem
from dbdyno.store import Run
from dbdyno.verdict import judge

# https://bencher.dev/docs/reference/bencher-metric-format, with no other keys than those.
BENCHER = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "properties": {key: {"type": "number"} for key in ("value", "lower_value", "upper_value")},
            "required": ["value"],
            "additionalProperties": False,
        },
    },
}
WORKLOAD = "oltp_read_write"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Variants whose names the formats could misread, and in one of eight blocks a server that failed."""
    making = Making(
        blocks=8,
        connections=(2, 16),
        names=("postgres 14/a", "postgres-18"),
        metrics=("throughput", "p99.9"),
        speed=Arms(a=lambda trial: 100 + trial.block, b=lambda trial: 100 + trial.block),
        failed=lambda trial: "crashed\nbadly" if trial.index == 3 else None,
    )
    made = make(tmp_path_factory.mktemp("runs"), making)
    judge(made)
    made.release()
    return made


def points(run: Run) -> list[dict[str, Any]]:
    """The effects of the throughput at each load."""
    (comparison,) = verdict_of(run)["comparisons"]
    return list(comparison["points"])


def report(run: Run, export: str) -> str:
    command = [sys.executable, "-m", "dbdyno", "report", str(run.path), "--format", export]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.count("\n") == 1 + WRITERS[export](run).count("\n")
    return answer.stdout


def test_every_writer_is_a_format() -> None:
    assert set(WRITERS) <= set(get_args(Format))


def test_benchstat_lines_follow_the_format(run: Run) -> None:
    """Every line by the grammar of golang.org/design/14313-benchmark-format; the numbers by verdict.json."""
    units: dict[str, str] = {}
    throughputs: dict[str, list[float]] = {}
    for line in report(run, "benchstat").splitlines():
        if line.startswith("#"):
            continue
        if unit := re.fullmatch(r"Unit (\S+) better=(higher|lower)", line):
            units[unit[1]] = unit[2]
        elif not re.fullmatch(r"[a-z][^\sA-Z:]*: .+", line):
            name, iterations, *values = line.split()
            assert re.match(r"Benchmark[A-Z]", name)
            assert len(values) % 2 == 0
            assert set(values[1::2]) <= set(units)
            pairs = dict(zip(values[1::2], map(float, values[::2]), strict=True))
            throughputs.setdefault(name, []).append(pairs["transactions/s"])
            # 4 seconds of measurement.
            assert int(iterations) == 4 * pairs["transactions/s"]
            if pairs["transactions/s"]:
                connections = int(name.rpartition("connections=")[2])
                assert pairs["mean-latency-ns"] == pytest.approx(connections / pairs["transactions/s"] * 1e9)
            else:
                assert list(pairs) == ["transactions/s"]
    assert units["transactions/s"] == "higher"
    assert units["p99.9-latency-ns"] == "lower"
    expected = {}
    for point in points(run):
        for key, variant in (("baseline", "postgres_14_a"), ("variant", "postgres-18")):
            load = point["at"]["connections"]
            name = f"BenchmarkTransaction/workload={WORKLOAD}/variant={variant}/connections={load}"
            expected[name] = point[key]
    # The baseline first: benchstat compares with the variant that it meets first.
    assert list(throughputs) == list(expected)
    assert {name: len(values) for name, values in throughputs.items()} == dict.fromkeys(expected, 8)
    assert {name: median(values) for name, values in throughputs.items()} == pytest.approx(expected)
    assert sum(values.count(0.0) for values in throughputs.values()) == 1
    assert "# trial 4: crashed badly" in report(run, "benchstat").splitlines()


def test_bencher_json_has_medians_and_intervals(run: Run) -> None:
    benchmarks = json.loads(report(run, "bencher"))
    jsonschema_rs.validate(BENCHER, benchmarks)
    for point in points(run):
        name = f"{WORKLOAD}/connections={point['at']['connections']}"
        own, base = benchmarks[f"{name}/postgres-18"], benchmarks[f"{name}/postgres 14/a"]
        assert base["throughput"]["value"] == pytest.approx(point["baseline"])
        assert own["throughput"]["value"] == pytest.approx(point["variant"])
        for measure in (own["throughput"], own["latency"], own["latency-p99.9"]):
            assert measure["lower_value"] <= measure["value"] <= measure["upper_value"]
        # Of a fixed number of connections, in nanoseconds.
        fastest_ns = point["at"]["connections"] / own["throughput"]["upper_value"] * 1e9
        assert own["latency"]["lower_value"] == pytest.approx(fastest_ns)
        ratio = own["throughput-ratio"]
        assert ratio["value"] == pytest.approx(1 + point["effect_percent"] / 100)
        for key, percent in zip(("lower_value", "upper_value"), point["interval_percent"], strict=True):
            assert ratio.get(key) == (None if percent is None else pytest.approx(1 + percent / 100))
    assert set(benchmarks[f"{WORKLOAD}/all/postgres-18"]) == {"throughput-ratio", "latency-p99.9-ratio"}


def test_openmetrics_text_has_the_verdict(run: Run) -> None:
    samples = [
        sample
        for family in text_string_to_metric_families(report(run, "openmetrics"))  # type: ignore[no-untyped-call]
        for sample in family.samples
    ]
    known = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}
    began = datetime.strptime(run.path.name[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).timestamp()
    assert {float(one.timestamp) for one in samples} == {began}
    (info,) = [one for one in samples if one.name == "dbdyno_run_info"]
    assert info.labels == {"experiment": "made", "run": run.path.name, "number": "1"}

    def value(name: str, **labels: object) -> float:
        entries = {"workload": WORKLOAD, **labels}
        return float(known[f"dbdyno_{name}", tuple(sorted((key, str(one)) for key, one in entries.items()))])

    failed = 0.0
    for point in points(run):
        load = f"connections={point['at']['connections']}"
        for variant, key in (("postgres 14/a", "baseline"), ("postgres-18", "variant")):
            place = {"variant": variant, "point": load}
            throughput = value("result_throughput_transactions_per_second", **place)
            assert throughput == pytest.approx(point[key])
            assert value("result_latency_seconds", quantile=0.999, **place) > 0
            failures = [
                one.value
                for one in samples
                if one.name == "dbdyno_result_trials"
                and place.items() <= one.labels.items()
                and one.labels["state"] == "failed"
            ]
            failed += sum(failures)
            assert value("result_trials", state="done", **place) == 8 - sum(failures)
        place = {"variant": "postgres-18", "point": load, "baseline": "postgres 14/a", "metric": "throughput"}
        assert value("change_ratio", **place) == pytest.approx(1 + point["effect_percent"] / 100)
        assert value("verdict", verdict=point["verdict"], **place) == 1
    assert failed == 1


def test_otava_reads_the_row(run: Run) -> None:
    """As Otava's importer reads it: the delimiter and quotes of csv, a time, and a number in each column."""
    (row,) = csv.DictReader(io.StringIO(report(run, "otava")))
    assert datetime.fromisoformat(row.pop("time")).tzinfo is not None
    assert (row.pop("experiment"), row.pop("run")) == ("made", run.path.name)
    values = {column: float(text) for column, text in row.items()}
    assert all(map(math.isfinite, values.values()))
    for point in points(run):
        name = f"{WORKLOAD}/connections={point['at']['connections']}"
        assert values[f"{name}/postgres 14/a/throughput"] == pytest.approx(point["baseline"])
        ratio = values[f"{name}/postgres-18/throughput_ratio"]
        assert ratio == pytest.approx(1 + point["effect_percent"] / 100)
    assert f"{WORKLOAD}/all/postgres-18/throughput_ratio" in values


def test_otava_gets_no_number_for_a_server_that_always_failed(run: Run, tmp_path: Path) -> None:
    making = Making(
        blocks=6, connections=(2, 16), failed=lambda trial: "crashed" if trial.variant == "b" else None
    )
    broken = make(tmp_path, making)
    judge(broken)
    row = otava_row(broken)
    assert row[f"{WORKLOAD}/connections=2/b/throughput"] == "0"
    assert row[f"{WORKLOAD}/connections=2/b/latency_p95_us"] == ""
    # A row of another experiment has other columns; both are complete lines.
    text = write_rows([row, otava_row(run)])
    header, *rows = csv.reader(io.StringIO(text))
    assert [len(one) for one in rows] == [len(header)] * 2


def test_an_open_loop_has_rates(tmp_path: Path) -> None:
    made = make(tmp_path, Making(blocks=6, connections=(64,), rates=(500.0, 900.0)))
    judge(made)
    assert f"{WORKLOAD}/rate=500/b/latency_p95_us_ratio" in otava_row(made)
    assert "/variant=a/rate=900 " in WRITERS["benchstat"](made)


def overloaded(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In five blocks of b, half as many transactions again were due and had not ended after two seconds."""
    if trial.variant == "b" and trial.block < 5:
        totals = records[-1]["data"]["phases"]["measure"]
        waiting = totals["events"] // 2
        totals["censored_us"] = [[2_000_000, waiting]]
        totals["accounting"]["unfinished"] = waiting
        totals["accounting"]["due"] += waiting
    return records


def test_lower_bounds_are_left_out(tmp_path: Path) -> None:
    made = make(tmp_path, Making(blocks=8, connections=(64,), rates=(500.0,), spoil=overloaded))
    judge(made)
    measured = made.judge_files()
    assert measured is not None
    bounds = [one.figures.censored for one in measured[1].trials if one.figures and one.variant == "b"]
    assert sum("latency_p99_us" in one for one in bounds) == 5
    row = otava_row(made)
    assert row[f"{WORKLOAD}/rate=500/b/latency_p99_us"] == ""
    assert row[f"{WORKLOAD}/rate=500/b/latency_p95_us_ratio"] == ""
    assert row[f"{WORKLOAD}/rate=500/b/latency_p50_us"] != ""
    assert row[f"{WORKLOAD}/rate=500/a/latency_p99_us"] != ""
    lines = WRITERS["benchstat"](made).splitlines()
    assert sum("p99-latency-ns" in line for line in lines if "/variant=b/" in line) == 3
    assert sum("p50-latency-ns" in line for line in lines if "/variant=b/" in line) == 8
    assert (
        sum(bool(re.match(r"# trial \d+: only lower bounds are known of .*p99", line)) for line in lines) == 5
    )
    known = json.loads(WRITERS["bencher"](made))[f"{WORKLOAD}/rate=500/b"]
    assert "latency-p99" not in known
    assert "latency-p50" in known
    assert 'quantile="0.99",variant="b"' not in WRITERS["openmetrics"](made)


@pytest.mark.parametrize(
    "making",
    [
        Making(blocks=6, connections=(2,), absent=lambda trial: trial.block == 5),
        Making(
            blocks=6,
            connections=(2,),
            findings=[{"code": "P04", "level": "stop", "text": "a setting is not effective"}],
        ),
    ],
)
def test_ratios_without_a_result_are_left_out(tmp_path: Path, making: Making) -> None:
    made = make(tmp_path, making)
    judge(made)
    row = otava_row(made)
    assert row[f"{WORKLOAD}/connections=2/b/throughput"] != ""
    assert {text for column, text in row.items() if column.endswith("_ratio")} == {""}
    assert "ratio" not in WRITERS["bencher"](made)
    assert "dbdyno_change_ratio{" not in WRITERS["openmetrics"](made)


@pytest.mark.parametrize("export", WRITERS)
def test_a_run_that_was_not_judged_is_refused(export: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="has not been judged"):
        WRITERS[export](make(tmp_path, Making(blocks=1)))


def test_without_prometheus_client_the_error_names_the_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.exports.find_spec", lambda _name: None)
    with pytest.raises(Problem, match="the format openmetrics needs the Python package") as problem:
        WRITERS["openmetrics"](run)
    assert problem.value.fix == "pip install 'dbdyno[metrics]'"
