"""Judges factorial experiments: the effect of each factor, averaged over the others, and interactions of two
factors.

::

    version x threads          main effect of 8.4      = mean over threads of (8.4 - 8.0)
                               main effect of pool     = mean over versions of (pool - per-connection)
                               interaction of the two  = (pool - per-connection on 8.4) - (… on 8.0)

Each of these effects is a contrast of log metrics within one block at one load, so the methods for
comparisons apply (Box, Hunter & Hunter 2005, Statistics for Experimenters, ch. 5). All main effects and
interactions of a run, over all workloads, share the family-wise error rate. If the effect of a factor depends
on another factor, its verdict is "mixed", and its sentence gives the effect at each level of the other
factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.decide.comparison import (
    blocks_at_most,
    failures,
    finished_and_planned,
    is_unfinished,
    overall_p_value,
)
from dbdyno.decide.comparison import change as entry_change
from dbdyno.decide.contrasts import AssessedContrast, cells_of, contrast_ratios
from dbdyno.decide.decision import (
    on_workload,
    scale,
    stopping,
    stops,
)
from dbdyno.decide.effects import Conditions, Judged, assess, judge_family
from dbdyno.decide.more_blocks import more_blocks_text
from dbdyno.experiment.family import contrasts, family_size
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.say.caveats import caveats, with_caveats
from dbdyno.say.factorial_sentence import contrast_title, sentence
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.verdict_rule import RESULTS, Circumstances, Verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import FactorEffect
from dbdyno.text import join

# Every contrast on every workload, with its effects.
Contrasts = Sequence[tuple[AssessedContrast, Judged]]


def entries(contrasts: Contrasts, experiment: Experiment, block_s: float | None = None) -> list[FactorEffect]:
    """The entries of `factors` in verdict.json: main effects, then interactions, for each workload.

    `block_s` is the time of one block in seconds, if it is known.
    """
    return [_entry(contrast, judged, contrasts, experiment, block_s) for contrast, judged in contrasts]


def verdicts(contrasts: Contrasts) -> Iterator[tuple[str, str, Judged, Verdict]]:
    """Text, workload, effects and verdict of each contrast."""
    for entry, judged in contrasts:
        yield contrast_title(entry.contrast), entry.workload, judged, _verdict(entry, judged, contrasts)


def judge_contrasts(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding]
) -> Contrasts:
    """The contrasts of a factorial experiment, judged as one family."""
    metric_scale, family = scale(experiment), stopping(experiment, family_size(experiment))
    assessed: list[AssessedContrast] = []
    for workload in experiment.workloads:
        of_workload = [trial for trial in trials if trial.workload == workload.title]
        relevant = on_workload(workload.title, findings)
        stopping_findings = stops(relevant)
        conditions = Conditions(
            metric_scale.higher_is_faster,
            Circumstances(bool(stopping_findings), is_unfinished(of_workload)),
            metric_scale.delta_percent,
        )
        failed = list(dict(failures(of_workload)).values())
        cells = cells_of(of_workload, experiment, metric_scale.metric)
        assessed += [
            AssessedContrast(
                contrast=contrast,
                workload=workload.title,
                cells=cells,
                assessment=assess(
                    contrast_ratios(contrast.weights, cells, metric_scale.metric), metric_scale.alpha, family
                ),
                conditions=conditions,
                stops=stopping_findings,
                failures=failed,
                findings=relevant,
                blocks=finished_and_planned(of_workload, experiment),
                blocks_at_most=blocks_at_most(of_workload, experiment),
            )
            for order in (1, 2)
            for contrast in contrasts(experiment.factors, order)
        ]
    judged = judge_family(
        [(entry.assessment, entry.conditions) for entry in assessed],
        alpha=ALPHA,
    )
    return list(zip(assessed, judged, strict=True))


def _entry(
    assessed_contrast: AssessedContrast,
    judged: Judged,
    pairs: Contrasts,
    experiment: Experiment,
    block_s: float | None,
) -> FactorEffect:
    """The entry of one contrast; `pairs` contains all contrasts with their verdicts."""
    metric_scale = scale(experiment)
    partners = _interacting_factors(assessed_contrast, pairs)
    verdict = _verdict(assessed_contrast, judged, pairs)
    text = sentence(assessed_contrast, judged, verdict, partners, experiment)
    if verdict == Verdict.UNDECIDED:
        text = join("; ", [text, *more_blocks_text(assessed_contrast.assessment, block_s)])
    listed = caveats(assessed_contrast.findings, assessed_contrast.failures)
    return FactorEffect(
        factors=list(assessed_contrast.contrast.factors),
        levels=list(assessed_contrast.contrast.levels),
        against=list(assessed_contrast.contrast.baseline_levels),
        workload=assessed_contrast.workload,
        metric=metric_scale.metric,
        **entry_change(judged.overall, metric_scale.alpha),
        p_value=overall_p_value(judged),
        verdict=verdict.value,
        sentence=with_caveats(text, listed),
        caveats=listed,
    )


def _verdict(contrast: AssessedContrast, judged: Judged, pairs: Contrasts) -> Verdict:
    """The verdict of one contrast; a main effect that depends on another factor is mixed."""
    return (
        Verdict.MIXED
        if judged.verdict in RESULTS and _interacting_factors(contrast, pairs)
        else judged.verdict
    )


def _interacting_factors(assessed_contrast: AssessedContrast, pairs: Contrasts) -> list[str]:
    """The factors that interact significantly with the factor of a main effect; [] for an interaction."""
    if len(assessed_contrast.contrast.factors) == 2:
        return []
    (factor,), (level,) = assessed_contrast.contrast.factors, assessed_contrast.contrast.levels
    partners: list[str] = []
    for pair, judged in pairs:
        levels = dict(zip(pair.contrast.factors, pair.contrast.levels, strict=True))
        is_interaction = (
            judged.verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.MIXED) and len(levels) == 2
        )
        if is_interaction and pair.workload == assessed_contrast.workload and levels.get(factor) == level:
            partners += [name for name in levels if name != factor]
    return list(dict.fromkeys(partners))
