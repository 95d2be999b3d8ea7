"""Writes verdict.json and measured.json for a made run, with results that no judge need compute.

The report must show every form that a verdict can take, rare ones too: open intervals, blocks without a
ratio, factors, runs without any result. Here a test says the form, and the files follow ARCHITECTURE.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.unit.stored_run import Making, make

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.store import EXPLAINED, MEASURED, VERDICT, Run, files

SECOND = 1_000_000
# A trial's throughput, or who failed it: "server", "harness", "not-run".
Outcome = float | str


@dataclass(frozen=True)
class Effect:
    """One entry of `points`, or `curve`."""

    percent: float | None = -10.0
    interval: tuple[float | None, float | None] | None = (-12.0, -8.0)
    verdict: str | None = "slower"
    bound: str = ""
    blocks: int = 8
    confidence: float = 0.95
    # Of each block; None where its ratio is unknown.
    each: tuple[float | None, ...] = (-11.0, -10.5, -10.0, -10.0, -10.0, -9.5, -9.0, -8.0)

    def json(self, delta_percent: float | None) -> dict[str, Any]:
        """The fields that points, curves and factors share."""
        return {
            "effect_percent": self.percent,
            "interval_percent": None if self.interval is None else list(self.interval),
            **({"bound": self.bound} if self.bound else {}),
            "confidence": self.confidence,
            "noise_floor_percent": None,
            "delta_percent": delta_percent,
            "blocks": self.blocks,
            "verdict": self.verdict,
        }

    def by_block(self) -> dict[str, float | None]:
        """As measured.json keeps it."""
        return {str(block): percent for block, percent in enumerate(self.each[: self.blocks])}


@dataclass(frozen=True)
class Judged:
    """A run and what its verdict says; every comparison says the same."""

    making: Making = field(default_factory=Making)
    # One for every point, in order; the last one also serves the points after it.
    points: Sequence[Effect] = (Effect(),)
    curve: Effect = Effect(confidence=0.95)
    sentence: str = "b is slower than a at every load: throughput -10.0 % on average (-12.0 to -8.0)."
    outcome: Callable[[Mapping[str, Any]], Outcome] = lambda place: (
        1000.0 if place["variant"] == "a" else 900.0
    )
    # Added to every comparison: "identical", "order".
    more: Mapping[str, Any] = field(default_factory=dict)
    factors: Sequence[Mapping[str, Any]] = ()
    scaling: Sequence[Mapping[str, Any]] = ()
    checks: Sequence[Mapping[str, Any]] = ()
    sentences: int = 1

    def write(self, folder: Path) -> Run:
        """The run's folder with both files."""
        run = make(folder, replace(self.making, absent=lambda _trial: True))
        experiment, schedule = run.experiment(), run.schedule()
        _json(run.path / MEASURED, self._measured(experiment, schedule))
        _json(run.path / EXPLAINED, {"schema": 2, "comparisons": [], "costs": []})
        _json(run.path / VERDICT, self._verdict(experiment))
        return run

    def _point(self, number: int) -> Effect:
        return self.points[min(number, len(self.points) - 1)]

    def _measured(self, experiment: Experiment, schedule: Sequence[Trial]) -> dict[str, Any]:
        return {
            "schema": 2,
            "trials": [self._trial(trial) for trial in schedule],
            "comparisons": [
                {
                    "variant": variant,
                    "workload": workload,
                    "points": [
                        {"at": at, "p_value": 0.01, "percent": self._point(number).by_block()}
                        for number, at in enumerate(_ats(experiment))
                    ],
                    "curve": {"p_value": 0.01, "percent": self.curve.by_block()},
                }
                for variant, workload in _pairs(experiment)
            ],
        }

    def _trial(self, trial: Trial) -> dict[str, Any]:
        place = {key: getattr(trial, key) for key in ("index", "block", "variant", "workload")}
        place["at"] = trial.point.as_dict()
        outcome = self.outcome(place)
        if isinstance(outcome, str):
            return {
                "place": place,
                "failure": {"server": "server went away"}.get(outcome, "not run"),
                "failed_by": outcome,
                "figures": None,
                "window": None,
                "warmup_end_us": 0,
                "seconds": [],
                "drift": None,
                "foreign": None,
            }
        return {
            "place": place,
            "failure": None,
            "failed_by": None,
            "figures": _figures(outcome),
            "window": {"start_us": 2 * SECOND, "end_us": 6 * SECOND, "cut_us": None},
            "warmup_end_us": 2 * SECOND,
            "seconds": [[s * SECOND, (s + 1) * SECOND, round(outcome)] for s in range(6)],
            "drift": [0.001, 0.002],
            "foreign": 0.01,
        }

    def _verdict(self, experiment: Experiment) -> dict[str, Any]:
        metric = "latency_p95_us" if experiment.load.rate else "throughput"
        delta = self.making.delta_percent
        comparisons = [
            {
                "variant": variant,
                "workload": workload,
                "points": [
                    {
                        "at": at,
                        "metric": metric,
                        "baseline": 1000.0,
                        "variant": 900.0,
                        **self._point(number).json(delta),
                        "trials": {"baseline": [], "variant": []},
                    }
                    for number, at in enumerate(_ats(experiment))
                ],
                "curve": {
                    "metric": metric,
                    **self.curve.json(delta),
                    "p_value": 0.01,
                    "sentence": self.sentence,
                },
                **self.more,
            }
            for variant, workload in _pairs(experiment)
        ]
        return {
            "schema": 3,
            "experiment": "made",
            "baseline": experiment.variants[0].name,
            "order_seed": 7,
            "family": {
                "sentences": self.sentences,
                "alpha": 0.05,
                "text": f"The chance that any of these {self.sentences} verdicts is wrong is at most 5 %.",
            },
            "comparisons": comparisons,
            **({"scaling": list(self.scaling)} if self.scaling else {}),
            **({"factors": list(self.factors)} if self.factors else {}),
            "checks": list(self.checks),
        }


def factor(names: Sequence[str], levels: Sequence[str], effect: Effect, sentence: str) -> dict[str, Any]:
    """One entry of `factors`; levels come in pairs of level and what it is compared with."""
    return {
        "factors": list(names),
        "levels": list(levels[0::2]),
        "against": list(levels[1::2]),
        "workload": "oltp_read_write",
        "metric": "throughput",
        **effect.json(None),
        "p_value": 0.01,
        "sentence": sentence,
    }


def finding(code: str, level: str, text: str, **more: Any) -> dict[str, Any]:
    """One entry of `checks`."""
    return {
        "code": code,
        "level": level,
        "text": text,
        "evidence": {},
        "subject": "",
        "override": None,
        "fix": "",
        **more,
    }


def _figures(throughput: float) -> dict[str, Any]:
    latencies = ("mean", "min", "p50", "p90", "p95", "p99", "p999", "max")
    return {
        "events": round(throughput * 4),
        "throughput": throughput,
        **{f"latency_{name}_us": 10_000.0 for name in latencies},
        "censored": [],
        "errors": {},
        "errors_per_1000": 0.0,
        "dropped": 0,
        "backlog": 0,
    }


def _pairs(experiment: Experiment) -> list[tuple[str, str]]:
    return [
        (variant.name, workload.title)
        for variant in experiment.variants[1:]
        for workload in experiment.workloads
    ]


def _ats(experiment: Experiment) -> list[dict[str, float]]:
    return [point.as_dict() for point in experiment.load.points()]


def _json(path: Path, value: Any) -> None:
    files.write(path, json.dumps(value, allow_nan=False).encode())
