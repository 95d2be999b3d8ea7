"""The user's own commands around a trial, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.schedule import schedule
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.trial import run_trial
from dbdyno.servers import open_server
from dbdyno.servers.server import Description
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoreProblem

MEASURING = {"type": "phase", "data": {"name": "measure", "at_us": 0, "at_unix_us": 0}}


class Playing(Engine):
    """Tells that the measurement begins, and then what a test wants happens."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then

    def run(self, *arguments: Any, **_: Any) -> EngineResult:
        arguments[3](MEASURING)
        self.then()
        raise AssertionError("something happens")


def played(folder: Path, then: Callable[[], None], **hooks: Any) -> None:
    """One trial with these hooks, in which `then` happens. Nobody is behind its URL."""
    spec = ServerSpec.model_validate({"kind": "remote", "url": "mysql://u@/db?socket=/none", **hooks})
    experiment = Experiment(
        name="hooks",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0, warmup_s=0.0),
        variants=(Variant(name="one", server=spec),),
    )
    run = Run.create(folder, experiment, b"", None, {})
    server = open_server(experiment.variants[0], cast(Workspace, None), None)
    run_trial(
        run,
        experiment,
        schedule(experiment)[0],
        server=server,
        description=Description("mysql", "9.7", {}, {}, {}, {}),
        engine=Playing(then),
    )


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
