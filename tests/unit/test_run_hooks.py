"""The user's own commands around a trial, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbdyno.binary import EngineProblem
from dbdyno.checks import Context
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.run import pilot, warmup
from dbdyno.run.coordinator import hook_findings
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.trial import run_trial
from dbdyno.servers import open_server
from dbdyno.servers.server import Description, Server
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoreProblem
from dbdyno.store.preparation import WarmupTrial

DESCRIPTION = Description("mysql", "9.7", {"pid": 4711}, {}, {}, {})
MEASURING = {"type": "phase", "data": {"name": "measure", "at_us": 0, "at_unix_us": 0}}


class Playing(Engine):
    """Tells that the measurement begins, and then what a test wants happens."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then

    def run(self, *arguments: Any, **_: Any) -> EngineResult:
        arguments[3](MEASURING)
        self.then()
        raise AssertionError("something happens")


def prepared(folder: Path, **hooks: Any) -> tuple[Experiment, Run, Server]:
    """An experiment of one variant with these hooks, its run and its server. Nobody is behind its URL."""
    spec = ServerSpec.model_validate({"kind": "remote", "url": "mysql://u@/db?socket=/none", **hooks})
    experiment = Experiment(
        name="hooks",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0, warmup_s=0.0),
        variants=(Variant(name="one", server=spec),),
    )
    run = Run.create(folder, experiment, b"", None, {})
    return (
        experiment,
        run,
        open_server(experiment.variants[0], cast(Workspace, SimpleNamespace(run="")), None),
    )


def ready(experiment: Experiment, server: Server) -> Context:
    """The context of a trial whose server has started."""
    return Context(experiment, server=server, description=DESCRIPTION)


def played(folder: Path, then: Callable[[], None], **hooks: Any) -> None:
    """One trial with these hooks, in which `then` happens."""
    experiment, run, server = prepared(folder, **hooks)
    run_trial(run, Playing(then), schedule(experiment)[0], ready(experiment, server))


def run_warmup_trial(
    folder: Path, then: Callable[[], None], **hooks: Any
) -> tuple[Path, WarmupTrial, list[Finding]]:
    """A warm-up trial with these hooks, in which `then` happens: its folder, its entry, and its findings."""
    experiment, run, server = prepared(folder, **hooks)
    (trial,) = warmup.warmup_trials(experiment, [one.title for one in experiment.workloads])
    entry, complaints = warmup.run_warmup_trial(run, Playing(then), trial, ready(experiment, server), 1)
    return run.path / "warmup_trials", entry, hook_findings(trial, complaints)


@pytest.mark.parametrize("happens", [KeyboardInterrupt(), StoreProblem("the disk is full")])
def test_after_trial_is_run_when_the_trial_is_cut_short(tmp_path: Path, happens: BaseException) -> None:
    """What it fails with is not what the user is to hear about then."""

    def then() -> None:
        raise happens

    after = ("sh", "-c", f"echo $DBDYNO_VARIANT >> {tmp_path / 'after'}; exit 1")
    with pytest.raises(type(happens)) as caught:
        played(tmp_path / "results", then, after_trial=after, during_trial=("sleep", "600"))
    assert caught.value is happens
    assert (tmp_path / "after").read_text() == "one\n"


def test_a_store_that_fails_hides_no_interrupt(tmp_path: Path) -> None:
    """Neither while during_trial is told to stop, nor while the words of after_trial are kept."""
    results = tmp_path / "results"

    def then() -> None:
        (plan,) = results.rglob("plan.json")
        # Nothing can be written any more, not by root either.
        plan.parent.rename(tmp_path / "away")
        plan.parent.touch()
        raise KeyboardInterrupt

    after = ("touch", str(tmp_path / "after"))
    with pytest.raises(KeyboardInterrupt):
        played(results, then, after_trial=after, during_trial=("sleep", "600"))
    assert (tmp_path / "after").exists()


def fail() -> None:
    raise EngineProblem("the server is gone")


def test_hooks_run_around_a_warmup_trial(tmp_path: Path) -> None:
    """They may decide how long a server warms up. What they said and how they ended is kept."""
    tell = 'echo "$0 [$DBDYNO_TRIAL] [$DBDYNO_BLOCK] $DBDYNO_SERVER_PID $DBDYNO_SECONDS"'
    folder, entry, found = run_warmup_trial(
        tmp_path,
        fail,
        before_trial=("sh", "-c", tell, "before"),
        during_trial=("sh", "-c", f"{tell}; exec sleep 600", "during"),
        after_trial=("sh", "-c", f"{tell}; exit 3", "after"),
    )
    assert entry["failure"] == "the server is gone"
    assert list(entry["hooks"]) == ["before_trial", "during_trial", "after_trial"]
    assert [entry["hooks"][name]["exit_status"] for name in ("before_trial", "after_trial")] == [0, 3]
    assert (folder / "01-one-hook-before_trial.txt").read_text() == "before [-1] [] 4711 60\n"
    assert (folder / "01-one-hook-after_trial.txt").read_text() == "after [-1] [] 4711 60\n"
    assert (folder / "01-one-hook-during_trial.txt").exists()
    ((code, level, text, subject),) = [(one.code, one.level, one.text, one.subject) for one in found]
    assert (code, level, subject) == ("R04", "warn", "one")
    assert text.startswith("the hook after_trial: 'sh' ended with exit status 3")
    assert text.endswith("its output is in the folder warmup_trials.")


def test_a_warmup_trial_does_not_begin_where_before_trial_fails(tmp_path: Path) -> None:
    def never() -> None:
        raise AssertionError("no load without its hook")

    after = ("touch", str(tmp_path / "after"))
    _, entry, found = run_warmup_trial(
        tmp_path / "results", never, before_trial=("false",), after_trial=after
    )
    assert entry["failure"] == "the hook before_trial: 'false' ended with exit status 1"
    assert entry["settle_s"] is None
    assert (tmp_path / "after").exists()
    assert len(found) == 1


def test_after_trial_is_run_when_a_warmup_trial_is_interrupted(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    after = ("touch", str(tmp_path / "after"))
    with pytest.raises(KeyboardInterrupt):
        run_warmup_trial(tmp_path / "results", interrupt, after_trial=after, during_trial=("sleep", "600"))
    assert (tmp_path / "after").exists()


class Loading(Engine):
    """An engine whose event loops are busy with one of them; writes "load" to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def run(self, *arguments: Any, **_: Any) -> Any:
        with self.file.open("a") as output:
            output.write("load\n")
        generator = {"cpu": 0.9 / arguments[1]["client"]["workers"], "run_queue_wait_us": 0}
        measure = {"start_us": 0, "end_us": 1_000_000, "events": 9, "generator": generator}
        return SimpleNamespace(failure=lambda: "", end={"phases": {"measure": measure}})


def test_hooks_run_once_around_the_steps_of_a_pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    journal = tmp_path / "journal"

    def hook(name: str, exit_status: int = 0) -> tuple[str, ...]:
        return ("sh", "-c", f"echo {name} | tee -a {journal}; exit {exit_status}")

    def steps(status: int) -> tuple[list[str], list[str | None], list[str]]:
        journal.write_text("")
        hooks = {name: hook(name) for name in ("during_trial", "after_trial")}
        folder = tmp_path / f"results-{status}"
        experiment, run, server = prepared(folder, before_trial=hook("before_trial", status), **hooks)
        load = experiment.load.model_copy(update={"connections": (2,)})
        experiment = experiment.model_copy(update={"load": load})
        # A pilot that was interrupted.
        (run.path / "pilot").mkdir()
        (run.path / "pilot" / "09-one.jsonl.gz").touch()
        (trial,) = warmup.warmup_trials(experiment, [one.title for one in experiment.workloads])
        found, failures = pilot.run_pilot(run, Loading(journal), trial, ready(experiment, server), ())
        names = sorted(path.name for path in (run.path / "pilot").iterdir())
        assert [step["records"] for step in found] == [name for name in names if name.endswith(".gz")]
        assert [name for name in names if "hook" in name] == [
            "01-one-hook-after_trial.txt",
            "01-one-hook-before_trial.txt",
        ]
        return journal.read_text().split(), [step["failure"] for step in found], failures

    assert steps(0) == (["before_trial", "load", "load", "after_trial"], [None, None], [])
    failure = "the hook before_trial: 'sh' ended with exit status 1"
    journaled, failed, failures = steps(1)
    assert journaled == ["before_trial", "after_trial"]
    assert len(failed) == len(failures) == 1
    assert str(failed[0]).startswith(failure)
