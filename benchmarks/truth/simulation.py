"""Simulates experiments with the real schedule, the real judge, and noise like that of databases.

The throughput of a trial is the product of its variant's true effect, the disturbances of a `World`, and
noise. The schedule determines which trial has which position and slot, as in a real run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import Design, Experiment, Factor, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.store.measured import Figures, MeasuredTrial, ScheduleEntry

from . import neighbour

Random = np.random.Generator
WORKLOADS = ("oltp_read_write", "oltp_read_only")
DIRECTIONS = ("faster", "slower")
# The true effect of a variant whose server fails now and then, in log units.
FAILING = -10.0
# Length of a simulated trial.
SECONDS = 10


@dataclass(frozen=True)
class World:
    """Effects, disturbances and noise of simulated experiments. Effects and noise are in log units: 0.05 is
    about 5 %.
    """

    # How noise is distributed, and its standard deviation per trial.
    noise: str = "normal"
    sd: float = 0.05
    # Variant -> true effect at each load, in the order of the loads; 0 for those not named.
    effects: Mapping[str, Sequence[float]] = field(default_factory=dict)
    # Effect of each position later in a block.
    position: float = 0.0
    # Standard deviation of the effects of slots.
    slot_sd: float = 0.0
    # Standard deviation of effects that belong to the variants, whatever their slots.
    place_sd: float = 0.0
    # Variant -> number of blocks in which its server fails at one load.
    failures: Mapping[str, int] = field(default_factory=dict)
    # Share of blocks that other processes disturb, by 15 %. They are repeated, a quarter of them at most.
    disturbed: float = 0.0
    # Length in blocks and depth as a share: throughput falls in the first half of each period. And the
    # standard deviation of the lengths of trials, as a share.
    period: tuple[float, float] | None = None
    jitter: float = 0.0
    # Name of what other processes do (`neighbour.NEIGHBOURS`); "" for a machine whose load is not recorded.
    neighbour: str = ""


def experiment(
    *,
    variants: int = 2,
    loads: int = 1,
    blocks: int = 8,
    workloads: int = 1,
    delta_percent: float | None = None,
    factors: Sequence[Factor] = (),
    identical_copy: bool = False,
) -> Experiment:
    """An experiment of that size; its variants a, b, c … differ in a setting.

    With `identical_copy` the second one is the baseline again, under the name a-again.
    """
    names = ["a", "a-again", *"bcdefg"] if identical_copy else [*"abcdefgh"]
    made = [
        Variant(name=name, server=ServerSpec(variables={"max_error_count": 64 + ord(name[0]) - ord("a")}))
        for name in names[:variants]
    ]
    if factors:
        made = [
            Variant(
                name="+".join(levels),
                levels=dict(zip((one.name for one in factors), levels, strict=True)),
                server=ServerSpec(variables={"max_error_count": 64 + index}),
            )
            for index, levels in enumerate(itertools.product(*(one.levels for one in factors)))
        ]
    return Experiment(
        name="simulated",
        workloads=tuple(OltpWorkload(name=name) for name in WORKLOADS[:workloads]),  # type: ignore[arg-type]
        load=Load(connections=tuple(10 * 2**level for level in range(loads)), duration_s=10.0),
        design=Design(blocks=blocks, delta_percent=delta_percent),
        variants=tuple(made),
        factors=tuple(factors),
    )


def simulate(of: Experiment, world: World, random: Random) -> list[MeasuredTrial]:
    """The trials of one run of an experiment."""
    of = of.with_order_seed(int(random.integers(0, 2**31)))
    planned = schedule(of)
    shifts = _disturbances(of, planned, world, random)
    noise = _noise(of, planned, world, random)
    failing = _failing_trials(of, planned, world, random)
    effects = [true_effect(of, world, trial) for trial in planned]
    speeds = [sum(parts) for parts in zip(effects, shifts, noise, strict=True)]
    is_baseline = [trial.variant == of.variants[0].name for trial in planned]
    shares, losses = neighbour.add(world.neighbour, is_baseline, speeds, random)
    measured = []
    for trial, speed, share, loss in zip(planned, speeds, shares, losses, strict=True):
        entry = ScheduleEntry(trial.index, trial.block, trial.variant, trial.workload, trial.point.as_dict())
        if trial.index in failing:
            measured.append(MeasuredTrial(entry, "the server went away", "server"))
            continue
        foreign = float(share) if world.neighbour else None
        throughput = 1000.0 * math.exp(speed - float(loss))
        measured.append(MeasuredTrial(entry, None, figures=figures_of(throughput), foreign=foreign))
    return measured


def _failing_trials(of: Experiment, planned: Sequence[Trial], world: World, random: Random) -> set[int]:
    """The trials in which a server fails: one load of so many blocks of a variant."""
    failing: set[int] = set()
    for variant, count in world.failures.items():
        for block in random.choice(of.design.blocks, count, replace=False):
            own = [trial.index for trial in planned if (trial.block, trial.variant) == (block, variant)]
            failing.add(int(random.choice(own)))
    return failing


def true_effect(of: Experiment, world: World, trial: Trial) -> float:
    """The effect of a trial's variant at its load."""
    effects = world.effects.get(trial.variant)
    return effects[of.load.points().index(trial.point)] if effects else 0.0


def _disturbances(of: Experiment, planned: Sequence[Trial], world: World, random: Random) -> list[float]:
    """The effect of order, slot and other processes on each trial."""
    slot_effects = random.normal(0.0, world.slot_sd, len(of.variants)) if world.slot_sd else None
    place_effects = random.normal(0.0, world.place_sd, len(of.variants)) if world.place_sd else None
    position: dict[tuple[int, str], dict[str, int]] = {}
    for trial in planned:
        variants = position.setdefault((trial.block, trial.workload), {})
        variants.setdefault(trial.variant, len(variants))
    # Other processes disturb one trial of a block. The block is repeated, blind to its result: another draw.
    hit = [block for block in range(of.design.blocks) if random.random() < world.disturbed]
    repeated = hit[: max(1, of.design.blocks // 4)]
    victims = {
        block: int(random.integers(0, len(of.variants)))
        for block in hit
        if block not in repeated or random.random() < world.disturbed
    }
    names = [variant.name for variant in of.variants]
    periodic = _periodic(of, planned, world, random)
    return [
        periodic[trial.index]
        + world.position * position[trial.block, trial.workload][trial.variant]
        + (float(slot_effects[trial.slot]) if slot_effects is not None else 0.0)
        + (float(place_effects[names.index(trial.variant)]) if place_effects is not None else 0.0)
        - (0.15 if victims.get(trial.block) == names.index(trial.variant) else 0.0)
        for trial in planned
    ]


def _periodic(of: Experiment, planned: Sequence[Trial], world: World, random: Random) -> list[float]:
    """The effect of a periodic disturbance on each trial."""
    if world.period is None:
        return [0.0] * len(planned)
    period, depth = world.period
    lengths = (1.0 + world.jitter * random.normal(0.0, 1.0, len(planned))) * of.design.blocks / len(planned)
    ends = np.asarray(np.cumsum(lengths) + period * random.random(), np.float64)
    shares = (busy_time(ends, period) - busy_time(np.asarray(ends - lengths), period)) / lengths
    return [float(value) for value in np.log1p(-depth * shares)]


def busy_time(at: NDArray[np.float64], period: float) -> NDArray[np.float64]:
    """The time that a disturbance in the first half of each period has lasted until then."""
    whole = np.floor(at / period)
    return np.asarray(whole * period / 2.0 + np.minimum(at - whole * period, period / 2.0))


def _noise(of: Experiment, planned: Sequence[Trial], world: World, random: Random) -> list[float]:
    """Noise of every trial, of the kind that the world has."""
    count, sd = len(planned), world.sd
    noise = random.normal(0.0, sd, count)
    kinds = set(world.noise.split("+"))
    if "heavy" in kinds:
        noise = random.standard_t(3, count) * sd / math.sqrt(3.0)
    if "skewed" in kinds:
        noise = sd * (1.0 - random.exponential(1.0, count))
    if "growing" in kinds:
        noise *= np.linspace(0.5, 1.5, count)
    if "drifting" in kinds:
        blocks = np.cumsum(random.normal(0.0, sd / 2.0, of.design.blocks))
        noise += np.linspace(0.0, -0.2, count) + blocks[[trial.block for trial in planned]]
    if "autocorrelated" in kinds:
        # Correlated seconds within a trial; their mean is the noise of the trial.
        seconds = random.normal(0.0, 1.0, (count, SECONDS))
        for second in range(1, SECONDS):
            seconds[:, second] = 0.7 * seconds[:, second - 1] + seconds[:, second] * math.sqrt(1 - 0.49)
        noise = seconds.mean(axis=1) * sd / 0.66
    if "persistent" in kinds:
        # Each trial is correlated with the one before.
        walk = random.normal(0.0, sd, count)
        for index in range(1, count):
            walk[index] = 0.7 * walk[index - 1] + walk[index] * math.sqrt(1 - 0.49)
        noise = walk
    if "stalls" in kinds:
        noise += np.where(random.random(count) < 0.1, math.log(0.75), 0.0)
    if "bimodal" in kinds:
        modes = random.integers(0, 2, planned[-1].group + 1) * math.log(0.92)
        noise += modes[[trial.group for trial in planned]]
    return [float(value) for value in noise]


def figures_of(throughput: float) -> Figures:
    """Figures with this throughput; the other values do not matter."""
    events, statements = round(throughput * 10), round(throughput * 200)
    return with_values(_some_figures(), events=events, throughput=throughput, statements=statements)


def with_values(figures: Figures, **values: object) -> Figures:
    """The figures with some other values, which are not validated: that takes longer than to judge them."""
    made = object.__new__(Figures)
    made.__dict__.update(figures.__dict__, **values)
    return made


@lru_cache(maxsize=1)
def _some_figures() -> Figures:
    names = [name for name in Figures.__dataclass_fields__ if name.startswith(("latency", "generator"))]
    latencies: dict[str, Any] = dict.fromkeys(names, 1000.0)
    return Figures(
        events=0,
        throughput=0.0,
        **latencies,
        censored=(),
        errors={},
        error_classes={},
        errors_per_1000=0.0,
        dropped=0,
        backlog=0,
        row_count_mismatches=0,
        statements=0,
    )


@dataclass(frozen=True)
class Claim:
    """One verdict of a run, with the true effect, in log units."""

    word: str
    truth: float
    # For `mixed` and `equivalent`: the truth at each load.
    truths: tuple[float, ...] = ()

    def is_false(self, delta_percent: float | None) -> bool:
        """Whether the word contradicts the truth."""
        if self.word in DIRECTIONS:
            return self.truth == 0.0 or (self.truth > 0.0) != (self.word == "faster")
        if self.word == "mixed":
            return not (min(self.truths) < 0.0 < max(self.truths))
        if self.word == "equivalent" and delta_percent is not None:
            limit = math.log1p(delta_percent / 100.0)
            return any(abs(truth) > limit - 1e-9 for truth in self.truths or (self.truth,))
        return False


@dataclass(frozen=True)
class Result:
    """The verdicts of one simulated run."""

    claims: tuple[Claim, ...]
    # Of the first comparison: interval over all loads in log units, and whether all load intervals hold.
    covers: bool
    levels_cover: bool
    crossover_covers: bool | None
    # Its word.
    word: str

    def is_false(self, delta_percent: float | None = None) -> bool:
        """Whether any word of the run is false."""
        return any(claim.is_false(delta_percent) for claim in self.claims)


def judge(of: Experiment, world: World, trials: Sequence[MeasuredTrial]) -> Result:
    """The words of the real judge on simulated trials."""
    failing = {variant for variant, blocks in world.failures.items() if blocks}
    claims: list[Claim] = []
    comparisons = compare_all(trials, of, [])
    for one in comparisons:
        truths = tuple(world.effects.get(one.variant) or [0.0] * len(one.pairs))
        if one.variant in failing:
            # A variant whose server fails is neither faster nor equivalent, whatever it does in between.
            truths = tuple(FAILING for _ in truths)
        mean = math.fsum(truths) / len(truths)
        if one.verdict is not None:
            claims.append(Claim(str(one.verdict), mean if abs(mean) > 1e-12 else 0.0, truths))
            claims += [
                Claim(str(word), truth) for word, truth in zip(one.judged.load_verdicts, truths, strict=True)
            ]
    first = comparisons[0]
    truths = tuple(world.effects.get(first.variant) or [0.0] * len(first.pairs))
    order = first.order
    return Result(
        claims=tuple(claims),
        covers=_holds(first.judged.assessment.overall, math.fsum(truths) / len(truths)),
        levels_cover=all(
            _holds(level, truth)
            for level, truth in zip(first.judged.assessment.load_effects, truths, strict=True)
        ),
        crossover_covers=None
        if order is None
        else _within(order.crossover_interval_percent, math.fsum(truths) / len(truths)),
        word=str(first.verdict),
    )


def _holds(effect: Any, truth: float) -> bool:
    return effect is None or effect.interval_percent is None or _within(effect.interval_percent, truth)


def _within(ends: tuple[float, float], truth: float) -> bool:
    percent = math.expm1(truth) * 100.0
    return ends[0] - 1e-9 <= percent <= ends[1] + 1e-9


def repeat(of: Experiment, world: World, count: int, seed: int) -> list[Result]:
    """So many independent runs of an experiment in a world."""
    random = np.random.default_rng(seed)
    return [judge(of, world, simulate(of, world, random)) for _ in range(count)]
