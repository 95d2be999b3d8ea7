"""verdict.json: the sentences of a run and their numbers; schema/verdict.schema.json is generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.finding import Finding
from dbdyno.store.afterwards import ChosenAfterwards
from dbdyno.store.document import (
    Document,
    DocumentPart,
    IntervalEnds,
    Metric,
    NotEmpty,
    Optional,
    PointDict,
    SecondaryMetricKey,
    Why,
)
from dbdyno.text import Composed, compose_count, join, recall

VerdictCode = Literal[
    "not-comparable", "unfinished", "too-few-blocks", "mixed", "equivalent", "faster", "slower", "undecided"
]  # fmt: skip
# Verdicts with which the ratios of a comparison say nothing.
WITHOUT_RATIO: tuple[VerdictCode, ...] = ("not-comparable", "unfinished")

# Above this number of tests, short outputs show the sentence of a suite instead of one per test.
SENTENCES_MAX = 3

GateResult = Literal["not-inferior", "worse", "undecided", "not-comparable"]


class Family(DocumentPart):
    """The sentences that share the family-wise error rate."""

    sentences: int
    """Number of sentences."""
    alpha: float
    """The family-wise error rate: the chance that any of them is false."""
    text: Composed
    """Number of sentences and error rate as a sentence, as the report shows it; without the error rate if no
    verdict has a direction, is mixed or equivalent."""


class Change(DocumentPart):
    """A change of the variant against the baseline, in percent of the baseline."""

    effect_percent: float | None
    """The estimated change; null if it is unknown or infinite."""
    interval_percent: IntervalEnds | None
    """Lower and upper end of the confidence interval; an end is null if it is unknown or infinite. The whole
    interval is null if there are too few blocks or the run is unfinished."""
    bound: Optional[Literal["at-least", "at-most"]] = None
    """Present if effect_percent is only a lower bound (at-least) or an upper bound (at-most)."""


def caveats_text(caveats: Sequence[str]) -> str:
    """The end of a verdict sentence: its caveats; "" without any."""
    if not caveats:
        return ""
    return compose_count(
        len(caveats), " Caveat: {caveats}.", " Caveats: {caveats}.", caveats=join("; ", caveats)
    )


class WithSentence(DocumentPart):
    """What has a sentence that ends with its caveats."""

    sentence: Composed
    """The result as a sentence, with its caveats."""
    caveats: NotEmpty[list[Composed]] = Field(default_factory=list)
    """The caveats of the sentence, one by one; absent without any."""

    @property
    def statement(self) -> str:
        """The sentence without its caveats."""
        return recall(self.sentence.removesuffix(caveats_text(self.caveats)))


class Effect(Change):
    """A change with a verdict."""

    metric: Metric
    """The key of the metric. By default throughput; if the load is a rate, the p95 latency. With a latency
    objective (load.latency_objective) the capacity, and at each rate its percentile."""
    confidence: float
    """Confidence level of the interval; 1 - confidence is its share of the family-wise error rate."""
    blocks: int
    """Number of blocks in which both variants have a result."""
    verdict: VerdictCode | None
    """The verdict; null if an entry of `factors` has the verdict instead, and at the rates of a latency
    objective.
    """


class EffectInZone(Effect):
    """An effect with what its verdict depends on."""

    noise_floor_percent: float | None
    """The largest difference between identical variants; null if the experiment has no identical variants."""
    delta_percent: float | None
    """The equivalence zone (design.delta_percent); null if the experiment sets none."""


class TrialIndices(DocumentPart):
    """Indices of the trials that a point's effect is computed from."""

    baseline: list[int]
    """Trials of the baseline."""
    variant: list[int]
    """Trials of the variant."""


class CensoredMedians(DocumentPart):
    """Which of a point's medians are only lower bounds."""

    baseline: bool
    """Whether the baseline's median is a lower bound."""
    variant: bool
    """Whether the variant's median is a lower bound."""


class Point(EffectInZone):
    """One load of a comparison. The intervals of all loads are simultaneous."""

    at: PointDict
    """The load: {"connections": n} or {"rate": n}, transactions per second."""
    baseline: float | None
    """Median of the baseline's metric over the blocks; null if its server failed in most trials."""
    variant: float | None
    """Median of the variant's metric over the blocks; null if its server failed in most trials."""
    trials: TrialIndices
    """The trials that were compared."""
    censored: Optional[CensoredMedians] = None
    """Present if one of the medians is only a lower bound."""


class CombinedEffect(WithSentence, EffectInZone):
    """The effect over all loads: in each block, the mean of the log ratios over the loads."""

    p_value: float | None
    """p-value of the hypothesis "no difference", from the signed-rank test; null if the run is unfinished.
    With `stopping` it is the smallest level of the procedure at which a look excludes 0, or 1."""


class OrderEffect(DocumentPart):
    """Effect of running later in a block on the metric, and the variant's effect without it, in percent."""

    effect_percent: float
    """Change of the metric in the trial that ran later, relative to the one that ran earlier."""
    interval_percent: tuple[float, float]
    """95 % interval of effect_percent."""
    blocks: tuple[int, int]
    """Number of blocks in which the baseline ran first, and number in which the variant ran first."""
    crossover_percent: float
    """The variant's effect without the order effect."""
    crossover_interval_percent: tuple[float, float]
    """95 % interval of crossover_percent."""
    p_value: float = 1.0
    """p-value of the hypothesis "no order effect", by the t-test."""

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the order effect excludes zero."""
        return not self.interval_percent[0] <= 0.0 <= self.interval_percent[1]


class SecondaryMetric(Change):
    """Another metric than that of the verdict, at one load. All intervals of a run are simultaneous."""

    at: PointDict
    """The load."""
    metric: SecondaryMetricKey
    """A percentile of latency, errors per 1,000 transactions, or the standard deviation of the throughput of
    the seconds in percent of its mean (variation_percent)."""
    baseline: float
    """Median of the baseline over the blocks."""
    variant: float
    """Median of the variant over the blocks."""
    confidence: float
    """Confidence level of the interval."""
    blocks: int
    """Number of blocks in which both variants have a result."""
    direction: Literal["better", "worse"] | None
    """Whether the variant is better or worse (lower is better); null if that is not significant."""


class Capacity(DocumentPart):
    """The highest rates at which a latency stays below a limit, interpolated between the measured rates."""

    metric: Metric
    """The percentile of the latency objective."""
    limit_us: float
    """Its limit in microseconds."""
    baseline: IntervalEnds
    """Lower and upper bound of the baseline's median over the blocks, in transactions per second; null for an
    unknown end. They are equal if the capacity is between two measured rates."""
    variant: IntervalEnds
    """The same of the variant."""


class ServerCapacity(WithSentence):
    """The capacity of the only variant of a run on one workload: the highest rate at which its latency stays
    below the limit of the latency objective.
    """

    workload: str
    """Title of the workload."""
    variant: str
    """Name of the variant."""
    metric: Metric
    """The percentile of the latency objective."""
    limit_us: float
    """Its limit in microseconds."""
    capacity: IntervalEnds
    """Lower and upper bound of the estimate in transactions per second; null for an unknown end. They are
    equal if the capacity is between two measured rates."""
    interval: IntervalEnds | None
    """95 % interval of the capacity; null with too few blocks, and an unknown end is null."""
    blocks: int
    """Number of blocks that have a result at every rate."""
    limited_by: Literal["cpu", "locks", "generator", "storage", "unknown"] | None
    """What was used up at the highest measured rate that meets the objective: the server's CPUs, row locks,
    or the load generator; `storage` if none of them was, `unknown` if the server's CPUs were not visible.
    Null if no measured rate meets the objective, or every rate does."""


class HighestMedian(DocumentPart):
    """The load with the highest median throughput."""

    connections: float
    """Number of connections."""
    throughput: float
    """Transactions per second."""


class HighestThroughput(Change):
    """The highest throughput over the loads, which the two variants may have at different loads. It is an
    estimate, outside the family of the verdicts.
    """

    baseline: HighestMedian
    """The baseline's highest median over the blocks."""
    variant: HighestMedian
    """The same of the variant."""
    confidence: float
    """Confidence level of the interval, which allows for the choice of the loads."""
    blocks: int
    """Number of blocks in which both variants have a result at these loads."""
    sentence: Composed
    """All this as a sentence."""


class MetricComparison(DocumentPart):
    """One variant against the baseline on one workload, by one metric."""

    points: list[Point]
    """One per load, in the order of the experiment file."""
    curve: CombinedEffect
    """All loads combined."""


class Comparison(DocumentPart):
    """One variant against the baseline on one workload."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    identical: Optional[Literal[True]] = None
    """Present if the variants differ only in their names."""
    differs: Optional[list[str]] = None
    """What the variant has and the baseline has not, by the experiment file and the existing data (P29);
    absent if they are identical."""
    points: list[Point]
    """One per load, in the order of the experiment file."""
    curve: CombinedEffect
    """All loads combined."""
    capacity: Optional[Capacity] = None
    """Present with a latency objective (load.latency_objective): the capacities that `curve` compares."""
    highest_throughput: Optional[HighestThroughput] = None
    """Present in closed loops with several loads, if the comparison has a verdict."""
    metrics: Optional[list[MetricComparison]] = None
    """Present if design.metrics names further metrics; a second 5 % is the family-wise error rate of their
    verdicts."""
    secondary_metrics: Optional[list[SecondaryMetric]] = None
    """Present if other metrics were compared: latency, errors and stability at every load."""
    order: Optional[OrderEffect] = None
    """The order effect; absent where it cannot be estimated."""


class FactorEffect(WithSentence, Effect):
    """A main effect of a factor's level, or the interaction of two factors, on one workload."""

    factors: list[str]
    """One name for a main effect, two for an interaction."""
    levels: list[str]
    """The compared levels, one per factor."""
    against: list[str]
    """The reference levels, one per factor."""
    workload: str
    """Title of the workload."""
    p_value: float | None
    """p-value of the hypothesis "no effect"; null if the run is unfinished."""


class Scaling(DocumentPart):
    """How one variant scales with connections on one workload."""

    workload: str
    """Title of the workload."""
    variant: str
    """Name of the variant."""
    levels: tuple[float, float]
    """Minimum and maximum number of connections measured."""
    highest: HighestMedian
    """The measured load with the highest median throughput."""
    blocks: int
    """Number of blocks with results."""
    model: Literal["usl"] | None = None
    """usl, the universal scalability law, if it fits the medians; otherwise null."""
    rate: Annotated[float | None, Field(alias="lambda")] = None
    """Throughput of one connection by the law."""
    sigma: float | None = None
    """Contention coefficient of the law: the serial share of the work."""
    kappa: float | None = None
    """Coherency coefficient of the law: the cost of exchange between connections."""
    fit_error_percent: float | None = None
    """The largest difference between a median and the law; null if the server failed in a trial."""
    plateau: tuple[float, float] | None = None
    """Minimum and maximum connections whose throughput may be within 2 % of the highest median."""
    knee: Literal["below", "inside", "above"] | None = None
    """Whether the peak by the law is below, inside or above the measured range of connections."""
    knee_connections: float | None = None
    """Number of connections at the peak, if it is inside the measured range."""
    knee_interval: IntervalEnds | None = None
    """95 % interval of knee_connections; an end outside the measured range is null."""
    knee_throughput: float | None = None
    """Throughput at the peak, limited to the highest median."""
    curve: Sequence[tuple[float, float]] = ()
    """Pairs of connections and throughput by the law, for a chart."""


class StoppingRule(DocumentPart):
    """The rule by which the run ends, and what its intervals allow for (design.stop)."""

    blocks: int
    """Number of finished blocks; no other block counts."""
    blocks_at_most: int
    """Number of blocks that the run may have."""
    half_width_percent: float | None
    """The run ends when every interval is at most ± this wide; null: when every comparison has a verdict, or
    with design.max_loss_percent when its gate is decided."""
    is_met: bool
    """Whether the rule is met."""
    why: Why | None
    """Why the last call of `compare` ended, as in endings.json; null while it runs, or if it was killed."""
    looks: list[int]
    """Numbers of blocks after which the intervals allow for a look at the results."""
    spending: Literal["alpha (1 - 5 / n)", "alpha (n / last)^2"]
    """The chance of a wrong verdict at the looks up to n blocks, without and with a limit on the blocks."""


CostKey = Literal["cpu_us", "context_switches", "write_kib"]


class SuiteCell(Change):
    """The change of a cost in one test of a suite."""

    workload: str
    """Title of the test."""
    direction: Literal["more", "less"] | None
    """Whether the variant costs more or less; null if the change is not significant."""


class SuiteCost(DocumentPart):
    """One cost of a transaction in all tests of a suite."""

    key: CostKey
    """The cost, as in explained.json."""
    title: Composed
    """Its name in texts."""
    confidence: float
    """Confidence level of the intervals, which are simultaneous over the tests."""
    tests: list[SuiteCell]
    """One per test in which the server counted enough."""

    def workloads(self, direction: Literal["more", "less"]) -> list[str]:
        """The tests in which the variant significantly costs more, or less."""
        return [test.workload for test in self.tests if test.direction == direction]


class Suite(DocumentPart):
    """One variant against the baseline over all tests (workloads) of the experiment."""

    variant: str
    """Name of the variant."""
    tests: dict[VerdictCode, list[str]]
    """Verdict -> the tests that have it, in the order of the file."""
    costs: list[SuiteCost]
    """The costs of a transaction; [] in an unfinished run. The chance that any direction in these lists is
    wrong is 5 %."""
    sentence: Composed
    """The result as a sentence."""


class GatedComparison(DocumentPart):
    """The gate's result for one comparison."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    result: GateResult
    """worse: the whole interval over all loads is beyond the allowed loss; not-inferior: it is within, and no
    load is significantly beyond; undecided: neither."""
    sentence: Composed
    """The result as a sentence."""


class GatedSuite(DocumentPart):
    """The gate's result for one variant over all its tests (workloads)."""

    variant: str
    """Name of the variant."""
    result: GateResult
    """not-comparable if any test is, else worse if any is. not-inferior: every test significantly loses less,
    as a claim about all of them, which needs less certainty for each than `comparisons` do; else
    undecided."""
    sentence: Composed
    """The result as a sentence."""


class Gate(DocumentPart):
    """Whether a variant loses more than design.max_loss_percent allows."""

    max_loss_percent: float
    """The allowed loss of the metric of the verdict, the first of design.metrics: a lower throughput or
    capacity, or a higher latency or CPU time per transaction."""
    result: GateResult
    """not-comparable if any comparison is, else worse if any is, else undecided if any is; with several
    workloads by the results in `suites`."""
    suites: Optional[list[GatedSuite]] = None
    """With several workloads, one per variant that differs from the baseline."""
    comparisons: list[GatedComparison]
    """One per comparison of different variants."""

    @property
    def sentences(self) -> list[str]:
        """One per comparison; of a variant with several workloads one for all of them, and those of the tests
        that lose more.
        """
        suites = self.suites or []
        shown = [comparison for comparison in self.comparisons if not suites or comparison.result == "worse"]
        return [*(suite.sentence for suite in suites), *(entry.sentence for entry in shown)]


class VerdictFile(Document):
    """The content of verdict.json."""

    schema_version: Annotated[Literal[3], Field(alias="schema")] = 3
    """Version 3 renamed second_lines to secondary_metrics, and the end "sure" to "decided"."""
    experiment: str
    """Name of the experiment."""
    baseline: str
    """Name of the baseline, the first variant."""
    order_seed: int | None
    """Seed of the order of the trials; null in runs of older versions, which did not balance the order."""
    family: Family
    """The family-wise error rate, and how many sentences share it."""
    chosen_afterwards: Optional[list[ChosenAfterwards]] = None
    """Present if something about the judgement was chosen when data of the run had been seen. All sentences
    say so, and the error rate of `family` does not hold."""
    comparisons: list[Comparison]
    """One per workload and variant other than the baseline."""
    stopping: Optional[StoppingRule] = None
    """Present if the run could stop at any block (design.stop)."""
    gate: Optional[Gate] = None
    """Present if the experiment allows a loss (design.max_loss_percent, --max-loss)."""
    capacities: Optional[list[ServerCapacity]] = None
    """Present if the run has one variant and a latency objective: one for each workload."""
    scaling: Optional[list[Scaling]] = None
    """Present for closed loops with at least four loads."""
    suites: Optional[list[Suite]] = None
    """Present with several workloads: one for each variant but the baseline; absent with factors."""
    factors: Optional[list[FactorEffect]] = None
    """Present for factorial experiments: main effects, then interactions."""
    checks: list[Finding]
    """All findings: first those of the checks before and during the run, then those about its results."""

    @property
    def is_summed_up(self) -> bool:
        """Whether the sentences of the suites replace those of its many tests where there is little room."""
        return len({comparison.workload for comparison in self.comparisons}) > SENTENCES_MAX and bool(
            self.suites
        )

    @property
    def summary(self) -> Sequence[CombinedEffect | FactorEffect | ServerCapacity | Suite]:
        """The entries whose sentences sum up the run: those of the comparisons or factors, of the suites, or
        of the capacity of its only variant.
        """
        if self.capacities:
            return self.capacities
        of_suites = self.suites or []
        return of_suites if self.is_summed_up else [*(entry for entry, _ in self.sentences), *of_suites]

    @property
    def summary_sentences(self) -> list[str]:
        """Their sentences."""
        return [entry.sentence for entry in self.summary]

    @property
    def sentences(self) -> Sequence[tuple[CombinedEffect | FactorEffect, Comparison | FactorEffect]]:
        """Pairs of an entry with a verdict sentence and the entry that names its variants. In a factorial run
        an effect whose verdict the factors have is left out.
        """
        comparisons = [
            (entry.curve, entry) for entry in self.comparisons if entry.curve.verdict or not self.factors
        ]
        return [*comparisons, *((factor, factor) for factor in self.factors or ())]
