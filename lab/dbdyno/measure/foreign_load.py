"""D06: foreign load, that is, CPU time of other processes on the CPUs of server and client.

The input is `edges.foreign` of every server.json, and schedule.json. All effects are computed from log ratios
without the foreign load, as far as it can be taken out (`stats/covariate.py`).

With `design.repeat_disturbed` the repeat of a disturbed block always replaces the block: if a result or the
foreign load decided which of the two counts, the result would be biased. What remains disturbed is named for
each workload by its own trials: in a suite of many tests almost every block contains some disturbed trial.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from dbdyno.experiment.metrics import harm_max
from dbdyno.experiment.repeats import (
    FOREIGN_LIMIT,
    describe_processes,
    disturbed_blocks,
    largest_processes,
    largest_shares,
    read_foreign_load,
    subtract_interrupts,
)
from dbdyno.experiment.schedule import Trial, trial_number
from dbdyno.finding import Finding
from dbdyno.measure.slices import block_ratio
from dbdyno.server_record import ForeignRecord
from dbdyno.stats.covariate import Rule, adjust
from dbdyno.stats.paired import LogBounds, Ratios, sum_bounds
from dbdyno.store import StoredTrial
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, compose_count, join

CODE = "D06"
# Maximum number of trials listed in a message.
LISTED_MAX = 5


@dataclass(frozen=True)
class ForeignLoad:
    """The foreign load of a run. Numbers of blocks start at 0."""

    # Disturbed block -> the repeat that counts instead.
    replaced: Mapping[int, int]
    # Workload -> planned blocks in which its trials, or those of the repeat, met more than the limit.
    remaining: Mapping[str, tuple[int, ...]]
    # Index of a trial -> share of CPU time by which foreign load disturbed it, if it was measured.
    shares: Mapping[int, float]
    # One about the disturbed blocks of each workload, or one about the blocks that were repeated; and at most
    # one about trials whose foreign load was not measured.
    findings: list[Finding]


def foreign_load(
    stored: Sequence[StoredTrial],
    schedule: Sequence[Trial],
    blocks: Collection[int],
    earlier: dict[int, ForeignRecord | None] | None = None,
) -> ForeignLoad:
    """The foreign load of a run; `blocks` are the numbers of the planned blocks that count, unless a repeat
    replaces them. `earlier` has the loads that earlier calls have read, by the trial's index.
    """
    earlier = {} if earlier is None else earlier
    replaced = replacements(schedule, {trial.index for trial in stored if trial.is_result})
    block_of = {trial.index: trial.block for trial in schedule}
    loads: dict[int, ForeignRecord] = {}
    for trial in stored:
        load = earlier[trial.index] if trial.index in earlier else read_foreign_load(trial.server)
        if trial.is_result:
            earlier[trial.index] = load
        if load is not None and trial.index in block_of:
            loads[trial.index] = load
    loads = subtract_interrupts(loads, schedule)
    shares = {index: float(load["share"]) for index, load in loads.items()}

    def summarize(indices: Iterable[int]) -> dict[str, Any]:
        of_trials = set(indices)
        return {
            "share": max((shares[index] for index in of_trials), default=0.0),
            "processes": largest_processes(loads[index] for index in sorted(of_trials)),
            "repeated": sorted(replaced),
        }

    findings: list[Finding] = []
    remaining: dict[str, tuple[int, ...]] = {}
    for workload in dict.fromkeys(trial.workload for trial in schedule):
        indexes = {trial.index for trial in schedule if trial.workload == workload} & loads.keys()
        by_block = largest_shares((block_of[index], shares[index]) for index in indexes)
        counted_share = {block: by_block.get(replaced.get(block, block), 0.0) for block in blocks}
        if disturbed := tuple(disturbed_blocks(counted_share)):
            remaining[workload] = disturbed
            counting = {replaced.get(block, block) for block in disturbed}
            evidence = summarize(index for index in indexes if block_of[index] in counting)
            findings.append(_remaining(workload, disturbed, len(blocks), evidence))
    if replaced and not remaining:
        evidence = summarize(index for index in loads if block_of[index] in replaced)
        findings.append(_repeated(len(blocks), evidence))
    counted = {
        trial.index
        for trial in stored
        if trial.is_result and _counts(block_of.get(trial.index), replaced, blocks)
    }
    if unmeasured := _unmeasured(counted, shares):
        findings.append(unmeasured)
    return ForeignLoad(replaced, remaining, shares, findings)


def _counts(block: int | None, replaced: Mapping[int, int], blocks: Collection[int]) -> bool:
    """Whether the verdict uses a block; None is the block of a trial that is not in the schedule."""
    return block is not None and block not in replaced and (block in blocks or block in replaced.values())


def without_foreign_load(measured: Ratios, shares: Mapping[int, tuple[float, float]], metric: str) -> Ratios:
    """The log ratios of a metric without the load of other processes, as far as it can be taken out.

    `shares` are those of the CPU time that other processes used during the trials of baseline and variant,
    per block.
    """
    adjusted = adjust(measured.lows, measured.highs, shares, harm_max(metric))
    is_bounded = adjusted.rule == Rule.BOUNDED and measured.is_exact
    return Ratios(adjusted.lows, adjusted.highs, adjusted.rule, measured.lows if is_bounded else None)


def shares_of_pairs(
    baseline: Mapping[int, MeasuredTrial], variant: Mapping[int, MeasuredTrial]
) -> dict[int, tuple[float, float]]:
    """Block -> shares of CPU time that other processes used during the two trials, if both are known."""
    return weighted_shares(weighted_pairs(baseline, variant))


def weighted_pairs(
    baseline: Mapping[int, MeasuredTrial], variant: Mapping[int, MeasuredTrial]
) -> dict[int, list[tuple[float, MeasuredTrial]]]:
    """Block -> the two trials of each block that both have, with the weights of a difference."""
    return {
        block: [(-1.0, base), (1.0, variant[block])] for block, base in baseline.items() if block in variant
    }


def weighted_ratios(by_block: Mapping[int, Sequence[tuple[float, MeasuredTrial]]], metric: str) -> Ratios:
    """The weighted sums of the logarithms of each block's trials, with the load of other processes."""
    return Ratios.of({block: _bounds(trials, metric) for block, trials in by_block.items()})


def _bounds(trials: Sequence[tuple[float, MeasuredTrial]], metric: str) -> LogBounds:
    paired = block_ratio(trials, metric)
    if paired is not None:
        return paired, paired
    return sum_bounds([(weight, trial.log_bounds(metric)) for weight, trial in trials])


def weighted_shares(
    by_block: Mapping[int, Sequence[tuple[float, MeasuredTrial]]],
) -> dict[int, tuple[float, float]]:
    """Block -> share of CPU time that other processes used, during the subtracted and the added trials."""
    return {
        block: (
            sum(-weight * (trial.foreign_to_remove or 0.0) for weight, trial in trials if weight < 0.0),
            sum(weight * (trial.foreign_to_remove or 0.0) for weight, trial in trials if weight > 0.0),
        )
        for block, trials in by_block.items()
        if all(trial.foreign_to_remove is not None for _, trial in trials)
    }


def shares_of_blocks(
    trials: Iterable[MeasuredTrial], baseline: str, variant: str
) -> dict[int, tuple[float, float]]:
    """The same, as means over all loads of each block."""
    table: dict[int, dict[str, list[float]]] = {}
    for trial in trials:
        share = trial.foreign_to_remove
        if trial.is_result and share is not None:
            table.setdefault(trial.block, {}).setdefault(trial.variant, []).append(share)
    return {
        block: (fmean(by_variant[baseline]), fmean(by_variant[variant]))
        for block, by_variant in table.items()
        if baseline in by_variant and variant in by_variant
    }


def _unmeasured(counted: Collection[int], shares: Mapping[int, float]) -> Finding | None:
    """A note about trials whose foreign load was not measured although that of others was.

    `counted` contains the indices of the trials that the verdict uses.
    """
    missing = sorted(index for index in counted if index not in shares)
    if not missing or len(missing) == len(counted):
        return None
    listed = join(", ", map(trial_number, missing[:LISTED_MAX]))
    more = (
        compose(" and {number} more", number=len(missing) - LISTED_MAX) if len(missing) > LISTED_MAX else ""
    )
    return Finding(
        CODE,
        "note",
        compose(
            "the CPU time of other processes is unknown in {number} of {number_2} trials (trial "
            "{listed}{more}): they may have disturbed these trials",
            number=len(missing),
            number_2=len(counted),
            listed=listed,
            more=more,
        ),
        {"trials": missing, "of": len(counted)},
        fix=compose("If the machine was overloaded, stop other processes or lower the load"),
    )


def replacements(schedule: Sequence[Trial], results: set[int]) -> dict[int, int]:
    """Block -> its repeat, if all trials of the repeat have a result; `results` contains the indices of
    trials with a result.
    """
    repeats: dict[int, tuple[int, set[int]]] = {}
    for trial in schedule:
        if trial.repeats is not None:
            _, indices = repeats.setdefault(trial.repeats, (trial.block, set()))
            indices.add(trial.index)
    return {original: block for original, (block, indices) in repeats.items() if indices <= results}


def _remaining(workload: str, disturbed: Sequence[int], blocks: int, evidence: Mapping[str, Any]) -> Finding:
    """A warning about the disturbed blocks of a workload that count; `evidence` is that of their trials."""
    repeated = evidence["repeated"]
    text = compose(
        "other processes used more than {value:.0f} % of the CPUs of server and client in {number} of the "
        "{blocks} blocks that count ({names}); the result holds with such a load{more}",
        value=100 * FOREIGN_LIMIT,
        number=len(disturbed),
        blocks=blocks,
        names=describe_processes(evidence["processes"]),
        more=join("; ", ("", _repeated_text(len(repeated), blocks))) if repeated else "",
    )
    fix = compose("Stop these processes while measuring; the interval then becomes narrower")
    facts = {"blocks": sorted({*repeated, *disturbed}), "remaining": len(disturbed), "workload": workload}
    return Finding(CODE, "warn", text, {**evidence, **facts}, fix=fix)


def _repeated(blocks: int, evidence: Mapping[str, Any]) -> Finding:
    """A note if all disturbed blocks were repeated; `evidence` is that of the trials that do not count."""
    repeated = evidence["repeated"]
    text = compose(
        "{repeated} because other processes used the CPUs ({names}); the repeats count",
        repeated=_repeated_text(len(repeated), blocks),
        names=describe_processes(evidence["processes"]),
    )
    return Finding(CODE, "note", text, {**evidence, "blocks": repeated, "remaining": 0})


def _repeated_text(number: int, blocks: int) -> str:
    return compose_count(
        number,
        "{number} of {blocks} blocks was repeated",
        "{number} of {blocks} blocks were repeated",
        blocks=blocks,
    )
