"""Whether the design supports what was decided, and what else is known about the decided effects.

R05: identical variants that differ. R07: whether a sweep reaches the peak. R10: whether it matters which
variant of a block runs first (`decide/order_effect.py`).

R13: whether enough transactions are beyond the percentiles that are judged.

R14: whether a slice is long enough for the transactions of its load.

In a slice only whole transactions count, and all connections begin at the same time. With transactions of
equal length T the counted throughput may be wrong by T divided by the slice. A difference of the variants
that is smaller may be an artefact, and a transaction that is longer than a slice never counts.

R17: whether the limit of the load decides the throughput, instead of the variants.

R19: the rate of the statement that a workload names as its main one.

R12: whether all slices together show the same difference of throughput as the typical slice.

The log ratio of a block is the median over its slices, so a loss in less than half of them hardly changes it:
a variant that stalls in every fifth slice loses throughput that the verdict does not show. In each block the
ratio of the throughputs over all slices is divided by the median ratio. Between equal variants its logarithm
is symmetric around zero. All comparisons of a run are tested together by the joint sign-flip test.

R08: whether a difference between percentiles exceeds the resolution with which they are recorded.

D06 of a comparison: what the load of other processes did to its effect.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from dbdyno.decide.comparison import Comparison, Pairs, log_ratios
from dbdyno.decide.order_effect import order_effect
from dbdyno.decide.secondary_metrics import BEYOND_MIN
from dbdyno.experiment.metrics import THROUGHPUT, harm_max, metric_text, percentile_of
from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.experiment.schedule import workloads_by_start
from dbdyno.experiment.slices import SLICE_ROUNDS_MIN, SLICE_S_MAX, length_text, slice_s
from dbdyno.finding import Finding, Level
from dbdyno.measure.foreign_load import CODE, shares_of_blocks
from dbdyno.measure.slices import block_ratio
from dbdyno.result_text import connections_count, signed
from dbdyno.rules.register import SHARE_OF_INTERVAL, rule
from dbdyno.say.wording import change, finite, interval, listed_loads
from dbdyno.stats.covariate import Rule
from dbdyno.stats.family import ADVISORY_ALPHA, is_within
from dbdyno.stats.histogram import bucket_width_us
from dbdyno.stats.joint import JointInterval, joint_intervals
from dbdyno.stats.paired import Effect, Ratios, effect, mean_ratios
from dbdyno.stats.signed_rank import hodges_lehmann, percent
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import OrderEffect, Scaling
from dbdyno.text import compose, join, mark


@rule("R13")
def percentiles_of_few(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note for each workload and judged percentile that some trial has too few transactions for."""
    duration_s = experiment.load.duration_s
    for workload in experiment.workloads:
        fewest = min(
            (trial.figures.events for trial in trials if trial.workload == workload.title and trial.figures),
            default=0,
        )
        for metric in experiment.metrics if fewest else ():
            percent = percentile_of(metric)
            if percent is None:
                continue
            # Without the rounding, 99.9 % of 10,000 would be more than 9,990.
            beyond = fewest - math.ceil(round(percent / 100.0 * fewest, 6))
            if beyond >= BEYOND_MIN:
                continue
            needed = math.ceil(round(BEYOND_MIN / (1.0 - percent / 100.0), 6))
            needed_s = math.ceil(duration_s * needed / fewest)
            yield Finding(
                "R13",
                "note",
                compose(
                    "{metric_text} of {title} depends on few transactions: {beyond} of the {fewest:,} in a "
                    "trial are beyond it; it is stable with {beyond_min}, that is {needed:,} in all",
                    metric_text=metric_text(metric),
                    title=workload.title,
                    beyond=beyond,
                    fewest=fewest,
                    beyond_min=BEYOND_MIN,
                    needed=needed,
                ),
                {
                    "workload": workload.title,
                    "metric": metric,
                    "transactions": fewest,
                    "beyond": beyond,
                    "needed": needed,
                },
                fix=compose(
                    'Set duration = "{needed_s}s" in [load], or name a lower percentile in design.metrics',
                    needed_s=needed_s,
                ),
            )


# Transactions of each connection in a slice: with fewer the error may be above 5 %, or above 20 %.
ROUNDS_WARN, ROUNDS_STOP = 20.0, float(SLICE_ROUNDS_MIN)


@rule("R14", may_forbid=True, caveat=mark("transactions are too long for the slices"))
def few_rounds(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A finding for each workload whose connections execute too few transactions in a slice."""
    for workload in experiment.workloads:
        least: tuple[float, float] | None = None
        for variant, connections in itertools.product(experiment.variants, experiment.load.connections):
            length_s = slice_s(experiment, workload.title, connections)
            rounds = [
                trial.figures.throughput * length_s / connections
                for trial in trials
                if trial.figures is not None
                and trial.slices is not None
                and (trial.variant, trial.workload) == (variant.name, workload.title)
                and trial.at.get("connections") == connections
            ]
            # A single trial in which the server stalled is not the length of its transactions.
            if rounds and (least is None or median(rounds) < least[0]):
                least = median(rounds), length_s
        if least is None or least[0] >= ROUNDS_WARN:
            continue
        fewest_rounds, length_s = least
        needed_s = length_s * ROUNDS_WARN / fewest_rounds if fewest_rounds else math.inf
        is_possible = needed_s < min(SLICE_S_MAX, experiment.load.duration_s)
        longer = compose('slice = "{ceil}s" or ', ceil=math.ceil(needed_s)) if is_possible else ""
        yield Finding(
            "R14",
            "stop" if fewest_rounds < ROUNDS_STOP else "warn",
            compose(
                "the transactions of {title} are too long for slices of {length_text}: a connection "
                "executes {found:.1f} in a slice; {rounds_warn:g} are needed, because only whole ones "
                "count",
                title=workload.title,
                length_text=length_text(length_s),
                found=fewest_rounds,
                rounds_warn=ROUNDS_WARN,
            ),
            {"workload": workload.title, "rounds": round(fewest_rounds, 2), "slice_s": length_s},
            fix=compose('Set {longer}pairing = "trials" in [design]', longer=longer),
        )


# A limit for which connections wait this share of the time changes the throughput by about as much.
WAIT = 0.01


@rule("R17", may_forbid=True, caveat=mark("the limit of the load was reached"))
def reached_limit(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A finding for each load at which `load.max_rate` delayed a variant, if throughput is compared."""
    limit = experiment.load.max_rate
    is_compared = len(experiment.variants) > 1 and THROUGHPUT in experiment.metrics
    if limit is None or not is_compared:
        return
    waits: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.figures is not None:
            load = trial.variant, trial.workload, trial.at["connections"]
            waits[load].append(trial.figures.rate_limit_wait)
    for (variant, workload, connections), shares in waits.items():
        if median(shares) < WAIT:
            continue
        yield Finding(
            "R17",
            "stop" if experiment.metrics[0] == THROUGHPUT else "warn",
            compose(
                "because of load.max_rate, {limit:g} transactions/s, the connections of {variant} waited "
                "{median:.0%} of the time at {count} of {workload} (limit {wait:.0%}): the limit decides "
                "the throughput, at least partly, not the variant",
                limit=limit,
                variant=variant,
                median=median(shares),
                count=connections_count(round(connections)),
                workload=workload,
                wait=WAIT,
            ),
            {
                "workload": workload,
                "at": {"connections": connections},
                "max_rate": limit,
                "wait_share": median(shares),
            },
            variant,
            fix=compose(
                'Write metrics = ["p99"] in [design] to compare the latency at this rate, or raise max_rate'
            ),
        )


@rule("R19")
def main_statement_rates(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note for each load of a workload with a main statement, without trials in slices."""
    for workload in experiment.workloads:
        if not isinstance(workload, SqlWorkload) or workload.main_statement is None:
            continue
        rates: dict[tuple[str, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for trial in trials:
            statement_counts = trial.statements.get(workload.main_statement)
            if (
                trial.workload == workload.title
                and trial.figures is not None
                and statement_counts is not None
            ):
                per_minute = 60 * trial.figures.throughput * statement_counts.per_transaction
                rates[trial.point][trial.variant].append(per_minute)
        for (unit, value), by_variant in rates.items():
            medians = {variant: median(several) for variant, several in by_variant.items()}
            yield Finding(
                "R19",
                "note",
                compose(
                    "{statement} per minute in {title} at {load} (medians of the trials): {listed}. Such a "
                    "rate is no audited result of a standard benchmark",
                    statement=workload.main_statement,
                    title=workload.title,
                    load=listed_loads([{unit: value}]),
                    listed=join(", ", (f"{name} {number:,.0f}" for name, number in medians.items())),
                ),
                {"workload": workload.title, "at": {unit: value}, "per_minute": medians},
            )


# Smaller differences, in percent, are not reported unless a zone of equivalence is declared.
REPORTED_MIN_PERCENT = 1.0


@rule(
    "R12",
    caveat=mark("a variant stalls in some slices"),
)
def totals(every_comparison: Sequence[Comparison]) -> Iterator[Finding]:
    """Whether the slices together show another difference; all comparisons of a run share an error rate.

    Other metrics than throughput are those of all slices anyway.
    """
    rows = [(entry, _totals_row(entry)) for entry in every_comparison if entry.scale.metric == THROUGHPUT]
    tested = [(entry, row) for entry, row in rows if row]
    blocks = sorted({block for _, row in tested for block in row})
    values = [[row.get(block, math.nan) for block in blocks] for _, row in tested]
    for (value, row), joint in zip(tested, joint_intervals(values, ADVISORY_ALPHA), strict=True):
        if joint is not None and is_within(joint.p_value, ADVISORY_ALPHA):
            yield from _totals_finding(value, list(row.values()), joint)


def _totals_row(comparison: Comparison) -> dict[int, float]:
    """Block -> the excess of the totals, the mean over the loads, where all loads have one."""
    by_load = [_excess(pairs) for pairs in comparison.pairs]
    blocks = set.intersection(*(set(of_load) for of_load in by_load)) if by_load else set()
    return {block: fmean(of_load[block] for of_load in by_load) for block in sorted(blocks)}


def _totals_finding(comparison: Comparison, row: Sequence[float], joint: JointInterval) -> Iterator[Finding]:
    """The finding about a significant excess, unless it is small."""
    delta = comparison.scale.delta_percent
    centre = min(max(hodges_lehmann(row), joint.low), joint.high)
    excess, low, high = (percent(value) for value in (centre, joint.low, joint.high))
    if abs(excess) <= (REPORTED_MIN_PERCENT if delta is None else delta / 2.0):
        return
    baseline, variant, workload = comparison.names
    yield Finding(
        "R12",
        "warn",
        compose(
            "over all slices the throughput of {variant} against {baseline} on {workload} is "
            "{size} than in the typical slice ({interval} %): one of them stalls in "
            "some slices, and the verdict on throughput is about the typical slice",
            variant=variant,
            baseline=baseline,
            workload=workload,
            size=compose("{percent} % higher", percent=f"{excess:.1f}")
            if excess > 0.0
            else compose("{percent} % lower", percent=f"{-excess:.1f}"),
            interval=interval((low, high)),
        ),
        {"workload": workload, "excess_percent": excess, "interval_percent": [low, high]},
        variant,
        fix=compose(
            'Look at the slices in measured.json; pairing = "trials" in [design] compares the totals'
        ),
    )


def _excess(pairs: Pairs) -> dict[int, float]:
    """Block -> log ratio over all slices, minus that of the typical slice, where both are finite."""
    excess: dict[int, float] = {}
    for block, base in pairs.baseline.items():
        of_variant = pairs.variant[block]
        typical = block_ratio([(-1.0, base), (1.0, of_variant)], THROUGHPUT)
        if typical is not None and math.isfinite(typical):
            total = math.log(of_variant.value(THROUGHPUT) / base.value(THROUGHPUT))
            excess[block] = total - typical
    return excess


@rule("R08", caveat=mark("the difference is below the resolution"))
def below_resolution(every_comparison: Sequence[Comparison]) -> Iterator[Finding]:
    """Effects that are significant but below the width of the buckets of latencies."""
    for comparison in every_comparison:
        yield from _below_resolution(comparison)


def _below_resolution(comparison: Comparison) -> Iterator[Finding]:
    effect, metric = comparison.judged.overall, comparison.scale.metric
    if percentile_of(metric) is None or effect is None or not effect.is_significant:
        return
    values = [
        median(trial.value(metric) for trial in pairs.baseline.values() if trial.has(metric))
        for pairs in comparison.pairs
        if any(trial.has(metric) for trial in pairs.baseline.values())
    ]
    if not all(map(math.isfinite, values)):
        # The baseline's server failed in most blocks at some load: no difference is below a resolution there.
        return
    share = abs(effect.effect_percent) / 100.0
    widths = [bucket_width_us(round(value)) for value in values]
    if not values or any(share * value >= width for value, width in zip(values, widths, strict=True)):
        return
    baseline, variant, workload = comparison.names
    yield Finding(
        "R08",
        "warn",
        compose(
            "{metric} of {workload} differs between {baseline} and {variant} by {difference:.2f} us, which "
            "is less than the {width} us with which latencies of {value:,.0f} us are recorded: the size of "
            "the difference is not known",
            metric=metric_text(metric),
            workload=workload,
            baseline=baseline,
            variant=variant,
            difference=share * max(values),
            width=max(widths),
            value=max(values),
        ),
        {"workload": workload, "metric": metric, "width_us": max(widths)},
        variant,
        fix=compose("Compare the throughput of a closed loop, which has no such resolution"),
    )


# `evidence["what"]` of the finding about variants that did not meet, or not feel, other processes alike.
UNEQUAL = "unequal"


@rule(CODE)
def unequal_load(comparisons: Sequence[Comparison]) -> Iterator[Finding]:
    """What the load of other processes did to the effect of each comparison."""
    for comparison in comparisons:
        yield from _unequal_load(comparison)


def _unequal_load(comparison: Comparison) -> Iterator[Finding]:
    """A warning if the load of others cannot be distinguished from the effect, or if an override leaves it in
    the effect; a note if it was taken out.
    """
    stays = any(trial.foreign_stays for trial in _trials(comparison))
    ratios = _without_override(comparison) if stays else comparison.judged.assessment.ratios
    rules = {ratio.rule for ratio in ratios}
    if rules.isdisjoint({Rule.BOUNDED, Rule.BURSTS}):
        return
    baseline, variant, workload = comparison.names
    percents = {
        baseline: _percent(trial for pairs in comparison.pairs for trial in pairs.baseline.values()),
        variant: _percent(trial for pairs in comparison.pairs for trial in pairs.variant.values()),
    }
    facts = {"workload": workload, "variant": variant, "percents": percents}
    values = {"one": percents[baseline], "baseline": baseline, "other": percents[variant], "variant": variant}
    if stays:
        text = compose(
            "other processes used {one:.1f} % of the CPUs of server and client next to {baseline} and "
            "{other:.1f} % next to {variant} (medians), or not always as much next to both; the effect "
            "contains what that cost",
            **values,
        )
        yield Finding(CODE, "warn", text, {**facts, "what": "stays"}, variant)
        return
    if Rule.BOUNDED in rules:
        limit = abs(harm_max(comparison.scale.metric))
        text = compose(
            "other processes used {one:.1f} % of the CPUs of server and client next to {baseline} and "
            "{other:.1f} % next to {variant} (medians), or did not slow both down alike; that cannot be "
            "distinguished from an effect of {variant}, so the interval allows for the most that it may have "
            "cost, at most {limit:g} % for each hundredth of the CPUs",
            limit=limit,
            **values,
        )
        fix = compose("Stop the other processes, or let them run all the time, while measuring")
        level: Level = "warn" if _widens_interval(comparison) else "note"
        yield Finding(CODE, level, text, {**facts, "what": UNEQUAL}, variant, fix=fix)
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


def _widens_interval(comparison: Comparison) -> bool:
    """Whether what the load of others may have cost moves an end of the interval by more than
    `SHARE_OF_INTERVAL` of half of the interval.
    """
    assessment = comparison.judged.assessment
    ratios = _as_measured(comparison), assessment.ratios
    effects = [effect(mean_ratios(each), assessment.alpha) for each in ratios]
    intervals = [each.interval_percent for each in effects if each is not None and each.interval_percent]
    if len(intervals) < len(ratios):
        return True
    measured, allowed = intervals
    most = SHARE_OF_INTERVAL * (allowed[1] - allowed[0]) / 2.0
    return any(abs(ends[0] - ends[1]) > most for ends in zip(measured, allowed, strict=True))


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
    """Whether the load of others cannot be distinguished from an effect, and changes its interval."""
    return any(
        finding.code == CODE and finding.level == "warn" and finding.evidence.get("what") == UNEQUAL
        for finding in findings
    )


def _caveat_of_order_effects(finding: Finding) -> str:
    evidence = finding.evidence
    values = {
        "effect_percent": signed(evidence["effect_percent"]),
        "crossover_percent": signed(evidence["crossover_percent"]),
    }
    if averaged := evidence.get("workloads"):
        return compose(
            "order effect {effect_percent} % on average of {number} tests, without it {crossover_percent} %",
            number=len(averaged),
            **values,
        )
    return compose(
        "order effect {effect_percent} %, without it {crossover_percent} %",
        **values,
    )


@rule("R10", caveat=_caveat_of_order_effects)
def order_effects(
    comparisons: Sequence[Comparison], trials: Sequence[MeasuredTrial], experiment: Experiment
) -> Iterator[Finding]:
    """The order effect of each variant. Workloads that run on one start of the server have one order, so
    their mean is tested; a run's tests share the error rate.
    """
    sets = workloads_by_start(experiment)
    level = ADVISORY_ALPHA / (len(sets) * max(1, len(experiment.variants) - 1))
    by_key = {(comparison.variant, comparison.workload): comparison for comparison in comparisons}
    for variant, titles in itertools.product(experiment.variants[1:], sets):
        tests = [by_key[variant.name, title] for title in titles]
        first, order = tests[0], tests[0].order
        if len(titles) > 1 and order is not None:
            ratios = mean_ratios([test.judged.assessment.overall_ratios for test in tests])
            of_tests = [trial for trial in trials if trial.workload in titles]
            order = order_effect(ratios, of_tests, first.baseline, first.variant)
        where, averaged = first.workload, titles if len(titles) > 1 else ()
        if averaged:
            where = compose("average of {number} tests", number=len(tests))
        names = first.baseline, first.variant, where
        if order is not None and is_within(order.p_value, level):
            yield from order_finding(order, names, first.scale.metric, first.scale.delta_percent, averaged)


def order_finding(
    order: OrderEffect | None,
    names: tuple[str, str, str],
    metric: str,
    delta_percent: float | None,
    averaged: Sequence[str] = (),
) -> Iterator[Finding]:
    """The finding for one comparison, or for the mean of several; `names` are baseline, variant and
    workload, or a text for the `averaged` workloads.
    """
    limit = REPORTED_MIN_PERCENT if delta_percent is None else delta_percent / 2.0
    if order is None or not order.is_significant or math.fabs(order.effect_percent) <= limit:
        return
    baseline, variant, workload = names
    yield Finding(
        "R10",
        "warn",
        compose(
            "the variant that runs later in a block has {effect_percent} % {metric_text} "
            "(95 % interval {interval}) on {workload}: each trial affects the next one. The order is random, "
            "so the interval of the verdict allows for it; without the order effect {variant} against "
            "{baseline} is {crossover_percent} % (95 % interval {interval_2})",
            effect_percent=signed(order.effect_percent),
            metric_text=metric_text(metric),
            interval=interval(order.interval_percent),
            workload=workload,
            variant=variant,
            baseline=baseline,
            crossover_percent=signed(order.crossover_percent),
            interval_2=interval(order.crossover_interval_percent),
        ),
        {
            "workload": workload,
            **({"workloads": [*averaged]} if averaged else {}),
            "metric": metric_text(metric),
            **order.model_dump(mode="json"),
        },
        variant,
        fix=compose('To reduce it, use a longer warmup in [load], or state_per = "trial" in [design]'),
    )


@rule("R05", caveat=mark("identical variants differ"))
def identical_variants(comparisons: Sequence[Comparison]) -> Iterator[Finding]:
    """Identical variants that differ significantly; they share an error rate."""
    identical = [each for each in comparisons if each.is_identical]
    for comparison in identical:
        yield from _identical(comparison.judged.overall, comparison.names, ADVISORY_ALPHA / len(identical))


def _identical(effect: Effect | None, names: tuple[str, str, str], level: float) -> Iterator[Finding]:
    if effect is None or not effect.is_significant or effect.interval_percent is None:
        return
    if not is_within(effect.p_value, level):
        return
    baseline, variant, workload = names
    low, high = effect.interval_percent
    yield Finding(
        "R05",
        "warn",
        compose(
            "{baseline} and {variant} are identical, but differ by {change} ({interval}) on "
            "{workload}: either something else differs (position on disk, order, other processes), "
            "or this is one of the {alpha:g} % of experiments in which such a difference occurs by chance",
            alpha=100.0 * ADVISORY_ALPHA,
            baseline=baseline,
            variant=variant,
            change=change(effect),
            interval=interval((low, high)),
            workload=workload,
        ),
        {
            "workload": workload,
            "effect_percent": finite(effect.effect_percent),
            "interval_percent": [finite(low), finite(high)],
        },
        variant,
        fix=compose("Repeat the experiment"),
    )


@rule("R07")
def peaks(scaling: Sequence[Scaling]) -> Iterator[Finding]:
    """Sweeps that do not reach the peak, so that the highest throughputs of variants cannot be
    compared.
    """
    for side, text, direction in (
        (
            "above",
            mark("throughput had not fallen at the highest load ({high}), so its peak is there or above"),
            compose("Add higher values to connections in [load]"),
        ),
        (
            "below",
            mark("throughput already fell from the lowest load ({low}) on, so its peak is there or below"),
            compose("Add lower values to connections in [load]"),
        ),
    ):
        for workload in dict.fromkeys(entry.workload for entry in scaling):
            outside = [e for e in scaling if e.workload == workload and e.knee == side]
            if outside:
                low, high = (connections_count(round(level)) for level in outside[0].levels)
                names = join(", ", (entry.variant for entry in outside))
                yield Finding(
                    "R07",
                    "note",
                    compose(
                        "{workload} on {names}: {text}",
                        workload=workload,
                        names=names,
                        text=compose(text, low=low, high=high),
                    ),
                    {"workload": workload, "variants": [e.variant for e in outside], "knee": side},
                    fix=direction,
                )
