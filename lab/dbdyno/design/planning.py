"""Before a comparison runs: what it will cost and how precise it will be (`dbdyno plan`), and how the
variants of a block alternate (`design.pairing = "auto"`).

Time and scatter come from earlier runs of the same experiment on this machine, if there are any. All numbers
are expectations, so no verdict depends on them.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from dbdyno.checks.host import (
    CACHE_SHARE,
    cache_bytes,
    data_bytes,
    data_fit_into_cache,
    memory_bytes,
)
from dbdyno.decide.decision import verdict_test
from dbdyno.experiment.metrics import CAPACITY, THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial, schedule, split_by_start
from dbdyno.experiment.slices import can_alternate, load_s
from dbdyno.experiment.workload import ROW_BYTES
from dbdyno.run import progress
from dbdyno.run.loading import data_key
from dbdyno.run.pilot import has_pilot
from dbdyno.run.times import Estimate
from dbdyno.run.warmup import has_trials, has_warmup_trials, length_s, warmup_trials
from dbdyno.servers.usage import this_machine
from dbdyno.stats.precision import Components, components, factors, scatter
from dbdyno.stats.signed_rank import cut_off
from dbdyno.store import Run, StoreProblem
from dbdyno.store.endings import MEASURING, WARMUP, Shares
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.preparation import derived_warmup_s
from dbdyno.store.run import run_order

# The numbers of blocks and the noise of a trial that a plan lists if nothing is known.
BLOCKS = (6, 8, 10, 16, 20)
NOISE_PERCENT = (2.0, 5.0, 10.0)
# Earlier runs beyond these are not read, because reading one takes a tenth of a second.
EARLIER_MAX = 10
# A trial length is suggested if its half width is narrower by more than this part.
LENGTH_GAIN = 0.1
# Lengths that may be suggested: records have a second as their shortest interval.
LENGTHS_S = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
# An empty data directory, and the stored records of a trial; measured with MariaDB 10.11 and trials of 5 s.
SERVER_BYTES, RECORDS_BYTES = 120e6, 150e3


@dataclass(frozen=True)
class Scatter:
    """How much blocks differ: the standard deviation of a block's log ratio, and where it is from."""

    deviation: float
    source: str


@dataclass(frozen=True)
class Earlier:
    """What a plan uses of an earlier run."""

    path: Path
    # The metric of the verdict, and the log ratios of all blocks, per comparison.
    metric: str
    ratios: list[list[float]]
    warmup_s: float | None
    # The median time between two groups; None if it has no two groups.
    group_s: float | None
    # Whether the user named it; it may be of another machine.
    is_named: bool = False
    # How much the seconds of a trial and the blocks vary; None if that is not known.
    components: Components | None = None


@dataclass(frozen=True)
class Row:
    """What a number of blocks costs and gives; one pair of figures per scatter."""

    blocks: int
    trials: int
    seconds: float
    # Half width of the interval and effect that is found with a chance of 90 %, in percent; None if so few
    # blocks have no interval.
    precision: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True)
class Plan:
    """Cost and precision of an experiment."""

    trials_per_block: int
    block_s: float
    # Seconds before the first block.
    before_s: float
    # Shares of the time of a block.
    shares: Shares
    data_bytes: float
    records_bytes: float
    scatters: tuple[Scatter, ...]
    # Why the scatter is not known; "" if it is.
    unknown: str
    rows: tuple[Row, ...]


def plan(experiment: Experiment, earlier: Sequence[Earlier], noise_percent: float | None = None) -> Plan:
    """The plan of an experiment; `earlier` are runs of it, and `noise_percent` is the noise of a trial, if
    the user gives it.
    """
    per_block = schedule(experiment, 1)
    estimate = _estimate(experiment, earlier)
    overall_s, block_s = estimate.left_s(), estimate.block_s
    scatters, unknown = _scatters(experiment, earlier, noise_percent)
    warming_s, measuring_s = _load_s(experiment, per_block, estimate.warmup_s)
    rest_s = block_s - measuring_s - warming_s
    rows = sum(_rows(experiment))
    return Plan(
        trials_per_block=len(per_block),
        block_s=block_s,
        before_s=max(0.0, overall_s - block_s),
        shares=Shares({MEASURING: measuring_s, WARMUP: warming_s, "starting and restoring": rest_s}),
        data_bytes=(1 + len(experiment.variants)) * (SERVER_BYTES + rows * ROW_BYTES)
        if any(variant.server.is_private for variant in experiment.variants)
        else 0.0,
        records_bytes=RECORDS_BYTES,
        scatters=scatters,
        unknown=unknown,
        rows=tuple(
            Row(
                blocks,
                blocks * len(per_block),
                max(0.0, overall_s - block_s) + blocks * block_s,
                tuple(_precision(experiment, blocks, entry.deviation) for entry in scatters),
            )
            for blocks in _numbers(experiment)
        ),
    )


def read_earlier(run: Run, *, is_named: bool = False) -> Earlier:
    """What a plan uses of a judged run. Raises StoreProblem."""
    judged = run.judge_files()
    ratios = [
        [math.log1p(p / 100.0) for p in comparison.curve.percent.values() if p is not None and p > -100.0]
        for comparison in (judged[1].comparisons if judged else ())
    ]
    experiment = run.experiment()
    parts = _components(judged[1]) if judged and _has_length(experiment) else None
    metric, warmup_s = experiment.metrics[0], derived_warmup_s(run)
    return Earlier(run.path, metric, ratios, warmup_s, _group_s(run), is_named, parts)


def better_trial_length(
    experiment: Experiment, earlier: Sequence[Earlier], made: Plan
) -> tuple[float, float, float] | None:
    """The trial length in seconds that gives the most precision per minute, and the half widths in percent
    with it and with the present one in the time of the planned blocks; None if that is no clear gain. The
    newest earlier run has the variances.
    """
    load = experiment.load
    parts = earlier[-1].components if earlier else None
    # Without a variance between blocks, which few blocks may not show, every length would seem too short.
    if parts is None or not parts.between or not _has_length(experiment):
        return None
    block_s = {trial_s: _block_s(experiment, made, trial_s) for trial_s in (*LENGTHS_S, load.duration_s)}
    total_s = made.rows[-1].blocks * block_s[load.duration_s]
    widths: dict[float, float] = {}
    for trial_s, each_s in block_s.items():
        precision = _precision(experiment, int(total_s / each_s + 1e-9), parts.deviation(trial_s))
        if precision is not None:
            widths[trial_s] = precision[0]
    now = widths.get(load.duration_s)
    best_s = min(widths, key=lambda trial_s: widths[trial_s], default=load.duration_s)
    if now is None or widths[best_s] >= now * (1.0 - LENGTH_GAIN):
        return None
    return best_s, widths[best_s], now


def _block_s(experiment: Experiment, made: Plan, trial_s: float) -> float:
    """Seconds of a block with trials of another length, which `warmup = "auto"` may follow."""
    load = experiment.load
    changed = load.model_copy(update={"duration_s": trial_s})
    longer_s = trial_s - load.duration_s
    if load.has_auto_warmup and not has_warmup_trials(experiment):
        longer_s += changed.warmup_allowance_s() - load.warmup_allowance_s()
    return made.block_s + made.trials_per_block * longer_s


def _has_length(experiment: Experiment) -> bool:
    """Whether the seconds of a trial say how precise a longer one would be."""
    is_steady = experiment.metrics[0] == THROUGHPUT and not experiment.load.is_changing
    return is_steady and experiment.design.pairing != "slices"


def _components(measured: MeasuredFile) -> Components | None:
    """The variances of the comparison with the most blocks; None with fewer blocks than a verdict needs."""
    comparisons = [
        comparison for comparison in measured.comparisons if len(comparison.curve.percent) >= min(BLOCKS)
    ]
    if not comparisons:
        return None
    longest = max(comparisons, key=lambda each: len(each.curve.percent))
    ratios = [math.log1p(p / 100.0) for p in longest.curve.percent.values() if p is not None and p > -100.0]
    seconds = [
        [
            events * 1e6 / (end_us - start_us)
            for start_us, end_us, events in trial.seconds
            if start_us >= trial.window.start_us and end_us <= trial.window.end_us
        ]
        for trial in measured.trials
        if trial.window is not None and trial.workload == longest.workload
    ]
    return components(ratios, seconds, len(longest.points))


def find_earlier(results: Path, experiment: Experiment) -> list[Earlier]:
    """The newest judged runs of the same variants, workloads and load below `results`, on this machine."""
    question = _question(experiment)
    machine = this_machine()
    runs = []
    judged = [path.parent for path in results.glob(f"{experiment.name}/*/measured.json")]
    for path in sorted(judged, key=run_order)[-EARLIER_MAX:]:
        try:
            run = Run.open(path, quick=True)
            host = run.environment.get("host") or {}
            is_here = all(host.get(key) == machine[key] for key in ("name", "cpu_model", "cpus"))
            if is_here and _question(run.experiment()) == question:
                runs.append(read_earlier(run))
        except (StoreProblem, LookupError, TypeError, ValueError):
            # An incomplete or damaged folder, or a run of another version.
            continue
    return runs


def _load_s(experiment: Experiment, trials: Iterable[Trial], warmup_s: float) -> tuple[float, float]:
    """Seconds of the warm-ups and of the measurements of all trials."""
    each = [load_s(experiment, trial.workload, trial.point.connections, warmup_s) for trial in trials]
    return sum(warming_s for warming_s, _ in each), sum(measuring_s for _, measuring_s in each)


def _question(experiment: Experiment) -> Any:
    """What must be equal for two runs to have the same scatter."""
    stored = experiment.model_dump(mode="json", include={"workloads", "load", "variants", "client"})
    pairing = experiment.design.pairing, experiment.design.slice_s
    return json.dumps([stored, pairing, experiment.metrics[0]], sort_keys=True)


def _numbers(experiment: Experiment) -> list[int]:
    """The numbers of blocks that a plan lists."""
    design = experiment.design
    listed = BLOCKS if design.stop is None else [count for count in BLOCKS if count < design.blocks]
    return sorted({*listed, design.blocks})


def _precision(experiment: Experiment, blocks: int, deviation: float) -> tuple[float, float] | None:
    """Half width of the interval, and the effect that is found with a chance of 90 %, in percent; None if so
    many blocks give no verdict.
    """
    if len(experiment.variants) < 2:
        return None
    test = verdict_test(experiment)
    if test.looks is None:
        of_interval, of_test = (cut_off(blocks, level, 0.0) for level in (test.alpha, test.level))
    else:
        of_interval, of_test = (
            test.looks.cut_off(blocks, level, test.alpha) for level in (test.alpha, test.level)
        )
    widths, detected = factors(blocks, of_interval), factors(blocks, of_test)
    if widths is None or detected is None:
        return None
    return 100.0 * math.expm1(widths[0] * deviation), 100.0 * math.expm1(detected[1] * deviation)


def _scatters(
    experiment: Experiment, earlier: Sequence[Earlier], noise_percent: float | None
) -> tuple[tuple[Scatter, ...], str]:
    """The scatters of a plan, and why the real one is not known."""
    metric = experiment.metrics[0]
    if noise_percent is not None:
        return (_of_noise(noise_percent, metric),), ""
    groups = [group for run in earlier if run.metric == metric for group in run.ratios]
    pooled = scatter(groups)
    if pooled is None:
        why = "no earlier run"
        if earlier:
            runs = earlier[0].path if earlier[0].is_named else "the earlier runs"
            why = f"no two blocks of {runs} measured {metric}"
        return tuple(_of_noise(percent, metric) for percent in NOISE_PERCENT), why
    blocks = sum(map(len, groups))
    runs = f"{len(earlier)} earlier run{'s' if len(earlier) > 1 else ''} here"
    if earlier[0].is_named:
        runs = str(earlier[0].path)
    text = (
        f"{blocks} blocks of {runs} differ by {pooled[0] * 100:.1f} %, with 80 % confidence by at most "
        f"{pooled[1] * 100:.1f} %"
    )
    return (Scatter(pooled[1], text),), ""


def _of_noise(percent: float, metric: str) -> Scatter:
    """The scatter of a block's log ratio if both of its trials (or capacities, which several trials give)
    have this noise.
    """
    unit = "capacity" if metric == CAPACITY else "trial"
    return Scatter(math.sqrt(2.0) * percent / 100.0, f"{percent:g} % noise per {unit}")


def _rows(experiment: Experiment) -> Iterable[int]:
    """The rows of each set of data."""
    by_data = {
        data_key(workload, variant): workload.rows
        for variant in experiment.variants
        for workload in experiment.workloads_of(variant)
    }
    return by_data.values()


def _estimate(experiment: Experiment, earlier: Sequence[Earlier]) -> Estimate:
    """The time of a run of one block, with what earlier runs have taken."""
    estimate = Estimate(experiment)
    trials = (
        warmup_trials(experiment, [workload.title for workload in experiment.workloads])
        if has_trials(experiment)
        else []
    )
    began = progress.Began(
        Path(),
        schedule(experiment, 1),
        0,
        rows=sum(_rows(experiment)),
        group_rows=max((workload.rows for workload in experiment.distinct_workloads()), default=0),
        test_starts=len(experiment.variants),
        warmup_trials=len(trials),
        pilots=len(experiment.workloads) * len(experiment.variants) if has_pilot(experiment) else 0,
        warmup_trial_s=length_s(experiment),
        warmup_s=earlier[-1].warmup_s if earlier and has_warmup_trials(experiment) else None,
    )
    estimate.listen(began)
    if earlier and earlier[-1].group_s is not None:
        estimate.listen(progress.GroupEnded((), earlier[-1].group_s))
    return estimate


def _group_s(run: Run) -> float | None:
    """The median time between two groups of a run; None if it has no two groups."""
    # In slices the groups of all variants run together.
    experiment = run.experiment()
    in_slices = experiment.design.pairing == "slices"
    groups = len(experiment.variants) if in_slices else 1
    parts = split_by_start(experiment, run.schedule()) if in_slices else []
    part_of = {trial.index: number for number, part in enumerate(parts) for trial in part}
    trials = sorted(
        (
            trial.meta["started_unix_us"],
            trial.meta["ended_unix_us"],
            part_of[trial.index] if in_slices else trial.meta["group"],
        )
        for trial in run.trials()
        if "started_unix_us" in trial.meta
    )
    gaps = [
        (after[0] - before[1]) / 1e6 / groups
        for before, after in itertools.pairwise(trials)
        if before[2] != after[2]
    ]
    return median(gaps) if gaps else None


# Memory of a server besides its cache and data. MariaDB 10.11 takes 220 MB with a cache of 128 MiB.
PROCESS_BYTES = 128e6


def choose_pairing(experiment: Experiment) -> Experiment:
    """The experiment with "trials" or "slices" instead of "auto"; the same on the same machine.

    Slices are more precise, but all servers run at the same time: they need memory together, and what an
    idle server still writes slows the others down. So they are chosen for loads that only read data in the
    cache, on servers that dbdyno starts and that fit into the memory together.
    """
    if experiment.design.pairing != "auto":
        return experiment
    pairing: Literal["trials", "slices"] = "trials"
    fit = all(data_fit_into_cache(experiment, variant) for variant in experiment.variants)
    if can_alternate(experiment) and fit and _memory_bytes(experiment) <= CACHE_SHARE * memory_bytes():
        pairing = "slices"
    return experiment.model_copy(update={"design": experiment.design.model_copy(update={"pairing": pairing})})


def _memory_bytes(experiment: Experiment) -> float:
    """What all servers and their largest data need together: a page cache holds the data of each server."""
    return sum(
        PROCESS_BYTES + cache_bytes(variant) + data_bytes(experiment, variant)
        for variant in experiment.variants
    )
