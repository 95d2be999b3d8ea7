"""The words of `dbdyno diff` for two effects: replicates, does not replicate, cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.sentences import check_sentences

from dbdyno.runs.replication import Names, compare_comparisons, compare_effects, compare_factors
from dbdyno.store.verdict import (
    CombinedEffect,
    Comparison,
    FactorEffect,
    Family,
    Point,
    TrialIndices,
    VerdictFile,
)


def effect(
    percent: float | None, ends: tuple[float | None, float | None] | None, verdict: str | None, **more: Any
) -> CombinedEffect:
    return CombinedEffect(**_fields(percent, ends, verdict, **more), p_value=None, sentence="")


def _fields(
    percent: float | None, ends: tuple[float | None, float | None] | None, verdict: str | None, **more: Any
) -> dict[str, Any]:
    known = {"metric": "throughput", "confidence": 0.95, "blocks": 8, "noise_floor_percent": None}
    return {
        **known,
        "delta_percent": None,
        "effect_percent": percent,
        "interval_percent": ends,
        "verdict": verdict,
        **more,
    }


PUBLISHED = effect(21.0, (19.0, 23.0), "faster")


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (PUBLISHED, effect(20.0, (18.0, 22.0), "faster"), "replicates"),
        (PUBLISHED, effect(-9.0, (-10.0, -8.0), "slower"), "does-not-replicate"),
        (PUBLISHED, effect(1.0, (-1.0, 3.0), "undecided"), "does-not-replicate"),
        (PUBLISHED, effect(50.0, (48.0, 52.0), "faster"), "does-not-replicate"),
        (PUBLISHED, effect(20.0, (2.0, 40.0), "faster"), "cannot-tell"),
        # Surely stronger, but perhaps by less than half.
        (PUBLISHED, effect(31.0, (28.0, 34.0), "faster"), "cannot-tell"),
        # Of a loss, the weaker effect is the higher number.
        (
            effect(-20.0, (-21.0, -19.0), "slower"),
            effect(-2.0, (-4.0, 0.5), "undecided"),
            "does-not-replicate",
        ),
        (
            effect(-20.0, (-21.0, -19.0), "slower"),
            effect(-19.0, (-20.0, -18.0), "slower"),
            "replicates",
        ),
        (effect(1.0, (-1.0, 3.0), "undecided"), PUBLISHED, "cannot-tell"),
        (effect(1.0, None, "too-few-blocks"), PUBLISHED, "cannot-tell"),
        (PUBLISHED, effect(1.0, None, "unfinished"), "cannot-tell"),
        (
            PUBLISHED,
            effect(None, None, "not-comparable"),
            "cannot-tell",
        ),
        # The judge withholds the direction, because other processes disturbed the run.
        (PUBLISHED, effect(20.0, (18.0, 22.0), "undecided"), "cannot-tell"),
        # The server of the baseline failed in most blocks.
        (PUBLISHED, effect(None, (30.0, None), "faster"), "cannot-tell"),
        (PUBLISHED, effect(20.0, (18.0, 22.0), "faster", bound="at-least"), "cannot-tell"),
    ],
)
def test_the_word_and_its_reason(first: CombinedEffect, second: CombinedEffect, word: str) -> None:
    found = compare_effects(first, second, Names())
    assert found.word == word
    check_sentences(f"{shown(first)}, then {shown(second)}", found.reason)


def shown(one: CombinedEffect) -> str:
    """An effect in the name of an input."""
    return " ".join(
        map(str, (one.bound or "", one.effect_percent, one.interval_percent, one.verdict))
    ).strip()


def test_equal_zones_of_equivalence_replicate() -> None:
    first = effect(0.1, (-0.5, 0.6), "equivalent", delta_percent=2.0)
    words = {
        compare_effects(first, second, Names(), (2.0, second.delta_percent)).word
        for second in (
            effect(0.2, (-0.3, 0.7), "equivalent", delta_percent=2.0),
            effect(0.2, (-0.3, 0.7), "equivalent", delta_percent=5.0),
            effect(4.0, (3.0, 5.0), "faster", delta_percent=2.0),
        )
    }
    assert words == {"replicates", "cannot-tell", "does-not-replicate"}


def test_the_difference_is_one_of_log_ratios() -> None:
    found = compare_effects(PUBLISHED, effect(10.0, (8.0, 12.0), "faster"), Names())
    assert found.difference_percent == pytest.approx((1.10 / 1.21 - 1.0) * 100.0)
    assert found.half_percent == pytest.approx(((1.0 / 1.1 - 1.0) * 100.0, 10.0))
    low = math.log(1.10 / 1.21) - math.hypot(math.log(1.10 / 1.08), math.log(1.23 / 1.21))
    assert found.difference_interval_percent is not None
    assert found.difference_interval_percent[0] == pytest.approx(math.expm1(low) * 100.0)


def test_an_effect_that_depends_on_the_load_replicates_if_its_directions_do() -> None:
    first = [effect(25.0, (23.0, 27.0), "faster"), effect(0.5, (-1.0, 2.0), "undecided"), _slower()]
    mixed = effect(1.0, (-1.0, 3.0), "mixed")
    same = _answer(_run(first, mixed), _run(first, mixed))
    assert same.word == "replicates"
    check_sentences("the directions replicate", same.reason)
    other = [first[0], first[1], effect(20.0, (18.0, 22.0), "faster")]
    changed = _answer(_run(first, mixed), _run(other, effect(15.0, (14.0, 16.0), "faster")))
    assert changed.word == "does-not-replicate"
    check_sentences("a direction does not replicate", changed.reason)


def test_sentences_name_both_effects() -> None:
    check_sentences(
        "equal effects", _answer(_run([PUBLISHED], PUBLISHED), _run([PUBLISHED], PUBLISHED)).sentence
    )


def test_only_what_both_runs_have_is_compared() -> None:
    three, one = [PUBLISHED, PUBLISHED, PUBLISHED], [PUBLISHED]
    (found,) = compare_comparisons(_run(three, PUBLISHED), _run(one, PUBLISHED), Names(), same_points=False)
    assert found.curve is None
    assert [dict(point.at) for point in found.points] == [{"connections": 10}]
    other = _run(one, PUBLISHED, variant="c")
    assert compare_comparisons(_run(one, PUBLISHED), other, Names(), same_points=True) == []


def test_factors() -> None:
    main = FactorEffect(
        **{key: value for key, value in _fields(21.0, (19.0, 23.0), "faster").items() if key in _EFFECT},
        factors=["threads"],
        levels=["pool"],
        against=["one"],
        workload="oltp_read_write",
        p_value=0.01,
        sentence="",
    )
    run = _run([PUBLISHED], effect(21.0, (19.0, 23.0), None)).model_copy(update={"factors": [main]})
    (found,) = compare_factors(run, run, Names())
    check_sentences("a factor", found.sentence)
    # The sentences on factors have the verdicts.
    assert compare_comparisons(run, run, Names(), same_points=True)[0].curve is None


_EFFECT = ("metric", "confidence", "blocks", "effect_percent", "interval_percent", "verdict")


def _slower() -> CombinedEffect:
    return effect(-19.0, (-21.0, -17.0), "slower")


def _answer(first: VerdictFile, second: VerdictFile) -> Any:
    (found,) = compare_comparisons(first, second, Names(), same_points=True)
    assert found.curve is not None
    return found.curve


def _run(points: Sequence[CombinedEffect], curve: CombinedEffect, variant: str = "b") -> VerdictFile:
    comparison = Comparison(
        variant=variant,
        workload="oltp_read_write",
        points=[
            Point(
                **point.model_dump(exclude={"p_value", "sentence"}),
                at={"connections": 10 * 2**index},
                baseline=1000.0,
                variant=1000.0,
                trials=TrialIndices(baseline=[], variant=[]),
            )
            for index, point in enumerate(points)
        ],
        curve=curve,
    )
    family = Family(sentences=1, alpha=0.05, text="")
    return VerdictFile(
        experiment="made", baseline="a", order_seed=None, family=family, comparisons=[comparison], checks=[]
    )
