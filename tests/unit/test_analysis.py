"""Stored runs as data frames: the same numbers as in verdict.json and in the engine's records."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.unit.judged_run import Judged
from tests.unit.stored_run import Making, make, verdict_of

import dbdyno
from dbdyno import analysis as module
from dbdyno.analysis import Results
from dbdyno.problem import Problem
from dbdyno.store import Run
from dbdyno.verdict import judge

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run in which a server failed once."""
    making = Making(failed=lambda trial: "crashed" if trial.index == 3 else None)
    run = make(tmp_path_factory.mktemp("runs"), making)
    judge(run)
    return dbdyno.open(run.path)


def test_a_run_is_named_as_in_the_commands(results: Results, tmp_path: Path) -> None:
    shutil.copytree(results.path, tmp_path / "results" / "made" / results.path.name)
    for name in (None, "made", results.path.name.rpartition("r")[2]):
        assert dbdyno.open(name, tmp_path / "results").path.name == results.path.name
    with pytest.raises(Problem, match="there is no run other"):
        dbdyno.open("other", tmp_path / "results")


def test_trials_are_those_of_the_judge(results: Results) -> None:
    trials = results.trials
    assert list(trials["trial"]) == list(range(1, len(results.measured.trials) + 1))
    failed = trials[trials["status"] == "failed"]
    assert list(failed["trial"]) == [4]
    assert list(failed["throughput"]) == [0.0]
    assert failed["latency_p95_us"].isna().all()
    (comparison,) = verdict_of(Run.open(results.path))["comparisons"]
    for point in comparison["points"]:
        at = trials["connections"] == point["at"]["connections"]
        median = trials[at & (trials["variant"] == "a")]["throughput"].median()
        assert median == pytest.approx(point["baseline"])


def test_the_intervals_add_up_to_the_trials(results: Results) -> None:
    intervals = results.intervals
    measured = intervals[intervals["phase"] == "measure"].groupby("trial")["transactions"].sum()
    trials = results.trials.set_index("trial")
    complete = trials[trials["status"] == "done"]
    assert (measured[complete.index] == complete["transactions"]).all()
    assert np.allclose(
        intervals["throughput"] * (intervals["end_s"] - intervals["start_s"]), intervals["transactions"]
    )


def test_comparisons_are_those_of_the_verdict(results: Results) -> None:
    (comparison,) = verdict_of(Run.open(results.path))["comparisons"]
    frame = results.comparisons
    *points, combined = frame.to_dict("records")
    for row, point in zip(points, comparison["points"], strict=True):
        assert row["connections"] == point["at"]["connections"]
        assert row["effect_percent"] == point["effect_percent"]
        ends = [
            None if pd.isna(row[f"interval_{end}_percent"]) else row[f"interval_{end}_percent"]
            for end in ("low", "high")
        ]
        assert ends == point["interval_percent"]
    assert combined["sentence"] == comparison["curve"]["sentence"] == results.sentences[0]
    assert pd.isna(combined["connections"])


def test_the_types_of_columns_do_not_depend_on_the_values(results: Results, tmp_path: Path) -> None:
    run = make(tmp_path, Making(blocks=1))
    judge(run)
    other = dbdyno.open(run.path)
    for name in module.FRAMES:
        frame, second = getattr(results, name), getattr(other, name)
        common = [column for column in frame.columns if column in second.columns]
        assert (frame.dtypes[common] == second.dtypes[common]).all(), name


def test_an_open_loop_has_rates(tmp_path: Path) -> None:
    run = make(tmp_path, Making(blocks=1, connections=(64,), rates=(500.0, 900.0)))
    judge(run)
    trials = dbdyno.open(run.path).trials
    assert set(trials["rate"]) == {500.0, 900.0}
    assert set(trials["connections"]) == {64}


def test_parquet_files_have_the_frames(results: Results, tmp_path: Path) -> None:
    paths = results.write_parquet(tmp_path / "parquet")
    assert [path.stem for path in paths] == list(module.FRAMES)
    assert len(list((tmp_path / "parquet").iterdir())) == len(paths)
    for path in paths:
        pd.testing.assert_frame_equal(pd.read_parquet(path), getattr(results, path.stem), check_dtype=False)


def test_parquet_has_every_trial(tmp_path: Path) -> None:
    """Those that failed, that did not run, and those whose block was repeated, too."""
    making = Making(
        blocks=3,
        repeated=(1,),
        failed=lambda trial: "crashed" if trial.index == 3 else None,
        absent=lambda trial: trial.index == 5,
    )
    run = make(tmp_path, making)
    judge(run)
    run.release()
    command = [sys.executable, "-m", "dbdyno", "report", str(run.path), "--format", "parquet"]
    subprocess.run([*command, "--output", str(tmp_path / "out")], check=True, capture_output=True)
    trials = pd.read_parquet(tmp_path / "out/parquet/trials.parquet").set_index("trial")
    planned = run.schedule()
    assert len(planned) == 4 * 2 * 3
    for trial in planned:
        row = trials.loc[trial.index + 1]
        place = (trial.block + 1, trial.variant, trial.workload, trial.point.connections)
        assert tuple(row[["block", "variant", "workload", "connections"]]) == place
    repeated = [trial.index + 1 for trial in planned if trial.block == 1]
    assert list(trials.index[trials["status"] == "failed"]) == [4, *repeated]
    assert list(trials.index[trials["status"] == "not-run"]) == [6]
    assert trials["throughput"].notna().sum() == len(planned) - len(repeated) - 1


def test_a_run_that_was_changed_or_not_judged_is_refused(results: Results, tmp_path: Path) -> None:
    folder = tmp_path / results.path.name
    shutil.copytree(results.path, folder)
    (folder / "schedule.json").write_bytes((folder / "schedule.json").read_bytes() + b" ")
    with pytest.raises(Problem, match=r"changed since it was measured: schedule\.json"):
        dbdyno.open(folder)
    with pytest.raises(Problem, match="has not been judged"):
        dbdyno.open(make(tmp_path).path)


def test_without_pandas_the_error_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = dbdyno.open(Judged().write(tmp_path).path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(Problem, match="need the Python package pandas") as caught:
        _ = opened.trials
    assert caught.value.fix == "pip install 'dbdyno[pandas]'"


def test_importing_dbdyno_is_light() -> None:
    program = "import sys; import dbdyno; print({'pandas', 'numpy', 'pydantic'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"


def test_the_notebook_runs(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(results.path, tmp_path / "results" / "made" / results.path.name)
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs/results.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 4
    # The run of this test has no records of statements.
    names: dict[str, object] = {}
    for cell in cells[:-1]:
        exec(cell, names)
    assert isinstance(names["medians"], pd.DataFrame)
