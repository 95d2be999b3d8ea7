"""The command line of `dbdyno watch`."""

from __future__ import annotations

from dbdyno.cli.options import RESULTS, AnyRun, Results


def watch(run: AnyRun = None, results: Results = RESULTS) -> None:
    """Follow a run in a terminal while it goes on: progress, throughput, latencies, errors, findings, and the
    verdict at the end. Reads the run's folder only. Press q to quit; the run goes on.
    """
    from dbdyno.commands.watch import watch as work

    work(run, results)
