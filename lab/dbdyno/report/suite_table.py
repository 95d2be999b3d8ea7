"""The tables of a suite: a row for each test, a column for each variant; changes first, then each cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno import result_text
from dbdyno.report import formatting
from dbdyno.store.verdict import Suite, VerdictFile
from dbdyno.text import compose


@dataclass(frozen=True)
class SuiteCellText:
    """One cell: the change of one variant in one test."""

    estimate: str = result_text.MISSING
    interval: str = ""
    # The verdict, or whether a cost rose or fell; empty if that is not sure.
    word: str = ""
    # The class of its colour, and how strong it is, from 0 to 3. A cell without a sure direction has no
    # colour, whatever its size.
    css_class: str = "neutral"
    strength: int = 0
    # The verdict's code; None for a cost.
    code: str | None = None
    # Numbers of the trials that it comes from.
    trials: Sequence[int] = ()


@dataclass(frozen=True)
class SuiteTable:
    """One table."""

    title: str
    variants: Sequence[str]
    # Test -> a cell for each variant.
    rows: Sequence[tuple[str, Sequence[SuiteCellText]]]


# Changes in percent from which a colour is stronger.
_STRENGTHS = (2.0, 5.0, 15.0)
_WORDS = {"more": compose("more"), "less": compose("less")}


def suite_tables(verdict: VerdictFile) -> Iterator[SuiteTable]:
    """The table of the changes, and one for each cost; none without suites."""
    suites = verdict.suites or []
    if not suites:
        return
    tests = list(dict.fromkeys(one.workload for one in verdict.comparisons))
    variants = [suite.variant for suite in suites]
    metric = formatting.metric_name(verdict.comparisons[0].curve.metric)
    title = compose("{metric} against {baseline}", metric=metric, baseline=verdict.baseline)
    changes = [(test, [_change(verdict, test, variant) for variant in variants]) for test in tests]
    yield SuiteTable(title, variants, changes)
    for key in dict.fromkeys(cost.key for suite in suites for cost in suite.costs):
        rows = [(test, [_cost(suite, key, test) for suite in suites]) for test in tests]
        cost = next(cost for suite in suites for cost in suite.costs if cost.key == key)
        title = compose(
            "{cost} per transaction against {baseline}", cost=cost.title, baseline=verdict.baseline
        )
        yield SuiteTable(title, variants, rows)


def _change(verdict: VerdictFile, test: str, variant: str) -> SuiteCellText:
    comparison = next(one for one in verdict.comparisons if (one.workload, one.variant) == (test, variant))
    effect = comparison.curve
    return SuiteCellText(
        formatting.estimate(effect),
        formatting.interval(effect),
        formatting.heading(comparison),
        formatting.css_class(effect.verdict),
        _strength(effect.effect_percent) if effect.verdict in ("faster", "slower") else 0,
        effect.verdict,
        sorted(
            index for point in comparison.points for index in (*point.trials.baseline, *point.trials.variant)
        ),
    )


def _cost(suite: Suite, key: str, test: str) -> SuiteCellText:
    cells = [cell for cost in suite.costs if cost.key == key for cell in cost.tests if cell.workload == test]
    if not cells:
        return SuiteCellText()
    (cell,) = cells
    return SuiteCellText(
        formatting.estimate(cell),
        formatting.interval(cell),
        _WORDS[cell.direction] if cell.direction else "",
        {"more": "slower", "less": "faster", None: "neutral"}[cell.direction],
        _strength(cell.effect_percent) if cell.direction else 0,
    )


def _strength(percent: float | None) -> int:
    return sum(abs(percent or 0.0) >= limit for limit in _STRENGTHS)
