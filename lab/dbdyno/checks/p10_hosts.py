"""P10: the servers that are compared run on equal machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.topology import architecture, is_local
from dbdyno.experiment.model import Variant
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.text import compose, join, mark

# The machine for which a PostgreSQL server was built, in the answer of version().
_BUILT_FOR = re.compile(r" on ([A-Za-z0-9_]+)-")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds servers on machines that differ in place, architecture or number of CPUs.

    Catches a difference of machines that is taken for one of settings or versions. In a published benchmark
    one version ran on another operating system and another virtual machine than the other one.

    Rule: what the servers say about their machines must be the same: whether it is this machine, its
    architecture, and its CPUs as far as SQL shows them; otherwise the finding is a warning. Servers that
    dbdyno starts run on this machine. After the run the judge reports P10 too, if the machine of these
    servers (kernel, processor, CPUs, memory) has changed between trials.
    """
    assert moment is Moment.READY, "P10 is registered for READY only"
    baseline = context.experiment.variants[0]
    peer, own, variant = context.peers.get(baseline.name), context.description, context.variant
    if peer is None or own is None or variant is None or variant.name == baseline.name:
        return
    if context.first_description is not None:
        return
    before, after = _facts(peer, baseline), _facts(own, variant)
    different = [key for key, value in after.items() if key in before and before[key] != value]
    if not different:
        return
    listed = join(
        "; ",
        (
            compose("{key} {before} and {after}", key=key, before=before[key], after=after[key])
            for key in different
        ),
    )
    yield Finding(
        "P10",
        "warn",
        compose(
            "the servers of {baseline} and {name} run on different machines: {listed}. A difference between "
            "them may be one of the machines",
            baseline=baseline.name,
            name=variant.name,
            listed=listed,
        ),
        {key: {baseline.name: before[key], variant.name: after[key]} for key in different},
        variant.name,
        fix=compose("Run both servers on equal machines, or one after the other on one machine"),
    )


def _facts(description: Description, variant: Variant) -> dict[str, str]:
    """What is known about the machine of a server."""
    host = description.host
    built = _BUILT_FOR.search(str(host.get("built", "")))
    built_for = host.get("architecture") or host.get("version_compile_machine") or (built and built[1])
    cpus = host.get("cpus") or _cpus(description.product, description.variables, description.origins)
    where = compose("this machine") if is_local(variant) else compose("another machine")
    facts = {"place": where, "architecture": architecture(str(built_for or ""))}
    facts["CPUs"] = str(cpus or "")
    return {key: value for key, value in facts.items() if value}


def _cpus(product: str, variables: Mapping[str, str], origins: Mapping[str, str]) -> int | None:
    """MariaDB's pool of threads has one group for each CPU unless its size is set."""
    size = variables.get("thread_pool_size", "")
    is_unset = bool(origins) and origins.get("thread_pool_size", "auto") == "auto"
    return int(size) if product == "mariadb" and is_unset and size.isdecimal() else None


CHECK = Check(
    "P10",
    "Servers run on equal machines",
    frozenset({Moment.READY}),
    find,
    caveat=mark("the machines differ"),
)
