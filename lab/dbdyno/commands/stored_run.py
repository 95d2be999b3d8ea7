"""Opens the stored run that a command names, and judges it if its verdict is missing or of other files."""

from __future__ import annotations

from pathlib import Path

from dbdyno.languages import ENGLISH
from dbdyno.store import Run
from dbdyno.store.document import TEXTS
from dbdyno.store.listing import find_run


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
        from dbdyno.verdict import judge  # noqa: PLC0415

        judge(run)
