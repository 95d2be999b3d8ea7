"""The command line of `dbdyno watch`."""

from __future__ import annotations

from dbdyno.cli.options import RESULTS, AnyRun, Results


def watch(run: AnyRun = None, results: Results = RESULTS) -> None:
    """Follow a run in progress in a terminal: throughput, latencies, errors, findings, and the verdict at the
    end. Reads the run's folder only. Press q to quit; the run continues.
    """
    from dbdyno.commands.watch import watch as work

    work(run, results)
