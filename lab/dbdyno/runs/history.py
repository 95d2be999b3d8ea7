"""The runs of one experiment over time: series of effects, their changes, and which of them are confirmed.

The value of a run is the log ratio of a variant to the baseline over all loads, which ran in the same blocks.
So whatever changes both alike, such as the machine, is no change. The baseline must be the same version in
all runs.

A change point is a candidate until a comparison of the variant's servers of two runs, one on either side,
confirms it. They are the nearest runs that are on either side wherever the change may be.

The blocks of one run share what is fixed for a run: memory layout, files, ports, the state of the machine. If
that makes runs differ by 1 %, one long comparison confirms changes that are none. So a confirmation has
several separate runs, and tests their effects by a t-test: a change must exceed what separate runs differ by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.decide.decision import relevant_to
from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.problem import Problem
from dbdyno.result_text import WITHOUT_EFFECT, decimals_for, signed
from dbdyno.rules.design import has_unequal_load
from dbdyno.runs.comparable import Side, differences, has_same_points
from dbdyno.stats.bisection import direction
from dbdyno.stats.change_points import ChangePoint, find_change_points
from dbdyno.stats.difference import mean_of_runs
from dbdyno.stats.paired import Effect
from dbdyno.stats.precision import factors, scatter
from dbdyno.stats.signed_rank import cut_off
from dbdyno.stats.verdict_rule import BLOCKS_MIN, RESULTS
from dbdyno.store.several_runs import (
    ChangeState,
    Confirmation,
    ExcludedRun,
    History,
    HistoryChange,
    HistoryPoint,
    HistorySeries,
)
from dbdyno.store.verdict import WITHOUT_RATIO, Comparison
from dbdyno.text import Text, compose, join

# The experiment whose runs confirm the changes of another one is named after it, and its variants after the
# runs whose servers they have.
SUFFIX = "-confirm"
_VARIANT = re.compile(r"(.+) run (\d+)")
# Significance level of a confirmation, and number of its runs. The level is below that of a verdict, because
# a long history has many confirmations.
LEVEL, CONFIRMING_RUNS = 0.005, 8
# All runs of a confirmation together have so many blocks that one run of them would find a change of this
# size, in log units, or of this part of a smaller candidate's with a chance of 90 %; or this part of the
# least that a larger one is, beyond chance. Few runs after a change make it look larger than it is.
SIZE, PART = 0.025, 0.7
BLOCKS_MAX = 100
# Without blocks from which it is known: the standard deviation of a block's log ratio.
SCATTER = 0.05


@dataclass(frozen=True)
class JudgedRun:
    """One judged run."""

    number: int
    # ISO 8601, UTC.
    began: str
    side: Side

    def comparison(self, variant: str, workload: str) -> Comparison | None:
        """The entry of a variant under a workload; None without one."""
        entries = self.side.verdict.comparisons
        return next(
            (entry for entry in entries if (entry.variant, entry.workload) == (variant, workload)), None
        )


@dataclass(frozen=True)
class Answer:
    """What a comparison of two values' servers has found; positions are those in the series."""

    before: int
    after: int
    # The newest value when the comparison began.
    newest: int
    # 1 or -1 if the later value's server significantly has more or less of the metric, else 0.
    direction: int


@dataclass(frozen=True)
class Change:
    """A change point, and the last answer about it."""

    point: ChangePoint
    # Index of the answer; None without one.
    answer: int | None
    state: ChangeState

    @property
    def before(self) -> int:
        """Position of the last value that is before the change in any case."""
        return self.point.first - 1

    @property
    def after(self) -> int:
        """Position of the first value that is after it in any case."""
        return self.point.last


def find_changes(values: Sequence[float], answers: Sequence[Answer]) -> list[Change]:
    """The changes of a series of log ratios. A candidate that was not confirmed is one again when there are
    twice as many values after the change.
    """
    changes = []
    points = find_change_points(values, [answer.after for answer in answers if answer.direction])
    for point in points:
        about = [index for index, answer in enumerate(answers) if _is_about(answer, point, points)]
        confirmed = [index for index in about if answers[index].direction * point.step > 0.0]
        state: ChangeState = "candidate"
        if confirmed:
            state = "confirmed"
        elif about and len(values) - point.index < 2 * max(
            answers[index].newest + 1 - point.index for index in about
        ):
            state = "not-confirmed"
        about_runs = confirmed or (about if state == "not-confirmed" else [])
        changes.append(Change(point, about_runs[-1] if about_runs else None, state))
    return changes


def _is_about(answer: Answer, point: ChangePoint, points: Sequence[ChangePoint]) -> bool:
    """Whether an answer is about a change point. Of several changes in its direction between the compared
    values, it is about the one whose possible places are closest to them, or the larger of two such.
    """

    def distance(change_point: ChangePoint) -> tuple[int, float]:
        return abs(change_point.first - 1 - answer.before) + abs(change_point.last - answer.after), -abs(
            change_point.step
        )

    between = [entry for entry in points if answer.before < entry.index <= answer.after]
    alike = [entry for entry in between if answer.direction * entry.step > 0.0]
    return point == min(alike, key=distance) if point in alike else point in between


def effect_of_runs(values: Sequence[float]) -> Effect:
    """The effect of a confirmation, from the log ratios of its runs."""
    return mean_of_runs(values, LEVEL)


def confirming_blocks(step: float, least: float, blocks: Sequence[Sequence[float]]) -> int:
    """The number of blocks of each run of a confirmation of a step, which is at least `least`. `blocks` are
    the log ratios of the blocks of earlier runs, which say how much blocks vary.
    """
    pooled = scatter(blocks)
    deviation = pooled[0] if pooled else SCATTER
    target = max(PART * abs(least), min(SIZE, PART * abs(step)))
    counts: Sequence[int] = [*range(BLOCKS_MIN + 2, 20), *range(20, BLOCKS_MAX, 5)]
    precisions = ((count, factors(count, cut_off(count, LEVEL, 0.0))) for count in counts)
    precise = (count for count, entry in precisions if entry is not None and entry[1] * deviation <= target)
    return max(BLOCKS_MIN, math.ceil(next(precise, BLOCKS_MAX) / CONFIRMING_RUNS))


def history(judged_runs: Sequence[JudgedRun], confirmations: Sequence[JudgedRun]) -> History:
    """The history of an experiment. `nights` are its judged runs, the oldest first, and `confirmations` those
    of its neighbours. Only runs that can be compared with the newest one with a result have values.

    Raises Problem if no run has a result.
    """
    newest = next((run for run in reversed(judged_runs) if _has_value(run)), None)
    if newest is None:
        raise Problem(
            f"no run of {judged_runs[-1].side.experiment.name} has a result",
            f"dbdyno report {judged_runs[-1].side.place} says why the newest has none",
        )
    experiment, baseline = newest.side.experiment, newest.side.verdict.baseline
    series = [
        (variant.name, workload.title)
        for variant in experiment.variants[1:]
        if not is_identical(experiment, variant)
        for workload in experiment.workloads
    ]
    used: list[JudgedRun] = []
    excluded: list[ExcludedRun] = []
    for night in judged_runs:
        entries = [entry_of_run for names in series if (entry_of_run := night.comparison(*names)) is not None]
        reasons: list[str] = [_no_value_text(entry) for entry in entries if _value(entry) is None]
        if not entries or len(reasons) < len(entries):
            refusals = list(_refusals(night.side, newest.side)) if night is not newest else []
            if not refusals:
                used.append(night)
            reasons = refusals or reasons
        if reasons:
            excluded.append(ExcludedRun(run=night.number, reason=join("; ", reasons)))
    return History(
        experiment=experiment.name,
        baseline=baseline,
        reference=newest.side.servers.get(baseline, ""),
        excluded=excluded,
        series=[_series(used, confirmations, *names) for names in series],
    )


def _has_value(night: JudgedRun) -> bool:
    """Whether a run has the effect of any variant that differs from the baseline."""
    return any(
        not comparison.identical and _value(comparison) is not None
        for comparison in night.side.verdict.comparisons
    )


def _no_value_text(entry: Comparison) -> Text:
    """Why a run has no value in a series."""
    verdict = entry.curve.verdict
    reason = WITHOUT_EFFECT[str(verdict)] if verdict in WITHOUT_RATIO else compose("has no known effect")
    return compose(
        "{variant} on {workload} {reason}", variant=entry.variant, workload=entry.workload, reason=reason
    )


def _refusals(side: Side, newest: Side) -> Iterator[str]:
    """Why a run is not comparable with the newest one."""
    yield from differences(side, newest).refusals
    if not has_same_points(side.experiment, newest.experiment):
        yield compose("its loads are others")
    name = newest.verdict.baseline
    before, after = (of.servers.get(name, "") for of in (side, newest))
    if before != after:
        yield compose(
            "the reference {name} is {before} instead of {after}", name=name, before=before, after=after
        )


def _series(
    judged_runs: Sequence[JudgedRun], confirmations: Sequence[JudgedRun], variant: str, workload: str
) -> HistorySeries:
    points, with_values, values = [], [], []
    for night in judged_runs:
        entry = night.comparison(variant, workload)
        value = None if entry is None else _value(entry)
        if entry is not None and value is not None:
            with_values.append(night)
            points.append(_point(night, entry))
            values.append(math.log1p(value / 100.0))
    place = {night.number: index for index, night in enumerate(with_values)}
    answered, incomplete = _answers(confirmations, with_values, variant, workload)
    baseline, metric = judged_runs[-1].side.verdict.baseline, judged_runs[-1].side.experiment.metrics[0]
    answers = [
        Answer(
            place[answer.before],
            place[answer.after],
            # A run that was copied from another folder may have a smaller number than those it compares.
            newest=max([place[answer.after], *(at for number, at in place.items() if number < answer.run)]),
            direction=way,
        )
        for answer, way in answered
    ]
    names = {"variant": variant, "baseline": baseline, "workload": workload}
    return HistorySeries(
        variant=variant,
        workload=workload,
        metric=metric,
        points=points,
        changes=[
            _change(
                change,
                (
                    None if change.answer is None else answered[change.answer][0],
                    incomplete.get((with_values[change.before].number, with_values[change.after].number), []),
                ),
                with_values,
                metric,
                names,
            )
            for change in find_changes(values, answers)
        ],
    )


def _value(entry: Comparison) -> float | None:
    """The effect of a comparison; None if it is unknown or only a bound."""
    effect, curve = entry.curve.effect_percent, entry.curve
    is_known = effect is not None and curve.bound is None and effect > -100.0
    return effect if is_known and curve.verdict not in WITHOUT_RATIO else None


def _point(night: JudgedRun, entry: Comparison) -> HistoryPoint:
    return HistoryPoint(
        run=night.number,
        path=night.side.place,
        began=night.began,
        server=night.side.servers.get(entry.variant, ""),
        effect_percent=entry.curve.effect_percent,
        interval_percent=entry.curve.interval_percent,
    )


def _answers(
    confirmations: Sequence[JudgedRun], judged_runs: Sequence[JudgedRun], variant: str, workload: str
) -> tuple[list[tuple[Confirmation, int]], dict[tuple[int, int], list[int]]]:
    """The complete confirmations of a series, each with its direction, in the order in which they ended; and
    the runs of incomplete ones, by the numbers of the two runs that they compare.
    """
    by_pair: dict[tuple[int, int], list[tuple[JudgedRun, float]]] = {}
    for night, pair, value in _confirming(confirmations, judged_runs, variant, workload):
        by_pair.setdefault(pair, []).append((night, value))
    answers, incomplete = [], {}
    for pair, members in by_pair.items():
        for first in range(0, len(members), CONFIRMING_RUNS):
            runs = members[first : first + CONFIRMING_RUNS]
            if len(runs) < CONFIRMING_RUNS:
                incomplete[pair] = [night.number for night, _ in runs]
                continue
            effect = effect_of_runs([value for _, value in runs])
            answer = Confirmation(
                run=runs[-1][0].number,
                runs=[night.number for night, _ in runs],
                path=runs[-1][0].side.place,
                before=pair[0],
                after=pair[1],
                effect_percent=effect.effect_percent,
                interval_percent=effect.interval_percent,
                confidence=1.0 - LEVEL,
            )
            answers.append((answer, direction(effect)))
    return sorted(answers, key=lambda entry: entry[0].run), incomplete


def _confirming(
    confirmations: Sequence[JudgedRun], runs: Sequence[JudgedRun], variant: str, workload: str
) -> Iterator[tuple[JudgedRun, tuple[int, int], float]]:
    """The runs that confirm changes of a series and have a value: the run, the numbers of the two runs that
    it compares, and its log ratio. One whose servers were not those of its runs does not count.
    """
    by_number = {night.number: night for night in runs}
    for confirmation in confirmations:
        names = confirmed_runs(confirmation.side.experiment)
        if names is None or names[0] != variant or any(number not in by_number for number in names[1:]):
            continue
        pair = names[1:]
        entry = confirmation.comparison(variant_name(variant, pair[1]), workload)
        expected = [by_number[number].side.servers.get(variant) for number in pair]
        actual = [confirmation.side.servers.get(variant_name(variant, number)) for number in pair]
        if entry is None or not _has_answer(confirmation, entry) or expected != actual:
            continue
        if (value := _value(entry)) is not None:
            yield confirmation, pair, math.log1p(value / 100.0)


def _has_answer(night: JudgedRun, entry: Comparison) -> bool:
    """Whether a run of a confirmation has a result that counts. One in which the variants met different loads
    of other processes may have no direction for that reason.
    """
    verdict, word = night.side.verdict, entry.curve.verdict
    findings = relevant_to((verdict.baseline, entry.variant, entry.workload), verdict.checks)
    return word in RESULTS and not (word == "undecided" and has_unequal_load(findings))


def variant_name(variant: str, number: int) -> str:
    """The name of a variant as it was in a run, in the experiment of a confirmation."""
    return f"{variant} run {number}"


def confirmed_runs(experiment: Experiment) -> tuple[str, int, int] | None:
    """Variant and numbers of the two runs that an experiment compares; None if it is no confirmation."""
    names = [_VARIANT.fullmatch(variant.name) for variant in experiment.variants]
    if len(names) != 2 or names[0] is None or names[1] is None or names[0][1] != names[1][1]:
        return None
    return names[0][1], int(names[0][2]), int(names[1][2])


def _change(
    change: Change,
    confirmed: tuple[Confirmation | None, Sequence[int]],
    runs: Sequence[JudgedRun],
    metric: str,
    names: Mapping[str, str],
) -> HistoryChange:
    """The entry of a change. `confirmed` has its confirmation, and the runs of an incomplete one."""
    confirmation, incomplete = confirmed
    index = change.point.index
    numbers = [night.number for night in runs]
    percent = math.expm1(change.point.step) * 100.0
    low, high = (math.expm1(end) * 100.0 for end in change.point.interval)
    compared = (runs[change.before], runs[change.after])
    return HistoryChange(
        before=numbers[index - 1],
        after=numbers[index],
        last_before=compared[0].number,
        first_after=compared[1].number,
        change_percent=percent,
        interval_percent=(low, high),
        state=change.state,
        is_alert=confirmation is not None
        and change.state == "confirmed"
        and all(number < confirmation.run for number in numbers),
        confirmation=confirmation,
        confirming_runs=list(incomplete),
        also=list(_also(compared[0].side, compared[1].side, names["variant"])),
        sentence=join(
            ": ",
            (
                _moved_text((percent, low, high), (runs[index - 1], runs[index]), compared, metric, names),
                _state_text(change.state, confirmation, len(incomplete)),
            ),
        ),
    )


def _also(before: Side, after: Side, variant: str) -> Iterator[str]:
    """The circumstances that differ between two runs, without the server and its place."""
    for note in differences(before, after).notes:
        prefixes = (f"variant[{variant}].server.", f"the server of {variant} ")
        if not note.startswith(prefixes):
            yield note


def _moved_text(
    percents: tuple[float, float, float],
    around: tuple[JudgedRun, JudgedRun],
    compared: tuple[JudgedRun, JudgedRun],
    metric: str,
    names: Mapping[str, str],
) -> str:
    """Throughput of nightly against 11.4.5 fell by 3.1 % (2.2 to 4.0) between run 14 and run 15."""
    value, low, high = percents
    digits = decimals_for(percents)
    size, least, most = (f"{end if value > 0.0 else -end:.{digits}f}" for end in (value, low, high))
    if value < 0.0:
        least, most = most, least
    texts = {
        "metric": metric_text(metric), **names, "size": size, "least": least, "most": most,
        "before": _name(around[0]), "after": _name(around[1]),
    }  # fmt: skip
    moved = compose("rose") if value > 0.0 else compose("fell")
    text = compose(
        "{metric} of {variant} against {baseline} on {workload} {moved} by {size} % ({least} to {most}) "
        "between {before} and {after}",
        moved=moved,
        **texts,
    )
    if [night.number for night in compared] == [night.number for night in around]:
        return text
    return compose(
        "{text}, range run {before} to run {after}",
        text=text,
        before=compared[0].number,
        after=compared[1].number,
    )


def _name(night: JudgedRun) -> str:
    date = night.began[:10]
    return compose("run {number} ({date})", number=night.number, date=date) if date else f"run {night.number}"


def _state_text(state: ChangeState, confirmation: Confirmation | None, incomplete: int) -> str:
    if confirmation is None:
        if not incomplete:
            return compose("CANDIDATE, not confirmed")
        return compose(
            "CANDIDATE, not confirmed ({count} of {total} runs of its confirmation have a result)",
            count=incomplete,
            total=CONFIRMING_RUNS,
        )
    assert confirmation.effect_percent is not None, "a confirmation has an effect"
    assert confirmation.interval_percent is not None, "and an interval"
    low, high = (compose("unknown") if end is None else signed(end) for end in confirmation.interval_percent)
    values = {
        "runs": join(", ", (f"{number}" for number in confirmation.runs)),
        "before": confirmation.before,
        "after": confirmation.after,
        "effect": compose(
            "{effect} % ({low} to {high})", effect=signed(confirmation.effect_percent), low=low, high=high
        ),
    }
    if state == "confirmed":
        return compose(
            "CONFIRMED by runs {runs}, which compare the servers of run {before} and run {after}: {effect}",
            **values,
        )
    return compose(
        "not confirmed by runs {runs}, which compare the servers of run {before} and run {after}: {effect}",
        **values,
    )
