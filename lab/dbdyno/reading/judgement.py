"""What the results of a document show: the variants at equal loads, and how much that is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.reading.attribution import Series, baseline_first
from dbdyno.reading.limits import LISTED_MAX, REPETITIONS_MAX
from dbdyno.reading.result import FIGURE_TEXTS, THROUGHPUTS, TIMES, Result
from dbdyno.result_text import connections_count
from dbdyno.stats.paired import Ratios, effect, mean_ratios
from dbdyno.text import Text, compose, join

_Loads = Mapping[int | None, Sequence[Result]]


@dataclass(frozen=True)
class Pair:
    """Two variants at one load."""

    connections: int | None
    baseline: Result
    variant: Result
    # Change of the figure from the baseline to the variant, in percent.
    change_percent: float


@dataclass(frozen=True)
class Contrast:
    """One variant against the baseline in one figure."""

    baseline: Series
    variant: Series
    figure: str
    pairs: Sequence[Pair]
    # The 95 % interval of the mean change over all loads; None without enough repetitions.
    interval_percent: tuple[float, float] | None = None
    # The workload, if the document has several.
    workload: str = ""

    @property
    def changes(self) -> list[float]:
        """The change at each load, in percent."""
        return [pair.change_percent for pair in self.pairs]

    @property
    def is_better(self) -> bool | None:
        """Whether the variant is better at all loads; None if it is better at some and worse at others."""
        signs = {change > 0 for change in self.changes if change}
        if len(signs) != 1:
            return None
        return signs.pop() == (self.figure in THROUGHPUTS)

    @property
    def sentence(self) -> Text:
        """What the numbers say."""
        text = compose(
            "{variant} against {baseline}: {figure} {changes}{direction}",
            variant=self.variant.label or "?",
            baseline=self.baseline.label or "?",
            figure=FIGURE_TEXTS[self.figure],
            changes=_changes(self.pairs),
            direction=self._direction(),
        )
        return (
            compose("{workload}: {sentence}", workload=self.workload, sentence=text)
            if self.workload
            else text
        )

    def _direction(self) -> str:
        if len(self.pairs) < 2:
            return ""
        if self.is_better is None:
            signs = [change > 0 for change in self.changes]
            turns = [
                pair
                for pair, sign, before in zip(self.pairs[1:], signs[1:], signs, strict=False)
                if sign != before
            ]
            at = turns[0].connections if len(turns) == 1 else None
            if at is not None:
                return compose(": the sign changes at {connections}", connections=connections_count(at))
            return compose(": the sign differs from load to load")
        return compose(": better at all loads") if self.is_better else compose(": worse at all loads")


def contrasts(series: Sequence[Series]) -> list[Contrast]:
    """Every variant against the baseline of its workload, in the figures that both have at equal loads."""
    listed: list[Contrast] = []
    by_workload: dict[str, list[Series]] = {}
    for entry in series:
        by_workload.setdefault(entry.workload, []).append(entry)
    for workload, of_workload in by_workload.items():
        same = baseline_first(of_workload)
        baseline_loads = _by_load(same[0])
        named = workload if len(by_workload) > 1 else ""
        for variant in same[1:]:
            variant_loads = _by_load(variant)
            for figure in (*THROUGHPUTS, *TIMES):
                pairs = _pairs(baseline_loads, variant_loads, figure)
                if pairs:
                    is_clear = not (same[0].doubt or variant.doubt)
                    interval = _interval(baseline_loads, variant_loads, figure) if is_clear else None
                    listed.append(Contrast(same[0], variant, figure, pairs, interval, named))
    return listed


def _by_load(series: Series) -> dict[int | None, list[Result]]:
    """The results of a series at each load."""
    loads: dict[int | None, list[Result]] = {}
    for result in series.results:
        loads.setdefault(result.connections, []).append(result)
    return loads


def _pairs(baseline: _Loads, variant: _Loads, figure: str) -> list[Pair]:
    """The loads that both have; of several results at one load the geometric means."""
    pairs = []
    for connections in baseline:
        first, second = (
            [entry for entry in side.get(connections, ()) if _positive(entry, figure)]
            for side in (baseline, variant)
        )
        if first and second:
            change = 100 * math.expm1(_mean_log(second, figure) - _mean_log(first, figure))
            pairs.append(Pair(connections, first[0], second[0], change))
    return pairs


def _interval(baseline: _Loads, variant: _Loads, figure: str) -> tuple[float, float] | None:
    """The interval of the mean change over the loads, from repetitions in the order of the document."""
    loads = []
    for connections in baseline:
        rows = [
            [math.log(value) for entry in side.get(connections, ()) if (value := _positive(entry, figure))]
            for side in (baseline, variant)
        ]
        if len(rows[0]) != len(rows[1]):
            return None
        # The test takes a time in proportion to the square of the repetitions.
        rows = [row[:REPETITIONS_MAX] for row in rows]
        differences = {number: value - base for number, (base, value) in enumerate(zip(*rows, strict=True))}
        loads.append(Ratios(differences, differences))
    change = effect(mean_ratios(loads))
    return change.interval_percent if change is not None else None


def _positive(result: Result, figure: str) -> float | None:
    """A figure that has a ratio to another one; None if it is missing, 0 or negative."""
    value = result.value(figure)
    return value if value is not None and value > 0 else None


def verdict(series: Sequence[Series], changes: Sequence[Contrast], others: Sequence[str]) -> Text:
    """Says what the results of a document show of its variants; `others` is what it has besides results."""
    if not series:
        if not others:
            return compose("No result was found.")
        return compose("No result was found. The document has {others}.", others=join(", ", others))
    if len(series) == 1:
        return compose("One variant: nothing is compared.")
    if not changes:
        return compose("The variants have no load and figure in common.")
    seen: dict[int, Contrast] = {}
    for contrast in changes:
        seen.setdefault(id(contrast.variant), contrast)
    sentences = join("; ", (contrast.sentence for contrast in seen.values()))
    if all(contrast.interval_percent is not None for contrast in seen.values()):
        return compose("{sentences}.", sentences=sentences)
    if any(entry.doubt for contrast in seen.values() for entry in (contrast.baseline, contrast.variant)):
        return compose(
            "Exploratory, because the document does not say what all results are of: {sentences}.",
            sentences=sentences,
        )
    return compose(
        "Exploratory, because too few runs were repeated to tell a difference from noise: {sentences}.",
        sentences=sentences,
    )


def _mean_log(results: Sequence[Result], figure: str) -> float:
    values = [value for result in results if (value := _positive(result, figure))]
    return sum(map(math.log, values)) / len(values)


def _changes(pairs: Sequence[Pair]) -> Text:
    """The changes with their loads, as many as a reader can take in."""
    texts = [f"{pair.change_percent:+.1f} %" for pair in pairs]
    loads = [str(pair.connections) for pair in pairs if pair.connections is not None]
    if len(texts) > LISTED_MAX:
        least, most = (entry(pair.change_percent for pair in pairs) for entry in (min, max))
        return compose(
            "{least:+.1f} % to {most:+.1f} % at {count:,} loads", least=least, most=most, count=len(pairs)
        )
    if len(loads) != len(texts):
        return join(", ", texts)
    if len(texts) == 1:
        return compose("{change} at {load}", change=texts[0], load=connections_count(int(loads[0])))
    return compose("{changes} at {loads} connections", changes=", ".join(texts), loads=", ".join(loads))
