"""Judges a stored run: computes its verdicts and writes verdict.json.

The judge reads only files, so a run can be judged again later, on another machine, or after an interruption.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.family import allows_false_discoveries, family_size, is_factorial
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import workloads_by_start
from dbdyno.finding import Finding
from dbdyno.judge import (
    background,
    conclusion,
    cost_changes,
    factorial,
    findings,
    load_generator,
    scaling,
    sessions,
    statements,
    stopping,
)
from dbdyno.judge.afterwards import mark_chosen
from dbdyno.judge.caveats import caveats
from dbdyno.judge.ceiling import client_ceiling
from dbdyno.judge.changed_files import changed_files
from dbdyno.judge.comparison import Comparison, comparison_blocks, comparison_entry, metric_entry
from dbdyno.judge.debt import debts
from dbdyno.judge.decision import (
    compare_all,
    compare_further,
    finished_and_planned,
    further_scales,
    relevant_to,
    with_overrides,
)
from dbdyno.judge.drift import cold_starts, growth
from dbdyno.judge.evidence import Evidence, gather, scheduled
from dbdyno.judge.few_beyond import few_beyond
from dbdyno.judge.fleet import fleet
from dbdyno.judge.foreign_load import unchecked
from dbdyno.judge.gate import gate, sure
from dbdyno.judge.headline import headline_rates
from dbdyno.judge.highest import highest_throughput
from dbdyno.judge.hosts import changed_hosts
from dbdyno.judge.machine import machine
from dbdyno.judge.open_transactions import open_transactions
from dbdyno.judge.order_effect import order_effect, order_findings
from dbdyno.judge.reached_limit import reached_limit
from dbdyno.judge.resolution import below_resolution
from dbdyno.judge.resumptions import resumptions
from dbdyno.judge.round_trips import round_trips
from dbdyno.judge.second_lines import second_lines
from dbdyno.judge.sentence import metric_sentence, sentence
from dbdyno.judge.slice_rounds import few_rounds
from dbdyno.judge.slice_totals import totals_findings
from dbdyno.judge.suite import suites
from dbdyno.judge.unequal_load import unequal_load
from dbdyno.judge.warmup import warm_state
from dbdyno.judge.wording import join_words
from dbdyno.stats.family import ADVISORY_ALPHA, is_within
from dbdyno.stats.paired import ALPHA, mean_ratios
from dbdyno.stats.verdict_rule import ANSWERS
from dbdyno.store import EXPLAINED, JUDGED, MEASURED, VERDICT, Run
from dbdyno.store.ceiling import read_ceilings
from dbdyno.store.endings import read_endings, read_resumptions
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile, MeasuredTrial
from dbdyno.store.texts import write_texts
from dbdyno.store.verdict import Comparison as ComparisonEntry
from dbdyno.store.verdict import Family, VerdictFile
from dbdyno.store.warmup_trial import is_warm_state_checked
from dbdyno.text import compose, join


def judge(run: Run) -> VerdictFile:
    """Judge a run: write verdict.json, measured.json and explained.json; returns the content of verdict.json.

    Raises StoreProblem if the run cannot be read or written.
    """
    experiment = scheduled(run)
    evidence = gather(run, experiment)
    scaling_entries = scaling.scaling(evidence.trials, experiment)
    explanation = cost_changes.explain(evidence.trials, evidence.costs, experiment)
    all_findings = with_overrides(
        [
            *run.findings(),
            *_record_findings(run, evidence, experiment),
            *sessions.session_differences(run.trials(), experiment),
            *scaling.peak_findings(scaling_entries),
            *cost_changes.unchanged(explanation, experiment),
            *statements.examined_rows(evidence.trials, evidence.costs, experiment),
            *statements.differing_plans(run.findings(), experiment),
        ],
        experiment,
    )
    comparisons = compare_all(evidence.trials, experiment, all_findings)
    further = compare_further(evidence.trials, experiment, all_findings)
    of_comparisons = comparison_findings(comparisons, further, evidence.trials, experiment)
    all_findings += with_overrides(of_comparisons, experiment)
    trials = sorted([*evidence.trials, *evidence.replaced], key=lambda trial: trial.index)
    measured = MeasuredFile(trials=trials, comparisons=[comparison_blocks(one) for one in comparisons])
    entries = _entries(comparisons, further, experiment, all_findings, evidence.block_s)
    contrasts = (
        factorial.judge_contrasts(evidence.trials, experiment, all_findings)
        if is_factorial(experiment)
        else None
    )
    state = stopping.state(comparisons, contrasts, experiment)
    factors = None if contrasts is None else factorial.entries(contrasts, experiment, evidence.block_s)
    curves = [one.curve for entry in entries for one in (entry, *(entry.metrics or ()))]
    verdicts = {one.verdict for one in (*curves, *(factors or ()))}
    verdict = VerdictFile(
        experiment=experiment.name,
        baseline=experiment.variants[0].name,
        order_seed=experiment.design.order_seed,
        family=_family(experiment, has_result=not verdicts.isdisjoint(ANSWERS)),
        comparisons=entries,
        stopping=stopping.rule(evidence.trials, experiment, read_endings(run), state),
        suites=suites(comparisons, evidence.trials, evidence.costs, experiment, all_findings) or None,
        scaling=scaling_entries or None,
        factors=factors,
        checks=[*all_findings, *conclusion.findings(experiment, entries)],
    )
    if (max_loss_percent := experiment.design.max_loss_percent) is not None:
        gated = gate(verdict, max_loss_percent, sure(comparisons))
        verdict = verdict.model_copy(update={"gate": gated})
    verdict = mark_chosen(verdict, run.chosen_afterwards())
    _write(run.judged_path, verdict, measured, explanation)
    return verdict


def _write(folder: Path, verdict: VerdictFile, measured: MeasuredFile, explanation: ExplainedFile) -> None:
    measured.write(folder / MEASURED)
    explanation.write(folder / EXPLAINED)
    # Before the verdict, without which the run is judged again.
    failures = [trial.failure for trial in measured.trials]
    write_texts(folder, verdict.model_dump(mode="json"), explanation.model_dump(mode="json"), failures)
    verdict.write(folder / VERDICT)


def _entries(
    comparisons: Sequence[Comparison],
    further: Sequence[Sequence[Comparison]],
    experiment: Experiment,
    found: Sequence[Finding],
    block_s: float | None,
) -> list[ComparisonEntry]:
    """The entries of `comparisons` in verdict.json; `further` are the comparisons by the further metrics."""
    lines = second_lines(comparisons, experiment)
    relevant = [relevant_to(one.names, found) for one in comparisons]
    return [
        comparison_entry(
            one,
            sentence(one, findings, block_s, of_one),
            caveats(findings),
            [line.entry() for line in of_one],
            metrics=[metric_entry(metric, metric_sentence(metric)) for metric in metrics],
            highest=highest_throughput(one, experiment),
        )
        for one, findings, of_one, metrics in zip(comparisons, relevant, lines, further, strict=True)
    ]


def _record_findings(run: Run, evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """The findings about the records of trials."""
    trials = evidence.trials
    by_variant = {
        variant.name: [trial for trial in trials if trial.variant == variant.name]
        for variant in experiment.variants
    }
    _, planned = finished_and_planned(trials, experiment)
    yield from findings.completeness(trials, planned, evidence.contradictions)
    yield from findings.repeated_attempts(evidence.attempts, trials)
    yield from findings.failures_in_repeated_blocks(evidence.replaced_failures)
    yield from resumptions(read_resumptions(run))
    own = {str((run.judged_path / name).relative_to(run.path)) for name in JUDGED}
    yield from changed_files([name for name in run.changed_files() if name not in own])
    yield from findings.counters(evidence.unread, trials)
    yield from findings.arithmetic(evidence.contradictions, trials)
    yield from warm_state(trials, experiment, has_warmup_trials=is_warm_state_checked(run))
    yield from evidence.foreign.findings
    if any(trial.figures for trial in trials):
        yield from unchecked(evidence.foreign, experiment)
    yield from changed_hosts(trials, evidence.states)
    yield from round_trips(trials, evidence.states, experiment)
    yield from client_ceiling(trials, read_ceilings(run))
    yield from fleet(trials, evidence.engines)
    yield from machine(trials, evidence.states)
    yield from debts(trials, evidence.states, experiment)
    yield from open_transactions(trials, evidence.states)
    yield from growth(trials, evidence.states, experiment)
    yield from cold_starts(trials, evidence.costs, run.schedule())
    yield from few_beyond(trials, experiment)
    yield from few_rounds(trials, experiment)
    yield from reached_limit(trials, experiment)
    yield from headline_rates(trials, experiment)
    yield from load_generator.generator(by_variant)
    yield from load_generator.generator_warnings(evidence.warnings, trials)
    yield from findings.lost_connections(by_variant)
    with_loaded_rows = findings.variants_with_loaded_rows(experiment, run.findings())
    for workload in experiment.workloads:
        of_workload = {
            variant: [trial for trial in of_variant if trial.workload == workload.title]
            for variant, of_variant in by_variant.items()
        }
        yield from findings.errors(of_workload, workload.title)
        yield from findings.row_counts(of_workload, workload.title, with_loaded_rows)
        yield from background.findings(of_workload, workload.title)
    # Under a promise, rates that are too high are part of the design.
    if experiment.load.rate and not experiment.load.promise:
        yield from findings.overload(by_variant)


def _order_findings(
    comparisons: Sequence[Comparison], trials: Sequence[MeasuredTrial], experiment: Experiment
) -> Iterator[Finding]:
    """R10 for each variant. Workloads that run on one start of the server have one order, so their mean is
    tested; a run's tests share the error rate.
    """
    sets = workloads_by_start(experiment)
    level = ADVISORY_ALPHA / (len(sets) * max(1, len(experiment.variants) - 1))
    by_key = {(one.variant, one.workload): one for one in comparisons}
    for variant, titles in itertools.product(experiment.variants[1:], sets):
        tests = [by_key[variant.name, title] for title in titles]
        first, order = tests[0], tests[0].order
        if len(titles) > 1 and order is not None:
            ratios = mean_ratios([one.judged.assessment.overall_ratios for one in tests])
            of_tests = [trial for trial in trials if trial.workload in titles]
            order = order_effect(ratios, of_tests, first.baseline, first.variant)
        where, averaged = first.workload, titles if len(titles) > 1 else ()
        if averaged:
            where = compose("average of {number} tests", number=len(tests))
        names = first.baseline, first.variant, where
        if order is not None and is_within(order.p_value, level):
            yield from order_findings(order, names, first.scale.metric, first.scale.delta_percent, averaged)


def comparison_findings(
    comparisons: Sequence[Comparison],
    further: Sequence[Sequence[Comparison]],
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
) -> Iterator[Finding]:
    """The findings about comparisons; `further` are those by the further metrics."""
    yield from _order_findings(comparisons, trials, experiment)
    every = [
        each for one, of_metrics in zip(comparisons, further, strict=True) for each in (one, *of_metrics)
    ]
    yield from totals_findings(every)
    for each in every:
        yield from below_resolution(each)
    for one in comparisons:
        yield from unequal_load(one)
    identical = [one for one in comparisons if one.is_identical]
    for one in identical:
        level = ADVISORY_ALPHA / len(identical)
        yield from findings.identical_variants(one.judged.overall, one.names, level)


def _family(experiment: Experiment, *, has_result: bool) -> Family:
    """The number of sentences that share the family-wise error rate, and its explanation for the reader.

    `has_result`: a verdict says something that may be wrong; otherwise the text does not give its chance.
    """
    sentences = family_size(experiment)
    text: str
    if all(is_identical(experiment, variant) for variant in experiment.variants[1:]):
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
