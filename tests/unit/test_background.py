"""Background loads: how they are written, their plans, their figures and what R18 says of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import SCHEMA

from dbdyno.checks.limits import Demand, client_capacities, server_capacities
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.file_reading import parse_toml
from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.experiment.reading import read
from dbdyno.experiment.schedule import schedule
from dbdyno.experiment.slices import can_alternate
from dbdyno.rules.background import background_loads, is_short
from dbdyno.run.background import BackgroundEnded, BackgroundLoads
from dbdyno.run.engine import Engine
from dbdyno.run.plan import SEQUENCE_DISTANCE, background_plan, trial_plan
from dbdyno.store import Run
from dbdyno.store.measured import BackgroundFigures, MeasuredTrial, ScheduleEntry

Reading = Callable[[str], Experiment]
TARGET = {"protocol": "mysql", "endpoints": [{"tcp": {"host": "h", "port": 1}}], "user": "u", "database": "d"}
HEAD = """
[experiment]
name = "own"
[load]
connections = [2]
duration = "4s"
warmup = "1s"
[[variant]]
name = "a"
[[variant]]
name = "b"
server = { variables = { innodb_flush_log_at_trx_commit = 0 } }
"""
POINTS = """
[[workload]]
name = "sql"
label = "points"
setup = ["CREATE TABLE t (id BIGINT PRIMARY KEY, k INT)"]
tables = { t = { rows = 1_000, columns = { id = "sequence()", k = "uniform(1, 9)" } } }
parameters = { id = "uniform(1, rows(t))", new = "sequence(1_001)" }
transactions = ["SELECT k FROM t WHERE id = :id", "INSERT INTO t VALUES (:new, 1)"]
"""
WRITES = """
[[workload.background]]
label = "writes"
rate = 500.0
connections = 4
setup = ["CREATE TABLE log (id BIGINT PRIMARY KEY)"]
parameters = { new = "sequence(1_001)", id = "uniform(1, rows(t))" }
transactions = ["INSERT INTO log VALUES (:new)", "UPDATE t SET k = 1 WHERE id = :id"]
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Reading:
    def reading(text: str) -> Experiment:
        path = tmp_path / "own.toml"
        path.write_text(text)
        found = read(path)
        SCHEMA.validate(parse_toml(path.read_bytes()))
        return found

    return reading


def errors(reading: Reading, text: str) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as raised:
        reading(text)
    return {error.key: error.problem for error in raised.value.errors}


def test_a_workload_and_its_background_load_have_one_set_of_tables(
    experiment: Reading,
) -> None:
    found = experiment(HEAD + POINTS + WRITES)
    (workload,) = found.workloads
    assert isinstance(workload, SqlWorkload)
    (writes,) = found.backgrounds(found.variants[0], "points")
    assert workload.setup == writes.setup
    assert [sql.split("(")[0] for sql in workload.setup] == ["CREATE TABLE t ", "CREATE TABLE log "]
    assert workload.data() == writes.data()
    assert writes.row_counts == {"t": 1000}
    assert (writes.title, writes.rate, writes.connections) == ("writes", 500.0, 4)


def test_mistakes_are_named_by_the_place_of_the_background_load(
    experiment: Reading,
) -> None:
    place = "workload[points].background"
    assert errors(experiment, HEAD + POINTS + WRITES.replace("connections = 4", "connections = 0")) == {
        f"{place}[1].connections": "must be at least 1"
    }
    wrong = errors(experiment, HEAD + POINTS + WRITES.replace(":new", ":old"))
    assert list(wrong) == [f"{place}[writes].transaction1.1"]
    assert list(errors(experiment, HEAD + POINTS + WRITES + WRITES)) == [f"{place}[writes]"]
    in_slices = HEAD + '[design]\npairing = "slices"\n' + POINTS + WRITES
    assert errors(experiment, in_slices) == {
        "design.pairing": "a background load does not pause when the load of a slice does"
    }
    changed = errors(experiment, HEAD + "[variant.workload]\nbackground = []\n" + POINTS + WRITES)
    assert changed == {"variant[b].workload.background": "a variant sets this elsewhere"}


def test_a_background_load_of_oltp_tables_has_no_tables_of_its_own(
    experiment: Reading,
) -> None:
    oltp = '[[workload]]\nname = "oltp_point_select"\n'
    own = '[[workload.background]]\nrate = 10.0\nconnections = 1\ntransactions = ["DELETE FROM sbtest1"]\n'
    found = experiment(HEAD + oltp + own)
    assert [one.title for one in found.backgrounds(found.variants[0], "oltp_point_select")] == ["background"]
    # Without it, they would alternate in slices.
    assert can_alternate(experiment(HEAD + oltp))
    assert not can_alternate(found)
    with_table = own + 'setup = ["CREATE TABLE x (id INT)"]\n'
    assert list(errors(experiment, HEAD + oltp + with_table)) == [
        "workload[oltp_point_select].background[background].tables"
    ]


def test_numbers_of_sequences_belong_to_one_load_of_one_trial(
    experiment: Reading,
) -> None:
    found = experiment(HEAD + POINTS + WRITES)
    (writes,) = found.backgrounds(found.variants[0], "points")
    first = []
    for earlier in (0, 1):
        (trial, *_) = schedule(found)
        own = trial_plan(found, trial, TARGET, earlier_trials=earlier)
        second = background_plan(found, trial, writes, own, earlier_trials=earlier)
        first += [plan["workload"]["sql"]["parameters"]["new"]["sequence"]["first"] for plan in (own, second)]
        assert own["seed"] != second["seed"]
    assert first == [1_001 + number * SEQUENCE_DISTANCE for number in range(4)]


def test_a_background_load_outlasts_its_trial_and_is_counted_in_short_intervals(
    experiment: Reading,
) -> None:
    found = experiment(HEAD + POINTS + WRITES)
    (writes,) = found.backgrounds(found.variants[0], "points")
    (trial, *_) = schedule(found)
    own = trial_plan(found, trial, TARGET)
    second = background_plan(found, trial, writes, own)
    assert second["phases"]["measure_us"] > 2 * sum(own["phases"].values())
    assert second["report"] == {"interval_us": 200_000}
    assert second["load"] == {
        "connections": 4,
        "shape": {"poisson": {"rate_per_s": 500.0}},
        "queue_limit": 500,
        "answer_timeout_us": 60_000_000,
    }
    closed = background_plan(found, trial, writes.model_copy(update={"rate": None}), own)
    assert closed["load"]["shape"] == "closed"


def test_limits_must_suffice_for_both() -> None:
    demand = Demand(10, 1, 5, background_connections=4, background_statements=8)
    limits = {"max_prepared_stmt_count": "100", "max_connections": "20"}
    needs = {one.limit_name: one.required(10) for one in server_capacities(limits, demand, {}, started=True)}
    assert needs == {"max_prepared_stmt_count": 58, "max_connections": 14}
    (files,) = client_capacities(None, 1000, 4)
    assert files.required(10) == 64


def test_two_loads_whose_titles_differ_in_a_slash_have_two_files(experiment: Reading, tmp_path: Path) -> None:
    found = experiment(HEAD + POINTS + WRITES)
    (trial, *_) = schedule(found)
    run = Run.create(tmp_path, found, b"")
    with run.begin(trial, {}) as writer:
        for title in ("a/b", "a-b"):
            writer.open_background(title)(b'{"type": "%s", "data": {}}\n' % title.encode())
        stored = writer.finish("done")
    run.release()
    for title in ("a/b", "a-b"):
        assert [record["type"] for record in stored.background(title)] == [title]


def test_all_loads_have_one_limit_for_their_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.run.background.START_S_MAX", 2.0)
    program = tmp_path / "engine"
    # The first load begins late, the second one never.
    program.write_text(
        "#!/bin/sh\nread plan\ncase $plan in *first*) sleep 1.5; echo "
        '\'{"type": "phase", "data": {}}\';; esac\nexec sleep 20\n'
    )
    program.chmod(0o755)
    plans = {"first": {"name": "first"}, "second": {"name": "second"}}
    loads = BackgroundLoads(plans, {}, None, Engine(program), lambda _title: lambda _line: None)
    began = time.monotonic()
    with (
        pytest.raises(BackgroundEnded, match=r"the background load second .* did not start within 2 s"),
        loads,
    ):
        loads.start()
    # The second one has no 2 s of its own.
    assert time.monotonic() - began < 3.2


def running_at(throughput: float, rate: float | None = 1000.0, counted_s: float = 10.0) -> BackgroundFigures:
    return BackgroundFigures(rate, 4, round(counted_s * 1e6), throughput, None)


def test_a_rate_is_short_if_more_is_missing_than_chance_may_take() -> None:
    assert not is_short(running_at(960.0))
    assert is_short(running_at(940.0))
    # 100 arrivals in 10 s have a standard deviation of 10.
    assert not is_short(running_at(7.5, rate=10.0))
    assert is_short(running_at(6.5, rate=10.0))
    assert not is_short(running_at(1.0, rate=None))
    assert is_short(running_at(0.0, counted_s=0.0))


def trials(variant: str, *throughputs: float, rate: float | None = 1000.0) -> list[MeasuredTrial]:
    return [
        MeasuredTrial(
            ScheduleEntry(index, 0, variant, "points", {"connections": 2}),
            None,
            background={"writes": running_at(throughput, rate)},
        )
        for index, throughput in enumerate(throughputs)
    ]


def test_r18_names_the_variant_and_the_difference() -> None:
    def texts(**by_variant: list[MeasuredTrial]) -> list[str]:
        return [one.text for one in background_loads({"points": by_variant})]

    assert texts(a=trials("a", 1001.0, 990.0), b=trials("b", 960.0, 999.0)) == []
    short = texts(a=trials("a", 1000.0, 1000.0), b=trials("b", 700.0, 720.0))
    assert short == [
        "in 2 trials of b on points the background load writes reached 710.0 of 1,000 transactions/s",
        "the background load writes of points ran at 710.0 transactions/s on b and at 1,000.0 on a: a "
        "difference between these variants may come from it",
    ]
    closed = texts(a=trials("a", 1000.0, rate=None), b=trials("b", 900.0, rate=None))
    assert len(closed) == 1
    assert closed[0].startswith("the background load writes of points ran at 900.0 transactions/s on b")
