"""Divides this machine's CPUs between load generator and servers, and restricts threads to CPU sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dbdyno.experiment.base import format_cpus, parse_cpus
from dbdyno.experiment.model import Experiment
from dbdyno.problem import Problem


@contextmanager
def on_cpus(cpus: str | None) -> Iterator[None]:
    """Restrict the calling thread, and every process that it starts in the context, to a CPU set; None
    changes nothing.

    dbdyno reads the engine's records while a trial runs. On the load generator's CPUs this work takes no time
    from the server.
    """
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, parse_cpus(cpus))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def assign_cpus(experiment: Experiment) -> Experiment:
    """The experiment with this machine's CPUs divided between load generator and servers.

    A load generator on the server's CPUs takes CPU time from the server, and more of it from a faster server.
    So the load generator gets the last quarter of the CPUs (at least one), and each server, with its proxy,
    gets all others. The experiment is unchanged if it declares a CPU set, if it has a server that dbdyno does
    not start, if there is only one CPU, or if a declared `cpu_limit` needs more CPUs than the servers would
    get. The same machine always gives the same sets, so an interrupted run can be resumed.
    """
    servers = [variant.server for variant in experiment.variants]
    sets = (cpus for variant in experiment.variants for cpus in variant.cpu_sets)
    declared = experiment.client.cpus is not None or any(cpus is not None for cpus in sets)
    allowed = sorted(os.sched_getaffinity(0))
    if declared or not all(server.is_private for server in servers) or len(allowed) < 2:
        return experiment
    server_count = len(allowed) - max(1, len(allowed) // 4)
    if any(server.cpu_limit is not None and server.cpu_limit > server_count for server in servers):
        return experiment
    server_cpus, client_cpus = (
        format_cpus(frozenset(part)) for part in (allowed[:server_count], allowed[server_count:])
    )
    return experiment.model_copy(
        update={
            "client": experiment.client.model_copy(update={"cpus": client_cpus}),
            "variants": tuple(
                variant.model_copy(update={"server": variant.server.model_copy(update={"cpus": server_cpus})})
                for variant in experiment.variants
            ),
        }
    )


def require_cpus(experiment: Experiment) -> None:
    """Raises Problem with each CPU set of the experiment that has CPUs which this machine lacks."""
    allowed = frozenset(os.sched_getaffinity(0))
    requested = {"client.cpus": experiment.client.cpus}
    requested |= {
        f"variant[{variant.name}].server.cpus": variant.server.cpus for variant in experiment.variants
    }
    requested |= {
        f"variant[{variant.name}].proxy.cpus": variant.proxy.cpus
        for variant in experiment.variants
        if variant.proxy is not None
    }
    errors = [
        f'{key} = "{cpus}": dbdyno may not use CPU {format_cpus(parse_cpus(cpus) - allowed)}'
        for key, cpus in requested.items()
        if cpus is not None and not parse_cpus(cpus) <= allowed
    ]
    if errors:
        raise Problem(
            "\n".join(errors),
            f"dbdyno may use the CPUs {format_cpus(allowed)}. Choose among them in the file, or with "
            f"--set client.cpus=\"'{min(allowed)}'\" --set variant.server.cpus=\"'{min(allowed)}'\"",
        )
