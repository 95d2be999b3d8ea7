"""`dbdyno show RUN`: prints the result of a stored run, as `compare` and `run` printed it."""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno.commands import comparison_output
from dbdyno.commands.stored_run import judge_if_needed, open_run
from dbdyno.store import Run
from dbdyno.store.verdict import VerdictFile


def show(name: Path | None, results: Path, *, accept_changes: bool, quiet: bool) -> None:
    """Print the result of a run; with `quiet`, the verdict alone. Raises Problem."""
    run = open_run(results, name, accept_changes=accept_changes)
    with run.reading():
        judge_if_needed(run)
        verdict = run.verdict()
        assert verdict is not None, "the run has been judged"
        if quiet:
            comparison_output.show_verdict(verdict)
        else:
            _show(run, verdict)


def _show(run: Run, verdict: VerdictFile) -> None:
    experiment = run.experiment()
    if len(experiment.variants) > 1:
        comparison_output.show(run, experiment)
    else:
        # The table of `dbdyno run` needs the judge's figures.
        from dbdyno.commands.sweep_table import header, row  # noqa: PLC0415

        print(header())
        for trial in run.trials():
            print(row(trial))
        comparison_output.show_findings(verdict)
    print(f"run: {run.path}", file=sys.stderr)
