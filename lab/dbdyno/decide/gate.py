"""The gate (`--max-loss`, `design.max_loss_percent`): whether a variant loses more than is allowed.

A limit that was declared before the run is tested by the procedure of the verdicts (`stats/family.py`), which
alone decides. Any other limit is compared with the interval over all loads that the verdict sentence shows:
the intervals of a run hold together, for any limit, and with `design.stop` after every block. A loss is a
lower throughput or a higher latency.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dbdyno.decide.comparison import Comparison as Judgement
from dbdyno.experiment.family import allows_false_discoveries, has_verdict, is_factorial
from dbdyno.experiment.metrics import HIGHER_IS_BETTER, change_of_loss, metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.problem import Problem
from dbdyno.result_text import decimals_for
from dbdyno.say.wording import SIDE_BY_HOLM, loads
from dbdyno.store.verdict import (
    CombinedEffect,
    Comparison,
    Gate,
    GatedComparison,
    GatedSuite,
    GateResult,
    Point,
    VerdictFile,
)
from dbdyno.text import Text, compose, join, mark

# The results, from the one that decides first for the whole run to the one that decides last.
_PRECEDENCE: tuple[GateResult, ...] = ("not-comparable", "worse", "undecided", "not-inferior")
# Tests that a sentence about a suite lists.
_LISTED = 5
# The sentences about suites.
_OF_SUITES: dict[GateResult, str] = {
    "not-inferior": mark("{where}: every test loses less than {allowed}, with 95 % confidence together"),
    "worse": mark("{where}: more is lost than {allowed} in {count} ({tests})"),
    "not-comparable": mark("{where}: {count} not comparable ({tests})"),
    "undecided": mark("{where}: undecided against {allowed} in {count} ({tests})"),
}
# Verdicts whose comparisons have no interval -> the reason.
_WITHOUT_INTERVAL = {
    "not-comparable": compose("the variants are not comparable"),
    "unfinished": compose("the run is not finished"),
    "too-few-blocks": compose("there are too few blocks"),
}


def require_gate(experiment: Experiment) -> None:
    """Raise Problem if the experiment has no comparison that a gate can judge."""
    if is_factorial(experiment):
        raise Problem(
            "--max-loss judges variants, but the experiment compares factors",
            "Leave out --max-loss, or write a file with two variants",
        )
    if allows_false_discoveries(experiment):
        raise Problem(
            "--max-loss needs a family-wise error rate, but the experiment limits the false discovery rate",
            'Leave out --max-loss, or error_rate = "false-discovery" in [design]',
        )
    if not has_verdict(experiment):
        raise Problem(
            "--max-loss judges differing variants, but all variants of the experiment are identical",
            "Leave out --max-loss, or let the variants differ",
        )


@dataclass(frozen=True)
class DecidedLimits:
    """The variants and workloads for which the procedure has decided a limit that was declared before the
    run: for each of them, and for the claim about all workloads of a variant.
    """

    each: Collection[tuple[str, str]]
    of_all: Collection[tuple[str, str]]


def decided_limits(comparisons: Sequence[Judgement]) -> DecidedLimits:
    """What the procedure has decided of judged comparisons."""
    return DecidedLimits(
        {comparison.names[1:] for comparison in comparisons if comparison.judged.is_gate_decided},
        {comparison.names[1:] for comparison in comparisons if comparison.judged.is_gate_decided_alone},
    )


def gate(verdict: VerdictFile, max_loss_percent: float, decided: DecidedLimits | None = None) -> Gate:
    """The gate of a judged run. `decided` is None if the limit was not declared before the run."""
    entries: list[GatedComparison] = []
    passes: list[bool] = []
    for comparison in verdict.comparisons:
        names = verdict.baseline, comparison.variant, comparison.workload
        if not comparison.identical:
            identical = find_identical(comparison.workload, verdict.comparisons)
            is_decided = None if decided is None else names[1:] in decided.each
            entries.append(_judge(comparison, names[0], max_loss_percent, identical, is_decided=is_decided))
            is_decided = None if decided is None else names[1:] in decided.of_all
            word = result(comparison, max_loss_percent, identical, is_decided=is_decided)
            passes.append(word == "not-inferior")
    suites = _suites(entries, passes, verdict.baseline, max_loss_percent)
    results = [entry.result for entry in suites or entries]
    return Gate(
        max_loss_percent=max_loss_percent,
        result=next((entry for entry in _PRECEDENCE if entry in results), "undecided"),
        suites=suites or None,
        comparisons=entries,
    )


def suite_result(tests: Sequence[GateResult], passes: Sequence[bool]) -> GateResult:
    """The gate's result for one variant, from those of its tests. `passes`: whether each test significantly
    loses less, at the level at which a claim about all of them is tested.
    """
    if "not-comparable" in tests:
        return "not-comparable"
    return "worse" if "worse" in tests else "not-inferior" if all(passes) else "undecided"


def _suites(
    entries: Sequence[GatedComparison], passes: Sequence[bool], baseline: str, max_loss_percent: float
) -> list[GatedSuite]:
    """One per variant; [] with one workload."""
    suites = []
    for variant in dict.fromkeys(entry.variant for entry in entries):
        tests = [
            (entry, of_all) for entry, of_all in zip(entries, passes, strict=True) if entry.variant == variant
        ]
        if len(tests) < 2:
            return []
        word = suite_result([test.result for test, _ in tests], [of_all for _, of_all in tests])
        undecided = [test.workload for test, of_all in tests if test.result == word or not of_all]
        listed = (
            [test.workload for test, _ in tests if test.result == word] if word != "undecided" else undecided
        )
        where = compose(
            "gate: {variant} against {baseline} over {number} tests",
            variant=variant,
            baseline=baseline,
            number=len(tests),
        )
        sentence = compose(
            _OF_SUITES[word],
            where=where,
            allowed=compose("the {percent:g} % allowed", percent=max_loss_percent),
            count=len(listed),
            tests=join(", ", listed[:_LISTED]) + (" …" if len(listed) > _LISTED else ""),
        )
        suites.append(GatedSuite(variant=variant, result=word, sentence=sentence))
    return suites


def find_identical(workload: str, comparisons: Iterable[Comparison]) -> Comparison | None:
    """The comparison of identical variants under a workload, which has the noise floor; None without."""
    return next(
        (
            comparison
            for comparison in comparisons
            if comparison.identical and comparison.workload == workload
        ),
        None,
    )


def result(
    comparison: Comparison,
    max_loss_percent: float,
    identical: Comparison | None = None,
    *,
    is_decided: bool | None = None,
) -> GateResult:
    """The gate's result for one comparison.

    `identical` is a comparison of identical variants under the same workload, if there is one. `is_decided`:
    whether the procedure of the family has decided it; None if the limit was not declared before the run.
    """
    curve = comparison.curve
    if curve.verdict == "not-comparable":
        return "not-comparable"
    ends = _losses(comparison)
    if ends is None or is_decided is False:
        return "undecided"
    estimate = _estimated_loss(comparison)
    least, most = (estimate, estimate) if is_decided and estimate is not None else ends
    if least > max_loss_percent:
        return "undecided" if _is_noise(curve, identical.curve if identical else None) else "worse"
    if most < max_loss_percent and not _worse_loads(comparison, max_loss_percent, identical):
        return "not-inferior"
    return "undecided"


def is_forbidden(comparison: Comparison, max_loss_percent: float, identical: Comparison | None) -> bool:
    """Whether more blocks will not decide the gate: the loss is within the noise floor, or it is not too
    large although that at a single load is, beyond chance.
    """
    ends, estimate = _losses(comparison), _estimated_loss(comparison)
    if ends is None or estimate is None:
        return False
    if ends[0] > max_loss_percent:
        return _is_noise(comparison.curve, identical.curve if identical else None)
    return estimate <= max_loss_percent and bool(_worse_loads(comparison, max_loss_percent, identical))


def _estimated_loss(entry: Comparison) -> float | None:
    estimate = entry.curve.effect_percent
    return -estimate if estimate is not None and entry.curve.metric in HIGHER_IS_BETTER else estimate


def _losses(entry: Comparison, load: int | None = None) -> tuple[float, float] | None:
    """The smallest and the largest loss in the interval, over all loads or at one load; None without."""
    ends = (entry.curve if load is None else entry.points[load]).interval_percent
    if ends is None:
        return None
    # An infinite end is null; a change is never below -100 %.
    low, high = (math.inf if end is None else end for end in ends)
    return (-high, -low) if entry.curve.metric in HIGHER_IS_BETTER else (low, high)


def _with_limit(entry: Comparison, max_loss_percent: float) -> Comparison:
    """The comparison with its interval over all loads extended to contain the limit, which is undecided."""
    ends = entry.curve.interval_percent
    if ends is None:
        return entry
    limit = change_of_loss(entry.curve.metric, max_loss_percent)
    low, high = ends
    update = {
        "interval_percent": (
            None if low is None else min(low, limit),
            None if high is None else max(high, limit),
        )
    }
    # The effect at an only load is the effect over all loads.
    points = (
        [point.model_copy(update=update) for point in entry.points]
        if len(entry.points) == 1
        else entry.points
    )
    return entry.model_copy(update={"curve": entry.curve.model_copy(update=update), "points": points})


def _is_noise(effect: CombinedEffect | Point, of_identical: CombinedEffect | Point | None) -> bool:
    """Whether the effect is within the noise floor. A floor that is infinite is null in verdict.json."""
    floor = effect.noise_floor_percent
    if floor is None:
        floor = math.inf if of_identical is not None and of_identical.interval_percent else 0.0
    return effect.effect_percent is not None and abs(effect.effect_percent) <= floor


def _worse_loads(comparison: Comparison, max_loss_percent: float, identical: Comparison | None) -> list[int]:
    """The loads at which the variant significantly loses more than is allowed, and more than noise."""
    worse = []
    for load, point in enumerate(comparison.points):
        ends = _losses(comparison, load)
        of_identical = (
            next((entry for entry in identical.points if entry.at == point.at), None) if identical else None
        )
        if ends is not None and ends[0] > max_loss_percent and not _is_noise(point, of_identical):
            worse.append(load)
    return worse


def _judge(
    comparison: Comparison,
    baseline: str,
    max_loss_percent: float,
    identical: Comparison | None,
    *,
    is_decided: bool | None,
) -> GatedComparison:
    word = result(comparison, max_loss_percent, identical, is_decided=is_decided)
    if is_decided is False:
        comparison = _with_limit(comparison, max_loss_percent)
    text = _sentence(comparison, baseline, word, max_loss_percent, identical=identical)
    return GatedComparison(
        variant=comparison.variant, workload=comparison.workload, result=word, sentence=text
    )


def _sentence(
    comparison: Comparison,
    baseline: str,
    word: GateResult,
    max_loss_percent: float,
    *,
    identical: Comparison | None,
) -> str:
    ends = _losses(comparison)
    allowed = compose("the {percent:g} % allowed", percent=max_loss_percent)
    where = compose(
        "{variant} against {baseline} on {workload}",
        variant=comparison.variant,
        baseline=baseline,
        workload=comparison.workload,
    )
    if ends is None or word == "not-comparable":
        reason = _WITHOUT_INTERVAL.get(comparison.curve.verdict or "", compose("there is no interval"))
        return compose(
            "gate: {where}: {detail}, because {reason}",
            where=where,
            detail=compose("not judged") if word == "not-comparable" else compose("undecided"),
            reason=reason,
        )
    text = _loss_text(comparison, where, ends, word, max_loss_percent)
    if word in {"worse", "not-inferior"}:
        limited = (
            compose("{text}, more than {allowed}", text=text, allowed=allowed)
            if word == "worse"
            else compose("{text}, within {allowed}", text=text, allowed=allowed)
        )
        # As in a verdict sentence, the interval may contain what the procedure excludes.
        return join("; ", (limited, SIDE_BY_HOLM)) if ends[0] <= max_loss_percent <= ends[1] else limited
    if ends[0] > max_loss_percent:
        floor = comparison.curve.noise_floor_percent
        amount = (
            compose("an unknown amount") if floor is None else compose("up to {floor:.1f} %", floor=floor)
        )
        reason = compose("because identical variants differ by {amount}", amount=amount)
    elif worse := _worse_loads(comparison, max_loss_percent, identical):
        reason = compose(
            "but significantly more than {allowed} {loads}",
            allowed=allowed,
            loads=loads([comparison.points[load].at for load in worse]),
        )
    else:
        return compose("{text}, undecided against {allowed}", text=text, allowed=allowed)
    return compose("{text}, undecided {reason}", text=text, reason=reason)


def _range_text(metric: str, ends: tuple[float, float], word: GateResult, max_loss_percent: float) -> str:
    """The loss as text: loses at most 2.1 % of throughput, p95 latency at least 4.2 % higher."""
    digits = decimals_for(ends, max_loss_percent)
    least, most = (
        f"{end:.{digits}f} %" if math.isfinite(end) else compose("an unknown amount") for end in ends
    )
    if ends[1] <= 0.0:
        less = compose("loss of") if metric in HIGHER_IS_BETTER else "higher"
        return compose("no {less} {metric_text}", less=less, metric_text=metric_text(metric))
    if word == "worse" and ends[0] > max_loss_percent:
        amount = compose("at least {least}", least=least)
    elif ends[0] > 0.0:
        amount = compose("{least} to {most}", least=least, most=most)
    else:
        amount = compose("at most {most}", most=most)
    if metric in HIGHER_IS_BETTER:
        return compose("loses {amount} of {metric_text}", amount=amount, metric_text=metric_text(metric))
    return compose("{metric_text} higher by {amount}", metric_text=metric_text(metric), amount=amount)


def _loss_text(
    comparison: Comparison, where: str, ends: tuple[float, float], word: GateResult, max_loss_percent: float
) -> Text:
    """What was compared, and the range of the loss."""
    confidence = f"{round(100.0 * comparison.curve.confidence, 1):g} %"
    average = compose(" on average") if len(comparison.points) > 1 and comparison.capacity is None else ""
    range_ = _range_text(comparison.curve.metric, ends, word, max_loss_percent)
    return compose(
        "gate: {where}: {range}{average} ({confidence})",
        where=where,
        range=range_,
        average=average,
        confidence=confidence,
    )
