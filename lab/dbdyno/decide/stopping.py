"""Whether a run with `design.stop` has its answer, asked after every block.

The verdicts are those that `judge` would write now. They allow for a look after every block, so that they are
valid whenever the run ends, and for whatever reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from dbdyno.decide.comparison import Comparison, blocks_at_most, comparison_entry, finished_and_planned
from dbdyno.decide.decision import (
    compare_all,
    scale,
    verdict_test,
    with_overrides,
)
from dbdyno.decide.effects import Judged
from dbdyno.decide.factorial import Contrasts, judge_contrasts, verdicts
from dbdyno.decide.gate import is_forbidden, result, suite_result
from dbdyno.decide.more_blocks import blocks_for
from dbdyno.experiment.family import is_factorial
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.measure.evidence import Known, gather, scheduled
from dbdyno.rules import Records, find_all
from dbdyno.say.wording import is_unknown
from dbdyno.stats.repeated import FIRST_LOOK, Looks
from dbdyno.stats.verdict_rule import ANSWERS, Verdict
from dbdyno.store import Run, verdict
from dbdyno.store.endings import Ending
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import GateResult, StoppingRule
from dbdyno.text import compose

# Results of a gate that answer its question.
GATE_ANSWERS = ("not-inferior", "worse")
# The trials of a run are read once, because reading takes a tenth of a second per trial.
_KNOWN: WeakKeyDictionary[Run, Known] = WeakKeyDictionary()


@dataclass(frozen=True)
class ComparisonProgress:
    """How far one comparison is; of a factorial run, one contrast."""

    # Name of the variant, or the contrast as text.
    variant: str
    workload: str
    # Interval of the effect over all loads; None if there are too few blocks.
    interval_percent: tuple[float, float] | None
    # None if there is no interval or if an end is unknown.
    half_width_percent: float | None
    # 0 if the comparison has its answer; None if nothing can be expected.
    blocks_still_expected: int | None
    # Why more blocks will not help, for the user; "" if they may.
    note: str = ""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    # Whether the rule of `design.stop` is met.
    is_decided: bool
    comparisons: tuple[ComparisonProgress, ...]


def decide(run: Run) -> Progress:
    """The state of a run with `design.stop` after its finished blocks.

    Raises StoreProblem if the run cannot be read.
    """
    trials, experiment, run_findings = finished_trials(run)
    return progress(trials, experiment, run_findings)


def finished_trials(run: Run) -> tuple[list[MeasuredTrial], Experiment, list[Finding]]:
    """The trials of the finished blocks, in the order in which the blocks were finished; the experiment; and
    the findings that can forbid a verdict. Raises StoreProblem if the run cannot be read.
    """
    experiment = scheduled(run)
    evidence = gather(run, experiment, _KNOWN.setdefault(run, Known()))
    records = Records(run, experiment, evidence)
    relevant = [*records.findings_of_run, *find_all(records, that_forbid=True)]
    return evidence.trials, experiment, with_overrides(relevant, experiment)


def progress(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding] = ()
) -> Progress:
    """The same for the trials of the finished blocks, in the order in which the blocks were finished."""
    if is_factorial(experiment):
        return _of_contrasts(judge_contrasts(trials, experiment, findings), experiment)
    return _of_comparisons(compare_all(trials, experiment, findings), experiment)


def state(
    comparisons: Sequence[Comparison],
    contrasts: Contrasts | None,
    experiment: Experiment,
) -> Progress | None:
    """The same for a run that is judged already; None if its number of blocks was fixed."""
    if experiment.design.stop is None:
        return None
    if contrasts is not None:
        return _of_contrasts(contrasts, experiment)
    return _of_comparisons(comparisons, experiment)


def _of_contrasts(contrasts: Contrasts, experiment: Experiment) -> Progress:
    return _progress(
        _entry(
            contrast,
            workload,
            judged,
            experiment,
            is_answered=verdict in ANSWERS,
            is_blocked=verdict == Verdict.NOT_COMPARABLE,
        )
        for contrast, workload, judged, verdict in verdicts(contrasts)
    )


def _of_comparisons(comparisons: Sequence[Comparison], experiment: Experiment) -> Progress:
    # Identical variants measure the noise floor of the other comparisons, and have no answer.
    different = [comparison for comparison in comparisons if not comparison.is_identical] or comparisons
    least = _blocks_of_further_metrics(experiment)
    return _progress(
        replace(
            _entry(
                entry.variant,
                entry.workload,
                entry.judged,
                experiment,
                is_answered=is_answered,
                is_blocked=_is_blocked(entry, comparisons, experiment),
                least=max(0, least - entry.blocks[0]),
            ),
            note=_note(entry),
        )
        for entry, is_answered in zip(different, _answers(different, comparisons, experiment), strict=True)
    )


def _blocks_of_further_metrics(experiment: Experiment) -> int:
    """The minimum number of blocks with which the further metrics can have verdicts; 0 without such."""
    further = experiment.metrics[1:]
    return verdict_test(experiment, further[0]).blocks_needed if further else 0


def _note(comparison: Comparison) -> str:
    capacities, overall = comparison.capacities, comparison.judged.overall
    if capacities is None or overall is None or not is_unknown(overall):
        return ""
    return compose(
        "{missed_text} ({text}), so give {rates_to_give}",
        missed_text=capacities.missed_text(),
        text=capacities.text(),
        rates_to_give=capacities.rates_to_give(),
    )


def _progress(progresses: Iterable[ComparisonProgress]) -> Progress:
    entries = tuple(progresses)
    return Progress(bool(entries) and all(entry.blocks_still_expected == 0 for entry in entries), entries)


def _answers(
    different: Sequence[Comparison],
    comparisons: Sequence[Comparison],
    experiment: Experiment,
) -> list[bool]:
    """For each comparison, whether it has a verdict, or if the experiment has a gate, whether that is decided
    for it or for all workloads of its variant.
    """
    max_loss_percent = experiment.design.max_loss_percent
    if max_loss_percent is None:
        return [compared.judged.verdict in ANSWERS for compared in different]
    gate_results: list[GateResult] = []
    of_all: list[GateResult] = []
    for compared in different:
        entry, identical = _entry_and_identical(compared, comparisons)
        for results, is_decided in (
            (gate_results, compared.judged.is_gate_decided),
            (of_all, compared.judged.is_gate_decided_alone),
        ):
            results.append(result(entry, max_loss_percent, identical, is_decided=is_decided))
    suites = {}
    for variant in {compared.variant for compared in different}:
        tests = [index for index, compared in enumerate(different) if compared.variant == variant]
        passes = [of_all[index] == "not-inferior" for index in tests]
        suites[variant] = suite_result([gate_results[index] for index in tests], passes)
    return [
        word in GATE_ANSWERS or suites[compared.variant] in GATE_ANSWERS
        for compared, word in zip(different, gate_results, strict=True)
    ]


def _entry_and_identical(
    comparison: Comparison, comparisons: Sequence[Comparison]
) -> tuple[verdict.Comparison, verdict.Comparison | None]:
    """The entries of a comparison and of one of identical variants, as the gate reads them."""
    identical = [
        entry for entry in comparisons if entry.is_identical and entry.workload == comparison.workload
    ]
    return comparison_entry(comparison, ""), comparison_entry(identical[0], "") if identical else None


def _is_blocked(comparison: Comparison, comparisons: Sequence[Comparison], experiment: Experiment) -> bool:
    """Whether a finding, the noise floor or a load forbids an answer, however many blocks run."""
    design, overall, floor = experiment.design, comparison.judged.overall, comparison.floor_percent
    if design.max_loss_percent is not None:
        entry, identical = _entry_and_identical(comparison, comparisons)
        if is_forbidden(entry, design.max_loss_percent, identical):
            return True
    is_noise = overall is not None and floor is not None and abs(overall.effect_percent) <= floor
    other_answers = design.delta_percent is not None or design.max_loss_percent is not None
    return bool(comparison.stops) or (is_noise and not other_answers)


def rule(
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
    endings: Sequence[Ending],
    answer: Progress | None,
) -> StoppingRule | None:
    """The entry `stopping` of verdict.json, for the same trials; `endings` are the calls of `compare`."""
    stop = experiment.design.stop
    if stop is None or answer is None:
        return None
    finished, _ = finished_and_planned(trials, experiment)
    return StoppingRule(
        blocks=finished,
        blocks_at_most=blocks_at_most(trials, experiment) or stop.max_blocks,
        half_width_percent=stop.half_width_percent,
        is_met=answer.is_decided,
        why=endings[-1].why if endings else None,
        looks=Looks(planned=stop.max_blocks).counts(finished),
        spending="alpha (1 - 5 / n)" if stop.top_up else "alpha (n / last)^2",
    )


def _entry(
    variant: str,
    workload: str,
    judged: Judged,
    experiment: Experiment,
    *,
    is_answered: bool,
    is_blocked: bool,
    least: int = 0,
) -> ComparisonProgress:
    """How far a comparison is; at least `least` more blocks are expected."""
    ends = judged.overall.interval_percent if judged.overall else None
    half = (ends[1] - ends[0]) / 2.0 if ends and all(map(math.isfinite, ends)) else None
    expected = None
    stop = experiment.design.stop
    if is_answered or not is_blocked or (stop and stop.half_width_percent is not None):
        expected = _blocks_still_expected(judged, is_answered, half, experiment)
        expected = None if expected is None else max(expected, least)
    return ComparisonProgress(variant, workload, ends, half, expected)


def _blocks_still_expected(
    judged: Judged, is_answered: bool, half_width_percent: float | None, experiment: Experiment
) -> int | None:
    stop, delta = experiment.design.stop, experiment.design.delta_percent
    assert stop is not None, "the caller has a run with design.stop"
    overall, assessment = judged.overall, judged.assessment
    level: float | None = assessment.level
    if stop.half_width_percent is not None:
        level = None
        if half_width_percent is not None and half_width_percent <= stop.half_width_percent:
            return 0
        limit = math.log1p(stop.half_width_percent / 100.0)
    elif is_answered:
        return 0
    elif overall is None or overall.effect_percent <= -100.0:
        return FIRST_LOOK if overall is None else None
    elif experiment.design.max_loss_percent is not None:
        allowed = scale(experiment).limit_percent(experiment.design.max_loss_percent)
        limit = abs(math.log1p(overall.effect_percent / 100.0) - math.log1p(allowed / 100.0))
    else:
        # For a direction, the interval must leave out zero; for "equivalent" it must be within ±delta.
        limit = abs(math.log1p(overall.effect_percent / 100.0))
        limit = max(limit, math.log1p(delta / 100.0) - limit) if delta is not None else limit
    needed = blocks_for(assessment, limit, level)
    present = len(assessment.overall_ratios.lows)
    return None if needed is None else max(1, needed - present)
