"""Designs of dbdyno: `dbdyno compare` runs until the time is over, and the judge's functions say how wide the
interval was earlier.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.decide.comparison import pair
from dbdyno.decide.decision import stopping
from dbdyno.decide.effects import assess
from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.measure.evidence import gather
from dbdyno.stats.paired import ALPHA, Ratios
from dbdyno.store import Run
from dbdyno.store.endings import read_endings, time_shares
from dbdyno.store.measured import MeasuredTrial

from .cells import Answer, Cell, Result
from .questions import BASELINE, OTHER, TRIAL_S, WARMUP_S, Question

# More than any time has room for, so that the time ends the run.
BLOCKS = 1_000
# No interval gets as narrow as this.
NEVER = {"half_width": "0.001%"}


@dataclass(frozen=True)
class LabDesign:
    """Settings of `[design]`, and the lengths of trial and warm-up."""

    text: str
    # Whether the interval allows for a look after every block.
    has_looks: bool = True
    settings: Mapping[str, object] = field(default_factory=dict)
    trial_s: float = TRIAL_S
    warmup_s: float = WARMUP_S


DESIGNS = {
    "trials": LabDesign(
        '`pairing = "trials"`: one trial after the other, interval for a look after every block',
        settings={"pairing": "trials"},
    ),
    "slices": LabDesign('`pairing = "slices"`', settings={"pairing": "slices"}),
    "0.1.0": LabDesign(
        "trials with the interval of 0.1.0, for a fixed number of blocks",
        has_looks=False,
        settings={"pairing": "trials"},
    ),
}


def measure(cell: Cell, minutes: Sequence[float], folder: Path) -> Result:
    """Run a cell. Raises SystemExit if the comparison fails."""
    design = DESIGNS[cell.design]
    name = cell.name.replace(".", "-")
    _load(cell.question, folder)
    stop = {"when": NEVER, "max_blocks": BLOCKS, "max_time": f"{max(minutes) * 60:g}s"}
    settings = {**design.settings, "stop": stop, "order_seed": cell.repeat}
    run = _compare(name, cell.question.experiment(name, settings, design.trial_s, design.warmup_s), folder)
    experiment, trials = run.experiment(), gather(run, run.experiment()).trials
    call = read_endings(run)[-1]
    stored = {trial.index: trial for trial in run.trials()}
    ended = {index: int(trial.meta["ended_unix_us"]) for index, trial in stored.items()}
    answers = []
    for limit in minutes:
        end_us = call.began_unix_us + round(limit * 60e6)
        late = {trial.block for trial in trials if ended.get(trial.index, end_us + 1) > end_us}
        finished = [trial for trial in trials if trial.block not in late]
        answers.append(_answer(limit, finished, experiment, design))
    shares = time_shares([call])
    return Result(
        question=cell.question.name,
        design=cell.design,
        repeat=cell.repeat,
        version=str(next(iter(stored.values())).server["version"]),
        began=call.began_unix_us / 1e6,
        wall_s=(call.ended_unix_us - call.began_unix_us) / 1e6,
        measuring=shares.measuring if shares else 0.0,
        answers=answers,
        ratios=list(_ratios(trials, experiment).lows.values()),
    )


def _ratios(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Ratios:
    (point,) = experiment.load.points()
    return pair(trials, point.as_dict(), BASELINE, OTHER).ratios(THROUGHPUT)


def _answer(
    minutes: float, trials: Sequence[MeasuredTrial], experiment: Experiment, design: LabDesign
) -> Answer:
    """What the judge would have said with these trials."""
    ratios = _ratios(trials, experiment)
    effect = assess([ratios], ALPHA, stopping(experiment) if design.has_looks else None).overall
    ends = effect.interval_percent if effect else None
    return Answer(minutes, len(ratios.lows), *(ends or (None, None)))


def _load(question: Question, folder: Path) -> None:
    """Load the data, which later runs restore: no design's time includes loading."""
    name = f"load-{question.name}"
    if not any(map(_is_complete, _runs(name, folder))):
        _compare(name, question.experiment(name, {"blocks": 1}, 1.0, 0.0), folder)


def _compare(name: str, text: str, folder: Path) -> Run:
    """Run `dbdyno compare` with an experiment file; gives its newest run."""
    file = folder / f"{name}.toml"
    file.write_text(text)
    command = [sys.executable, "-m", "dbdyno", "compare", str(file), "--results", str(folder), "--no-report"]
    log = folder / f"{name}.log"
    earlier = _runs(name, folder)
    with log.open("w") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    new = [path for path in _runs(name, folder) if path not in earlier]
    if not new or not _is_complete(new[-1]):
        raise SystemExit(f"dbdyno compare ended with exit code {code}; see {log}")
    return Run.open(new[-1])


def _runs(name: str, folder: Path) -> list[Path]:
    return sorted(path.parent for path in (folder / name).glob("*/experiment.json"))


def _is_complete(path: Path) -> bool:
    """Whether a run has ended as planned; it has its trials even if a finding then stopped it."""
    ends = read_endings(Run.open(path))
    return bool(ends) and ends[-1].why in ("time", "blocks")
