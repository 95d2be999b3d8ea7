"""Files of a stored run that were changed, damaged or replaced since it was measured."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.stored_run import Making, judged

from dbdyno.commands.report import report
from dbdyno.problem import ExitCode
from dbdyno.report.summary import summarize
from dbdyno.store import EXPLAINED, JUDGED, VERDICT, ChangedRun, Run, StoreProblem, digests, files

EVENTS = "trials/0001/events.jsonl.gz"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    making = Making(blocks=3, connections=(4,), duration_s=1.0, warmup_s=0.5)
    return Path(judged(tmp_path_factory.mktemp("results"), making)["path"])


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def checks(run: Path) -> list[str]:
    return [finding["code"] for finding in files.read_json(run / VERDICT)["checks"]]


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def test_an_untouched_run_is_unchanged(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Run.open(run).changed_files() == []
    report(run, "json")
    assert json.loads(capsys.readouterr().out)["schema"]
    assert "R16" not in checks(run)


@pytest.mark.parametrize("change", [append, Path.unlink], ids=["append", "remove"])
@pytest.mark.parametrize("name", ["schedule.json", "experiment.json", "trials/0002/trial.json", EVENTS])
def test_a_changed_file_is_named_and_refused(name: str, change: Callable[[Path], None], run: Path) -> None:
    change(run / name)
    stored = Run(run)
    assert stored.changed_files() == [name]
    with pytest.raises(StoreProblem, match=f"changed since it was measured: {name}") as caught:
        stored.require_unchanged("")
    assert caught.value.exit_code == ExitCode.NOT_COMPARABLE


def test_accepted_changes_are_judged_and_marked(
    original: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run / "trials/0002")
    append(run / "trials/0003/trial.json")
    with pytest.raises(StoreProblem):
        report(run, "md")
    before = (run / VERDICT).read_bytes()
    report(run, "md", accept_changes=True)
    warning = "changed since it was measured: trials/0002, trials/0003/trial.json"
    assert warning in capsys.readouterr().out
    assert "R16" in checks(run)
    assert before != (run / VERDICT).read_bytes(), "a trial is missing"
    # The original files again: so is the verdict about them.
    path = run / "trials/0003/trial.json"
    path.write_bytes(path.read_bytes()[:-1])
    shutil.copytree(original / "trials/0002", run / "trials/0002")
    report(run, "md")
    assert "R16" not in checks(run)
    assert before == (run / VERDICT).read_bytes()


def remove_lists(run: Path) -> None:
    for listed in run.glob(f"**/{digests.NAME}"):
        listed.unlink()


def remove_trial(run: Path) -> None:
    shutil.rmtree(run / "trials/0001")


def remove_trials(run: Path) -> None:
    shutil.rmtree(run / "trials")
    (run / "trials").mkdir()


def remove_end(run: Path) -> None:
    """The last trial, and the end of the list that says that there was one."""
    shutil.rmtree(sorted((run / "trials").iterdir())[-1])
    cut(run / digests.NAME, 0.3)


def cut(path: Path, part: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])


def link_trial(run: Path) -> None:
    elsewhere = run.parent / "elsewhere"
    shutil.move(run / "trials/0001", elsewhere)
    (run / "trials/0001").symlink_to(elsewhere)


def swap_trials(run: Path) -> None:
    for old, new in (("0001", "x"), ("0002", "0001"), ("x", "0002")):
        (run / "trials" / old).rename(run / "trials" / new)


def link_trials(run: Path) -> None:
    (run / "trials").rename(run.parent / "elsewhere")
    (run / "trials").symlink_to(run.parent / "elsewhere")


def link_file(run: Path) -> None:
    (run / EVENTS).rename(run.parent / "elsewhere")
    (run / EVENTS).symlink_to(run.parent / "elsewhere")


def add_link(run: Path) -> None:
    (run / "charts").mkdir(exist_ok=True)
    (run / "charts" / "extra.svg").symlink_to("/etc/passwd")


def garble(path: Path) -> None:
    path.write_bytes(os.urandom(3000))


LOSSES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a trial is missing": (remove_trial, "trials/0001"),
    "all trials are missing": (remove_trials, "trials/0001, trials/0002, trials/0003 and 4 more"),
    "a trial and the end of the list are missing": (remove_end, "trials/0001"),
    "a trial is a link": (link_trial, "trials/0001"),
    "two trials are swapped": (swap_trials, f"trials/0001/{digests.NAME}"),
    "the trials are a link": (link_trials, "trials"),
    "a file is a link": (link_file, EVENTS),
    "a link was added": (add_link, "charts/extra.svg"),
    "the list is missing": (lambda run: (run / digests.NAME).unlink(), digests.NAME),
    "the list is empty": (lambda run: (run / digests.NAME).write_bytes(b""), digests.NAME),
    "the list is cut": (lambda run: cut(run / digests.NAME, 0.3), "trials/0001"),
    "the list is random": (lambda run: garble(run / digests.NAME), digests.NAME),
    "a trial's list is missing": (
        lambda run: (run / "trials/0001" / digests.NAME).unlink(),
        f"trials/0001/{digests.NAME}",
    ),
    "a trial's list is random": (
        lambda run: garble(run / "trials/0001" / digests.NAME),
        f"trials/0001/{digests.NAME}",
    ),
    "a trial's list is cut": (
        lambda run: cut(run / "trials/0001" / digests.NAME, 0.7),
        f"trials/0001/{digests.NAME}",
    ),
    "all lists are missing": (remove_lists, digests.NAME),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_lost_is_noticed_and_named(loss: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lose, name = LOSSES[loss]
    lose(run)
    edit_sentence(run)
    with pytest.raises(ChangedRun) as caught:
        report(run, "json")
    assert name in caught.value.text
    assert caught.value.exit_code == ExitCode.NOT_COMPARABLE
    with pytest.raises(ChangedRun):
        Run(run).require_unchanged("")
    assert "FORGED" not in summarize(run).text
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "the trials are a link"])
def test_what_is_lost_can_be_accepted(loss: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lose, name = LOSSES[loss]
    lose(run)
    edit_sentence(run)
    if loss in ("a file is a link", "a link was added"):
        # No link is followed: there is nothing to judge in its place.
        with pytest.raises(StoreProblem, match=EVENTS if lose is link_file else "extra.svg"):
            report(run, "md", accept_changes=True)
        return
    report(run, "md", accept_changes=True)
    shown = capsys.readouterr().out
    assert "changed since it was measured" in shown
    assert name.partition(",")[0] in shown.replace("\\", "")
    assert "FORGED" not in shown
    assert "R16" in checks(run)
    # The judge has noted its own files, which does not restore what was lost.
    with pytest.raises(ChangedRun):
        report(run, "md")


def edit_sentence(run: Path) -> None:
    verdict = run / VERDICT
    text = verdict.read_text()
    assert "b against a" in text
    verdict.write_text(text.replace("b against a", "FORGED"))


def test_a_list_of_runs_names_a_missing_trial_and_a_changed_verdict(run: Path) -> None:
    assert summarize(run).state == "judged"
    append(run / VERDICT)
    assert (summarize(run).state, summarize(run).results) == ("changed", ())
    cut(run / VERDICT, 1 - 1 / (run / VERDICT).stat().st_size)
    remove_trial(run)
    assert summarize(run).state == "changed"
    assert "trials/0001" in summarize(run).text


def test_a_changed_verdict_is_computed_again(run: Path) -> None:
    before = (run / VERDICT).read_bytes()
    append(run / VERDICT)
    assert Run(run).changed_files() == [VERDICT]
    report(run, "json", accept_changes=True)
    assert (run / VERDICT).read_bytes() == before


def test_an_interrupted_write_is_no_change(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed between the note of a digest and the file."""

    def killed(path: Path, *_: object, **__: object) -> None:
        if path.exists():
            raise SystemExit

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(SystemExit):
        files.write_json(run / VERDICT, {})
    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(SystemExit):
        files.write_json(run / "trials/0001/server.json", {"new": 1})
    os.remove(run / "trials/0001/server.json")  # noqa: PTH107 — Path.unlink is replaced.
    assert Run(run).changed_files() == []


@pytest.mark.parametrize("name", ["schedule.json", "trials/0001/trial.json", EVENTS])
@pytest.mark.parametrize("kind", ["pipe", "device", "directory", "truncated", "deep"])
def test_a_foreign_or_damaged_file_has_one_sentence(name: str, kind: str, run: Path) -> None:
    for derived in JUDGED:
        (run / derived).unlink()
    path = run / name
    content = path.read_bytes()
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "directory":
            path.mkdir()
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "deep":
            deep = b"[" * 100_000
            path.write_bytes(gzip.compress(deep + b"\n") if name == EVENTS else deep)
    with pytest.raises(StoreProblem) as caught:
        report(run, "json", accept_changes=True)
    assert name in caught.value.text
    assert "\n" not in caught.value.text


def test_a_run_of_an_older_version_has_no_digests(run: Path) -> None:
    remove_lists(run)
    stored = files.read_json(run / "experiment.json")
    del stored[digests.KEY]
    (run / "experiment.json").write_text(json.dumps(stored))
    append(run / "trials/0001/trial.json")
    (run / EXPLAINED).unlink()
    report(run, "json")
    assert "R16" not in checks(run)


def test_a_newer_version_is_named(run: Path) -> None:
    path = run / VERDICT
    path.write_text(path.read_text().replace('"schema": ', '"schema": 9', 1))
    with pytest.raises(StoreProblem, match="was written by a newer dbdyno"):
        report(run, "json", accept_changes=True)
