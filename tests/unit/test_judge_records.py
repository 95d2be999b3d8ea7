"""What the judge notices in the records: warm-up, arithmetic, gaps, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import SECOND, Arms, Making, Spoil, make

from dbdyno.experiment.schedule import Trial
from dbdyno.judge import judge
from dbdyno.judge.measured import merge_classes

Records = list[dict[str, Any]]


def spoiled(change: Callable[[Records], None]) -> Spoil:
    """Applies `change` to every stream of variant b."""

    def spoil(trial: Trial, records: Records) -> Records:
        if trial.variant == "b":
            change(records)
        return records

    return spoil


def totals(records: Records) -> dict[str, Any]:
    """The measuring phase's totals of a stream."""
    found: dict[str, Any] = records[-1]["data"]["phases"]["measure"]
    return found


def measured(run_path: Path) -> list[dict[str, Any]]:
    """The trials of measured.json."""
    found: list[dict[str, Any]] = json.loads((run_path / "measured.json").read_text())["trials"]
    return found


def checks(tmp_path: Path, making: Making) -> list[dict[str, Any]]:
    """The findings on a made run."""
    found: list[dict[str, Any]] = judge(make(tmp_path, making))["checks"]
    return found


def drop_the_end(records: Records) -> None:
    records.pop()


def end_early(records: Records) -> None:
    records[-1]["data"].update(reason="connection-lost", failure={"code": 2013, "text": "lost", "hint": None})


def forget_a_field(records: Records) -> None:
    del totals(records)["latency_us"]


def count_nothing(records: Records) -> None:
    totals(records)["events"] = 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (drop_the_end, "the engine's records break off"),
        (end_early, "connection-lost: lost"),
        (forget_a_field, "its records are incomplete (KeyError: 'latency_us')"),
        (count_nothing, "no transaction ended in the measurement"),
    ],
)
def test_an_incomplete_stream_has_no_numbers(
    tmp_path: Path, change: Callable[[Records], None], reason: str
) -> None:
    run = make(tmp_path, Making(spoil=spoiled(change)))
    verdict = judge(run)
    assert verdict["comparisons"][0]["curve"]["effect_percent"] is None
    for trial in measured(run.path):
        lost = trial["place"]["variant"] == "b"
        assert (trial["failure"], trial["figures"] is None) == (reason if lost else None, lost)


def lose_an_interval(records: Records) -> None:
    records.remove(next(r for r in records if r["type"] == "interval" and r["data"]["phase"] == "measure"))


def invent_statements(records: Records) -> None:
    totals(records)["reads"] += 10_000
    next(r for r in records if r["type"] == "interval" and r["data"]["phase"] == "measure")["data"][
        "reads"
    ] += 10_000


def stretch_latency(records: Records) -> None:
    totals(records)["latency_sum_us"] *= 1.5


def plan_longer(records: Records) -> None:
    records[0]["data"]["plan"]["phases"]["measure_us"] *= 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lose_an_interval, "the intervals of measure hold 2700 events and its totals 3600"),
        (
            invent_statements,
            "82000 statements for 3600 transactions of 20 statements each (72000, give or take",
        ),
        (stretch_latency, "throughput times mean latency is 15.00, and there were 10 connections"),
        (plan_longer, "the measurement took 4.000 s and 8.000 s were planned"),
    ],
)
def test_numbers_that_contradict_themselves_stop_the_comparison(
    tmp_path: Path, change: Callable[[Records], None], told: str
) -> None:
    verdict = judge(make(tmp_path, Making(connections=(10,), spoil=spoiled(change))))
    (check,) = verdict["checks"]
    assert (check["code"], check["level"], check["subject"]) == ("R03", "stop", "b")
    assert told in check["text"]
    assert len(check["evidence"]["trials"]) == 8
    assert verdict["comparisons"][0]["curve"]["verdict"] == "not-comparable"


def test_littles_law_allows_for_three_percent_and_no_more(tmp_path: Path) -> None:
    def nearly(factor: float) -> Spoil:
        return spoiled(lambda records: totals(records).update(latency_sum_us=10 * 4 * SECOND * factor))

    assert checks(tmp_path / "1", Making(connections=(10,), spoil=nearly(1.025))) == []
    assert checks(tmp_path / "2", Making(connections=(10,), spoil=nearly(0.975))) == []
    assert [c["code"] for c in checks(tmp_path / "3", Making(connections=(10,), spoil=nearly(1.05)))] == [
        "R03"
    ]


def test_littles_law_knows_a_stall_at_the_end(tmp_path: Path) -> None:
    def stalled(records: Records) -> None:
        # The last 0.4 s of 4 s ended no transaction: all ten connections were under way for as long.
        measure = totals(records)
        measure["latency_sum_us"] -= 10 * 400_000
        measure["accounting"]["unfinished_us"] = 10 * 400_000

    assert checks(tmp_path, Making(connections=(10,), spoil=spoiled(stalled))) == []


class TestAutomaticWarmUp:
    """Variant b creeps up for its first seconds; a stands still. Warm-up allowance 5 s, measurement 10 s."""

    @staticmethod
    def speed(seconds: float) -> Callable[[Trial, int], int]:
        def of(trial: Trial, tick: int) -> int:
            wobble = tick % 2
            return 100 + wobble if trial.variant == "a" or tick >= seconds * 10 else 20 + wobble

        return of

    def test_both_arms_of_a_block_get_the_larger_cut(self, tmp_path: Path) -> None:
        # 3 s of creeping end within the allowance of 10 s: the window stays the planned one.
        making = Making(warmup_s=None, duration_s=10.0, connections=(10,), speed=self.speed(3.0))
        run = make(tmp_path, making)
        verdict = judge(run)
        assert verdict["checks"] == []
        for trial in measured(run.path):
            window = trial["window"]
            assert window["cut_us"] == 3 * SECOND
            assert (window["start_us"], window["end_us"]) == (10 * SECOND, 20 * SECOND)
            assert trial["figures"]["throughput"] == pytest.approx(1005.0)
        assert verdict["comparisons"][0]["curve"]["verdict"] == "equivalent"

    def test_a_cut_into_the_measurement_shortens_both_and_warns(self, tmp_path: Path) -> None:
        # Allowance 60 s, measurement 100 s; b creeps for 62.5 s, so the window begins at second 63.
        making = Making(blocks=6, warmup_s=None, duration_s=100.0, connections=(10,), speed=self.speed(62.5))
        run = make(tmp_path, making)
        verdict = judge(run)
        for trial in measured(run.path):
            window = trial["window"]
            assert window["cut_us"] == 62_500_000
            assert (window["start_us"], window["end_us"]) == (63 * SECOND, 160 * SECOND)
            assert trial["figures"]["throughput"] == pytest.approx(1005.0)
        # 97 of 100 s are enough to say nothing.
        assert verdict["checks"] == []
        short = make(
            tmp_path / "2",
            Making(blocks=6, warmup_s=None, duration_s=100.0, connections=(10,), speed=self.speed(70.0)),
        )
        found = judge(short)["checks"]
        assert {(c["code"], c["level"], c["subject"]) for c in found} == {
            ("R01", "warn", "a"),
            ("R01", "warn", "b"),
        }
        assert "90.0 s of 100.0 s are left" in found[0]["text"]

    def test_a_trial_of_which_the_cut_leaves_nothing_is_missing(self, tmp_path: Path) -> None:
        # b creeps for 70 s, and in one block a stops for good after 65 s of 160: 5 s into the measurement.
        creeping = self.speed(70.0)

        def speed(trial: Trial, tick: int) -> int:
            stopped = (trial.variant, trial.block) == ("a", 2) and tick >= 650
            return 0 if stopped else creeping(trial, tick)

        making = Making(blocks=7, warmup_s=None, duration_s=100.0, connections=(10,), speed=speed)
        run = make(tmp_path, making)
        verdict = judge(run)
        point = verdict["comparisons"][0]["points"][0]
        assert (point["blocks"], point["verdict"]) == (6, "equivalent")
        (gone,) = [trial for trial in measured(run.path) if trial["figures"] is None]
        assert (gone["place"]["variant"], gone["place"]["block"]) == ("a", 2)
        assert gone["failure"] == (
            "no transaction ended well in the 90.0 s that are left after the warm-up's cut"
        )
        (told,) = [check for check in verdict["checks"] if check["code"] == "R04"]
        assert told["level"] == "warn"
        assert "no transaction ended well in the 90.0 s" in told["text"]

    def test_a_server_that_never_settles_is_said(self, tmp_path: Path) -> None:
        making = Making(
            warmup_s=None,
            duration_s=10.0,
            connections=(10,),
            speed=lambda trial, tick: 100 + tick if trial.variant == "b" else 100 + tick % 2,
        )
        found = checks(tmp_path, making)
        assert [(c["code"], c["subject"]) for c in found] == [("R01", "b")]
        assert "had not settled" in found[0]["text"]


def test_a_declared_warm_up_is_kept_whatever_the_ticks_say(tmp_path: Path) -> None:
    making = Making(warmup_s=2.0, duration_s=8.0, connections=(10,), speed=TestAutomaticWarmUp.speed(3.0))
    run = make(tmp_path, making)
    judge(run)
    for trial in measured(run.path):
        assert trial["window"]["cut_us"] is None
        assert (trial["window"]["start_us"], trial["window"]["end_us"]) == (2 * SECOND, 10 * SECOND)


def with_errors(errors: dict[str, int], classes: dict[str, str] | None = None) -> Spoil:
    def change(records: Records) -> None:
        for part in (totals(records), records[-2]["data"]):
            part["errors"] = errors
            part["retries"] = sum(errors.values())
            if classes is not None:
                part["error_classes"] = classes

    return spoiled(change)


@pytest.mark.parametrize(("count", "level"), [(3, "warn"), (30, "warn")])
def test_errors_are_told_per_thousand_transactions(tmp_path: Path, count: int, level: str) -> None:
    (check,) = checks(
        tmp_path, Making(connections=(10,), spoil=with_errors({"1213": count}, {"1213": "deadlock"}))
    )
    # b runs 3600 transactions in each trial.
    assert (check["code"], check["level"]) == ("D03", level)
    assert check["evidence"]["per_1000"] == {"a": 0.0, "b": pytest.approx(count / 3.6)}
    assert f"b {count / 3.6:.2f}" in check["text"]
    assert "(server error 1213 (deadlock); retried where it can be)" in check["text"]


def test_few_errors_alike_in_both_arms_are_a_note(tmp_path: Path) -> None:
    def spoil(_trial: Trial, records: Records) -> Records:
        for part in (totals(records), records[-2]["data"]):
            part["errors"] = {"1213": 2}
            part["retries"] = 2
        return records

    (check,) = checks(tmp_path, Making(connections=(10,), spoil=spoil))
    assert (check["code"], check["level"]) == ("D03", "note")


def test_a_retried_deadlock_of_postgresql_is_named_and_no_outage(tmp_path: Path) -> None:
    spoil = with_errors({"40P01": 5, "40001": 3}, {"40P01": "deadlock", "40001": "serialization"})
    verdict = judge(make(tmp_path, Making(connections=(10,), spoil=spoil)))
    (check,) = verdict["checks"]
    assert (check["code"], check["evidence"]["classes"]["40P01"]) == ("D03", "deadlock")
    assert "(server error 40001 (serialization), 40P01 (deadlock); retried" in check["text"]
    assert verdict["comparisons"][0]["curve"]["effect_percent"] is not None


def test_records_of_older_engines_have_codes_without_classes(tmp_path: Path) -> None:
    (check,) = checks(tmp_path, Making(connections=(10,), spoil=with_errors({"40P01": 5, "2013": 1})))
    assert (check["code"], check["evidence"]["classes"]) == ("D03", {})
    assert "(server error 2013, 40P01; retried" in check["text"]


@pytest.mark.parametrize(
    ("errors", "classes", "text"),
    [
        (
            {"2013": 1, "2003": 2},
            {"2013": "lost", "2003": "refused"},
            "were lost and refused in 8 trials and opened again (errors 16 x 2003, 8 x 2013)",
        ),
        ({"57P01": 2}, {"57P01": "lost"}, "were lost in 8 trials and opened again (errors 16 x 57P01)"),
        ({"53300": 1}, {"53300": "refused"}, "were refused in 8 trials and opened again (errors 8 x 53300)"),
    ],
)
def test_lost_connections_are_never_silent(
    tmp_path: Path, errors: dict[str, int], classes: dict[str, str], text: str
) -> None:
    found = checks(tmp_path, Making(connections=(10,), spoil=with_errors(errors, classes)))
    (check,) = (check for check in found if check["code"] == "D05")
    assert (check["level"], check["subject"]) == ("warn", "b")
    assert text in check["text"]


def test_a_code_that_ended_a_connection_once_is_lost() -> None:
    # A standby that must go on ends a session with the state of a serialization failure.
    parts = [{"40001": "serialization"}, {"40001": "lost", "40P01": "deadlock"}, {"40001": "serialization"}]
    assert merge_classes(parts) == {"40001": "lost", "40P01": "deadlock"}


def off_contract(count: int) -> Spoil:
    def change(records: Records) -> None:
        for part in (totals(records), records[-2]["data"]):
            part["off_contract"] = count

    return spoiled(change)


@pytest.mark.parametrize(("count", "level"), [(1, "note"), (50, "warn"), (20000, "stop")])
def test_rows_off_contract(tmp_path: Path, count: int, level: str) -> None:
    (check,) = checks(tmp_path, Making(connections=(10,), duration_s=40.0, spoil=off_contract(count)))
    assert (check["code"], check["level"], check["subject"]) == ("D04", level, "b")


def test_a_saturated_generator_and_the_engines_warnings_are_told(tmp_path: Path) -> None:
    def change(records: Records) -> None:
        for record in records:
            if record["type"] == "interval":
                record["data"]["generator"]["cpu"] = 0.93
        records.insert(-1, {"type": "warning", "data": {"code": "lag", "text": "late", "hint": "more CPUs"}})

    found = checks(tmp_path, Making(connections=(10,), spoil=spoiled(change)))
    assert [(c["code"], c["level"]) for c in found] == [("D01", "warn"), ("D01", "warn")]
    assert "up to 93 % of a CPU" in found[0]["text"]
    assert found[1]["evidence"]["warning"] == "lag"


def test_an_overloaded_open_loop_is_told(tmp_path: Path) -> None:
    def change(records: Records) -> None:
        for part in (totals(records), records[-2]["data"]):
            part["dropped"] = 7

    making = Making(connections=(64,), rates=(500.0,), spoil=spoiled(change), speed=Arms())
    (check,) = checks(tmp_path, making)
    assert (check["code"], check["level"], check["subject"]) == ("R07", "warn", "b")
    assert "of the transactions that were due 56 were dropped" in check["text"]


def test_percentiles_and_means_come_from_the_window(tmp_path: Path) -> None:
    run = make(tmp_path, Making(connections=(10,)))
    judge(run)
    figures = next(t["figures"] for t in measured(run.path) if t["place"]["variant"] == "a")
    # 10 connections at 1,000 transactions per second: 10 ms each.
    assert figures["throughput"] == 1000.0
    assert figures["latency_mean_us"] == pytest.approx(10_000.0)
    assert figures["latency_p50_us"] == figures["latency_p99_us"] == pytest.approx(10_000.0)
