"""Ramps, steps and pauses of an experiment file: what the engine is asked, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.schemas import require_valid

from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.schedule import schedule
from dbdyno.run.plan import trial_plan
from dbdyno.servers.server import Address

ADDRESS = Address("127.0.0.1", 3306, None, "dbdyno", "dbdyno", "secret")
FILE = """
[experiment]
name = "shapes"
[[workload]]
name = "oltp_point_select"
[load]
duration = "60s"
{load}
[design]
blocks = 1
order = "given"
[[variant]]
name = "a"
"""
CLOSED = "connections = [10, 40]\n"
OPEN = "connections = [64]\nrate = [500, 1000]\n"
S = 1_000_000

# What [load] says -> the shape of each point, in the order of the file.
SHAPES: dict[str, tuple[str, list[Any]]] = {
    "a closed loop": (CLOSED, ["closed", "closed"]),
    "an open loop": (OPEN, [{"poisson": {"rate_per_s": rate}} for rate in (500, 1000)]),
    "constant gaps": (
        OPEN + 'arrivals = "constant"',
        [{"constant": {"rate_per_s": rate}} for rate in (500, 1000)],
    ),
    "a ramp of connections": (
        CLOSED + 'ramp = { from_percent = 25, duration = "20s" }',
        # A quarter of 10, rounded to whole connections.
        [
            {"closed_ramp": {"from": 2, "to": 10, "over_us": 20 * S}},
            {"closed_ramp": {"from": 10, "to": 40, "over_us": 20 * S}},
        ],
    ),
    "a ramp from nothing": (
        CLOSED + 'ramp = { duration = "500ms" }',
        [{"closed_ramp": {"from": 0, "to": level, "over_us": S // 2}} for level in (10, 40)],
    ),
    "a ramp of the rate, downwards": (
        OPEN + 'ramp = { from_percent = 150, duration = "1m" }',
        [
            {"ramp": {"from_per_s": rate * 1.5, "to_per_s": rate, "over_us": 60 * S, "gaps": "poisson"}}
            for rate in (500, 1000)
        ],
    ),
    "steps of connections": (
        CLOSED + 'steps = [{ percent = 50, duration = "10s" }, { percent = 100, duration = "20s" }]',
        [
            {
                "closed_steps": {
                    "steps": [
                        {"connections": level // 2, "for_us": 10 * S},
                        {"connections": level, "for_us": 20 * S},
                    ]
                }
            }
            for level in (10, 40)
        ],
    ),
    "steps of the rate, one of them silent": (
        OPEN
        + 'arrivals = "constant"\n'
        + 'steps = [{ percent = 0, duration = "5s" }, { percent = 120, duration = "5s" }]',
        [
            {
                "steps": {
                    "steps": [
                        {"rate_per_s": 0, "for_us": 5 * S},
                        {"rate_per_s": rate * 1.2, "for_us": 5 * S},
                    ],
                    "gaps": "constant",
                }
            }
            for rate in (500, 1000)
        ],
    ),
}

PAUSES: dict[str, tuple[str, Any]] = {
    "none": ("", None),
    "constant": ('think_time = "10ms"', {"constant": {"us": 10_000}}),
    "exponential": ('think_time = "1.5s"\nthink = "exponential"', {"exponential": {"mean_us": 1_500_000}}),
}

# What [load] says -> the key that is refused, and words of why.
INVALID: dict[str, tuple[str, str, str]] = {
    "both": (
        CLOSED + 'ramp = { duration = "5s" }\nsteps = [{ percent = 50, duration = "5s" }]',
        "load",
        "ramp and steps exclude each other",
    ),
    "steps whose connections round to none": (
        CLOSED + 'steps = [{ percent = 4, duration = "5s" }, { percent = 1, duration = "5s" }]',
        "load",
        "4 % of 10 connections is no connection: give percentages of at least 10",
    ),
    "two errors of the load": (
        OPEN + 'queue_limit = 5\nthink_time = "1ms"\nsteps = [{ percent = 50, duration = "30m" }]',
        "load",
        "start at scheduled times; also: the load changes for",
    ),
    "steps that ask for nothing": (
        CLOSED + 'steps = [{ percent = 0, duration = "5s" }]',
        "load.steps",
        "the steps have no load",
    ),
    "more than all connections": (
        CLOSED + 'steps = [{ percent = 120, duration = "5s" }]',
        "load",
        "the maximum is 100 percent, all connections",
    ),
    "a ramp from above all connections": (
        CLOSED + 'ramp = { from_percent = 101, duration = "5s" }',
        "load",
        "the maximum is 100 percent, all connections",
    ),
    "longer than the measurement": (
        OPEN + 'steps = [{ percent = 50, duration = "50s" }, { percent = 60, duration = "11s" }]',
        "load",
        "changes for 61 s and is measured for 60 s",
    ),
    "a step without a duration": (CLOSED + "steps = [{ percent = 50 }]", "load.steps[1].duration", ""),
    "a step without a load": (CLOSED + 'steps = [{ duration = "5s" }]', "load.steps[1].percent", ""),
    "a duration without a unit": (CLOSED + "ramp = { duration = 5 }", "load.ramp.duration", ""),
    "a negative share": (
        CLOSED + 'ramp = { from_percent = -1, duration = "5s" }',
        "load.ramp.from_percent",
        "",
    ),
    "a key that is none": (
        CLOSED + 'ramp = { from = 10, duration = "5s" }',
        "load.ramp.from",
        "",
    ),
    "pauses of an open loop": (OPEN + 'think_time = "10ms"', "load", "think_time is for closed loops"),
    "pauses of another kind": (
        CLOSED + 'think_time = "10ms"\nthink = "normal"',
        "load.think",
        "",
    ),
}


def experiment(load: str) -> Experiment:
    return read_bytes(FILE.format(load=load).encode(), Path("shapes.toml"), None, ())


def loads(load: str) -> list[dict[str, Any]]:
    """The load of every trial's plan, each of which fits the schema."""
    given = experiment(load)
    plans = [trial_plan(given, trial, ADDRESS.target()) for trial in schedule(given)]
    for one in plans:
        require_valid(one, "plan")
    return [one["load"] for one in plans]


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_shares_of_each_point(name: str) -> None:
    load, shapes = SHAPES[name]
    assert [one["shape"] for one in loads(load)] == shapes


@pytest.mark.parametrize("name", PAUSES)
def test_pauses(name: str) -> None:
    load, pause = PAUSES[name]
    assert [one.get("think_time") for one in loads(CLOSED + load)] == [pause, pause]


def test_a_load_that_changes_is_not_searched_for_its_steady_state() -> None:
    steady, ramp = experiment(CLOSED).load, experiment(CLOSED + 'ramp = { duration = "5s" }').load
    steps = experiment(OPEN + 'steps = [{ percent = 50, duration = "5s" }]').load
    assert (steady.is_changing, ramp.is_changing, steps.is_changing) == (False, True, True)
    assert (steady.has_auto_warmup, ramp.has_auto_warmup, steps.has_auto_warmup) == (True, False, False)


@pytest.mark.parametrize("name", INVALID)
def test_what_cannot_be_meant_is_refused(name: str) -> None:
    load, key, words = INVALID[name]
    with pytest.raises(InvalidExperiment) as caught:
        experiment(load)
    (error,) = [error for error in caught.value.errors if error.key == key]
    assert words in str(error)
