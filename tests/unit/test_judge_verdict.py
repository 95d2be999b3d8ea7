"""Stored runs through the judge: every word, and the shape of verdict.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.stored_run import Arms, Making, make

from dbdyno.experiment.schedule import Trial
from dbdyno.judge import judge
from dbdyno.store import Run

VERDICTS = ["not-comparable", "exploratory", "equivalent", "faster", "slower", "not-distinguishable"]
PERCENT = {"type": ["number", "null"]}
INTERVAL = {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# verdict.json as the design promises it to other programs.
POINT = _object(
    at={"type": "object", "minProperties": 1, "maxProperties": 1},
    metric={"enum": ["throughput", "latency_p95_us"]},
    baseline=PERCENT,
    variant=PERCENT,
    effect_percent=PERCENT,
    interval_percent=INTERVAL,
    confidence={"const": 0.95},
    floor_percent=PERCENT,
    delta_percent={"type": "number"},
    blocks={"type": "integer"},
    trials=_object(baseline={"type": "array"}, variant={"type": "array"}),
    verdict={"enum": VERDICTS},
)
CURVE = _object(
    metric={"type": "string"},
    effect_percent=PERCENT,
    interval_percent=INTERVAL,
    blocks={"type": "integer"},
    verdict={"enum": VERDICTS},
    sentence={"type": "string"},
)
CHECK = _object(
    code={"type": "string"},
    level={"enum": ["stop", "warn", "note"]},
    text={"type": "string"},
    evidence={"type": "object"},
    subject={"type": "string"},
    override={"type": ["string", "null"]},
)
SCHEMA = _object(
    schema={"const": 1},
    experiment={"type": "string"},
    baseline={"type": "string"},
    comparisons={
        "type": "array",
        "items": _object(
            variant={"type": "string"},
            workload={"type": "string"},
            points={"type": "array", "items": POINT},
            curve=CURVE,
        ),
    },
    checks={"type": "array", "items": CHECK},
)


def judged(folder: Path, making: Making) -> dict[str, Any]:
    """The verdict of a made run, after a trip through JSON."""
    verdict: dict[str, Any] = json.loads(json.dumps(judge(make(folder, making)), allow_nan=False))
    jsonschema.validate(verdict, SCHEMA)
    return verdict


def curve(verdict: dict[str, Any]) -> dict[str, Any]:
    """The only comparison's curve."""
    (comparison,) = verdict["comparisons"]
    found: dict[str, Any] = comparison["curve"]
    return found


def spread(base: int, step: int = 1) -> Any:
    """A speed that differs from block to block, so that intervals have a width."""
    return lambda trial: base + step * trial.block


def test_slower(tmp_path: Path) -> None:
    speed = Arms(a=lambda _t: 1000, b=lambda t: 900 + 2 * t.block)
    verdict = judged(tmp_path, Making(speed=speed))
    found = curve(verdict)
    assert found["verdict"] == "slower"
    # b is -10.0, -9.8, ... -8.6 % in the eight blocks. Of the 36 Walsh averages the fourth from either
    # end bounds the interval (5 of 256 sign patterns lie beyond), and the median lies in the middle.
    assert found["effect_percent"] == pytest.approx(-9.3, abs=0.001)
    assert found["interval_percent"] == pytest.approx([-9.8, -8.8], abs=0.001)
    assert found["sentence"] == (
        "b is slower than a: throughput -9.3 % [-9.8, -8.8] over 10, 20 and 40 connections of "
        "oltp_read_write (8 blocks, 95 % interval)."
    )
    points = verdict["comparisons"][0]["points"]
    assert [point["at"] for point in points] == [{"connections": n} for n in (10, 20, 40)]
    assert {point["verdict"] for point in points} == {"slower"}
    assert points[0]["baseline"] == 10_000.0
    assert points[0]["variant"] == 9070.0
    assert points[0]["blocks"] == len(points[0]["trials"]["baseline"]) == 8
    # Holm's first step for three points at 5 %: the interval is wider than the curve's own.
    assert points[0]["interval_percent"][0] < found["interval_percent"][0]
    assert verdict["checks"] == []


def test_faster(tmp_path: Path) -> None:
    assert curve(judged(tmp_path, Making(speed=Arms(b=spread(110)))))["verdict"] == "faster"


def test_equivalent_even_where_the_interval_excludes_zero(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(speed=Arms(a=lambda _t: 1000, b=spread(1004))))
    assert curve(verdict)["interval_percent"][0] > 0
    assert curve(verdict)["verdict"] == "equivalent"
    assert curve(verdict)["sentence"].startswith(
        "b and a are equivalent within ±2 %: throughput +0.7 % [+0.5, +1.0] over"
    )
    narrower = judged(
        tmp_path / "2", Making(speed=Arms(a=lambda _t: 1000, b=spread(1004)), delta_percent=0.5)
    )
    assert curve(narrower)["verdict"] == "faster"


def test_not_distinguishable(tmp_path: Path) -> None:
    speed = Arms(b=lambda t: 100 + (5 if t.block % 2 else -5))
    found = curve(judged(tmp_path, Making(speed=speed)))
    assert found["verdict"] == "not-distinguishable"
    assert found["sentence"].startswith("b is not distinguishable from a: throughput ")
    assert found["sentence"].endswith("(8 blocks, 95 % interval; floor not measured).")


def test_exploratory_below_six_blocks(tmp_path: Path) -> None:
    found = curve(judged(tmp_path, Making(blocks=5)))
    assert (found["verdict"], found["interval_percent"]) == ("exploratory", None)
    assert found["sentence"] == (
        "Exploratory only, b against a: throughput -10.0 % over 10, 20 and 40 connections of oltp_read_write "
        "(5 blocks; an interval needs at least 6)."
    )


def test_a_stop_outweighs_everything(tmp_path: Path) -> None:
    stop: dict[str, Any] = {
        "code": "P07",
        "level": "stop",
        "text": "max_connections is 10 and 40 are needed",
        "evidence": {},
        "subject": "b",
        "override": None,
    }
    verdict = judged(tmp_path, Making(findings=[stop]))
    assert curve(verdict)["verdict"] == "not-comparable"
    assert {point["verdict"] for point in verdict["comparisons"][0]["points"]} == {"not-comparable"}
    assert curve(verdict)["sentence"] == (
        "b and a are not comparable over 10, 20 and 40 connections of oltp_read_write: "
        "check P07 failed (max_connections is 10 and 40 are needed)."
    )
    overridden = judged(tmp_path / "2", Making(findings=[stop], override={"P07": "known and wanted"}))
    assert curve(overridden)["verdict"] == "slower"
    assert curve(overridden)["sentence"].endswith(
        "(8 blocks, 95 % interval; check P07 overridden: “known and wanted”)."
    )
    assert overridden["checks"][0]["override"] == "known and wanted"


def test_a_stop_on_one_variant_spares_the_others(tmp_path: Path) -> None:
    stop: dict[str, Any] = {"code": "P04", "level": "stop", "text": "x", "evidence": {}, "subject": "c"}
    speed = Arms(b=lambda t: 90 if t.variant == "b" else 80)
    verdict = judged(tmp_path, Making(names=("a", "b", "c"), speed=speed, findings=[stop]))
    assert [(c["variant"], c["curve"]["verdict"]) for c in verdict["comparisons"]] == [
        ("b", "slower"),
        ("c", "not-comparable"),
    ]
    on_baseline = {**stop, "subject": "a"}
    both = judged(tmp_path / "2", Making(names=("a", "b", "c"), speed=speed, findings=[on_baseline]))
    assert {c["curve"]["verdict"] for c in both["comparisons"]} == {"not-comparable"}


def test_warnings_stand_in_the_sentence(tmp_path: Path) -> None:
    warnings: list[dict[str, Any]] = [
        {"code": code, "level": "warn", "text": code, "evidence": {"cpus": "0"}, "subject": ""}
        for code in ("P11", "P15", "Q99")
    ]
    sentence = curve(judged(tmp_path, Making(findings=warnings)))["sentence"]
    assert sentence.endswith("(8 blocks, 95 % interval; client and server share CPUs; warnings P15 and Q99).")


def test_open_loop_is_judged_by_latency(tmp_path: Path) -> None:
    making = Making(connections=(64,), rates=(500.0, 1000.0), speed=Arms(b=spread(80)))
    verdict = judged(tmp_path, making)
    points = verdict["comparisons"][0]["points"]
    assert [point["at"] for point in points] == [{"rate": 500.0}, {"rate": 1000.0}]
    assert {point["metric"] for point in points} == {"latency_p95_us"}
    # In the made stream latency is the inverse of speed: b is slower, and its latency higher.
    assert points[0]["effect_percent"] > 10
    assert curve(verdict)["verdict"] == "slower"
    assert "p95 latency +" in curve(verdict)["sentence"]
    assert "over 500 and 1000 transactions per second of" in curve(verdict)["sentence"]


def test_a_block_without_both_arms_is_dropped_and_said(tmp_path: Path) -> None:
    def lost(trial: Trial) -> str | None:
        return "server went away" if (trial.block, trial.variant) == (3, "b") else None

    run = make(tmp_path, Making(failed=lost))
    verdict = judge(run)
    found = curve(verdict)
    assert (found["blocks"], found["verdict"]) == (7, "slower")
    assert "(7 of 8 blocks, 95 % interval; some trials are missing)" in found["sentence"]
    gone = {trial.index for trial in run.trials() if not trial.done}
    used = {index for point in verdict["comparisons"][0]["points"] for index in point["trials"]["variant"]}
    assert len(gone) == 3
    assert not gone & used
    (check,) = verdict["checks"]
    assert (check["code"], check["level"], set(check["evidence"]["trials"])) == ("R04", "warn", gone)
    assert "3 of 48 planned trials have no result" in check["text"]
    assert "3 x server went away" in check["text"]
    measured = json.loads((run.path / "measured.json").read_text())
    assert {t["place"]["index"] for t in measured["trials"] if t["figures"] is None} == gone


def test_a_point_that_nobody_measured_is_never_a_number(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(absent=lambda t: t.variant == "b" and t.point.connections == 40))
    points = verdict["comparisons"][0]["points"]
    assert points[2]["verdict"] == "not-comparable"
    assert points[2]["variant"] is None
    assert points[2]["effect_percent"] is None
    assert points[0]["verdict"] == "slower"
    # The curve is not built on the points that happened to work.
    assert curve(verdict)["verdict"] == "not-comparable"
    assert "check R04 failed" in curve(verdict)["sentence"]
    assert [(c["code"], c["level"]) for c in verdict["checks"]] == [("R04", "warn"), ("R04", "stop")]


def test_an_interrupted_run_is_judged_by_what_there_is(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(absent=lambda t: t.block >= 3))
    assert curve(verdict)["verdict"] == "exploratory"
    assert (
        "(3 of 8 blocks; an interval needs at least 6; some trials are missing)" in curve(verdict)["sentence"]
    )


def test_one_variant_has_nothing_to_compare(tmp_path: Path) -> None:
    assert judged(tmp_path, Making(names=("a",)))["comparisons"] == []


def test_judging_again_gives_the_same(tmp_path: Path) -> None:
    run = make(tmp_path)
    first = judge(run)
    run.write_verdict(first)
    assert judge(Run.open(run.path)) == first == run.verdict()


def test_a_latency_that_was_cut_off_is_compared_by_its_bound(tmp_path: Path) -> None:
    def overwhelmed(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if trial.variant == "b":
            # As many again were due and had not ended after two seconds.
            totals = records[-1]["data"]["phases"]["measure"]
            totals["censored_us"] = [[2_000_000, totals["events"]]]
            totals["accounting"]["unfinished"] = totals["events"]
            totals["accounting"]["due"] += totals["events"]
        return records

    # Beyond the schema of an ordinary verdict: `bound`, `censored`, and null for an end of the interval.
    verdict = judge(make(tmp_path, Making(connections=(64,), rates=(500.0,), spoil=overwhelmed)))
    point = verdict["comparisons"][0]["points"][0]
    assert point["censored"] == {"baseline": False, "variant": True}
    assert (point["bound"], point["verdict"]) == ("at-least", "slower")
    assert point["variant"] == pytest.approx(2_000_000, rel=0.001)
    assert point["interval_percent"][1] is None
    assert "p95 latency more than +" in curve(verdict)["sentence"]
    assert ", ∞]" in curve(verdict)["sentence"]
