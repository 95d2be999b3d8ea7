"""Draws experiments of every kind, with runs that lack anything that a run can lack, for `fuzz`.

A case is determined by its seed and number. Its run is a real folder with a real schedule; only the records
of its trials are drawn, because reading streams takes most of the time of the judge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dbdyno.experiment.load import LatencyObjective
from dbdyno.experiment.model import Design, Experiment, Factor, Load, OltpWorkload, ServerSpec, Stop, Variant
from dbdyno.experiment.repeats import repeat_blocks
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.explain import RESOURCES, Cost, counter, wait
from dbdyno.finding import Finding
from dbdyno.measure.evidence import Evidence
from dbdyno.store import Run, StoredTrial
from dbdyno.store.measured import (
    BackgroundFigures,
    Drift,
    Figures,
    MeasuredTrial,
    ScheduleEntry,
    Ticks,
    Window,
)

from .simulation import Random, figures_of, with_values

# The most trials of a case, so that 1,000 cases take minutes.
TRIALS_MAX = 64
SECOND = 1_000_000
METRICS = ("throughput", "mean", "p50", "p95", "p97", "p99", "p99.9", "cpu_per_transaction")
COUNTERS = ("Innodb_buffer_pool_reads", "Handler_read_next", "Created_tmp_tables")
_PERCENTS = {"p50": 0.9, "p90": 1.6, "p95": 2.0, "p99": 4.0, "p999": 8.0, "max": 20.0}


class SimulatedTrial(StoredTrial):
    """A trial that has ended, without a folder."""

    def __init__(self, meta: dict[str, Any], server: Mapping[str, Any]) -> None:
        self.path, self.meta = Path("/nonexistent"), meta
        self._server = server

    @property
    def attempts(self) -> list[StoredTrial]:
        """None: see tests/unit/stored_run.py for runs with attempts."""
        return []

    def _json(self, name: str) -> dict[str, Any]:
        return dict(self._server) if name == "server.json" else {}


class SimulatedRun(Run):
    """A run whose trials are in memory."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ended: Sequence[StoredTrial] = ()
        # Number of finished trials that a look sees; None: all.
        self.until: int | None = None

    def trials(self) -> list[StoredTrial]:
        """The trials that have ended, in planned order."""
        return sorted(self.ended[: self.until], key=lambda trial: trial.index)


@dataclass(frozen=True)
class Case:
    """One drawn run."""

    number: int
    experiment: Experiment
    run: SimulatedRun
    # By index of the trial; those that dbdyno or the server failed have no figures.
    measured: Mapping[int, MeasuredTrial]
    costs: Mapping[int, Mapping[str, Cost]]

    def measure_group(
        self, entries: Sequence[ScheduleEntry], stored: Mapping[int, StoredTrial], _: object, into: Evidence
    ) -> None:
        """In place of the function in `judge.evidence` that reads the records of trials."""
        for entry in entries:
            if entry.index not in stored:
                into.trials.append(MeasuredTrial(entry, "not run", "not-run"))
                continue
            into.trials.append(
                replace(self.measured[entry.index], foreign=into.foreign.shares.get(entry.index))
            )
            into.costs[entry.index] = dict(self.costs.get(entry.index, {}))


def draw(seed: int, number: int, folder: Path) -> Case:
    """The case with that seed and number; its run is below `folder`."""
    random = np.random.default_rng([seed, number])
    of = _experiment(random)
    created = Run.create(folder, of, b'[experiment]\nname = "fuzz"\n', environment={"argv": ["dbdyno"]})
    created.release()
    run = SimulatedRun(created.path)
    run.add_findings(_findings(of, random))
    planned = list(schedule(of))
    if chance(random, 0.15) and of.design.blocks > 1:
        repeated = random.choice(of.design.blocks, min(2, of.design.blocks), replace=False)
        repeats = repeat_blocks(planned, sorted(map(int, repeated)))
        run.append_schedule(repeats)
        planned += repeats
    measured = _measured(of, planned, random)
    run.ended = _ended(of, planned, measured, random)
    return Case(number, of, run, measured, _costs(of, measured, random))


def chance(random: Random, share: float) -> bool:
    """True with that probability."""
    return bool(random.random() < share)


def _one(random: Random, *values: Any) -> Any:
    return values[int(random.integers(0, len(values)))]


def _experiment(random: Random) -> Experiment:
    factors = _factors(random) if chance(random, 0.12) else ()
    variants = _variants(random, factors)
    load = _load(random)
    tests = int(_one(random, 1, 1, 1, 2, 2, 3, 6))
    per_block = len(variants) * tests * len(load.points())
    blocks = min(int(_one(random, 1, 2, 4, 5, 6, 7, 8, 8, 9, 10, 12, 16)), max(1, TRIALS_MAX // per_block))
    return Experiment(
        name="fuzz",
        question=_one(random, "", "Is it faster?"),
        workloads=tuple(OltpWorkload(name="oltp_read_write", label=f"test-{n}") for n in range(tests)),
        load=load,
        design=_design(random, blocks, is_factorial=bool(factors), is_open=load.is_open),
        variants=variants,
        factors=factors,
        override={"D06": "meant"} if chance(random, 0.2) else {},
    )


def _factors(random: Random) -> tuple[Factor, ...]:
    sizes = _one(random, (2,), (2, 2), (2, 3), (2, 2, 2))
    return tuple(
        Factor(name=f"factor-{one}", levels=tuple(f"{one}{level}" for level in range(size)))
        for one, size in enumerate(sizes)
    )


def _variants(random: Random, factors: Sequence[Factor]) -> tuple[Variant, ...]:
    if factors:
        return tuple(
            Variant(
                name="+".join(levels),
                levels=dict(zip((one.name for one in factors), levels, strict=True)),
                server=ServerSpec(variables={"max_error_count": 64 + index}),
            )
            for index, levels in enumerate(itertools.product(*(one.levels for one in factors)))
        )
    count = int(_one(random, 2, 2, 3, 3, 4, 5))
    # The first of these are the baseline under another name.
    identical = int(_one(random, 0, 0, 0, 0, 1, 1, count - 1))
    return tuple(
        Variant(
            name="abcde"[index],
            server=ServerSpec(variables={"max_error_count": 64 + (index if index > identical else 0)}),
        )
        for index in range(count)
    )


def _load(random: Random) -> Load:
    kind = random.random()
    rates = tuple(500.0 * 1.3**step for step in range(int(random.integers(2, 7))))
    if kind < 0.12:
        return Load(
            connections=(64,), duration_s=10.0, rate=rates, latency_objective=LatencyObjective(p99_s=0.03)
        )
    if kind < 0.3:
        return Load(connections=(64,), duration_s=10.0, rate=rates[: int(_one(random, 1, 2, 3))])
    loads = int(_one(random, 1, 1, 1, 2, 3, 5))
    warmup_s = _one(random, None, 5.0)
    return Load(connections=tuple(4 * 2**n for n in range(loads)), duration_s=10.0, warmup_s=warmup_s)


def _design(random: Random, blocks: int, *, is_factorial: bool, is_open: bool) -> Design:
    metrics = tuple(map(str, random.permutation(METRICS)[: int(_one(random, 1, 2, 4))]))
    values: dict[str, Any] = {
        "blocks": blocks,
        "delta_percent": _one(random, None, None, 0.5, 2.0, 20.0),
        "metrics": metrics if chance(random, 0.35) else (),
        "pairing": "slices" if not is_open and chance(random, 0.2) else "trials",
        "order_seed": int(random.integers(0, 1000)),
    }
    if not is_factorial and chance(random, 0.1):
        return Design(**values, error_rate="false-discovery")
    if not is_factorial and chance(random, 0.3):
        values["max_loss_percent"] = _one(random, 0.5, 3.0, 50.0)
    if chance(random, 0.4):
        half = _one(random, None, None, 1.0, 20.0)
        values["stop"] = Stop(max_blocks=blocks, half_width_percent=half, top_up=bool(random.integers(0, 2)))
    return Design(**values)


def _findings(of: Experiment, random: Random) -> list[Finding]:
    """A stop about one variant, now and then."""
    if not chance(random, 0.05):
        return []
    subject = str(_one(random, "", *(one.name for one in of.variants)))
    return [Finding("P07", "stop", "max_connections is too low", {}, subject)]


def _measured(of: Experiment, planned: Sequence[Trial], random: Random) -> dict[int, MeasuredTrial]:
    """What every planned trial measures, by index."""
    # Most runs have few failures; in some a variant, a load or a test has nothing else.
    by_server, by_harness = (
        {one.name: _one(random, *shares) for one in of.variants}
        for shares in ((0.0, 0.0, 0.0, 0.0, 0.1, 0.4, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.4, 1.0))
    )
    all_fail = (_one(random, *of.load.points()), _one(random, *of.workloads).title)
    fails = chance(random, 0.1), _one(random, "server", "harness")
    sd = _one(random, 0.0, 1e-9, 0.001, 0.01, 0.05, 0.5)
    effects = {one.name: _one(random, 0.0, 0.0, 0.01, -0.1, 0.3, -3.0, 12.0) for one in of.variants}
    slopes = {one.name: _one(random, 0.0, 0.0, 0.2, -0.2) for one in of.variants}
    shares_of = {"cpu": 0.2, "drift": 0.3, "tail": 0.1, "background": 0.1}
    has = {name: chance(random, share) for name, share in shares_of.items()}
    points = list(of.load.points())
    shift = random.normal(0.0, sd, of.design.blocks + 2)
    measured = {}
    for trial in planned:
        entry, kind = _entry(trial), random.random()
        if fails[0] and (trial.point, trial.workload) == all_fail:
            measured[trial.index] = MeasuredTrial(entry, "it did not run", fails[1])
        elif kind < by_server[trial.variant]:
            measured[trial.index] = MeasuredTrial(entry, "the server went away", "server")
        elif kind > 1.0 - by_harness[trial.variant]:
            measured[trial.index] = MeasuredTrial(entry, "no space left", "harness")
        else:
            place = points.index(trial.point)
            effect = effects[trial.variant] + slopes[trial.variant] * place + math.log1p(place)
            noise = shift[trial.block % len(shift)] + random.normal(0.0, sd)
            throughput = 1000.0 * math.exp(effect + noise)
            measured[trial.index] = _result(of, trial, throughput, has, random)
    return measured


def _entry(trial: Trial) -> ScheduleEntry:
    return ScheduleEntry(trial.index, trial.block, trial.variant, trial.workload, trial.point.as_dict())


def _result(
    of: Experiment, trial: Trial, throughput: float, has: Mapping[str, bool], random: Random
) -> MeasuredTrial:
    """A trial with figures; `has` names what some trials lack, and whether there is a background load."""

    def lacking(name: str) -> bool:
        return has[name] and chance(random, 0.5)

    slices = None
    if of.design.pairing == "slices":
        numbers = range(int(random.integers(0, 3)), 20)
        rates = throughput * np.exp(random.standard_t(3, 20) * 0.1) * (random.random(20) > 0.05)
        slices = {number: float(rates[number]) for number in numbers if chance(random, 0.95)}
        throughput = max(1.0, math.fsum(slices.values()) / max(1, len(slices)))
    seconds = throughput * np.exp(random.normal(0.0, 0.05, 10))
    drift = None if lacking("drift") else Drift(*(float(one) for one in random.normal(0.0, 0.02, 3)))
    if drift is not None and chance(random, 0.05):
        drift = Drift(None, drift.late)
    figures = _figures(of, trial, throughput, lacking, random)
    background = {}
    if has["background"]:
        none_ended = chance(random, 0.1)
        own = None if none_ended else figures
        rate = 0.0 if none_ended else throughput
        background["report"] = BackgroundFigures(_one(random, None, 50.0), 2, 10 * SECOND, rate, own)
    return MeasuredTrial(
        planned=_entry(trial),
        failure=None,
        figures=figures,
        background=background,
        window=Window(5 * SECOND, 15 * SECOND, _one(random, None, 6 * SECOND)),
        warmup_end_us=5 * SECOND,
        seconds=[((5 + n) * SECOND, (6 + n) * SECOND, round(count)) for n, count in enumerate(seconds)],
        drift=drift,
        slices=slices,
        ticks=None if slices else Ticks(5 * SECOND, 100_000, tuple(map(round, seconds / 10.0))),
    )


def _figures(of: Experiment, trial: Trial, throughput: float, lacking: Any, random: Random) -> Figures:
    if trial.point.rate is not None:
        # Beyond the peak of the server only bounds of the percentiles are known.
        used = min(trial.point.rate / throughput, 0.99)
        mean_us, throughput = 2_000.0 / (1.0 - used), min(throughput, trial.point.rate)
    else:
        used, mean_us = 0.0, trial.point.connections / throughput * 1e6
    tail = np.cumsum(np.abs(random.normal(0.0, 0.05, len(_PERCENTS))))
    latencies = {
        f"latency_{name}_us": mean_us * ratio * math.exp(float(more))
        for (name, ratio), more in zip(_PERCENTS.items(), tail, strict=True)
    }
    is_censored = used >= 0.99 or lacking("tail")
    names = tuple(name for name in latencies if name[9:11] in ("p9", "ma")) if is_censored else ()
    further = {"latency_p97_us": mean_us * 3.0} if "p97" in of.design.metrics else {}
    return with_values(
        figures_of(throughput),
        **latencies,
        latency_mean_us=mean_us,
        latency_min_us=mean_us / 10.0,
        censored=names,
        at_most={name: latencies[name] * 2.0 for name in names if chance(random, 0.3)},
        percentiles=further,
        errors={"1213": int(random.poisson(3.0))} if chance(random, 0.3) else {},
        errors_per_1000=float(_one(random, 0.0, 0.1, 2.0)),
        dropped=0,
        backlog=int(_one(random, 0, 0, 500)) if used >= 0.99 else 0,
        generator_cpu=float(_one(random, 0.3, 0.6, 0.95)),
        generator_lag_us=float(_one(random, 80.0, 300.0, 9_000.0)),
        cpu_us_per_transaction=None if lacking("cpu") else 500.0 * math.exp(random.normal(0.0, 0.02)),
        longest_gap_us=int(_one(random, 0, 5_000, 900_000)),
    )


def _ended(
    of: Experiment, planned: Sequence[Trial], measured: Mapping[int, MeasuredTrial], random: Random
) -> list[StoredTrial]:
    """The trials that have run, in running order: all, those before an interruption, or others than some."""
    end = int(random.integers(0, len(planned))) if chance(random, 0.15) else len(planned)
    absent = _one(random, 0.02, 0.3) if chance(random, 0.1) else 0.0
    order = list(planned[:end])
    if chance(random, 0.2):
        # Blocks that were finished later, by --resume.
        later = int(random.integers(0, of.design.blocks))
        order.sort(key=lambda trial: trial.block == later)
    foreign = _one(random, None, 0.0, 0.0, 0.05, 0.2)
    ended: list[StoredTrial] = []
    for sequence, trial in enumerate(order, start=1):
        one = measured[trial.index]
        meta = {
            "index": trial.index,
            "variant": trial.variant,
            "workload": trial.workload,
            "sequence": sequence,
            "status": "done" if one.failure is None else "failed",
            "failed_by": one.failed_by,
            "reason": str(one.failure),
            "started_unix_us": 1_700_000_000_000_000 + sequence * 20 * SECOND,
        }
        server: dict[str, Any] = {"product": "mariadb", "version": "11.4.2"}
        if foreign is not None:
            share = float(random.exponential(foreign))
            processes = [{"name": "make", "share": share, "pid": 7}]
            server |= {"edges": {"foreign": {"share": share, "steal": 0.0, "processes": processes}}}
        if not chance(random, absent):
            ended.append(SimulatedTrial(meta, server))
    return ended


def _costs(
    of: Experiment, measured: Mapping[int, MeasuredTrial], random: Random
) -> dict[int, dict[str, Cost]]:
    """The costs of the trials; those of some runs or trials are unknown, and some counters do not grow."""
    if chance(random, 0.3):
        return {}
    found = [*RESOURCES, *filter(None, map(counter, COUNTERS)), wait("io/file/sql/binlog")]
    measures = {one.key: (one, float(_one(random, 0.0, 0.01, 1.0, 40.0))) for one in found}
    effects = {one.name: float(_one(random, 0.0, 0.0, 0.4)) for one in of.variants}
    missing = _one(random, 0.0, 0.0, 0.1, 0.9)
    costs = {}
    for index, trial in measured.items():
        if trial.figures is not None and not chance(random, missing):
            events = max(1, trial.figures.events)
            costs[index] = {
                key: Cost(
                    one,
                    float(round(each * events * math.exp(effects[trial.variant] + random.normal(0.0, 0.02)))),
                    float(events),
                )
                for key, (one, each) in measures.items()
                if not chance(random, missing / 10.0)
            }
    return costs
