"""Q02: the sentences of the author's conclusion against the verdicts of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.stored_run import Arms, Making, make

from dbdyno.experiment.schedule import Trial
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.verdict import judge


def levels(folder: Path, conclusion: str, making: Making | None = None) -> list[str]:
    """The levels of the findings; b is 10 % slower than a unless `making` says otherwise."""
    making = making or Making(connections=(10,), names=("pool", "plain"), speed=slower)
    making.conclusion = conclusion
    return [one.level for one in judge(make(folder, making)).checks if one.code == "Q02"]


def slower(trial: Trial, tick: int) -> int:
    """The second variant does 10 % fewer transactions, with a noise of 1 %."""
    return (1000 if trial.variant == "pool" else 900) + (trial.block * 7 + tick) % 10


@pytest.mark.parametrize(
    ("conclusion", "found"),
    [
        ("", []),
        ("The pool has more throughput than plain.", ["stop"]),
        ("Throughput of plain is lower.", []),
        ("plain is slower by 10 % (95 % CI 9 to 11).", []),
        ("plain is slower by 10 %.", ["note"]),
        ("plain is slower by 40 %.", ["stop"]),
        ("plain is definitely slower.", ["note"]),
        ("plain 의 처리량이 더 많다.", ["stop"]),
        ("plain 의 성능이 저하되었다.", []),
        ("We compare pool and plain. Is plain slower?", []),
        ("The latency of plain is higher.", []),
    ],
)
def test_a_sentence_agrees_with_the_verdict_or_is_reported(
    tmp_path: Path, conclusion: str, found: list[str]
) -> None:
    if conclusion.startswith("The pool"):
        # The baseline: the subject of the sentence decides.
        assert levels(tmp_path, conclusion) == []
        conclusion = conclusion.replace("The pool", "plain").replace("than plain", "than pool")
    assert levels(tmp_path, conclusion) == found


def test_an_undecided_verdict_supports_no_direction(tmp_path: Path) -> None:
    noise = Arms(a=lambda trial: 100 + trial.block, b=lambda _: 103)
    noisy = Making(connections=(10,), names=("pool", "plain"), speed=noise)
    assert levels(tmp_path, "plain is faster.", noisy) == ["warn"]


def test_the_conclusion_is_in_the_report(tmp_path: Path) -> None:
    run = make(tmp_path, Making(connections=(10,), conclusion="b is slower."))
    judge(run)
    assert "Conclusion of the author: b is slower." in as_markdown(gather(run))
