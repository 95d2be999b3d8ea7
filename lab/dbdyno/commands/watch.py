"""`dbdyno watch`: follows a run in a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress

from dbdyno.commands import options
from dbdyno.problem import Problem


def watch(
    run: options.AnyRun = None,
    results: options.Results = options.RESULTS,
    language: options.Language = "en",
) -> None:
    """Follow a run in progress in a terminal: throughput, latencies, errors, findings, and the verdict at the
    end. Reads the run's folder only. Press q to quit; the run continues.
    """
    from dbdyno.run.affinity import on_cpus
    from dbdyno.store.listing import find_run, is_running

    options.require_language(language)
    followed = find_run(results, run, quick=True)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Problem("dbdyno watch needs a terminal", "Without one, dbdyno show prints the result of a run")
    try:
        # An optional dependency.
        from dbdyno.watch.app import WatchApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise Problem(
            "dbdyno watch needs the Python package textual", "Install it: pip install 'dbdyno[watch]'"
        ) from error
    if not is_running(followed):
        print(f"no dbdyno writes to {followed.path}: this is its result", file=sys.stderr)
    app = WatchApp(followed, language)
    cpus = followed.experiment().client.cpus
    # On the load generator's CPUs the view takes no time from the server, as long as this machine has them.
    with suppress(OSError):
        with on_cpus(cpus):
            app.run()
        cpus = None
    if cpus is not None and app.now is None:
        app.run()
    if app.return_code:
        raise SystemExit(app.return_code)
