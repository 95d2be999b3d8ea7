"""D07: whether one variant leaves more work undone at the end of its trials than another one; R11: whether it
works while others have load.

R02: whether data grow from trial to trial; R09: whether the first trial after a start is colder.

P27 in a stored run: transactions that the load generator counted and the server did not commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import median

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial, trial_number
from dbdyno.explain import Cost
from dbdyno.finding import Finding
from dbdyno.measure.server_state import PENDING_WORK, ServerState, by_variant
from dbdyno.result_text import trials_count
from dbdyno.rules.register import rule
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, mark

# An idle server may use this share of its CPUs, half of what other processes may use (D06): its work is
# foreign load for the other variants, but recurs in every round.
IDLE_SHARE_MAX = 0.05
# A debt differs if it is larger by this factor in every trial of one variant.
DEBT_FACTOR = 2.0
DEBT_TRIALS_MIN = 3
# The debt, and the amount that a server pays within a moment.
_DEBT_LIMITS = {
    PENDING_WORK[0]: (mark("dirty pages in the buffer pool"), 1000.0),
    PENDING_WORK[1]: (mark("transactions that are not purged"), 10_000.0),
    PENDING_WORK[2]: (mark("bytes of redo log since the last checkpoint"), 16.0 * 1024**2),
    PENDING_WORK[3]: (mark("dead rows that are not vacuumed"), 10_000.0),
}


@rule("D07", caveat=mark("the variants leave different pending work"))
def pending_work(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState], experiment: Experiment
) -> Iterator[Finding]:
    """Variants whose debt at the end of the trials of a load differs from that of the baseline; of several
    loads the one with the largest debt. `states` is by index of the trial.
    """
    baseline = experiment.variants[0].name
    points = {(trial.workload, trial.point) for trial in trials}
    for (name, (title, limit)), variant, workload in product(
        _DEBT_LIMITS.items(), experiment.variants[1:], experiment.workloads
    ):
        values = {
            index: state.pending_work[name] for index, state in states.items() if name in state.pending_work
        }
        largest: tuple[float, float, float] | None = None
        for point in sorted(point for of, point in points if of == workload.title):
            of_point = [trial for trial in trials if (trial.workload, trial.point) == (workload.title, point)]
            groups = by_variant(of_point, values)
            base, of_variant = groups.get(baseline, []), groups.get(variant.name, [])
            if min(len(base), len(of_variant)) < DEBT_TRIALS_MIN:
                continue
            most = max(median(base), median(of_variant))
            is_apart = min(base) > DEBT_FACTOR * max(of_variant) or min(of_variant) > DEBT_FACTOR * max(base)
            if is_apart and most > limit:
                largest = max(largest or (0.0, 0.0, 0.0), (most, median(base), median(of_variant)))
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


@rule("R11")
def idle_work(trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]) -> Iterator[Finding]:
    """In slices: servers that were busy while others had load; of several trials the busiest."""
    works = [
        (trial, idle) for trial in trials if (idle := states.get(trial.index, ServerState()).idle) is not None
    ]
    for variant in dict.fromkeys(trial.variant for trial, _ in works):
        trial, work = max(
            (entry for entry in works if entry[0].variant == variant), key=lambda entry: entry[1].share
        )
        if work.share <= IDLE_SHARE_MAX:
            continue
        is_shared = any(work.cpus & idle.cpus for neighbour, idle in works if neighbour.variant != variant)
        yield Finding(
            "R11",
            "note",
            compose(
                "{variant} used {share:.0f} % of its server's CPUs, and wrote {write:.1f} MiB/s, while other "
                "variants had load (trial {trial}; limit {limit:.0f} % of the CPUs): it {effect}",
                variant=variant,
                share=100 * work.share,
                write=work.write_mib_per_s,
                trial=trial_number(trial.index),
                limit=100 * IDLE_SHARE_MAX,
                effect=compose("took this from them")
                if is_shared
                else compose("has CPUs of its own, but may have slowed down their disk"),
            ),
            {
                "trial": trial.index,
                "share": round(work.share, 4),
                "write_mib_per_s": round(work.write_mib_per_s, 3),
            },
            variant,
            fix=compose('Set a longer slice in [design], or pairing = "trials"'),
        )


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


@rule("R02", caveat=mark("the data changed during the run"))
def growth(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState], experiment: Experiment
) -> Iterator[Finding]:
    """Variants whose data have changed from the first to the last trial, where groups keep them."""
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


@rule("R09", caveat=mark("the first load has a colder cache"))
def cold_starts(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], schedule: Sequence[Trial]
) -> Iterator[Finding]:
    """Variants whose first trial after a start reads more pages per transaction than the later ones."""
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


# PostgreSQL ends at least one transaction for each that the load generator counts; other sessions add some.
ENDED_SHARE = 0.9
# So few transactions may be in the counters of a later moment.
COUNTED_MIN = 100


@rule("P27")
def open_transactions(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]
) -> Iterator[Finding]:
    """Variants whose server rolled back transactions that the load left open, or ended fewer than counted."""
    by_variant: dict[str, list[int]] = {}
    for trial in trials:
        if trial.figures is not None and _leaves_open(trial, states.get(trial.index)):
            by_variant.setdefault(trial.variant, []).append(trial.index)
    for variant, indexes in by_variant.items():
        yield Finding(
            "P27",
            "warn",
            compose(
                "the load left transactions of {variant} open in {count}: by the server's counters they were "
                "rolled back, or never ended, so transactions count that were not committed",
                variant=variant,
                count=trials_count(len(indexes)),
            ),
            {"trials": indexes},
            variant,
            fix=compose("Set autocommit = ON, or end the transactions with COMMIT"),
        )


def _leaves_open(trial: MeasuredTrial, state: ServerState | None) -> bool:
    figures = trial.figures
    if state is None or figures is None:
        return False
    ended = [state.ends[name] for name in state.ends if name.startswith("pg_stat_database.")]
    if ended:
        return figures.events >= COUNTED_MIN and sum(ended) < ENDED_SHARE * figures.events
    # A transaction that failed or was cancelled is rolled back too, and so is one that asks for it.
    is_explained = bool(
        figures.errors or figures.backlog or figures.dropped or state.ends.get("Com_rollback")
    )
    return state.ends.get("Handler_rollback", 0.0) > 0 and not is_explained
