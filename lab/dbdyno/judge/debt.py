"""D07: whether one variant leaves more work undone at the end of its trials than another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import median

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.server_state import DEBTS, ServerState, by_variant
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, mark

# A debt differs if it is larger by this factor in every trial of one variant.
FACTOR = 2.0
TRIALS_MIN = 3
# The debt, and the amount that a server pays within a moment.
_LIMITS = {
    DEBTS[0]: (mark("dirty pages in the buffer pool"), 1000.0),
    DEBTS[1]: (mark("transactions that are not purged"), 10_000.0),
    DEBTS[2]: (mark("bytes of redo log since the last checkpoint"), 16.0 * 1024**2),
    DEBTS[3]: (mark("dead rows that are not vacuumed"), 10_000.0),
}


def debts(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState], experiment: Experiment
) -> Iterator[Finding]:
    """Variants whose debt at the end of the trials of a load differs from that of the baseline; of several
    loads the one with the largest debt. `states` is by index of the trial.
    """
    baseline = experiment.variants[0].name
    points = {(trial.workload, trial.point) for trial in trials}
    for (name, (title, limit)), variant, workload in product(
        _LIMITS.items(), experiment.variants[1:], experiment.workloads
    ):
        values = {index: state.debts[name] for index, state in states.items() if name in state.debts}
        largest: tuple[float, float, float] | None = None
        for point in sorted(point for of, point in points if of == workload.title):
            of_point = [one for one in trials if (one.workload, one.point) == (workload.title, point)]
            groups = by_variant(of_point, values)
            base, own = groups.get(baseline, []), groups.get(variant.name, [])
            if min(len(base), len(own)) < TRIALS_MIN:
                continue
            most = max(median(base), median(own))
            is_apart = min(base) > FACTOR * max(own) or min(own) > FACTOR * max(base)
            if is_apart and most > limit:
                largest = max(largest or (0.0, 0.0, 0.0), (most, median(base), median(own)))
        if largest is not None:
            _, of_base, of_own = largest
            yield Finding(
                "D07",
                "warn",
                compose(
                    "at the end of the trials of {workload}, {baseline} has {of_base:,.0f} and {name} "
                    "{of_own:,.0f} {title} (medians): one of them leaves more work for later, which its "
                    "throughput does not show",
                    workload=workload.title,
                    baseline=baseline,
                    of_base=of_base,
                    name=variant.name,
                    of_own=of_own,
                    title=compose(title),
                ),
                {"counter": name, "workload": workload.title, "baseline": of_base, "variant": of_own},
                variant.name,
                fix=compose("Measure for longer, so that the servers must do this work within the trials"),
            )
