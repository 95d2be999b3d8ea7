"""`dbdyno show RUN`: prints the result of a stored run, as `compare` and `run` printed it."""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno.commands.stored_run import judge_if_needed, open_run
from dbdyno.store import Run
from dbdyno.store.listing import EXPERIMENT, READING, Imported, find_folder, is_imported
from dbdyno.terminal import result
from dbdyno.terminal.messages import Output


def show(name: Path | None, results: Path, *, accept_changes: bool, output: Output) -> None:
    """Print the result of a run as `output` says. Raises Problem."""
    if name is not None and is_imported(folder := find_folder(results, name, (EXPERIMENT, READING))):
        # The readers of documents load slowly.
        from dbdyno.commands.read import show_stored  # noqa: PLC0415

        show_stored(Imported.open(folder), output)
        return
    run = open_run(results, name, accept_changes=accept_changes)
    with run.reading():
        judge_if_needed(run, output.language)
        experiment = run.experiment()
        if output.quiet or output.as_json or len(experiment.variants) > 1:
            result.show(run, experiment, output)
        else:
            _show_sweep(run)
    if not output.quiet:
        print(f"run: {run.path}", file=sys.stderr)


def _show_sweep(run: Run) -> None:
    # The table of `dbdyno run` needs the judge's figures.
    from dbdyno.terminal.tables import peak, sweep_header, sweep_row  # noqa: PLC0415

    trials = run.trials()
    for first in trials[:1]:
        print(sweep_header(first))
    for trial in trials:
        print(sweep_row(trial))
    verdict = run.verdict()
    assert verdict is not None, "the run has been judged"
    if highest := peak(verdict):
        print(highest, file=sys.stderr)
    result.show_findings(verdict)
