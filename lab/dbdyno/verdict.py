"""Judges a stored run: computes its verdicts, composes the sentences that say them, and writes verdict.json.

The judge reads only files, so a run can be judged again later, on another machine, or after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbdyno.decide import factorial, stopping
from dbdyno.decide.capacity import capacity_of_only_variant
from dbdyno.decide.comparison import comparison_blocks, comparison_entry, metric_entry
from dbdyno.decide.decision import compare_all, compare_further, further_scales, relevant_to, with_overrides
from dbdyno.decide.factorial import judge_contrasts
from dbdyno.decide.gate import decided_limits, gate
from dbdyno.decide.secondary_metrics import highest_throughput, secondary_metrics
from dbdyno.decide.suite import suites
from dbdyno.experiment.base import parse_cpus
from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.family import allows_false_discoveries, family_size, is_factorial
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.measure.evidence import gather, scheduled
from dbdyno.rules import Decided, Records, conclusion, find_all
from dbdyno.say.capacity import capacity_sentence
from dbdyno.say.caveats import caveats, mark_chosen
from dbdyno.say.sentence import comparison_caveats, metric_sentence, sentence
from dbdyno.say.wording import join_words
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.verdict_rule import ANSWERS
from dbdyno.store import EXPLAINED, MEASURED, VERDICT, Run
from dbdyno.store.document import write_texts
from dbdyno.store.endings import read_endings
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import Comparison, Family, Scaling, ServerCapacity, VerdictFile
from dbdyno.text import compose, join


def judge(run: Run) -> VerdictFile:
    """Judge a run: write verdict.json, measured.json and explained.json; returns the content of verdict.json.

    Raises StoreProblem if the run cannot be read or written.
    """
    experiment = scheduled(run)
    evidence = gather(run, experiment)
    records = Records(run, experiment, evidence)
    findings = with_overrides([*records.findings_of_run, *find_all(records)], experiment)
    comparisons = compare_all(evidence.trials, experiment, findings)
    further = compare_further(evidence.trials, experiment, findings)
    decided = Decided(run, experiment, evidence, comparisons, further)
    findings += with_overrides(find_all(decided), experiment)
    contrasts = judge_contrasts(evidence.trials, experiment, findings) if is_factorial(experiment) else None
    verdict = verdict_file(decided, contrasts, records.scaling, findings)
    verdict = mark_chosen(verdict, run.chosen_afterwards())
    trials = sorted([*evidence.trials, *evidence.replaced], key=lambda trial: trial.index)
    measured = MeasuredFile(
        trials=trials, comparisons=[comparison_blocks(comparison) for comparison in comparisons]
    )
    _write(run.judged_path, verdict, measured, records.explanation)
    return verdict


def _write(folder: Path, verdict: VerdictFile, measured: MeasuredFile, explanation: ExplainedFile) -> None:
    measured.write(folder / MEASURED)
    explanation.write(folder / EXPLAINED)
    # Before the verdict, without which the run is judged again.
    failures = [trial.failure for trial in measured.trials]
    write_texts(folder, verdict.model_dump(mode="json"), explanation.model_dump(mode="json"), failures)
    verdict.write(folder / VERDICT)


def verdict_file(
    decided: Decided,
    contrasts: factorial.Contrasts | None,
    scaling: Sequence[Scaling],
    findings: Sequence[Finding],
) -> VerdictFile:
    """The content of verdict.json; `findings` are those of all checks and rules.

    Raises StoreProblem if the run cannot be read.
    """
    run, experiment, evidence = decided.run, decided.experiment, decided.evidence
    comparisons = _comparisons(decided, findings)
    factors = None if contrasts is None else factorial.entries(contrasts, experiment, evidence.block_s)
    curves = [metric.curve for entry in comparisons for metric in (entry, *(entry.metrics or ()))]
    verdicts = {curve.verdict for curve in (*curves, *(factors or ()))}
    capacities = _capacities(decided, findings)
    state = stopping.state(decided.comparisons, contrasts, experiment)
    verdict = VerdictFile(
        experiment=experiment.name,
        baseline=experiment.variants[0].name,
        order_seed=experiment.design.order_seed,
        family=_family(experiment, has_result=not verdicts.isdisjoint(ANSWERS)),
        comparisons=comparisons,
        stopping=stopping.rule(evidence.trials, experiment, read_endings(run), state),
        suites=suites(decided.comparisons, evidence.trials, evidence.costs, experiment, findings) or None,
        capacities=capacities or None,
        scaling=list(scaling) or None,
        factors=factors,
        checks=[*findings, *conclusion.findings(experiment, comparisons)],
    )
    if (max_loss_percent := experiment.design.max_loss_percent) is None:
        return verdict
    gated = gate(verdict, max_loss_percent, decided_limits(decided.comparisons))
    return verdict.model_copy(update={"gate": gated})


def _comparisons(decided: Decided, findings: Sequence[Finding]) -> list[Comparison]:
    lines = secondary_metrics(decided.comparisons, decided.experiment)
    relevant = [relevant_to(comparison.names, findings) for comparison in decided.comparisons]
    return [
        comparison_entry(
            comparison,
            sentence(comparison, entry_of_comparison, decided.evidence.block_s, lines_of_one),
            comparison_caveats(comparison, entry_of_comparison),
            [line.entry() for line in lines_of_one],
            metrics=[metric_entry(metric, metric_sentence(metric)) for metric in metrics],
            highest=highest_throughput(comparison, decided.experiment),
        )
        for comparison, entry_of_comparison, lines_of_one, metrics in zip(
            decided.comparisons, relevant, lines, decided.further, strict=True
        )
    ]


def _capacities(decided: Decided, findings: Sequence[Finding]) -> list[ServerCapacity]:
    """The capacity of the only variant on each workload; empty with several variants, or without a latency
    objective.
    """
    experiment, evidence = decided.experiment, decided.evidence
    load, (variant, *others) = experiment.load, experiment.variants
    if load.latency_objective is None or others:
        return []
    cpus = variant.server.cpus
    entries: list[ServerCapacity] = []
    for workload in (workload.title for workload in experiment.workloads):
        trials = [trial for trial in evidence.trials if trial.workload == workload]
        capacity = capacity_of_only_variant(
            trials, evidence.costs, load, len(parse_cpus(cpus)) if cpus else None
        )
        if capacity is None:
            continue
        about = relevant_to((variant.name, variant.name, workload), findings)
        entries.append(
            ServerCapacity(
                workload=workload,
                variant=variant.name,
                metric=capacity.objective.metric,
                limit_us=capacity.objective.limit_us,
                capacity=capacity.estimate,
                interval=capacity.interval,
                blocks=capacity.blocks,
                limited_by=capacity.use.limited_by if capacity.use else None,
                sentence=capacity_sentence(capacity, variant.name, load.connections[0], about),
                caveats=caveats(about),
            )
        )
    return entries


def _family(experiment: Experiment, *, has_result: bool) -> Family:
    """The number of sentences that share the family-wise error rate, and its explanation for the reader.

    `has_result`: a verdict says something that may be wrong; otherwise the text does not give its chance.
    """
    sentences = family_size(experiment)
    text: str
    compared = experiment.variants[1:]
    if compared and all(is_identical(experiment, variant) for variant in compared):
        text = compose("Identical variants never get a direction.")
    elif not has_result:
        text = ""
    elif allows_false_discoveries(experiment):
        text = compose(
            "Of the verdicts with a direction, at most {alpha:g} % are expected to be wrong (false discovery "
            "rate of {sentences} verdicts).",
            alpha=ALPHA * 100,
            sentences=sentences,
        )
    elif sentences == 1:
        text = compose("The chance that this verdict is wrong is at most {alpha:g} %.", alpha=ALPHA * 100)
    else:
        text = compose(
            "The chance that any of these {sentences} verdicts is wrong is at most {alpha:g} %.",
            sentences=sentences,
            alpha=ALPHA * 100,
        )
    if text and has_result and (further := further_scales(experiment)):
        text = join(" ", (text, _further_text(sentences * len(further), experiment)))
    if len(experiment.factors) > 2:
        text += compose(" Interactions of three factors are not examined.")
    return Family(sentences=sentences, alpha=ALPHA, text=text)


def _further_text(count: int, experiment: Experiment) -> str:
    """The error rate of the second family."""
    names = join_words([metric_text(metric) for metric in experiment.metrics[1:]])
    if allows_false_discoveries(experiment):
        return compose(
            "Of the verdicts on {names} with a direction, at most {alpha:g} % are expected to be wrong too "
            "(false discovery rate of {count} verdicts).",
            names=names,
            alpha=ALPHA * 100,
            count=count,
        )
    any_of = compose("the verdict") if count == 1 else compose("any of the {count} verdicts", count=count)
    return compose(
        "The chance that {any_of} on {names} is wrong is at most {alpha:g} % too.",
        any_of=any_of,
        names=names,
        alpha=ALPHA * 100,
    )
