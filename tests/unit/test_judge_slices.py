"""Trials in slices: which slices count, their figures, and the log ratio of a block."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import pytest
from benchmarks.truth.simulation import figures_of
from tests.unit.stored_run import Making, Spoil, counts_of, generator_use, judged, totals_of
from tests.unit.test_judge_golden import recorded

from dbdyno.experiment.schedule import Trial
from dbdyno.explain import transactions_between
from dbdyno.measure import arithmetic, slices
from dbdyno.measure.figures import figures
from dbdyno.measure.recording import Recording, read
from dbdyno.stats.histogram import bucket_lower_us
from dbdyno.store.measured import MeasuredTrial, ScheduleEntry
from dbdyno.store.records import Counts, PhaseTotals
from dbdyno.store.verdict import VerdictFile

GUARD, LENGTH, PAUSE = 20_000, 220_000, 10_000
WARMUP, SLICES = 4, 12
FACTS = {"slices": {"warmup": WARMUP, "length_us": LENGTH}}
Records = list[dict[str, Any]]


def in_slices(events: Callable[[Trial, int], int | None]) -> Spoil:
    """Replaces a stream by one in slices; `events` of a slice, or None if the trial lacks the slice."""

    def spoil(trial: Trial, records: Records) -> Records:
        hello, ready = records[:2]
        connections = trial.point.connections
        hello["data"]["plan"]["load"]["shape"] = {"closed_slices": {"guard_us": GUARD}}
        parts, totals, at = [], [], 0
        for number in range(WARMUP + SLICES):
            count = events(trial, number)
            if count is not None:
                counted = counts_of((at + GUARD, at + LENGTH), count, connections, open_loop=False)
                # As many transactions per second in the guard time and in the pause.
                totals.append(counts_of((at, at + LENGTH + PAUSE), count + 15, connections, open_loop=False))
                more = {"slice": number, "resumed_us": at, "began_us": at, "paused_us": at + LENGTH + PAUSE}
                edges = {"guard_events": 10, "in_flight": 5, "in_flight_latency_us": [[20_000, 5]]}
                parts.append(
                    {**counted, **more, **edges, "percentiles_us": None, "generator": generator_use()}
                )
            at += 2 * (LENGTH + PAUSE)
        phase = {"name": "measure", "at_us": 0, "at_unix_us": 1_700_000_000_000_000}
        end = {"reason": "done", "failure": None, "phases": {"measure": totals_of(totals)}}
        return [
            hello,
            ready,
            {"type": "phase", "data": phase},
            *({"type": "slice", "data": part} for part in parts),
            {"type": "end", "data": end},
        ]

    return spoil


def making(events: Callable[[Trial, int], int | None], **more: Any) -> Making:
    """A run of two variants at one load, in slices."""
    return Making(connections=(10,), spoil=in_slices(events), facts=FACTS, **more)


def trials_of(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """The trials of measured.json."""
    found: list[dict[str, Any]] = json.loads((verdict["path"] / "measured.json").read_text())["trials"]
    return found


def test_figures_are_those_of_the_slices_after_the_warmup(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path, making(lambda _trial, number: 50 if number < WARMUP else 100 + number, blocks=1)
    )
    VerdictFile.model_validate({key: verdict[key] for key in verdict.keys() - {"path"}})
    trial = trials_of(verdict)[0]
    counted = range(WARMUP, WARMUP + SLICES)
    assert trial["slices"] == {str(number): (100 + number) / 0.2 for number in counted}
    assert trial["figures"]["events"] == sum(100 + number for number in counted)
    assert trial["figures"]["throughput"] == pytest.approx(trial["figures"]["events"] / (SLICES * 0.2))
    assert trial["window"]["counted_us"] == SLICES * 200_000
    assert trial["window"]["cut_us"] is None
    drift = trial["drift"]
    assert drift[0] == pytest.approx(math.log(sum(counted[6:]) + 600) - math.log(sum(counted[:6]) + 600))
    assert drift[1] == drift[2] == pytest.approx(math.log(trial["figures"]["throughput"] / 250.0))


def stalling(trial: Trial, number: int) -> int:
    """Each slice has another machine, and b's server stops in four of twelve."""
    machine = 100 * (1 + number % 3)
    return machine if trial.variant == "a" else 0 if number % 3 == 2 else machine * 9 // 10


def test_the_ratio_of_a_block_is_the_median_over_its_slices(tmp_path: Path) -> None:
    verdict = judged(tmp_path, making(stalling))
    curve = verdict["comparisons"][0]["curve"]
    assert (curve["verdict"], curve["effect_percent"]) == ("slower", pytest.approx(-10.0))
    a, b = ({one["place"]["variant"]: one for one in trials_of(verdict)[:2]}[name] for name in "ab")
    assert b["figures"]["throughput"] / a["figures"]["throughput"] < 0.6
    (stalls,) = (check for check in verdict["checks"] if check["code"] == "R12")
    assert stalls["level"] == "warn"
    assert stalls["text"].startswith(
        "over all slices the throughput of b against a on oltp_read_write is 50.0 % lower than in the typical"
    )
    assert "stalls in some slices" in curve["sentence"]


@pytest.mark.parametrize(
    ("metrics", "is_reported"),
    [(("p90",), False), (("p90", "throughput"), True), (("throughput", "p90"), True)],
)
def test_stalls_are_reported_where_the_median_of_the_slices_hides_them(
    tmp_path: Path, metrics: tuple[str, ...], is_reported: bool
) -> None:
    verdict = judged(tmp_path, making(stalling, metrics=metrics))
    assert [check["code"] for check in verdict["checks"]].count("R12") == is_reported
    assert ("stalls in some slices" in verdict["comparisons"][0]["curve"]["sentence"]) == is_reported


@pytest.mark.parametrize(("events", "level"), [(45, None), (35, "warn"), (5, "stop"), (0, "stop")])
def test_slices_of_few_transactions_are_reported(tmp_path: Path, events: int, level: str | None) -> None:
    """Ten connections in slices that are planned to take 1 s, of which 0.2 s are recorded."""
    verdict = judged(tmp_path, making(lambda _trial, number: events + number % 2))
    found = [check for check in verdict["checks"] if check["code"] == "R14"]
    assert [check["level"] for check in found] == ([level] if level else [])
    curve = verdict["comparisons"][0]["curve"]
    assert (curve["verdict"] == "not-comparable") == (level == "stop")
    assert ("too long for" in curve["sentence"]) == (level is not None)


def test_a_slice_that_one_variant_lacks_counts_for_none(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path, making(lambda trial, number: None if (trial.variant, number) == ("b", 7) else 100, blocks=1)
    )
    assert all("7" not in trial["slices"] and len(trial["slices"]) == 11 for trial in trials_of(verdict))


@pytest.mark.parametrize(
    ("lacks", "reason"),
    [
        (lambda _trial, number: number >= WARMUP, "no slice counts"),
        (
            lambda trial, number: (number % 2 == 0) == (trial.variant == "a"),
            "no slice counts in all variants of its block",
        ),
    ],
)
def test_without_slices_a_trial_has_no_figures(
    tmp_path: Path, lacks: Callable[[Trial, int], bool], reason: str
) -> None:
    verdict = judged(tmp_path, making(lambda trial, number: None if lacks(trial, number) else 100, blocks=1))
    assert {(one["failure"], one["failed_by"]) for one in trials_of(verdict)} == {(reason, "harness")}


def test_a_server_that_does_nothing_in_any_slice_failed(tmp_path: Path) -> None:
    verdict = judged(tmp_path, making(lambda trial, _number: 0 if trial.variant == "b" else 100, blocks=1))
    failed = {one["failed_by"] for one in trials_of(verdict) if one["place"]["variant"] == "b"}
    assert failed == {"server"}


def test_a_connection_that_is_lost_in_a_guard_time_is_reported(tmp_path: Path) -> None:
    whole = in_slices(lambda _trial, _number: 100)
    errors = {"errors": {"1213": 3, "2013": 2}, "error_classes": {"1213": "deadlock", "2013": "lost"}}

    def spoil(trial: Trial, records: Records) -> Records:
        records = whole(trial, records)
        records[-1]["data"]["phases"]["measure"] |= errors if trial.variant == "b" else {}
        return records

    verdict = judged(tmp_path, Making(connections=(10,), spoil=spoil, facts=FACTS))
    (found,) = [one for one in verdict["checks"] if one["code"] == "D05"]
    assert found["subject"] == "b"
    assert "x 2013)" in found["text"]
    assert "1213" not in found["text"]
    assert "closes idle connections" in found["fix"]


def test_a_drift_over_the_slices_is_found(tmp_path: Path) -> None:
    def events(trial: Trial, number: int) -> int:
        return 100 + (2 * number if trial.variant == "b" else 0) + trial.block % 3

    checks = judged(tmp_path, making(events))["checks"]
    assert "R12" not in {check["code"] for check in checks}
    (found,) = (check for check in checks if check["code"] == "R01")
    assert (found["level"], found["subject"], found["evidence"]["part"]) == ("warn", "b", "within")


def measured_in_slices(variant: str, rates: dict[int, float]) -> MeasuredTrial:
    entry = ScheduleEntry(0, 0, variant, "oltp_read_write", {"connections": 10})
    return MeasuredTrial(entry, None, figures=figures_of(1.0), slices=rates)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 1.0, 1.0], [2.0, 4.0, 8.0], math.log(4.0)),
        # An idle server has the smallest ratio; if both are idle, neither is favoured.
        ([1.0, 1.0, 1.0], [0.0, 4.0, 8.0], math.log(4.0)),
        ([0.0, 0.0, 1.0], [2.0, 4.0, 8.0], math.inf),
        ([1.0, 1.0, 1.0], [0.0, 0.0, 8.0], -math.inf),
        ([1.0, 0.0, 2.0], [4.0, 0.0, 1.0], 0.0),
    ],
)
def test_a_slice_without_transactions_is_not_lost(a: list[float], b: list[float], expected: float) -> None:
    trials = [measured_in_slices(name, dict(enumerate(rates))) for name, rates in (("a", a), ("b", b))]
    weights = list(zip((-1.0, 1.0), trials, strict=True))
    assert slices.block_ratio(weights, "throughput") == expected
    assert slices.block_ratio(weights, "latency_p95_us") is None


def test_contrasts_of_factors_are_formed_in_every_slice() -> None:
    rates = [[1.0, 5.0, 9.0], [2.0, 7.0, 3.0], [4.0, 4.0, 4.0], [8.0, 1.0, 6.0]]
    trials = [measured_in_slices(name, dict(enumerate(row))) for name, row in zip("abcd", rates, strict=True)]
    weights = (-0.5, 0.5, -0.5, 0.5)
    expected = median(
        sum(w * math.log(row[number]) for w, row in zip(weights, rates, strict=True)) for number in range(3)
    )
    found = slices.block_ratio(list(zip(weights, trials, strict=True)), "throughput")
    assert found == pytest.approx(expected)


def test_the_engines_slices_are_consistent() -> None:
    recording = recorded("slices")
    assert recording.is_sliced
    assert arithmetic.find_contradictions(recording) == []
    first, second = recording.slices
    for part, before in ((first, 0), (second, 24)):
        assert transactions_between(recording.ticks, 0, part["paused_us"]) == before + 24


def pareto_slices(random: np.random.Generator, *, users: int, slices: int) -> tuple[Recording, float]:
    """A simulated trial whose transactions take 2 ms or more, with a Pareto index of 1.8, in slices of 100 ms
    with a guard time of 8 ms; and the shape 1 / 1.8 of its percentiles.
    """
    shape, least_us, guard_us, length_us = 1.0 / 1.8, 2_000.0, 8_000, 100_000
    plan = {"load": {"connections": users, "shape": {"closed_slices": {"guard_us": guard_us}}}}
    recording = Recording(plan=plan)
    zeros = dict.fromkeys((*Counts.__annotations__, "guard_events", "in_flight"), 0)
    for number in range(slices):
        counted: list[int] = []
        after: list[int] = []
        part: Any = {**zeros, "slice": number, "resumed_us": 0, "start_us": guard_us, "end_us": length_us}
        for _ in range(users):
            at_us = 0.0
            while at_us < length_us:
                took_us = least_us * random.random() ** -shape
                at_us += took_us
                part["guard_events"] += at_us < guard_us
                if at_us >= guard_us:
                    (counted if at_us < length_us else after).append(bucket_lower_us(round(took_us)))
        sums = {"latency_sum_us": float(sum(counted)), "errors": {}, "generator": generator_use()}
        ends = {"latency_min_us": min(counted), "latency_max_us": max(counted)} if counted else {}
        part |= {"events": len(counted), "in_flight": len(after), "paused_us": 0, **sums}
        part |= {"latency_min_us": None, "latency_max_us": None, **ends}
        part |= {"latency_us": list(Counter(counted).items())}
        part |= {"in_flight_latency_us": list(Counter(after).items())}
        recording.slices.append(part)
    recording.counted = recording.slices
    recording.end = {"reason": "done", "phases": {"measure": cast(PhaseTotals, {"dropped": 0})}}
    return recording, shape


def test_percentiles_of_heavy_tailed_latencies_are_without_bias() -> None:
    recording, shape = pareto_slices(np.random.default_rng(1), users=4, slices=3000)
    found = figures(recording, slices.window(recording))
    for name, share, tolerance in (("p50", 0.5, 0.01), ("p90", 0.1, 0.01), ("p99", 0.01, 0.03)):
        true_us = 2_000.0 * share**-shape
        assert found.metric(f"latency_{name}_us") == pytest.approx(true_us, rel=tolerance)
    # As long as a slice.
    assert found.latency_p999_us == pytest.approx(2_000.0 * 0.001**-shape, rel=0.1)
    assert found.latency_mean_us == pytest.approx(2_000.0 * 1.8 / 0.8, rel=0.03)
    # The transactions that end within the slices are too few of the long ones.
    for part in recording.counted:
        del part["in_flight_latency_us"]
    without = figures(recording, slices.window(recording))
    assert without.latency_p999_us < 0.8 * found.latency_p999_us
    assert without.throughput == found.throughput


def change_totals(field: str, by: float) -> Callable[[Records], None]:
    def change(records: Records) -> None:
        records[-1]["data"]["phases"]["measure"][field] += by

    return change


def shorten(records: Records) -> None:
    part = next(record["data"] for record in records if record["type"] == "slice")
    part["end_us"] -= 40_000


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (change_totals("events", 30), "the slices contain"),
        (change_totals("latency_sum_us", 10e6), "connections were busy for"),
        (change_totals("latency_sum_us", -10e6), "connections were busy for"),
        (shorten, "slice 0 took 180.0 ms but 220.0 ms were planned"),
    ],
)
def test_contradictions_among_slices_are_found(
    tmp_path: Path, change: Callable[[Records], None], text: str
) -> None:
    whole = in_slices(lambda _trial, _number: 100)
    kept: list[Any] = []

    def spoil(trial: Trial, records: Records) -> Records:
        kept.append(spoiled := whole(trial, records))
        return spoiled

    judged(tmp_path, Making(connections=(10,), blocks=1, spoil=spoil, facts=FACTS))
    assert arithmetic.find_contradictions(read(kept[0], FACTS["slices"])) == []
    change(kept[0])
    assert text in " ".join(arithmetic.find_contradictions(read(kept[0], FACTS["slices"])))
