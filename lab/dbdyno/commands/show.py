"""`dbdyno show RUN`: prints the result of a stored run, as `compare` and `run` printed it."""

from __future__ import annotations

import sys

from dbdyno.commands import options
from dbdyno.terminal.messages import Output


def show(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    run: options.AnyRun = None,
    results: options.Results = options.RESULTS,
    accept_changes: options.AcceptChanges = False,
    quiet: options.Quiet = False,
    language: options.Language = "en",
    result_format: options.ResultFormat = "text",
) -> None:
    """Print the result of a stored run again."""
    from dbdyno.commands.stored_run import judge_if_needed, open_run
    from dbdyno.languages import translator
    from dbdyno.store.listing import EXPERIMENT, READING, Imported, find_folder, is_imported
    from dbdyno.terminal import result
    from dbdyno.terminal.tables import peak, sweep_header, sweep_row

    output = Output(quiet, result_format == "json", options.require_language(language))
    if run is not None and is_imported(folder := find_folder(results, run, (EXPERIMENT, READING))):
        from dbdyno.commands.read import show_stored

        show_stored(Imported.open(folder), output)
        return
    stored = open_run(results, run, accept_changes=accept_changes)
    with stored.reading():
        judge_if_needed(stored, output.language)
        experiment = stored.experiment()
        is_compared = len(experiment.variants) > 1 or experiment.load.latency_objective is not None
        if output.quiet or output.as_json or is_compared:
            result.show(stored, experiment, output)
        else:
            trials, verdict = stored.trials(), stored.verdict()
            assert verdict is not None, "the run has been judged"
            for line in (*map(sweep_header, trials[:1]), *map(sweep_row, trials)):
                print(line)
            translate = translator(output.language)
            if highest := peak(verdict):
                print(translate(highest), file=sys.stderr)
            result.show_findings(verdict, translate)
        if not output.quiet:
            result.show_early_end(stored, output.language)
            print(f"run: {stored.path}", file=sys.stderr)
