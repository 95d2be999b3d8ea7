"""Plans repeats of the blocks with foreign load: when every planned trial has ended, or, if the judge is
asked after every block (`design.stop`), directly after the block.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.experiment import repeats
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.server_record import ForeignRecord
from dbdyno.store import Run


@dataclass(frozen=True)
class Repeats:
    """Trials added to a run's schedule, and the reason as a sentence."""

    trials: list[Trial]
    text: str


def may_repeat(experiment: Experiment, planned: list[Trial]) -> bool:
    """Whether blocks may still be added to the schedule `planned`."""
    return (
        experiment.design.repeat_disturbed
        and repeats.repeats_max(experiment.design.blocks) > 0
        and all(trial.repeats is None for trial in planned)
    )


def plan_repeats(experiment: Experiment, run: Run) -> Repeats | None:
    """Add the repeats to the run's schedule; None if there are none, or if they were planned before.

    Raises StoreProblem.
    """
    planned = run.schedule()
    if not may_repeat(experiment, planned):
        return None
    blocks = {trial.index: trial.block for trial in planned}
    known = repeats.subtract_interrupts(_foreign_loads(run), planned)
    shares = repeats.largest_shares((blocks[index], load["share"]) for index, load in known.items())
    total = experiment.design.blocks
    chosen = repeats.blocks_to_repeat(shares, total)
    if not chosen:
        return None
    trials = repeats.repeat_blocks(planned, chosen)
    run.append_schedule(trials)
    disturbed = repeats.disturbed_blocks(shares)
    processes = repeats.largest_processes(load for index, load in known.items() if blocks[index] in disturbed)
    reason = (
        f"other processes used more than {100 * repeats.FOREIGN_LIMIT:.0f} % of the CPUs of server and "
        f"client in {len(disturbed)} of {total} blocks ({repeats.describe_processes(processes)})"
    )
    if len(chosen) < len(disturbed):
        worst = "the worst one is" if len(chosen) == 1 else f"the worst {len(chosen)} are"
        return Repeats(trials, f"{reason}; {worst} repeated (limit: a quarter of the blocks)")
    return Repeats(trials, f"{reason}, which {'is' if len(chosen) == 1 else 'are'} repeated")


def plan_repeat(experiment: Experiment, run: Run, block: int) -> Repeats | None:
    """Add the repeat of one block to the run's schedule, before its result is looked at.

    None if the block met no foreign load, or if a quarter of the largest number of blocks is repeated
    already. Raises StoreProblem.
    """
    planned = run.schedule()
    repeated = {trial.repeats for trial in planned if trial.repeats is not None}
    limit = repeats.repeats_max(experiment.design.blocks)
    if not experiment.design.repeat_disturbed or block in repeated or len(repeated) >= limit:
        return None
    of_block = {trial.index for trial in planned if trial.block == block}
    known = repeats.subtract_interrupts(_foreign_loads(run), planned)
    loads = [load for index, load in known.items() if index in of_block]
    if all(load["share"] <= repeats.FOREIGN_LIMIT for load in loads):
        return None
    trials = repeats.repeat_blocks(planned, [block])
    run.append_schedule(trials)
    names = repeats.describe_processes(repeats.largest_processes(loads))
    return Repeats(
        trials,
        f"other processes used more than {100 * repeats.FOREIGN_LIMIT:.0f} % of the CPUs of server and "
        f"client in block {block + 1} ({names}), which is repeated",
    )


def _foreign_loads(run: Run) -> dict[int, ForeignRecord]:
    """The foreign load of every trial in which it is known, by the trial's index."""
    loads = {trial.index: repeats.read_foreign_load(trial.server) for trial in run.trials()}
    return {index: load for index, load in loads.items() if load is not None}
