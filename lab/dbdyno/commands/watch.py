"""`dbdyno watch`: follows a run in a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from dbdyno.problem import Problem
from dbdyno.run.affinity import on_cpus
from dbdyno.store.listing import find_run, is_running


def watch(name: Path | None, results: Path) -> None:
    """Show a run until the user quits. Raises Problem without a terminal or without Textual."""
    run = find_run(results, name, quick=True)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Problem("dbdyno watch needs a terminal", "Without one, dbdyno show prints the result of a run")
    try:
        from dbdyno.watch.app import WatchApp  # noqa: PLC0415 — an optional dependency.
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise Problem(
            "dbdyno watch needs the Python package textual", "Install it: pip install 'dbdyno[watch]'"
        ) from error
    if not is_running(run):
        print(f"no dbdyno writes to {run.path}: this is its result", file=sys.stderr)
    app = WatchApp(run)
    cpus = run.experiment().client.cpus
    # On the load generator's CPUs the view takes no time from the server, as long as this machine has them.
    with suppress(OSError):
        with on_cpus(cpus):
            app.run()
        cpus = None
    if cpus is not None and app.now is None:
        app.run()
    if app.return_code:
        raise SystemExit(app.return_code)
