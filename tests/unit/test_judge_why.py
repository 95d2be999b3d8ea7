"""Why, on stored runs: planted costs come back per transaction and ranked, noise does not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.pages import undrawn
from tests.unit.sentences import check_sentences
from tests.unit.stored_run import Arms, Making, make, verdict_of

from dbdyno.experiment.schedule import Trial
from dbdyno.explain import SAMPLED_NAMES, amount, costs, counter, transactions_between
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.result_text import three_digits
from dbdyno.servers.usage import Usage, host
from dbdyno.verdict import judge

# Name -> what one transaction adds to it in a trial.
PerTransaction = Callable[[Trial], Mapping[str, float]]
START_US = 1_700_000_000_000_000
# Read 0.1 s after the beginning of the measurement and 0.3 s before its end.
BEGIN_S, END_S = 2.1, 5.7


# Seconds that one transaction waits, by the names of performance_schema.
def alike(_trial: Trial) -> Mapping[str, float]:
    return {"wait/synch/mutex/pool": 5e-6}


def edges(
    trial: Trial, status: PerTransaction, process: PerTransaction, waits: PerTransaction = alike
) -> dict[str, Any]:
    """Counters that grow with the transactions of `Arms`, from a large start, and some that tell nothing."""
    each = {"a": 1000, "b": 900}[trial.variant]
    done = each * (END_S - BEGIN_S)
    idle = {"Steady": "70", "Version_text": "x"}
    begin = {"Uptime": "100", "Threads_running": "9", "Com_show_status": "5", **idle}
    end = {"Uptime": "104", "Threads_running": "31", "Com_show_status": "9", **idle}
    for name, amount_each in status(trial).items():
        begin[name], end[name] = "1000000", f"{1_000_000 + amount_each * done + 7:.0f}"
    used = {name: amount_each * done for name, amount_each in process(trial).items()}
    # Nobody works in "idle". What is met for the first time was not there before.
    before = {"idle": [3, 9.0], "wait/synch/mutex/pool": [70, 8.0]}
    waited = {"idle": [6, 9.0 + done]}
    for name, seconds_each in waits(trial).items():
        waited[name] = [99, before.get(name, [0, 0.0])[1] + seconds_each * done]
    return {
        "begin": _edge(BEGIN_S, begin, dict.fromkeys(used, 5.0), before),
        "end": _edge(END_S, end, {name: 5.0 + value for name, value in used.items()}, waited),
        # What one reading adds to each, taken off again.
        "own": dict.fromkeys(status(trial), 7.0),
    }


def _edge(
    at_s: float, status: dict[str, str], process: dict[str, float], waits: dict[str, Any]
) -> dict[str, Any]:
    at = START_US + round(at_s * 1e6)
    return {"unix_us": at, "status": status, "process": process, "host": {}, "waits": waits}


def explained(
    folder: Path,
    status: PerTransaction,
    process: PerTransaction,
    waits: PerTransaction = alike,
    **making: Any,
) -> dict[str, Any]:
    run = make(
        folder,
        Making(
            speed=Arms(a=lambda _t: 100, b=lambda _t: 90),
            edges=lambda trial: edges(trial, status, process, waits),
            **{"connections": (10, 20), **making},
        ),
    )
    judge(run)
    found: dict[str, Any] = json.loads((run.path / "explained.json").read_text())
    return {"run": run, **found}


def noise(trial: Trial, name: str, size: float) -> float:
    """A factor near 1, the same for the same trial and name."""
    seed = [trial.index, *name.encode()]
    return float(np.exp(np.random.default_rng(seed).normal(0.0, size)))


def status(trial: Trial) -> dict[str, float]:
    found = {f"Noise_{i:03}": 50 * noise(trial, f"n{i}", 0.05) for i in range(120)}
    found["Handler_read_next"] = (8.0 if trial.variant == "a" else 4.0) * noise(trial, "next", 0.03)
    return found


def process(trial: Trial) -> dict[str, float]:
    switches = (5.6 if trial.variant == "a" else 3.1) * noise(trial, "switches", 0.04)
    return {
        "context_switches": switches,
        "context_switches_voluntary": switches * 0.9,
        "cpu_user_s": 400e-6 * noise(trial, "cpu", 0.03),
        "cpu_system_s": 100e-6,
    }


def test_what_was_planted_moved_and_the_noise_did_not(tmp_path: Path) -> None:
    found = explained(tmp_path, status, process)
    (comparison,) = found["comparisons"]
    measures = comparison["measures"]
    assert [one["key"] for one in measures if one["significant"]] == ["context_switches", "Handler_read_next"]
    switches, rows = measures[0], measures[1]
    # 3.1 / 5.6 - 1 and 4 / 8 - 1.
    assert switches["effect_percent"] == pytest.approx(-44.6, abs=2)
    assert rows["effect_percent"] == pytest.approx(-50.0, abs=2)
    for one in (switches, rows):
        low, high = one["interval_percent"]
        assert low <= one["effect_percent"] <= high < 0
        assert one["p_value"] == pytest.approx(2 / 2**8)
        assert one["blocks"] == 8
    assert switches["baseline"] == pytest.approx(5.6, rel=0.03)
    assert switches["variant"] == pytest.approx(3.1, rel=0.03)
    assert rows["baseline"] == pytest.approx(8.0, rel=0.03)
    check_sentences("context switches", switches["sentence"])
    # Levels, texts and our own questions are no counters.
    keys = {one["key"] for one in measures}
    assert not keys & {"Uptime", "Threads_running", "Version_text", "Com_show_status", "Steady"}


def test_waits_of_performance_schema_are_costs_like_any_other(tmp_path: Path) -> None:
    def waits(trial: Trial) -> Mapping[str, float]:
        pool = {"a": 5e-6, "b": 2e-6}[trial.variant] * noise(trial, "pool", 0.02)
        return {"wait/synch/mutex/pool": pool, "wait/io/file/log": 3e-6 * noise(trial, "log", 0.05)}

    found = explained(tmp_path, lambda _t: {}, lambda _t: {}, waits)
    measures = {one["key"]: one for one in found["comparisons"][0]["measures"]}
    assert set(measures) == {"wait/synch/mutex/pool (time)", "wait/io/file/log (time)"}
    pool, log = measures["wait/synch/mutex/pool (time)"], measures["wait/io/file/log (time)"]
    assert (pool["group"], pool["unit"], pool["significant"], log["significant"]) == (
        "wait",
        "us",
        True,
        False,
    )
    assert pool["baseline"] == pytest.approx(5.0, rel=0.02)
    assert pool["variant"] == pytest.approx(2.0, rel=0.02)
    # 2 / 5 - 1.
    assert pool["effect_percent"] == pytest.approx(-60.0, abs=1.5)
    assert log["baseline"] == pytest.approx(3.0, rel=0.05)
    check_sentences("time in a wait", pool["sentence"])


def test_the_costs_of_every_variant_and_point_are_there(tmp_path: Path) -> None:
    found = explained(tmp_path, status, process)
    places = [(row["variant"], row["at"]["connections"]) for row in found["costs"]]
    assert places == [("a", 10), ("a", 20), ("b", 10), ("b", 20)]
    for row in found["costs"]:
        assert row["costs"]["cpu_us"] == pytest.approx(500, rel=0.03)
        planted = {"a": 5.6, "b": 3.1}[row["variant"]]
        assert row["costs"]["context_switches"] == pytest.approx(planted, rel=0.04)
        assert row["shown"]["cpu_us"].endswith("µs")
        # What could not be seen has no figure.
        assert "disk_reads" not in row["costs"]
        # The server's own counters are kept too, of every variant at every load.
        assert row["costs"]["Handler_read_next"] == pytest.approx({"a": 8, "b": 4}[row["variant"]], rel=0.04)
        assert set(row["costs"]) >= {f"Noise_{i:03}" for i in range(120)}
        # In words stand the resources alone.
        assert set(row["shown"]) == {"cpu_us", "context_switches"}


def at_twenty(trial: Trial) -> dict[str, float]:
    """A counter that moves at 20 connections, as much as another falls there that rises at 10."""
    crowded, b = trial.point.connections == 20, trial.variant == "b"
    return {
        "Waits_when_crowded": (4.0 if crowded and b else 2.0) * noise(trial, "crowded", 0.03),
        "Crossing": (1.5 if crowded == b else 1.0) * noise(trial, "crossing", 0.01),
        "Still": 7.0 * noise(trial, "still", 0.05),
    }


def test_each_load_has_what_moved_there(tmp_path: Path) -> None:
    found = explained(tmp_path, at_twenty, lambda _trial: {})
    few, many = found["comparisons"][0]["points"]
    assert (few["at"], many["at"]) == ({"connections": 10}, {"connections": 20})
    assert [one["key"] for one in few["measures"]] == ["Crossing"]
    assert [one["key"] for one in many["measures"]] == ["Waits_when_crowded", "Crossing"]
    # Planted: 1 / 1.5 and 4 / 2.
    assert few["measures"][0]["effect_percent"] == pytest.approx(-100 / 3, abs=2)
    assert many["measures"][0]["effect_percent"] == pytest.approx(100, abs=5)
    assert many["measures"][0]["variant"] == pytest.approx(4, rel=0.03)
    low, high = many["measures"][0]["interval_percent"]
    assert 0 < low <= high
    # Over the whole curve one rises as far as it falls.
    whole = {one["key"]: one["significant"] for one in found["comparisons"][0]["measures"]}
    assert [key for key, moved in whole.items() if moved] == ["Waits_when_crowded"]
    assert {"Crossing", "Still"} <= whole.keys()
    page = undrawn(found["run"])
    assert "Largest changes per load: b against a on oltp_read_write" in page
    # No process was seen.
    assert "Costs of one transaction of" not in page
    assert "those of the server's processes" not in page


def test_one_load_is_the_whole_curve(tmp_path: Path) -> None:
    found = explained(tmp_path, status, process, connections=(10,))
    assert found["comparisons"][0]["points"] == []
    assert "Largest changes per load" not in undrawn(found["run"])


@pytest.mark.parametrize("device", [True, False])
def test_reads_and_writes_are_the_devices_or_else_the_processes(tmp_path: Path, device: bool) -> None:
    """Where the data's device does not count, the calls of the server's processes stand in its place."""

    def used(trial: Trial) -> dict[str, float]:
        calls = {"read_calls": 2.0 if trial.variant == "a" else 4.0, "write_calls": 1.0}
        return {**calls, "disk_reads": 3.0, "disk_writes": 5.0} if device else calls

    found = explained(tmp_path, lambda _trial: {}, used)
    told = {"disk_reads": "3", "disk_writes": "5"} if device else {"read_calls": "4", "write_calls": "1"}
    assert found["costs"][-1]["shown"] == told
    assert found["costs"][-1]["costs"]["read_calls"] == pytest.approx(4, rel=0.01)
    measures = {one["key"]: one for one in found["comparisons"][0]["measures"]}
    assert measures["read_calls"]["group"] == ("part" if device else "resource")
    assert measures["read_calls"]["significant"] == (not device)
    page = undrawn(found["run"])
    assert ('scope="col">read calls</th>' in page) == (not device)
    assert ('scope="col">disk reads</th>' in page) == device


def test_a_sample_may_count_what_it_likes(tmp_path: Path) -> None:
    def sample(trial: Trial) -> dict[str, float]:
        slow = trial.variant == "b"
        return {"nfs_calls": 6.0 if slow else 3.0, "lock_s": 2e-4 if slow else 1e-4, "rss_bytes": 9.0}

    measures = explained(tmp_path, lambda _trial: {}, sample)["comparisons"][0]["measures"]
    found = {one["key"]: one for one in measures if one["group"] != "wait"}
    assert found.keys() == {"sample.nfs_calls", "sample.lock_s"}
    assert found["sample.nfs_calls"]["significant"]
    assert found["sample.nfs_calls"]["sentence"] == "nfs_calls: 6 per transaction with b, 3 with a"
    assert found["sample.lock_s"]["variant"] == pytest.approx(2e-4, rel=0.03)


def test_every_name_of_a_local_server_is_known() -> None:
    """Else a level of its processes would be taken for a counter of the user's own."""
    names = Usage(os.getpid()).read().keys() | host(Path.cwd()).keys() | host(Path("/dev/shm")).keys()
    assert names <= SAMPLED_NAMES
    assert {"rss_bytes", "host_switches"} <= names


def test_counters_that_could_not_be_read_are_told(tmp_path: Path) -> None:
    def unread(trial: Trial) -> str:
        return "the sample command failed: exit status 7" if trial.variant == "b" and trial.block < 2 else ""

    run = make(tmp_path, Making(connections=(10,), unread=unread))
    judge(run)
    verdict = verdict_of(run)
    (found,) = [one for one in verdict["checks"] if "counters are missing" in one["text"]]
    assert (found["code"], found["level"], found["subject"]) == ("R04", "warn", "b")
    assert found["text"].startswith("the server's counters are missing for 2 trials of b")
    assert "2 x the sample command failed: exit status 7" in found["text"]
    assert len(found["evidence"]["trials"]) == 2
    (comparison,) = verdict["comparisons"]
    sentence = comparison["curve"]["sentence"]
    assert "missing" not in sentence
    assert "R04" not in sentence


def test_the_report_says_it_in_words_and_in_a_table(tmp_path: Path) -> None:
    run = explained(tmp_path, status, process)["run"]
    page = undrawn(run)
    assert "metrics changed significantly." in page
    assert "context switches per transaction instead of" in page
    assert "Costs of one transaction of oltp_read_write" in page
    assert "context switches per transaction instead of" in as_markdown(gather(run))


def test_equal_arms_are_told_that_nothing_moved(tmp_path: Path) -> None:
    found = explained(tmp_path, lambda t: {"Handler_read_next": 8 * noise(t, "x", 0.05)}, lambda _t: {})
    (comparison,) = found["comparisons"]
    assert not any(one["significant"] for one in comparison["measures"])
    checks = {check["code"]: check for check in verdict_of(found["run"])["checks"]}
    # The variants of a made run are set up differently.
    assert "none of " in checks["P17"]["text"]


def test_few_blocks_say_nothing_surely(tmp_path: Path) -> None:
    found = explained(tmp_path, status, process, blocks=3)
    (comparison,) = found["comparisons"]
    assert not any(one["significant"] for one in comparison["measures"])
    assert comparison["measures"]
    assert "P17" not in {check["code"] for check in verdict_of(found["run"])["checks"]}


def test_a_counter_that_only_one_arm_has_is_not_compared(tmp_path: Path) -> None:
    pool: dict[str, dict[str, float]] = {"a": {}, "b": {"Pool": 3.0}}
    found = explained(tmp_path, lambda trial: {"Both": 5.0, **pool[trial.variant]}, lambda _trial: {})
    assert {one["key"] for one in found["comparisons"][0]["measures"]} >= {"Both"}
    assert "Pool" not in {one["key"] for one in found["comparisons"][0]["measures"]}


def test_from_none_to_many_has_a_size(tmp_path: Path) -> None:
    found = explained(tmp_path, lambda t: {"Opened_tables": 2.0 if t.variant == "b" else 0.0}, lambda _t: {})
    (one,) = [one for one in found["comparisons"][0]["measures"] if one["key"] == "Opened_tables"]
    assert one["significant"]
    assert one["sentence"] == "b opens 2 tables per transaction instead of 0"


def test_idle_counters_do_not_change_with_the_throughput(tmp_path: Path) -> None:
    """Half a count per transaction falls when throughput rises; one burst is not a change of every block."""

    def counters(trial: Trial) -> dict[str, float]:
        return {
            "Idle": 0.0,
            "Burst": 0.3 if trial.block in {3, 7} else 0.0,
            "Idle_at_10": 1.0 if trial.point.connections == 20 else 0.0,
            "Rarely": 1e-3 if trial.variant == "a" and trial.block < 4 else 0.0,
        }

    found = explained(tmp_path, counters, lambda _t: {})
    measures = {one["key"]: one for one in found["comparisons"][0]["measures"] if one["group"] != "wait"}
    assert measures.keys() == {"Idle_at_10"}
    # b has 10 % fewer transactions.
    assert not measures["Idle_at_10"]["significant"]
    assert measures["Idle_at_10"]["effect_percent"] == pytest.approx(0.0, abs=0.1)


def test_runs_without_edges_are_judged_without_a_why(tmp_path: Path) -> None:
    run = make(tmp_path)
    judge(run)
    explanation = json.loads((run.path / "explained.json").read_text())
    assert explanation["costs"] == []
    assert "<h2>Why</h2>" not in undrawn(run)


def test_transactions_between_two_instants() -> None:
    ticks = [(100, 10), (200, 30), (300, 20)]
    assert transactions_between(ticks, 0, 300) == 60
    assert transactions_between(ticks, 100, 200) == 30
    # Within a tick they are taken as even.
    assert transactions_between(ticks, 50, 150) == pytest.approx(5 + 15)
    assert transactions_between(ticks, -50, 1000) == 60
    assert transactions_between([], 0, 100) == 0


def test_no_costs_without_edges_or_transactions() -> None:
    assert costs({}, [(100, 5)], 0) == {}
    assert costs({"edges": None}, [(100, 5)], 0) == {}
    silent: Any = {"unix_us": 5, "status": {}, "process": {}, "host": {}, "waits": {}}
    assert costs({"edges": {"begin": silent, "end": silent, "own": {}, "foreign": None}}, [(100, 5)], 0) == {}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("Handler_read_next", True),
        ("Threads_created", True),
        ("Threads_running", False),
        ("Innodb_buffer_pool_pages_flushed", True),
        ("Innodb_buffer_pool_pages_dirty", False),
        ("Innodb_row_lock_time", True),
        ("Innodb_row_lock_time_avg", False),
        ("Opened_tables", True),
        ("Open_tables", False),
        ("pg_stat_database.xact_commit", True),
        ("pg_stat_user_tables.n_live_tup", False),
    ],
)
def test_levels_are_no_counters(name: str, counts: bool) -> None:
    assert (counter(name) is not None) == counts


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0"),
        (5.6, "5.6"),
        (0.0506, "0.0506"),
        (1234.5, "1,234"),
        (0.00001, "1.0e-05"),
        (0.00012, "0.00012"),
        (99.97, "100"),
    ],
)
def test_figures(value: float, told: str) -> None:
    assert three_digits(value) == told


def test_amounts_have_units_that_fit() -> None:
    from dbdyno.explain import BY_KEY

    assert amount(BY_KEY["cpu_us"], 512.2) == "512 µs"
    assert amount(BY_KEY["cpu_wait_us"], 3_140.0) == "3.14 ms"
    assert amount(BY_KEY["write_kib"], 3000.0) == "2.93 MiB"
    assert amount(BY_KEY["context_switches"], 0.0) == "0"
    assert amount(BY_KEY["cpu_us"], 0.0) == "0 µs"
