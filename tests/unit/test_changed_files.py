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

from dbdyno.cli.report import report
from dbdyno.commands.choices import Format
from dbdyno.problem import ExitCode
from dbdyno.store import EXPLAINED, JUDGED, VERDICT, Run, StoreProblem, digests, files

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
    report(run, Format.JSON)
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


def test_accepted_changes_are_judged_and_marked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run / "trials/0002")
    append(run / "trials/0003/trial.json")
    with pytest.raises(StoreProblem):
        report(run, Format.MD)
    before = (run / VERDICT).read_bytes()
    report(run, Format.MD, accept_changes=True)
    assert "changed since it was measured: trials/0003/trial.json" in capsys.readouterr().out
    assert "R16" in checks(run)
    # The original file again: so is the verdict about it.
    path = run / "trials/0003/trial.json"
    path.write_bytes(path.read_bytes()[:-1])
    report(run, Format.MD)
    assert "R16" not in checks(run)
    assert before != (run / VERDICT).read_bytes(), "a trial is missing"


def test_a_changed_verdict_is_computed_again(run: Path) -> None:
    before = (run / VERDICT).read_bytes()
    append(run / VERDICT)
    assert Run(run).changed_files() == [VERDICT]
    report(run, Format.JSON, accept_changes=True)
    assert (run / VERDICT).read_bytes() == before


def test_an_interrupted_write_is_no_change(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed between the note of a digest and the file."""

    def killed(*_: object) -> None:
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
        report(run, Format.JSON, accept_changes=True)
    assert str(path) in caught.value.text or name in caught.value.text
    assert "\n" not in caught.value.text


def test_a_run_of_an_older_version_has_no_digests(run: Path) -> None:
    for listed in [run / digests.NAME, *run.glob(f"trials/*/{digests.NAME}")]:
        listed.unlink()
    append(run / "trials/0001/trial.json")
    (run / EXPLAINED).unlink()
    report(run, Format.JSON)
    assert "R16" not in checks(run)


def test_a_newer_version_is_named(run: Path) -> None:
    path = run / VERDICT
    path.write_text(path.read_text().replace('"schema": ', '"schema": 9', 1))
    with pytest.raises(StoreProblem, match="was written by a newer dbdyno"):
        report(run, Format.JSON, accept_changes=True)
