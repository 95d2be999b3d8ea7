"""P17: declared differences between two variants must take effect on their servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.differences import differing_variables, list_differences
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.text import compose, join, mark

# (Product, variable) that the server accepts and ignores -> why it does.
IGNORED: Mapping[tuple[str, str], str] = {
    ("mariadb", "innodb_buffer_pool_instances"): compose(
        "MariaDB has had one buffer pool instance since 10.5"
    ),
    ("mariadb", "query_cache_size"): compose("the query cache is off unless query_cache_type is ON"),
    ("mariadb", "thread_pool_size"): compose(
        "there is no thread pool unless thread_handling is pool-of-threads"
    ),
    ("mysql", "innodb_log_file_size"): compose("innodb_redo_log_capacity takes its place since 8.0.30"),
    ("mysql", "innodb_log_files_in_group"): compose("innodb_redo_log_capacity takes its place since 8.0.30"),
}


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds declared differences without effect: equal values on both servers, or an ignored variable.

    Catches settings without effect. A published benchmark compared 1 and 8 buffer pool instances and never
    read the value back: MySQL uses one instance if the pool is smaller than 1G, and MariaDB always uses one.

    Rule: of the variables in which a variant's declaration differs from the baseline, at least one must
    have an effect. If none has an effect, a warning says that the variants are identical; if only
    some have one, a note names the others. A variable that the server is known to ignore has no effect. After
    the run the judge reports P17 too, if no counter changed.
    """
    assert moment is Moment.READY, "P17 is registered for READY only"
    baseline = context.experiment.variants[0]
    peer = context.peers.get(baseline.name)
    own = context.description
    if context.variant is None or own is None or peer is None or context.variant.name == baseline.name:
        return
    declared = sorted(differing_variables(baseline, context.variant))
    without_effect = {name: why for name in declared if (why := _reason_without_effect(name, peer, own))}
    if not without_effect:
        return
    listed = join(
        "; ", (compose("{name} ({why})", name=name, why=why) for name, why in without_effect.items())
    )
    others = len(declared) - len(without_effect) or _count_other_differences(
        context.experiment, context.variant
    )
    yield Finding(
        code="P17",
        level="note" if others else "warn",
        text=compose(
            "{name} differs from {name_2} by settings without effect: {listed}",
            name=context.variant.name,
            name_2=baseline.name,
            listed=listed,
        )
        + ("" if others else compose(" The two variants are identical: a difference between them is noise")),
        evidence={"idle": without_effect, "declared": declared},
        subject=context.variant.name,
    )


def _reason_without_effect(name: str, baseline: Description, variant: Description) -> str | None:
    """Why a declared difference has no effect; None if it has one, or if the servers do not report it."""
    for description in (variant, baseline):
        reason = IGNORED.get((description.product, name))
        if reason and not _takes_effect(name, description):
            return reason
    before, after = baseline.variables.get(name), variant.variables.get(name)
    return (
        compose("both servers have {after}", after=after) if after is not None and before == after else None
    )


def _takes_effect(name: str, description: Description) -> bool:
    """Whether the variable takes effect on this server."""
    variables = description.variables
    takes_effect = {
        "query_cache_size": variables.get("query_cache_type") not in (None, "OFF", "0"),
        "thread_pool_size": variables.get("thread_handling") == "pool-of-threads",
        "innodb_log_file_size": "innodb_redo_log_capacity" not in variables,
        "innodb_log_files_in_group": "innodb_redo_log_capacity" not in variables,
    }
    return takes_effect.get(name, False)


def _count_other_differences(experiment: Experiment, variant: Variant) -> int:
    """Number of settings other than server variables that differ from the baseline's."""
    return sum(not key.startswith("variables.") for key in list_differences(experiment, variant))


CHECK = Check(
    "P17",
    "Declared differences take effect",
    frozenset({Moment.READY}),
    find,
    caveat=mark("the variants may not differ in what this workload does"),
)
