"""The warm-up that warm-up trials choose: which there are, what comes of them, and what the user reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.experiment.model import (
    Design,
    Experiment,
    Load,
    OltpWorkload,
    ServerSpec,
    State,
    Variant,
)
from dbdyno.experiment.schedule import schedule
from dbdyno.experiment.shapes import Ramp
from dbdyno.run import warmup
from dbdyno.run.plan import trial_plan
from dbdyno.store import Run
from dbdyno.store.preparation import (
    WarmupTrial,
    derived_warmup_s,
    is_warm_state_checked,
    read_warmup_trials,
    warmup_trial_writer,
    write_warmup_trials,
)

TARGET = {"protocol": "mysql", "address": {"tcp": {"host": "127.0.0.1", "port": 3306}}}


def experiment(state: State = "restore", kind: str = "local", workloads: int = 1, **load: Any) -> Experiment:
    remote = {"kind": "remote", "url": "mysql://root@127.0.0.1/test"}
    server = ServerSpec.model_validate({} if kind == "local" else remote)
    names = ("oltp_read_write", "oltp_read_only")
    return Experiment(
        name="test",
        workloads=tuple(OltpWorkload.model_validate({"name": name}) for name in names[:workloads]),
        load=Load(**{"connections": (4, 64, 16), "duration_s": 5.0, **load}),
        design=Design(state=state, blocks=2),
        variants=(Variant(name="a", server=server), Variant(name="b", server=server)),
    )


def entry(variant: str, settle_s: float | None, failure: str | None = None, **more: Any) -> Any:
    return {
        "variant": variant,
        "workload": "oltp_read_write",
        "at": {"connections": 64},
        "length_s": 60.0,
        "settle_s": settle_s,
        "series": [100.0] * 12,
        "failure": failure,
        "records": "01-a.jsonl.gz",
        **more,
    }


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (experiment(), True),
        (experiment("reset"), True),
        (experiment("preserve"), False),
        (experiment("restart"), False),
        (experiment(kind="remote"), False),
        (experiment(warmup_s=2.0), False),
        (experiment(ramp=Ramp(duration_s=2.0)), False),
        (experiment(connections=(8,), rate=(100.0, 50.0)), True),
    ],
)
def test_only_fresh_data_on_servers_of_dbdynos_own_have_warmup_trials(of: Experiment, expected: bool) -> None:
    assert warmup.has_warmup_trials(of) is expected


def test_every_variant_runs_on_every_workload_at_the_highest_load() -> None:
    of = experiment(workloads=2)
    trials = warmup.warmup_trials(of, [one.title for one in of.workloads])
    assert [(trial.workload, trial.variant, trial.slot) for trial in trials] == [
        ("oltp_read_write", "a", 0),
        ("oltp_read_write", "b", 1),
        ("oltp_read_only", "a", 0),
        ("oltp_read_only", "b", 1),
    ]
    assert {trial.point.connections for trial in trials} == {64}
    assert [trial.index for trial in trials] == [-4, -3, -2, -1]
    rated = experiment(connections=(8,), rate=(100.0, 300.0, 50.0))
    assert {
        trial.point.rate for trial in warmup.warmup_trials(rated, [one.title for one in rated.workloads])
    } == {300.0}


@pytest.mark.parametrize(("duration_s", "length_s"), [(5.0, 60.0), (30.0, 120.0)])
def test_a_warmup_trial_takes_a_minute_or_four_measurements(duration_s: float, length_s: float) -> None:
    assert warmup.length_s(experiment(duration_s=duration_s)) == length_s


@pytest.mark.parametrize(
    ("entries", "warmup_s", "text"),
    [
        (
            [entry("a", 3.0), entry("b", 8.0)],
            12.0,
            "warm-up: 12.0 s per trial (b settled after 8.0 s), adds 3 min 12 s to the run",
        ),
        (
            [entry("a", 0.0), entry("b", 0.0)],
            1.0,
            "warm-up: 1.0 s per trial (a settled from the start), adds 16 s to the run",
        ),
        (
            [entry("a", None), entry("b", 8.0)],
            12.0,
            "warm-up: 12.0 s per trial (a had not settled after 60 s), adds 3 min 12 s to the run",
        ),
        # Longer than the warm-up trial, where it settled late.
        (
            [entry("a", 50.0)],
            75.0,
            "warm-up: 75.0 s per trial (a settled after 50.0 s), adds 20 min 00 s to the run",
        ),
        # The allowance of a measurement of 5 s, at least.
        (
            [entry("a", 2.0), entry("b", None, "server went away")],
            5.0,
            "warm-up: 5.0 s per trial (the warm-up trial of b failed), adds 1 min 20 s to the run",
        ),
    ],
)
def test_the_slowest_chooses_the_warm_up(entries: list[WarmupTrial], warmup_s: float, text: str) -> None:
    chosen = warmup.to_document(experiment(), entries)
    assert (chosen["schema"], chosen["warmup_s"], chosen["trials"]) == (1, warmup_s, entries)
    assert warmup.describe(experiment(), chosen, 16) == text


def test_what_did_not_settle_or_failed_is_a_warning() -> None:
    of = experiment(workloads=2)
    chosen = warmup.to_document(of, [entry("a", 4.0), entry("b", None), entry("c", None, "gone")])
    moving, failed = warmup.findings(of, chosen)
    assert {(one.code, one.level) for one in (moving, failed)} == {("R01", "warn")}
    assert moving.text.startswith("throughput of b on oltp_read_write had not settled after 60 s")
    assert (moving.subject, moving.evidence["what"], moving.evidence["variant"]) == ("b", "warmup-trial", "b")
    assert "the warm-up trial of c on oltp_read_write failed (gone)" in failed.text
    assert (failed.subject, failed.evidence["what"]) == ("c", "no-warmup-trial")


def test_the_choice_is_kept_and_enters_every_plan(tmp_path: Path) -> None:
    of = experiment()
    run = Run.create(tmp_path, of, b"")
    assert (read_warmup_trials(run), derived_warmup_s(run), is_warm_state_checked(run)) == (None, None, False)
    chosen = warmup.to_document(of, [entry("a", 4.0), entry("b", 8.0)])
    write_warmup_trials(run, chosen)
    again = Run.open(run.path)
    assert read_warmup_trials(again) == chosen
    assert is_warm_state_checked(again)
    plan = trial_plan(of, schedule(of)[0], TARGET, warmup_s=derived_warmup_s(again))
    assert plan["phases"] == {"warmup_us": 12_000_000, "measure_us": 5_000_000}
    # Without warm-up trials it is as long as the measurement.
    assert trial_plan(of, schedule(of)[0], TARGET)["phases"]["warmup_us"] == 5_000_000
    write_warmup_trials(run, warmup.to_document(of, [entry("a", None, "gone")]))
    assert not is_warm_state_checked(again)


def test_the_records_of_a_warmup_trial_are_compressed(tmp_path: Path) -> None:
    run = Run.create(tmp_path, experiment(), b"")
    with warmup_trial_writer(run, 1, "8.0 / pool") as writer:
        writer.append_event(b'{"type": "hello"}\n')
        writer.append_event(b'{"type": "end"}\n')
    name = writer.records
    assert name == "01-8.0-pool.jsonl.gz"
    assert [path.name for path in (run.path / "warmup_trials").iterdir()] == [name]
    lines = gzip.decompress((run.path / "warmup_trials" / name).read_bytes()).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["hello", "end"]
