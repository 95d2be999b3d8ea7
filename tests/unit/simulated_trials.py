"""Measured trials without records: experiments that are judged by the hundred, as simulations need them."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.truth.simulation import figures_of

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.store.measured import MeasuredTrial, ScheduleEntry


def experiment(
    *, variants: str = "ab", loads: int = 1, blocks: int = 8, delta_percent: float | None = None
) -> Experiment:
    """An experiment with variants of one letter, which differ in a setting."""
    return Experiment(
        name="simulated",
        workloads=(OltpWorkload(name="oltp_read_write"),),
        load=Load(connections=tuple(10 * 2**level for level in range(loads)), duration_s=10.0),
        design=Design(blocks=blocks, delta_percent=delta_percent),
        variants=tuple(
            Variant(name=name, server=ServerSpec(variables={"max_error_count": 64 + index}))
            for index, name in enumerate(variants)
        ),
    )


def measured(of: Experiment, throughput: Callable[[Trial], float]) -> list[MeasuredTrial]:
    """The trials of a run in which each has that throughput; 0 is a server that failed."""
    trials = []
    for trial in schedule(of):
        place = ScheduleEntry(trial.index, trial.block, trial.variant, trial.workload, trial.point.as_dict())
        rate = throughput(trial)
        if rate:
            trials.append(MeasuredTrial(place, None, figures=figures_of(rate)))
        else:
            trials.append(MeasuredTrial(place, "server went away", "server"))
    return trials
