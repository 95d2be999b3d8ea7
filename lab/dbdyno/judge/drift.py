"""R02: whether data grow from trial to trial; R09: whether the first trial after a start is colder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.explain.costs import Cost
from dbdyno.finding import Finding
from dbdyno.judge.server_state import ServerState, by_variant
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# Growth of the data that is reported: a share, and bytes, because servers allocate extents.
GROWTH_LIMIT = 0.01
GROWTH_BYTES = 4 * 1024**2
# The first trial is colder if it reads this many times as many pages per transaction as later ones, and more
# of them, in this share of at least this many groups.
COLDER = 2.0
COLDER_PAGES = 0.05
COLDER_SHARE = 0.75
GROUPS_MIN = 3
_READS = ("Innodb_buffer_pool_reads", "pg_stat_database.blks_read")


def growth(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState], experiment: Experiment
) -> Iterator[Finding]:
    """R02: variants whose data have changed from the first to the last trial, where groups keep them."""
    if experiment.design.renews_data:
        return
    sizes = {index: float(state.data_bytes) for index, state in states.items() if state.data_bytes}
    for variant, of_variant in by_variant(trials, sizes).items():
        first, last = of_variant[0], of_variant[-1]
        change = last - first
        if abs(change) > max(GROWTH_BYTES, GROWTH_LIMIT * first):
            yield Finding(
                "R02",
                "warn",
                compose(
                    "data and indexes of {variant} changed from {first:,.0f} to {last:,.0f} MiB during the "
                    "run, because state = {state} keeps them: late trials do other work than early ones",
                    variant=variant,
                    first=first / 1024**2,
                    last=last / 1024**2,
                    state=experiment.design.state,
                ),
                {"first_bytes": first, "last_bytes": last},
                variant,
                fix=compose('Set state = "restore" in [design], or use a workload that keeps the rows'),
            )


def cold_starts(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], schedule: Sequence[Trial]
) -> Iterator[Finding]:
    """R09: variants whose first trial after a start reads more pages per transaction than the later ones."""
    group_of = {trial.index: trial.group for trial in schedule}
    reads: dict[str, dict[int, list[float]]] = {}
    for trial in trials:
        for name in _READS:
            if (cost := costs.get(trial.index, {}).get(name)) is not None:
                groups = reads.setdefault(trial.variant, {})
                groups.setdefault(group_of[trial.index], []).append(cost.each)
    for variant, by_group in reads.items():
        several = [values for values in by_group.values() if len(values) > 1]
        pairs = [(first, median(later)) for first, *later in several]
        colder = [first - later > COLDER_PAGES and first > COLDER * later for first, later in pairs]
        if len(pairs) >= GROUPS_MIN and sum(colder) >= COLDER_SHARE * len(pairs):
            first, later = (median(side) for side in zip(*pairs, strict=True))
            yield Finding(
                "R09",
                "warn",
                compose(
                    "the first trial after a start of {variant} reads {first:.2f} pages per transaction, "
                    "later ones {later:.2f}: the load that runs first in a group is measured with a "
                    "colder cache",
                    variant=variant,
                    first=first,
                    later=later,
                ),
                {"first": first, "later": later, "groups": len(pairs), "colder": sum(colder)},
                variant,
                fix=compose('Set a longer warmup or prewarm = "scan" in [load]'),
            )
