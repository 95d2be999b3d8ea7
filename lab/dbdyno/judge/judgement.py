"""From a stored run to its verdict.

Only files are read, so a run can be judged again in ten years, by another machine, or after it was
interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from dbdyno.experiment.family import family_size, is_factorial, is_identical
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge import factorial, findings, scaling, sessions, statements, why
from dbdyno.judge.comparison import Comparison, blocks_json, comparison_json
from dbdyno.judge.decision import compare_all, relevant_to
from dbdyno.judge.evidence import Evidence, gather
from dbdyno.judge.order import order_findings
from dbdyno.judge.sentence import sentence
from dbdyno.judge.warmup import warm_state
from dbdyno.stats.paired import ALPHA
from dbdyno.store import EXPLAINED, MEASURED, VERDICT_SCHEMA, Run
from dbdyno.store.files import write_json
from dbdyno.store.rehearsal import is_warm_state_checked

# Warnings that [override] may pass, as it may a stop.
PASSABLE = frozenset({"D06"})


def judge(run: Run) -> dict[str, Any]:
    """The verdict of a run, as verdict.json keeps it. Writes measured.json and explained.json beside it.

    The caller writes the verdict (`Run.write_verdict`). Raises StoreProblem where the run cannot be read.
    """
    experiment = run.experiment()
    evidence = gather(run, experiment)
    scaled = scaling.scaling(evidence.trials, experiment)
    reasons = why.explained(evidence.trials, evidence.costs, experiment)
    listed = _with_overrides(
        [
            *run.findings(),
            *_findings(run, evidence, experiment),
            *sessions.differences(run.trials(), experiment),
            *scaling.knee_findings(scaled),
            *why.unmoved(reasons, experiment),
            *statements.examined(evidence.trials, evidence.costs, experiment),
            *statements.plans(run.findings(), experiment),
        ],
        experiment,
    )
    comparisons = compare_all(evidence.trials, experiment, listed)
    listed += _with_overrides(_findings_of(comparisons), experiment)
    trials = sorted([*evidence.trials, *evidence.replaced], key=lambda trial: trial.place.index)
    write_json(
        run.path / MEASURED,
        {
            "schema": VERDICT_SCHEMA,
            "trials": [trial.as_json() for trial in trials],
            "comparisons": [blocks_json(comparison) for comparison in comparisons],
        },
    )
    write_json(run.path / EXPLAINED, reasons)
    return {
        "schema": VERDICT_SCHEMA,
        "experiment": experiment.name,
        "baseline": experiment.variants[0].name,
        "order_seed": experiment.design.order_seed,
        "family": _family(experiment),
        "comparisons": [
            comparison_json(one, sentence(one, relevant_to(one.names, listed))) for one in comparisons
        ],
        **({"scaling": scaled} if scaled else {}),
        **(
            {"factors": factorial.judge_factors(evidence.trials, experiment, listed)}
            if is_factorial(experiment)
            else {}
        ),
        "checks": [asdict(one) for one in listed],
    }


def _findings(run: Run, evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """The findings on the records."""
    trials = evidence.trials
    by_variant = {
        variant.name: [trial for trial in trials if trial.place.variant == variant.name]
        for variant in experiment.variants
    }
    yield from findings.completeness(trials, experiment.design.blocks, evidence.contradictions)
    yield from findings.repeated_attempts(evidence.attempts, trials)
    yield from findings.failures_in_repeated_blocks(evidence.replaced_failures)
    yield from findings.counters(evidence.unread, trials)
    yield from findings.arithmetic(evidence.contradictions, trials)
    yield from warm_state(trials, experiment, rehearsed=is_warm_state_checked(run))
    yield from evidence.foreign.findings
    yield from findings.generator(by_variant)
    yield from findings.engine_warnings(evidence.warnings, trials)
    yield from findings.lost_connections(by_variant)
    for workload in experiment.workloads:
        of_workload = {
            variant: [trial for trial in of_variant if trial.place.workload == workload.title]
            for variant, of_variant in by_variant.items()
        }
        yield from findings.errors(of_workload, workload.title)
        yield from findings.row_counts(of_workload, workload.title)
    if experiment.load.rate:
        yield from findings.overload(by_variant)


def _findings_of(comparisons: Sequence[Comparison]) -> Iterator[Finding]:
    """The findings on the comparisons themselves."""
    for one in comparisons:
        yield from order_findings(
            one.order,
            one.names,
            one.scale.metric,
            one.scale.delta_percent,
        )
        if one.identical:
            yield from findings.twins(one.judged.overall, one.names)


def _with_overrides(findings: Iterable[Finding], experiment: Experiment) -> list[Finding]:
    """Every finding, with the reason of the experiment's [override] where it may have one."""
    return [
        replace(one, override=one.override or experiment.override.get(one.code))
        if one.level == "stop" or one.code in PASSABLE
        else one
        for one in findings
    ]


def _family(experiment: Experiment) -> dict[str, Any]:
    """How many sentences share the chance of a false word."""
    sentences = family_size(experiment)
    if all(is_identical(experiment, variant) for variant in experiment.variants[1:]):
        text = "Identical variants never get a direction."
    elif sentences == 1:
        text = f"The chance of a false word in this sentence is at most {ALPHA * 100:g} %."
    else:
        text = (
            f"The chance of even one false word among these {sentences} sentences is at most "
            f"{ALPHA * 100:g} %."
        )
    if len(experiment.factors) > 2:
        text += " Interactions of three factors are not examined."
    return {"sentences": sentences, "alpha": ALPHA, "text": text}
