"""Sums up a suite: one variant against the baseline over all tests (workloads), as counts and a sentence.

The verdicts of the tests are those of `decision`, which holds the family-wise error rate over them. The costs
of a transaction are tested jointly too: over all tests of a variant, with an equal share of 5 % for each cost
of each variant. With `design.stop` they allow for a look after every block, because throughput, which decides
when the run stops, goes with the costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from dbdyno.decide.comparison import Comparison, change, failures
from dbdyno.decide.cost_changes import TrialCosts, cost_ratios
from dbdyno.decide.decision import relevant_to, stopping
from dbdyno.experiment.model import Experiment
from dbdyno.explain import BY_KEY
from dbdyno.finding import Finding
from dbdyno.result_text import VERDICTS
from dbdyno.say.caveats import caveats, with_caveats
from dbdyno.say.wording import change as change_text
from dbdyno.say.wording import confidence, interval
from dbdyno.stats.paired import ALPHA, Effect, joint_effects
from dbdyno.stats.repeated import Looks
from dbdyno.stats.verdict_rule import DIRECTIONS, Verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import CostKey, Suite, SuiteCell, SuiteCost
from dbdyno.text import Text, compose, compose_count, join

COSTS: Sequence[CostKey] = get_args(CostKey)
# In the order of the sentence.
_COUNTS: Mapping[Verdict, str] = {
    Verdict.FASTER: VERDICTS[Verdict.FASTER],
    Verdict.SLOWER: VERDICTS[Verdict.SLOWER],
    Verdict.MIXED: compose("mixed, depending on the load"),
    Verdict.EQUIVALENT: VERDICTS[Verdict.EQUIVALENT],
    Verdict.UNDECIDED: VERDICTS[Verdict.UNDECIDED],
    Verdict.TOO_FEW_BLOCKS: compose("without a verdict, for which there are too few blocks"),
    Verdict.UNFINISHED: VERDICTS[Verdict.UNFINISHED],
    Verdict.NOT_COMPARABLE: VERDICTS[Verdict.NOT_COMPARABLE],
}


def suites(
    comparisons: Sequence[Comparison],
    trials: Sequence[MeasuredTrial],
    costs: TrialCosts,
    experiment: Experiment,
    findings: Sequence[Finding],
) -> list[Suite]:
    """One per variant other than the baseline; [] if there is one workload, or the factors have verdicts.

    `findings` are those of the run, whose caveats follow the sentence.
    """
    by_variant: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_variant.setdefault(comparison.variant, []).append(comparison)
    if len(experiment.workloads) < 2 or any(entry.is_factorial for entry in comparisons):
        return []
    results = []
    for variant, tests in by_variant.items():
        by_verdict: dict[Verdict, list[Comparison]] = {}
        for word in _COUNTS:
            if of_word := [test for test in tests if test.judged.verdict is word]:
                by_verdict[word] = of_word
        # An unfinished run has no intervals, so that nobody stops it after a block with a lucky result.
        is_unfinished = Verdict.UNFINISHED in by_verdict
        of_costs = [] if is_unfinished else list(_costs(variant, trials, costs, experiment))
        of_variants = [trial for trial in trials if trial.variant in tests[0].names[:2]]
        failed = dict(failures(of_variants)).values()
        results.append(
            Suite(
                variant=variant,
                tests={word.value: [entry.workload for entry in of] for word, of in by_verdict.items()},
                costs=of_costs,
                sentence=with_caveats(
                    _sentence(tests, by_verdict, of_costs), _caveats(tests, findings, failed)
                ),
            )
        )
    return results


def _costs(
    variant: str, trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment
) -> Iterator[SuiteCost]:
    alpha = ALPHA / (len(COSTS) * (len(experiment.variants) - 1))
    stop = stopping(experiment)
    looks = Looks(stop.last, planned=stop.planned) if stop else None
    for key in COSTS:
        ratios = cost_ratios(key, variant, trials, costs, experiment)
        effects = joint_effects(list(ratios.values()), alpha, looks)
        cells = [
            SuiteCell(workload=workload, direction=_direction(effect), **change(effect))
            for workload, effect in zip(ratios, effects, strict=True)
            if effect is not None
        ]
        if cells:
            yield SuiteCost(key=key, title=BY_KEY[key].title, confidence=1.0 - alpha, tests=cells)


def _direction(effect: Effect) -> Literal["more", "less"] | None:
    if not effect.is_significant:
        return None
    return "more" if effect.effect_percent > 0.0 else "less"


def _caveats(tests: Sequence[Comparison], findings: Sequence[Finding], failed: Iterable[str]) -> list[str]:
    """Failures of servers, the caveats that all tests share, and the number of tests with further ones."""
    of_tests = [caveats(relevant_to(test.names, findings)) for test in tests]
    shared = [test for test in of_tests[0] if all(test in of_test for of_test in of_tests)]
    if number := sum(len(of_test) > len(shared) for of_test in of_tests):
        shared.append(
            compose_count(
                number,
                "{number} test has further caveats",
                "{number} tests have further caveats",
            )
        )
    return [*caveats((), failed), *shared]


def _sentence(
    tests: Sequence[Comparison],
    by_verdict: Mapping[Verdict, Sequence[Comparison]],
    costs: Sequence[SuiteCost],
) -> Text:
    """18 against 14 over 30 tests: 6 faster (best scan +14.0 %, 95 % interval +11.2 to +17.0), 24 …"""
    first = tests[0]
    counts = [_count(word, of_word) for word, of_word in by_verdict.items()]
    text = compose(
        "{variant} against {baseline} over {number} tests: {counts}",
        variant=first.variant,
        baseline=first.baseline,
        number=len(tests),
        counts=join(", ", counts),
    )
    changes = [
        compose(
            "{cost} per transaction: {more} up, {less} down",
            cost=entry.title,
            more=len(entry.workloads("more")),
            less=len(entry.workloads("less")),
        )
        for entry in costs
        if entry.key == COSTS[0]
    ]
    return join("; ", (text, *changes))


def _count(word: Verdict, tests: Sequence[Comparison]) -> Text:
    text = join(" ", (f"{len(tests)}", _COUNTS[word]))
    if word is Verdict.EQUIVALENT:
        delta = tests[0].scale.delta_percent
        return compose("{count} within {delta:g} % (declared)", count=text, delta=delta)
    if word not in DIRECTIONS:
        return text
    largest = max(
        tests, key=lambda test: abs(test.judged.overall.effect_percent) if test.judged.overall else 0
    )
    effect = largest.judged.overall
    assert effect is not None, "a verdict with a direction has an effect"
    parts: list[str] = [change_text(effect)]
    if effect.interval_percent:
        parts.append(join(" ", (confidence(effect.alpha), interval(effect.interval_percent))))
    which = {"count": text, "workload": largest.workload, "change": join(", ", parts)}
    if word is Verdict.FASTER:
        return compose("{count} (best {workload} {change})", **which)
    return compose("{count} (worst {workload} {change})", **which)
