"""P16: the loads of a sweep lie on both sides of the number of CPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.topology import is_local
from dbdyno.experiment.base import parse_cpus
from dbdyno.experiment.model import Variant
from dbdyno.finding import Finding
from dbdyno.text import compose


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds sweeps over connections that never leave one region of load.

    Catches a conclusion about scaling from overloaded servers only. A published benchmark had 10 to 40
    connections on a server with one CPU, so all its points were in overload.

    Rule: several loads in a closed loop must include one with at most as many connections as the server has
    CPUs, and one with more than twice as many; otherwise a note names the missing region. The CPUs are known
    of servers on this machine.
    """
    assert moment is Moment.DESIGN, "P16 is registered for DESIGN only"
    load = context.experiment.load
    connections = sorted({point.connections for point in load.points()})
    counts = {_cpus(variant) for variant in context.experiment.variants if is_local(variant)}
    if load.is_open or len(connections) < 2 or not counts:
        return
    evidence = {"connections": connections, "cpus": sorted(counts)}
    if connections[0] > max(counts):
        yield Finding(
            "P16",
            "note",
            compose(
                "the lowest load has {connections} connections, more than the {cpus} CPUs of the server: no "
                "load shows it without a queue",
                connections=connections[0],
                cpus=max(counts),
            ),
            evidence,
            fix=compose("Add a load of {cpus} connections or fewer", cpus=max(counts)),
        )
    if connections[-1] <= 2 * min(counts):
        yield Finding(
            "P16",
            "note",
            compose(
                "the highest load has {connections} connections, at most twice the {cpus} CPUs of the "
                "server: no load shows it overloaded",
                connections=connections[-1],
                cpus=min(counts),
            ),
            evidence,
            fix=compose("Add a load of more than {connections} connections", connections=2 * min(counts)),
        )


def _cpus(variant: Variant) -> int:
    """The number of CPUs that a server on this machine may use."""
    declared = variant.server.cpus
    return len(parse_cpus(declared)) if declared else os.cpu_count() or 1


CHECK = Check("P16", "The loads lie on both sides of the number of CPUs", frozenset({Moment.DESIGN}), find)
