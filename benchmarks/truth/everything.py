"""Simulates runs with all that dbdyno offers switched on, and counts those that tell anything false.

The other simulations measure one guarantee each. Here every word of a run counts: verdicts over all loads and
at each load, gates, and second lines, as the real judge gives them when the real stopping rule ends the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle

import numpy as np

from dbdyno.experiment.model import Experiment
from dbdyno.judge import gate
from dbdyno.judge.comparison import Comparison, comparison_entry
from dbdyno.judge.decision import compare_all
from dbdyno.judge.second_lines import second_lines
from dbdyno.judge.stopping import progress

from .row import Promise, Row
from .second_lines import with_second_lines
from .simulation import Claim, World, experiment, simulate
from .stopping import stopping

# With four sentences in a family, no verdict is possible before the first look.
FIRST_LOOK, MAX_BLOCKS = 9, 12
# The allowed loss, and the zone of equivalence. Variant c loses exactly this much, so a gate that is decided,
# and "equivalent", are false.
LOSS_PERCENT = 3.0
# Fewer experiments per promise are a short form.
FULL = 1_000
NOISES = ("normal", "heavy", "stalls", "growing", "heavy+drifting+stalls+bimodal+growing")


def promises() -> list[Promise]:
    """The promises about any false word."""
    all_on = "3 variants, 2 workloads, 3 loads, gate, repeats, second lines, design.stop"
    large = experiment(variants=3, loads=3, workloads=2, delta_percent=LOSS_PERCENT)
    with_twin = experiment(variants=4, loads=3, workloads=2, delta_percent=LOSS_PERCENT, twin=True)
    return [
        partial(
            _row, f"everything at once ({all_on}, twin)", stopping(with_twin, max_blocks=MAX_BLOCKS), cost=5
        ),
        partial(
            _row, f"everything at once ({all_on}, no twin)", stopping(large, max_blocks=MAX_BLOCKS), cost=5
        ),
        partial(
            _row, "the smallest run (2 variants, 1 load, 8 blocks, gate, second lines)", experiment(), cost=1
        ),
    ]


def _row(promise: str, of: Experiment, count: int, *, cost: int) -> Row:
    of = of.model_copy(update={"design": of.design.model_copy(update={"max_loss_percent": LOSS_PERCENT})})
    random = np.random.default_rng(22)
    # A run takes a second or two, so the short form has few of them.
    runs = count // (cost if count >= FULL else 5 * cost)
    false = sum(
        any(_false_words(of, _world(of, noise), random)) for noise, _ in zip(cycle(NOISES), range(runs))
    )
    return Row(f"{promise}: any false word in verdicts, gates and second lines", runs, false / runs, 0.05)


def _world(of: Experiment, noise: str) -> World:
    """Variant b is equal to a; c loses what is allowed."""
    loss = [math.log1p(-LOSS_PERCENT / 100.0)] * len(of.load.points())
    return World(noise=noise, effects={"c": loss}, position=0.02, slot_sd=0.01, disturbed=0.1)


def _false_words(of: Experiment, world: World, random: np.random.Generator) -> Iterator[bool]:
    """Whether each word of one run is false, which ends by its stopping rule."""
    trials = with_second_lines(simulate(of, world, random), random)
    for blocks in range(FIRST_LOOK, of.design.blocks):
        present = [trial for trial in trials if trial.block < blocks]
        if of.design.stop and progress(present, of).is_sure:
            trials = present
            break
    comparisons = compare_all(trials, of, [])
    for one, lines in zip(comparisons, second_lines(comparisons, of), strict=True):
        truths = tuple(world.effects.get(one.variant) or [0.0] * len(one.pairs))
        words = [(one.verdict, truths[0]), *zip(one.judged.load_verdicts, truths, strict=True)]
        yield from (
            Claim(str(word), truth, truths).is_false(of.design.delta_percent) for word, truth in words
        )
        if not one.is_identical:
            yield _gate_is_false(one, comparisons, truths[0])
        for line in lines:
            # Lower throughput is a higher latency, and more errors per transaction.
            is_higher = truths[line.load] < 0.0 and line.metric != "variation_percent"
            yield line.direction is not None and (line.direction == "better" or not is_higher)


def _gate_is_false(one: Comparison, comparisons: Sequence[Comparison], truth: float) -> bool:
    identical = gate.find_identical(one.workload, [comparison_entry(each, "") for each in comparisons])
    is_sure = one.judged.is_gate_sure
    said = gate.result(comparison_entry(one, ""), LOSS_PERCENT, (), identical, is_sure=is_sure)
    return said == "worse" or (said == "not-inferior" and truth != 0.0)
