"""P13: whether the load generator could produce much more load than was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.finding import Finding
from dbdyno.store.ceiling import Ceiling
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# The ceiling must be this many times the highest throughput.
FACTOR = 2.0


def client_ceiling(trials: Sequence[MeasuredTrial], ceilings: Mapping[str, Ceiling]) -> Iterator[Finding]:
    """A warning for each workload whose highest throughput is close to the client ceiling."""
    for workload, ceiling in ceilings.items():
        most = ceiling["events_per_s"]
        throughputs = [
            (one.figures.throughput, one.variant)
            for one in trials
            if one.workload == workload and one.figures is not None
        ]
        if most is None or not throughputs:
            continue
        peak, variant = max(throughputs)
        if most < FACTOR * peak:
            yield Finding(
                "P13",
                "warn",
                compose(
                    "without a server the load generator reaches {most:,.0f} transactions/s of {workload} "
                    "with {connections} connections, only {factor:.1f} times the highest throughput "
                    "({peak:,.0f} of {variant}): it may limit the result",
                    most=most,
                    workload=workload,
                    connections=ceiling["connections"],
                    factor=most / peak,
                    peak=peak,
                    variant=variant,
                ),
                {"workload": workload, "ceiling": most, "highest": peak},
                fix=compose("Give the load generator more CPUs and workers ([client] cpus, workers)"),
            )
