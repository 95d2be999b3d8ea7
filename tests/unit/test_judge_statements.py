"""What a stored run says of SQL of the user's own: rows examined under load, and plans that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.stored_run import Making, make, verdict_of
from tests.unit.test_judge_why import edges

from dbdyno.experiment.model import SqlStatement, SqlTransaction, SqlWorkload
from dbdyno.verdict import judge

LOOK = SqlWorkload(
    name="sql", label="look", transactions=(SqlTransaction(statements=(SqlStatement(sql="SELECT 1"),)),)
)


def told(tmp_path: Path, code: str, plans: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """The findings of that code that the judge adds to those of the run."""
    before = [
        {
            "code": "P08",
            "level": "note",
            "text": "plans",
            "evidence": {"workload": "look", "plans": known},
            "subject": variant,
            "override": None,
            "fix": "",
        }
        for variant, known in plans.items()
    ]
    counters = {"Handler_read_key": 1.0, "Handler_read_next": 2.0, "Handler_commit": 5.0}
    making = Making(
        workloads=(LOOK,),
        findings=before,
        # No statements are planned: any number of them is right.
        edges=lambda trial: edges(trial, lambda _trial: counters, lambda _trial: {}),
        connections=(10, 20),
    )
    run = make(tmp_path, making)
    judge(run)
    return [f for f in verdict_of(run)["checks"] if f["code"] == code and f not in before]


def test_rows_examined_are_the_servers_counters(tmp_path: Path) -> None:
    (found,) = told(tmp_path, "P09", {})
    assert found["level"] == "note"
    assert {name: round(count, 2) for name, count in found["evidence"]["examined"].items()} == {
        "a": 3.0,
        "b": 3.0,
    }
    assert "a 3.0, b 3.0" in found["text"]


def test_other_plans_than_the_baselines_are_told(tmp_path: Path) -> None:
    plans = {
        "a": {"x": "t by const", "y": "t by ref"},
        "b": {"x": "t by ALL", "y": "t by ref", "z": "u by ref"},
    }
    (found,) = told(tmp_path, "P08", plans)
    assert (found["level"], found["subject"]) == ("warn", "b")
    assert "x: t by ALL instead of t by const" in found["text"]
    assert found["evidence"]["plans"] == {"x": ["t by const", "t by ALL"]}


def test_equal_plans_are_no_news(tmp_path: Path) -> None:
    assert told(tmp_path, "P08", {"a": {"x": "t by const"}, "b": {"x": "t by const"}}) == []
