"""P17: what is declared to differ between two variants differs on their servers too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.family import differing_variables
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.finding import Finding
from dbdyno.servers.server import Description

# Variables that a server accepts, shows as they were declared, and does nothing with, and why.
IDLE: Mapping[tuple[str, str], str] = {
    ("mariadb", "innodb_buffer_pool_instances"): "MariaDB has had one buffer pool instance since 10.5",
    ("mariadb", "query_cache_size"): "the query cache is off unless query_cache_type is ON",
    ("mariadb", "thread_pool_size"): "there is no pool unless thread_handling is pool-of-threads",
    ("mysql", "innodb_log_file_size"): "innodb_redo_log_capacity takes its place since 8.0.30",
    ("mysql", "innodb_log_files_in_group"): "innodb_redo_log_capacity takes its place since 8.0.30",
}


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """A difference that was declared and is none: both servers have the same effective value, or do nothing
    with the variable.

    Catches factors that cannot bite. Seed 004 compares 1 and 8 buffer pool instances without looking whether
    the server took them: MySQL uses one where the pool is below 1G, and MariaDB always.

    Rule: of the variables in which a variant is declared to differ from the baseline at least one must differ
    in effect, and each that does not is told. None is a warning that the two are one set-up; some is a note.
    Variables that a server is known to do nothing with count as no difference. What no counter shows after
    the run is told by the judge under the same code.
    """
    assert moment is Moment.READY, "the registry asks at READY only"
    baseline = context.experiment.variants[0]
    peer = context.peers.get(baseline.name)
    mine = context.description
    if context.variant is None or mine is None or peer is None or context.variant.name == baseline.name:
        return
    declared = sorted(differing_variables(baseline, context.variant))
    idle = {name: why for name in declared if (why := _why_idle(name, peer, mine))}
    if not idle:
        return
    told = "; ".join(f"{name} ({why})" for name, why in idle.items())
    others = len(declared) - len(idle) or _other_differences(context.experiment, context.variant)
    yield Finding(
        code="P17",
        level="note" if others else "warn",
        text=f"{context.variant.name} is declared to differ from {baseline.name} in what makes no "
        f"difference: {told}."
        + ("" if others else " The two are one set-up: what is found between them is noise."),
        evidence={"idle": idle, "declared": declared},
        subject=context.variant.name,
    )


def _why_idle(name: str, baseline: Description, variant: Description) -> str | None:
    """Why a declared difference makes none; None where it does, or where the servers do not show it."""
    for description in (variant, baseline):
        reason = IDLE.get((description.product, name))
        if reason and not _works(name, description):
            return reason
    before, after = baseline.variables.get(name), variant.variables.get(name)
    return f"both servers have {after}" if after is not None and before == after else None


def _works(name: str, description: Description) -> bool:
    """Whether what the variable hangs on is there after all."""
    variables = description.variables
    needed = {
        "query_cache_size": variables.get("query_cache_type") not in (None, "OFF", "0"),
        "thread_pool_size": variables.get("thread_handling") == "pool-of-threads",
        "innodb_log_file_size": "innodb_redo_log_capacity" not in variables,
        "innodb_log_files_in_group": "innodb_redo_log_capacity" not in variables,
    }
    return needed.get(name, False)


def _other_differences(experiment: Experiment, variant: Variant) -> int:
    """Things other than variables in which it differs from the baseline."""
    first = experiment.variants[0].server
    fields = type(first).model_fields
    return sum(
        name != "variables" and getattr(first, name) != getattr(variant.server, name) for name in fields
    )


CHECK = Check("P17", "The difference reaches the work", frozenset({Moment.READY}), find)
