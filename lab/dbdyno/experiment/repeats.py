"""Decides which blocks are repeated because other processes used the CPUs of server or client.

A block in which foreign load above `FOREIGN_LIMIT` disturbed any trial runs once more, after the last planned
block: all its trials, in the same order. The choice does not depend on results, and the repeat always
replaces the original block, so repeating cannot favour a variant. At most a quarter of the blocks, those with
the largest foreign share, are repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dbdyno.experiment.schedule import Trial
from dbdyno.server_record import ForeignProcess, ForeignRecord, ServerRecord

# CPU time of other processes, as a share of the CPUs of server and client; more than this disturbs a trial.
FOREIGN_LIMIT = 0.10
# Maximum share of CPU time of no visible process that counts as the load's own (see `subtract_interrupts`).
INTERRUPTS_MAX = 0.15
# The name of that time in a list of processes, where it alone is above FOREIGN_LIMIT.
INVISIBLE = "invisible processes"
# At most one block in this number is repeated.
REPEAT_ONE_IN = 4
# Maximum number of process names in a message, and the share from which a second process is named.
NAMED_MAX = 5
SMALL_SHARE = 0.03


def repeats_max(blocks: int) -> int:
    """Maximum number of repeated blocks: a quarter of `blocks`, but at least one if there are two or more."""
    return max(blocks // REPEAT_ONE_IN, 1) if blocks >= 2 else 0


def subtract_interrupts(
    loads: Mapping[int, ForeignRecord], trials: Iterable[Trial]
) -> dict[int, ForeignRecord]:
    """The foreign loads of trials, by index, without the interrupts that the trials' own load causes.

    Interrupts belong to no process if they wake an idle CPU. Their share depends on the load: four
    connections of a test with one short statement caused 6 to 12 % on a machine without other processes. So
    the least CPU time of no visible process in all trials of the same variant and load is not foreign, up to
    `INTERRUPTS_MAX`; more than that may come from processes that dbdyno cannot see, outside its container.
    """
    kind_of = {trial.index: (trial.variant, trial.workload, trial.point) for trial in trials}
    least: dict[object, float] = {}
    for index, load in loads.items():
        least[kind_of[index]] = min(load.get("unattributed", 0.0), least.get(kind_of[index], INTERRUPTS_MAX))
    rest: dict[int, ForeignRecord] = {}
    for index, load in loads.items():
        least_here = least[kind_of[index]]
        share, unattributed = (
            max(0.0, load["share"] - least_here),
            max(0.0, load.get("unattributed", 0.0) - least_here),
        )
        rest[index] = {**load, "share": round(share, 4), "unattributed": round(unattributed, 4)}
    return rest


def disturbed_blocks(shares: Mapping[int, float]) -> list[int]:
    """The blocks whose largest foreign share is above the limit, in running order."""
    return sorted(block for block, share in shares.items() if share > FOREIGN_LIMIT)


def blocks_to_repeat(shares: Mapping[int, float], blocks: int) -> list[int]:
    """The blocks to repeat; `shares` has the largest foreign share of each block."""
    worst = sorted(disturbed_blocks(shares), key=lambda block: -shares[block])
    return sorted(worst[: repeats_max(blocks)])


def largest_shares(trials: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    """The largest foreign share of each block, from the block and the share of every trial."""
    shares: dict[int, float] = {}
    for block, share in trials:
        if share is not None:
            shares[block] = max(share, shares.get(block, 0.0))
    return shares


def repeat(
    trials_of_block: Sequence[Trial], block: int, first_index: int, first_group: int
) -> tuple[Trial, ...]:
    """The trials of a block once more, in the same order and slots, as block number `block`."""
    groups = list(dict.fromkeys(trial.group for trial in trials_of_block))
    return tuple(
        replace(
            trial,
            index=first_index + offset,
            block=block,
            group=first_group + groups.index(trial.group),
            repeats=trial.block,
        )
        for offset, trial in enumerate(trials_of_block)
    )


def repeat_blocks(trials: Sequence[Trial], blocks: Iterable[int]) -> list[Trial]:
    """The trials that repeat `blocks`, numbered to continue the schedule `trials`."""
    added: list[Trial] = []
    for original in blocks:
        last = [*trials, *added][-1]
        of_block = [trial for trial in trials if trial.block == original]
        added += repeat(of_block, last.block + 1, last.index + 1, last.group + 1)
    return added


def read_foreign_load(server: ServerRecord) -> ForeignRecord | None:
    """The foreign load in a trial's server.json; None if it is unknown."""
    edges = server.get("edges")
    return edges.get("foreign") if edges else None


def largest_processes(loads: Iterable[ForeignRecord]) -> list[ForeignProcess]:
    """The process names in the foreign loads of several trials, each with its largest share, in descending
    order.

    CPU time that the hypervisor gave to other machines has the name of the kernel's counter, steal.
    """
    shares: dict[str, float] = {}
    for load in loads:
        unattributed = load.get("unattributed", 0.0)
        others = [
            ForeignProcess(name="steal", share=load["steal"]),
            ForeignProcess(name=INVISIBLE, share=unattributed if unattributed > FOREIGN_LIMIT else 0.0),
        ]
        for part in (*load["processes"], *others):
            if part["share"] > 0:
                shares[part["name"]] = max(part["share"], shares.get(part["name"], 0.0))
    largest_first = sorted(shares.items(), key=lambda item: -item[1])
    return [{"name": name, "share": share} for name, share in largest_first[:NAMED_MAX]]


def describe_processes(processes: Sequence[ForeignProcess]) -> str:
    """For example "cc1plus 35 %, rustc 12 %". Only the first one if the others are small."""
    if not processes:
        return "processes that dbdyno cannot see"
    limit = min(SMALL_SHARE, float(processes[0]["share"]))
    return ", ".join(
        f"{process['name']} {process['share']:.0%}".replace("%", " %")
        for process in processes
        if process["share"] >= limit
    )
