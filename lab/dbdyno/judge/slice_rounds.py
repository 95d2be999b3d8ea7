"""R14: whether a slice is long enough for the transactions of its load.

In a slice only whole transactions count, and all connections begin at the same time. With transactions of
equal length T the counted throughput may be wrong by T divided by the slice. A difference of the variants
that is smaller may be an artefact, and a transaction that is longer than a slice never counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import median

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.slices import SLICE_ROUNDS_MIN, SLICE_S_MAX, length_text, slice_s
from dbdyno.finding import Finding
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# Transactions of each connection in a slice: with fewer the error may be above 5 %, or above 20 %.
ROUNDS_WARN, ROUNDS_STOP = 20.0, float(SLICE_ROUNDS_MIN)


def few_rounds(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A finding for each workload whose connections execute too few transactions in a slice."""
    for workload in experiment.workloads:
        least: tuple[float, float] | None = None
        for variant, connections in product(experiment.variants, experiment.load.connections):
            length_s = slice_s(experiment, workload.title, connections)
            rounds = [
                trial.figures.throughput * length_s / connections
                for trial in trials
                if trial.figures is not None
                and trial.slices is not None
                and (trial.variant, trial.workload) == (variant.name, workload.title)
                and trial.at.get("connections") == connections
            ]
            # A single trial in which the server stalled is not the length of its transactions.
            if rounds and (least is None or median(rounds) < least[0]):
                least = median(rounds), length_s
        if least is None or least[0] >= ROUNDS_WARN:
            continue
        found, length_s = least
        needed_s = length_s * ROUNDS_WARN / found if found else math.inf
        is_possible = needed_s < min(SLICE_S_MAX, experiment.load.duration_s)
        longer = compose('slice = "{ceil}s" or ', ceil=math.ceil(needed_s)) if is_possible else ""
        yield Finding(
            "R14",
            "stop" if found < ROUNDS_STOP else "warn",
            compose(
                "the transactions of {title} are too long for slices of {length_text}: a connection "
                "executes {found:.1f} in a slice; {rounds_warn:g} are needed, because only whole ones "
                "count",
                title=workload.title,
                length_text=length_text(length_s),
                found=found,
                rounds_warn=ROUNDS_WARN,
            ),
            {"workload": workload.title, "rounds": round(found, 2), "slice_s": length_s},
            fix=compose('Set {longer}pairing = "trials" in [design]', longer=longer),
        )
