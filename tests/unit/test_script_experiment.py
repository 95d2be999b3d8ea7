"""Lua scripts in an experiment: how they are written, what they become, and how mistakes are told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.schemas import require_valid

from dbdyno.checks import Context, Moment, run
from dbdyno.commands.option_document import sweep_experiment
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment, ScriptWorkload
from dbdyno.experiment.reading import read
from dbdyno.run.engine import Engine
from dbdyno.run.plan import plan

ROOT = Path(__file__).parents[2]
TARGET = {"protocol": "mysql", "endpoints": [{"tcp": {"host": "h", "port": 1}}], "user": "u", "database": "d"}
HEAD = """
[experiment]
name = "script"
[load]
connections = [2, 8]
duration = "1s"
[[variant]]
name = "a"
[[variant]]
name = "b"
"""
SHOP = (
    '[[workload]]\nscript = "shop.lua"\noptions = { goods = 40, level = "RR", fast = false, share = 0.5 }\n'
)


def given(folder: Path, workload: str = SHOP, *assignments: str) -> Experiment:
    (folder / "shop.lua").write_text("function event() end\n")
    (folder / "script.toml").write_text(HEAD + workload)
    return read(folder / "script.toml", None, assignments)


def script(experiment: Experiment) -> ScriptWorkload:
    (workload,) = experiment.workloads
    assert isinstance(workload, ScriptWorkload)
    return workload


def errors(folder: Path, workload: str, *assignments: str) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as found:
        given(folder, workload, *assignments)
    return {error.key: f"{error.problem}. {error.fix}" for error in found.value.errors}


def test_a_script_is_a_workload_with_the_name_of_its_file(tmp_path: Path) -> None:
    experiment = given(tmp_path, SHOP, "workload[shop].options.goods=50")
    workload = script(experiment)
    options = {"goods": 50, "level": "RR", "fast": False, "share": 0.5}
    assert (workload.title, workload.options) == ("shop", options)
    asked = plan(experiment, workload, TARGET)
    described = {"path": str(tmp_path / "shop.lua"), "options": options}
    assert (asked["workload"]["name"], asked["workload"]["script"]) == ("lua", described)
    require_valid(asked, "plan")
    assert Experiment.model_validate_json(experiment.model_dump_json()) == experiment
    labelled = SHOP + 'label = "night"\nkeys = "zipfian"\nstatements = "text"\n'
    workload = script(given(tmp_path, labelled, "workload[night].options.goods=1"))
    assert (workload.title, workload.plan()["statements"]) == ("night", "text")
    assert workload.plan()["keys"] == {"zipfian": {"exponent": 0.8}}


def test_a_file_name_that_is_no_name_is_none(tmp_path: Path) -> None:
    (tmp_path / "my shop.lua").write_text("")
    assert script(given(tmp_path, '[[workload]]\nscript = "my shop.lua"\n')).title == "lua"


def test_the_data_are_those_of_the_script_its_neighbours_and_its_options(tmp_path: Path) -> None:
    first = script(given(tmp_path)).data()
    assert script(given(tmp_path)).data() == first
    assert script(given(tmp_path, SHOP, "workload.options.goods=41")).data() != first
    (tmp_path / "stock.lua").write_text("return 1")
    beside = script(given(tmp_path)).data()
    assert beside != first
    (tmp_path / "stock.lua").write_text("return 2")
    assert script(given(tmp_path)).data() not in (first, beside)
    # What is there does not depend on the script.
    assert script(given(tmp_path, SHOP + "prepare = false\n")).data() == {}


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    wrong = SHOP + 'name = "oltp_read_only"\ntables = 4\ntable_size = 100\n'
    found = errors(tmp_path, wrong, "workload.statements=fast", "workload.options.list=[1]")
    assert found["workload[shop].name"].startswith("the workload also has a script.")
    for key in ("tables", "table_size"):
        assert f"options = {{ {key} = … }}" in found[f"workload[shop].{key}"]
    assert "Known here: prepared, text" in found["workload[shop].statements"]
    assert found["workload[shop].options.list"].startswith("this must be text, a number, true or false")
    assert len(found) == 5


def test_a_script_that_is_not_there_and_a_load_that_no_script_can_have(tmp_path: Path) -> None:
    missing = '[[workload]]\nscript = "nowhere.lua"\n'
    found = errors(
        tmp_path, missing, "load.reconnect_every=5", "workload.prepare=false", "design.state=reset"
    )
    assert str(tmp_path / "nowhere.lua") in found["workload[nowhere].script"]
    assert "opens its connections itself" in found["load.reconnect_every"]
    assert "cannot load its data again" in found["design.state"]
    assert (
        'Write script = "FILE.lua"' in errors(tmp_path, '[[workload]]\nname = "lua"\n')["workload[lua].name"]
    )


def test_what_is_not_known_before_the_run_is_a_note(tmp_path: Path) -> None:
    (finding,) = run(Moment.DESIGN, Context(given(tmp_path)), ["P08"])
    assert finding.level == "note"
    assert finding.text.startswith("shop is a script: its tables and statements are unknown before the run")


def test_a_sweep_takes_a_script_like_any_workload(tmp_path: Path) -> None:
    (tmp_path / "shop.lua").write_text("")
    options = {
        "target": "mysql://load@127.0.0.1:3306/shop",
        "connections": "1,2",
        "time": "1s",
        "warmup": "0s",
        "tables": 3,
        "workers": "1",
    }
    assignments = ["goods=5", "workload.prepare=false", "load.duration=2s"]
    experiment, _, source = sweep_experiment(str(tmp_path / "shop.lua"), options, assignments)
    workload = script(experiment)
    assert (experiment.name, workload.title, workload.prepare) == ("run-shop", "shop", False)
    assert (workload.options, experiment.load.duration_s) == ({"tables": 3, "goods": 5}, 2.0)
    stored = tmp_path / "stored.toml"
    stored.write_text(source)
    assert read(stored) == experiment


def test_the_other_program_plays_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = '{"type":"end","data":{"reason":"done","failure":null}}'
    for name in ("dbdyno-engine", "dbdyno-compat"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\nread plan\necho {name} >&2\necho '{end}'\n")
        path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    experiment = given(tmp_path)
    words = [
        Engine().run("prepare", {**plan(experiment, experiment.workloads[0], TARGET), **other}).stderr.strip()
        for other in ({}, {"workload": {"name": "oltp_read_only"}})
    ]
    assert words == ["dbdyno-compat", "dbdyno-engine"]
