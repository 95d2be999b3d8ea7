"""D06 of a comparison: what the load of other processes did to its effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from dbdyno.experiment.metrics import harm_max
from dbdyno.finding import Finding
from dbdyno.judge.comparison import Comparison, log_ratios
from dbdyno.judge.foreign_load import CODE, shares_of_blocks
from dbdyno.judge.wording import interval, signed
from dbdyno.stats.covariate import Rule
from dbdyno.stats.paired import Ratios, effect, mean_ratios
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# `evidence["what"]` of the finding about variants that did not meet, or not feel, other processes alike.
UNEQUAL = "unequal"


def unequal_load(comparison: Comparison) -> Iterator[Finding]:
    """A warning if the load of others cannot be distinguished from the effect, or if an override leaves it in
    the effect; a note if it was taken out.
    """
    stays = any(trial.foreign_stays for trial in _trials(comparison))
    ratios = _without_override(comparison) if stays else comparison.judged.assessment.ratios
    rules = {one.rule for one in ratios}
    if rules.isdisjoint({Rule.BOUNDED, Rule.BURSTS}):
        return
    baseline, variant, workload = comparison.names
    percents = {
        baseline: _percent(trial for pairs in comparison.pairs for trial in pairs.baseline.values()),
        variant: _percent(trial for pairs in comparison.pairs for trial in pairs.variant.values()),
    }
    facts = {"workload": workload, "variant": variant, "percents": percents}
    if stays:
        text = compose(
            "other processes used {one:.1f} % of the CPUs of server and client next to {baseline} and "
            "{other:.1f} % next to {variant} (medians), or not always as much next to both; the effect "
            "contains what that cost",
            one=percents[baseline],
            baseline=baseline,
            other=percents[variant],
            variant=variant,
        )
        yield Finding(CODE, "warn", text, {**facts, "what": "stays"}, variant)
        return
    if Rule.BOUNDED in rules:
        limit = abs(harm_max(comparison.scale.metric))
        text = compose(
            "other processes used {one:.1f} % of the CPUs of server and client next to {baseline} and "
            "{other:.1f} % next to {variant} (medians), or did not slow both down alike; that cannot be "
            "distinguished from an effect of {variant}, so the interval allows up to {limit:g} % for each "
            "hundredth of the CPUs",
            one=percents[baseline],
            baseline=baseline,
            other=percents[variant],
            variant=variant,
            limit=limit,
        )
        fix = compose("Stop the other processes, or let them run all the time, while measuring")
        yield Finding(CODE, "warn", text, {**facts, "what": UNEQUAL}, variant, fix=fix)
        return
    measured = effect(mean_ratios(_as_measured(comparison)), comparison.judged.assessment.alpha)
    if measured is None or measured.interval_percent is None:
        return
    text = compose(
        "other processes disturbed some trials of {baseline} or {variant} more than others; the effect is "
        "that with equal load (without this adjustment {effect} %, {interval})",
        baseline=baseline,
        variant=variant,
        effect=signed(measured.effect_percent),
        interval=interval(measured.interval_percent),
    )
    yield Finding(CODE, "note", text, {**facts, "what": "adjusted"}, variant)


def _percent(trials: Iterable[MeasuredTrial]) -> float:
    """The median of the CPU time that other processes used."""
    return round(100.0 * median(trial.foreign or 0.0 for trial in trials), 1)


def _trials(comparison: Comparison) -> Iterator[MeasuredTrial]:
    """The trials of both variants at all loads."""
    for pairs in comparison.pairs:
        yield from pairs.baseline.values()
        yield from pairs.variant.values()


def _without_override(comparison: Comparison) -> list[Ratios]:
    """The log ratios of each load as they would be if no override left the load of others in them."""

    def to_remove(trials: Mapping[int, MeasuredTrial]) -> dict[int, MeasuredTrial]:
        return {block: replace(trial, foreign_stays=False) for block, trial in trials.items()}

    pairs = [(to_remove(each.baseline), to_remove(each.variant)) for each in comparison.pairs]
    if comparison.capacities is None:
        return [log_ratios(*each, comparison.scale.metric) for each in pairs]
    trials = [trial for each in pairs for side in each for trial in side.values()]
    shares = shares_of_blocks(trials, *comparison.names[:2])
    return [replace(comparison.capacities, shares=shares).ratios()]


def _as_measured(comparison: Comparison) -> list[Ratios]:
    """The log ratios of each load with the load of other processes in them."""
    if comparison.capacities is not None:
        return [comparison.capacities.measured_ratios()]
    return [pairs.measured_ratios(comparison.scale.metric) for pairs in comparison.pairs]


def has_unequal_load(findings: Sequence[Finding]) -> bool:
    """Whether the load of others cannot be distinguished from an effect."""
    return any(one.code == CODE and one.evidence.get("what") == UNEQUAL for one in findings)
