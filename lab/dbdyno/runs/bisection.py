"""Decides the steps of a bisection from measured trials, and asks for one step after the other.

`judge_step` is pure, and `bisect` gets the steps from its caller, so that benchmarks/truth can call both with
simulated trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.decide.capacity import capacities
from dbdyno.decide.comparison import change, pair
from dbdyno.decide.decision import relevant_to, stops
from dbdyno.decide.effects import Assessment
from dbdyno.decide.more_blocks import blocks_for
from dbdyno.decide.stopping import ComparisonProgress, Progress, finished_trials
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.stats.bisection import Outcome, Search, classify, direction, level_of_tests, steps_at_most
from dbdyno.stats.paired import Effect, effect, mean_ratios
from dbdyno.stats.repeated import Looks
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.several_runs import PairEffect, StepRecord

# Two versions: the first one against the second.
Pair = tuple[str, str]


@dataclass(frozen=True)
class Step:
    """What the finished blocks of a step say."""

    outcome: Outcome
    # Of the candidate against the good and the bad end; without a candidate, of the bad end against the good.
    effects: Mapping[Pair, Effect] = field(default_factory=dict)
    blocks: int = 0
    # Why it cannot tell or was skipped; empty if blocks were too few.
    reason: str = ""

    @classmethod
    def skip(cls, reason: str) -> Step:
        """A step whose candidate cannot be measured."""
        return cls(Outcome.SKIPPED, reason=reason)

    def record(self, begun: StepRecord) -> StepRecord:
        """The record of the step, which had begun."""
        effects = [
            PairEffect(version=names[0], against=names[1], p_value=entry.p_value, **change(entry))
            for names, entry in self.effects.items()
        ]
        update = {"outcome": self.outcome.value, "blocks": self.blocks, "effects": effects}
        return begun.model_copy(update={**update, "reason": self.reason or None})


@dataclass(frozen=True)
class Question:
    """What a step asks: is the candidate like the good end or like the bad one?"""

    good: str
    # None for the first question: do the two ends differ?
    candidate: str | None
    bad: str
    # Significance level of each of its tests.
    level: float
    # Sign of the effect of the bad end against the good one; 0 for the first question.
    towards_bad: int = 0

    @property
    def versions(self) -> list[str]:
        """Those that are measured; the first is the baseline."""
        return [self.good, *([] if self.candidate is None else [self.candidate]), self.bad]

    def record(self, run: str | None = None) -> StepRecord:
        """The record of a step that begins, in this run."""
        return StepRecord(good=self.good, candidate=self.candidate, bad=self.bad, run=run, outcome=None)

    def pairs(self) -> list[Pair]:
        """Those that are tested."""
        if self.candidate is None:
            return [(self.bad, self.good)]
        return [(self.candidate, self.good), (self.candidate, self.bad)]


@dataclass(frozen=True)
class Answer:
    """The result of a bisection."""

    versions: Sequence[str]
    # The effect of the bad end against the good one.
    premise: Step
    # Numbers of the versions of which one is the first that is like the bad end. More than one if a step
    # could not tell or versions were skipped; none if the two ends do not significantly differ.
    possible: range
    # The version before the first of these.
    good: int = 0
    # The effect of the last of these against the version before the first, measured in the same blocks.
    effect: Effect | None = None
    # Candidates that differ from both ends of their steps, and those that could not be measured.
    between: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def first_bad(self) -> str | None:
        """The first version that differs; None if it is not known which."""
        return self.versions[self.possible[0]] if len(self.possible) == 1 else None

    @property
    def whole(self) -> Effect | None:
        """The effect of the bad end against the good one."""
        return self.premise.effects.get((self.versions[-1], self.versions[0]))

    @property
    def is_part(self) -> bool:
        """Whether the found change is another one, beyond chance, than the whole, so that there are more."""
        of_all, found_effect = self.whole, self.effect
        ends = [entry.interval_percent for entry in (of_all, found_effect) if entry is not None]
        if len(ends) < 2 or ends[0] is None or ends[1] is None:
            return False
        return max(ends[0][0], ends[1][0]) > min(ends[0][1], ends[1][1])


def steps_of(versions: Sequence[str]) -> int:
    """The maximum number of steps after the first question; the two ends are among the versions."""
    return steps_at_most(len(versions) - 2)


def level_of(versions: Sequence[str]) -> float:
    """The significance level of each test of a bisection; the two ends are among the versions."""
    return level_of_tests(len(versions) - 2)


def blocks_needed(versions: Sequence[str]) -> int:
    """The minimum number of blocks of a step with an outcome; the two ends are among the versions."""
    return Looks().blocks_needed(level_of(versions))


def bisect(versions: Sequence[str], level: float, measure: Callable[[Question], Step]) -> Answer:
    """Find the first version that differs from the first one. `versions` are in order, the two ends among
    them; `measure` runs blocks until the step has an outcome, or says why it has none.
    """
    premise = measure(Question(versions[0], None, versions[-1], level))
    if premise.outcome != Outcome.LIKE_BAD:
        return Answer(versions, premise, range(0))
    ends = (versions[-1], versions[0])
    effects = dict(premise.effects)
    search, between = Search(len(versions) - 2), []
    while (number := search.next()) is not None:
        candidate, good, bad = versions[number], versions[search.good], versions[search.bad]
        step = measure(Question(good, candidate, bad, level, direction(premise.effects[ends])))
        effects |= step.effects
        if step.outcome == Outcome.BETWEEN:
            between.append(candidate)
        search.apply(number, step.outcome, is_nearer_bad=_is_nearer_bad(step, candidate, good, bad))
    last = (versions[search.bad], versions[search.good])
    return Answer(
        versions,
        premise,
        search.possible(),
        search.good,
        effects.get(last) or _inverse(effects.get((last[1], last[0]))),
        tuple(between),
        tuple(versions[number] for number in sorted(search.skipped)),
    )


def _is_nearer_bad(step: Step, candidate: str, good: str, bad: str) -> bool:
    """Whether the change from the good end to the candidate is larger than that to the bad end."""
    sizes = [
        abs(math.log1p(entry.effect_percent / 100.0))
        for entry in (step.effects.get((candidate, good)), step.effects.get((candidate, bad)))
        if entry is not None and -100.0 < entry.effect_percent < math.inf
    ]
    return len(sizes) == 2 and sizes[0] >= sizes[1]


def _inverse(effect_here: Effect | None) -> Effect | None:
    """The effect of the second version against the first."""
    if effect_here is None or effect_here.interval_percent is None:
        return None
    low, high = effect_here.interval_percent
    return Effect(
        effect_percent=_inverse_percent(effect_here.effect_percent),
        interval_percent=(_inverse_percent(high), _inverse_percent(low)),
        alpha=effect_here.alpha,
        p_value=effect_here.p_value,
        blocks=effect_here.blocks,
    )


def _inverse_percent(percent: float) -> float:
    if percent <= -100.0:
        return math.inf
    return 100.0 * (1.0 / (1.0 + percent / 100.0) - 1.0)


def judge_step(
    question: Question,
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
    findings: Sequence[Finding] = (),
) -> Step:
    """The outcome of a step after its finished blocks, whose trials are in the order in which the blocks were
    finished. It may be asked after each block.
    """
    effects = {names: assessment.overall for names, assessment in _assess(question, trials, experiment)}
    known_effects = {names: entry for names, entry in effects.items() if entry is not None}
    blocks = len({trial.block for trial in trials if trial.is_result})
    if reason := _obstacle(question, experiment, findings):
        return Step(Outcome.CANNOT_TELL, known_effects, blocks, reason)
    of_pairs = [effects[names] for names in question.pairs()]
    if question.candidate is None:
        outcome = Outcome.LIKE_BAD if direction(of_pairs[0]) else Outcome.CANNOT_TELL
    else:
        outcome = classify(of_pairs[0], of_pairs[1], question.towards_bad)
    return Step(outcome, known_effects, blocks)


def decider(question: Question) -> Callable[[Run], Progress]:
    """Says after each block of a step's run whether the step has its outcome."""

    def decide(run: Run) -> Progress:
        trials, experiment, findings = finished_trials(run)
        is_decided = judge_step(question, trials, experiment, findings).outcome != Outcome.CANNOT_TELL
        return Progress(
            is_decided,
            tuple(
                _progress(names, assessment, experiment, is_decided=is_decided)
                for names, assessment in _assess(question, trials, experiment)
            ),
        )

    return decide


def conclude(question: Question, run: Run) -> Step:
    """The outcome of a step from its run. Raises StoreProblem if the run cannot be read."""
    trials, experiment, findings = finished_trials(run)
    return judge_step(question, trials, experiment, findings)


def recall(question: Question, record: StepRecord, run: Run) -> Step:
    """A step that was concluded before, with the effects of its run. Raises StoreProblem."""
    step = conclude(question, run)
    return replace(step, outcome=Outcome(str(record.outcome)), reason=record.reason or "")


def _assess(
    question: Question, trials: Sequence[MeasuredTrial], experiment: Experiment
) -> Iterator[tuple[Pair, Assessment]]:
    """The effect of each pair over all loads."""
    # Blocks may be added, as to any run that ends when it is decided.
    looks = Looks(planned=experiment.design.stop.max_blocks if experiment.design.stop else None)
    for names in question.pairs():
        variant, baseline = names
        capacity = capacities(trials, experiment.load, baseline, variant)
        points = [point.as_dict() for point in experiment.load.points()]
        ratios = mean_ratios(
            [capacity.ratios()]
            if capacity
            else [pair(trials, at, baseline, variant).ratios(experiment.metrics[0]) for at in points]
        )
        overall = effect(ratios, question.level, looks)
        yield (
            names,
            Assessment(
                (), ratios, (), overall, (), alpha=question.level, level=question.level, blocks_needed=0,
                looks=looks,
            ),
        )  # fmt: skip


def _obstacle(question: Question, experiment: Experiment, findings: Sequence[Finding]) -> str:
    """Why the trials cannot be compared; empty if they can."""
    workload = experiment.workloads[0].title
    relevant = {
        (entry.code, entry.text): entry
        for variant in question.versions[1:]
        for entry in relevant_to((question.good, variant, workload), findings)
    }
    if blocking := stops(list(relevant.values())):
        return "; ".join(entry.summary for entry in blocking)
    return ""


def _progress(
    names: Pair, assessment: Assessment, experiment: Experiment, *, is_decided: bool
) -> ComparisonProgress:
    """How far one of the pairs is. The number of blocks is that for an interval without zero."""
    overall = assessment.overall
    ends = overall.interval_percent if overall else None
    half = (ends[1] - ends[0]) / 2.0 if ends and all(map(math.isfinite, ends)) else None
    more: int | None = 0 if is_decided else None
    if not is_decided and overall and -100.0 < overall.effect_percent < math.inf:
        needed = blocks_for(assessment, abs(math.log1p(overall.effect_percent / 100.0)))
        more = None if needed is None else max(1, needed - len(assessment.overall_ratios.lows))
    text = " against ".join(names)
    return ComparisonProgress(text, experiment.workloads[0].title, ends, half, more)
