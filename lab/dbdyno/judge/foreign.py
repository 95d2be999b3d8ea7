"""D06: CPU time of other processes on the CPUs that server and client use.

It is read from `edges.foreign` of each server.json, and from the schedule. The repeat of a disturbed block
always replaces the block. To choose between the two by a result or by foreign share would favour the
better-looking one by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.repeats import (
    FOREIGN_LIMIT,
    describe_processes,
    disturbed_blocks,
    largest_processes,
    largest_shares,
    read_foreign_load,
)
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.store import StoredTrial

CODE = "D06"
# Trials named in a message.
NAMED_MAX = 5


@dataclass(frozen=True)
class ForeignLoad:
    """The consequences of foreign load for the blocks of a run. Blocks are planned blocks, from 0."""

    # Block -> the block that counts in its place.
    replaced: Mapping[int, int]
    # Blocks whose counted trials (their own, or those of the repeat) had foreign load above the limit.
    remaining: tuple[int, ...]
    # Trial index -> foreign share, where it is known.
    shares: Mapping[int, float]
    # At most one about blocks, and one about trials with an unknown share.
    findings: list[Finding]


def foreign_load(stored: Sequence[StoredTrial], schedule: Sequence[Trial], blocks: int) -> ForeignLoad:
    """The foreign load of a run of `blocks` planned blocks."""
    replaced = replacements(schedule, {trial.index for trial in stored if trial.is_result})
    block_of = {trial.index: trial.block for trial in schedule}
    loads: dict[int, Mapping[str, Any]] = {}
    for trial in stored:
        load = read_foreign_load(trial.server)
        if load is not None and trial.index in block_of:
            loads[trial.index] = load
    shares = {index: float(load["share"]) for index, load in loads.items()}
    by_block = largest_shares((block_of[index], share) for index, share in shares.items())
    counting = {block: by_block.get(replaced.get(block, block), 0.0) for block in range(blocks)}
    remaining = tuple(disturbed_blocks(counting))
    named = {replaced.get(block, block) for block in remaining} or replaced.keys()
    processes = largest_processes(load for index, load in loads.items() if block_of[index] in named)
    share = max((by_block.get(block, 0.0) for block in named), default=0.0)
    counted = {
        trial.index
        for trial in stored
        if trial.is_result and _counts(block_of.get(trial.index), replaced, blocks)
    }
    findings = (_finding(sorted(replaced), remaining, blocks, share, processes), _unknown(counted, shares))
    return ForeignLoad(replaced, remaining, shares, [one for one in findings if one is not None])


def _counts(block: int | None, replaced: Mapping[int, int], blocks: int) -> bool:
    """Whether a block is used for the verdict; None is a trial that is not in the schedule."""
    return block is not None and block not in replaced and (block < blocks or block in replaced.values())


def _unknown(counted: Collection[int], shares: Mapping[int, float]) -> Finding | None:
    """Trials without a foreign share although others have one; `counted` has the indexes of the trials that
    count.
    """
    missing = sorted(index for index in counted if index not in shares)
    if not missing or len(missing) == len(counted):
        return None
    # In the format of their folder names.
    named = ", ".join(f"{index:04d}" for index in missing[:NAMED_MAX])
    more = f" and {len(missing) - NAMED_MAX} more" if len(missing) > NAMED_MAX else ""
    return Finding(
        CODE,
        "note",
        f"the foreign load of {len(missing)} of {len(counted)} trials is not known (trial {named}{more}): "
        "other processes may have disturbed them",
        {"trials": missing, "of": len(counted)},
        fix="Where the machine was overloaded, stop other processes or lower the load",
    )


def replacements(schedule: Sequence[Trial], results: set[int]) -> dict[int, int]:
    """Block -> its repeat, where all trials of the repeat have a result; `results` has their indices."""
    repeats: dict[int, tuple[int, set[int]]] = {}
    for trial in schedule:
        if trial.repeats is not None:
            _, indices = repeats.setdefault(trial.repeats, (trial.block, set()))
            indices.add(trial.index)
    return {original: block for original, (block, indices) in repeats.items() if indices <= results}


def _finding(
    replaced: Sequence[int],
    remaining: Sequence[int],
    blocks: int,
    share: float,
    processes: Sequence[Mapping[str, Any]],
) -> Finding | None:
    if not replaced and not remaining:
        return None
    names = describe_processes(processes)
    count = len(replaced)
    repeated = f"{count} of {blocks} blocks {'was' if count == 1 else 'were'} repeated"
    if remaining:
        text = (
            f"other processes used more than {100 * FOREIGN_LIMIT:.0f} % of the CPUs of server and client in "
            f"{len(remaining)} of the {blocks} blocks that count ({names}), which can look like an effect of "
            f"a variant{f'; {repeated}' if count else ''}"
        )
        fix = (
            f'Stop these processes while measuring, or write [override] {CODE} = "reason" to keep the verdict'
        )
    else:
        text, fix = f"{repeated} because of foreign load ({names}); the repeats count", ""
    return Finding(
        CODE,
        "warn" if remaining else "note",
        text,
        {
            "blocks": sorted({*replaced, *remaining}),
            "share": share,
            "processes": [dict(one) for one in processes],
            "repeated": list(replaced),
            "remaining": len(remaining),
        },
        fix=fix,
    )
