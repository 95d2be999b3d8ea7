"""Opens the stored run that a command names, and judges it: if its verdict is missing or of other files, or
again, with changes that were chosen when its data had been seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbdyno.experiment.metrics import CPU, metric_key
from dbdyno.experiment.rejudging import Rejudging, read_changes
from dbdyno.languages import ENGLISH, translator
from dbdyno.problem import Problem
from dbdyno.store import Run
from dbdyno.store.document import TEXTS
from dbdyno.store.judgement import (
    LaterJudgement,
    complete_judgement,
    numbered_blocks,
    store_judgement,
)
from dbdyno.store.listing import find_run
from dbdyno.store.run import JudgeFiles
from dbdyno.terminal.console import SafeConsole, print_text


def open_run(results: Path, name: Path | None, *, accept_changes: bool) -> Run:
    """The run with this name (see `find_run`). Raises StoreProblem, also if a file was changed since it was
    measured, unless the changes are accepted.
    """
    fix = "Restore the files from a copy; --accept-changes judges the run as it is and marks its report"
    return find_run(results, name, fix, accept_changes=accept_changes)


def judge_if_needed(run: Run, language: str = ENGLISH) -> None:
    """Judge the run if it has no verdict of this version, one about other files, or for another language than
    English one whose texts cannot be translated. Raises StoreProblem.
    """
    judged = run.judge_files()
    was_changed = judged is not None and any(finding.code == "R16" for finding in judged[0].checks)
    is_english_only = language != ENGLISH and not (run.judged_path / TEXTS).exists()
    if judged is None or was_changed or is_english_only or run.changed_files():
        # scipy takes a second to import.
        from dbdyno.verdict import judge

        judge(run)


def judge_again(
    run: Run, assignments: Sequence[str], omissions: Sequence[str], reason: str | None, language: str
) -> LaterJudgement:
    """Judge a judged run again, and store the judgement next to the one that was planned. It has other keys
    (`assignments`, as in design.delta_percent=3) or lacks data (`omissions`, as in block=3), for a reason.
    Raises Problem.
    """
    judged = run.judge_files()
    assert judged is not None, "the caller has judged the run"
    _require_finished(run, judged)
    schedule, experiment = run.schedule(), run.experiment()
    changes = read_changes(experiment, assignments, omissions, numbered_blocks(schedule))
    reason = (reason or "").strip()
    if changes.leaves_out and not reason:
        raise Problem(
            "data are left out after they were seen, and nothing says why",
            'Add --reason "why", which the record and the report show',
        )
    _require_recorded(changes, judged)
    # Another dbdyno may judge the run too, or resume it.
    run.lock()
    try:
        judgement = store_judgement(run, changes, reason or None)
        judge_if_needed(judgement, language)
        complete_judgement(judgement)
    finally:
        run.release()
    return judgement


def show_chosen(run: Run, language: str) -> None:
    """Print the sentences of a later judgement, and what they are worth, on standard error."""
    verdict = run.verdict()
    assert verdict is not None, "the run has been judged again"
    console, translate = SafeConsole(stderr=True, highlight=False), translator(language)
    for sentence in (*verdict.summary_sentences, verdict.family.text):
        print_text(console, translate(sentence))


def _require_finished(run: Run, judged: JudgeFiles) -> None:
    sentences = judged[0].sentences
    if not sentences:
        raise Problem(
            f"{run.path} has one variant, and so no verdict that could be judged again",
            "Leave out --set and --leave-out",
        )
    if any(effect.verdict == "unfinished" for effect, _ in sentences):
        raise Problem(
            f"{run.path} is not finished, and only a finished run can be judged again",
            "Continue it with dbdyno compare FILE --resume",
        )


def _require_recorded(changes: Rejudging, judged: JudgeFiles) -> None:
    """Raise Problem for a metric that the run has not recorded: percentiles come from the histograms of
    latencies, which every run has, but the CPU time from counters of the server.
    """
    metrics = map(metric_key, changes.design.get("metrics", ()))
    if CPU in metrics and not any("cpu_us" in cost.costs for cost in judged[2].costs):
        raise Problem(
            "design.metrics: the run has not recorded cpu_per_transaction, because dbdyno could not see the "
            "processes of its servers",
            "Leave it out",
        )
