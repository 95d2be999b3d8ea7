"""D08: engines of a fleet that began apart, or of which one was slow."""

from __future__ import annotations

from typing import Any

from tests.unit.test_judge_server_state import trials_of

from dbdyno.rules.generator import fleet


def engine(name: str, start_ms: float = 0.0, mean_us: float = 1000.0) -> dict[str, Any]:
    return {"name": name, "start_skew_us": start_ms * 1000.0, "latency_mean_us": mean_us}


def findings(*engines: list[dict[str, Any]]) -> list[Any]:
    trials = [one for one in trials_of() if one.variant == "a"][: len(engines)]
    return list(fleet(trials, {one.index: of for one, of in zip(trials, engines, strict=True)}))


def test_engines_that_agree_have_no_finding() -> None:
    assert findings([engine("h1", 2.0), engine("h2", 45.0, 1200.0), engine("h3")]) == []
    assert list(fleet(trials_of(), {})) == []


def test_engines_that_begin_apart() -> None:
    (finding,) = findings([engine("h1"), engine("h2", 80.0)], [engine("h1"), engine("h2", 10.0)])
    assert (finding.code, finding.level, finding.subject) == ("D08", "warn", "a")
    assert "h2 began 80 ms after the first one (limit 50 ms)" in finding.text
    assert list(finding.evidence["skew_ms"].values()) == [80.0]


def test_an_engine_that_is_slow_in_most_trials() -> None:
    slow, equal = [engine("h1"), engine("h2"), engine("h3", 0.0, 2000.0)], [engine("h1"), engine("h2")]
    (finding,) = findings(slow, slow, equal)
    assert "the mean latency of h3 was 2.00 times the median of all" in finding.text
    assert findings(slow, equal) == []


def test_of_two_engines_the_slower_one_is_named() -> None:
    (finding,) = findings([engine("h1"), engine("h2", 0.0, 3000.0)])
    assert "h2 was 3.00 times" in finding.text


def test_a_difference_of_a_short_latency_does_not_count() -> None:
    assert findings([engine("h1", 0.0, 50.0), engine("h2", 0.0, 120.0)]) == []
