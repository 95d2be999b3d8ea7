"""Q02: the author's conclusion must agree with the verdicts, in sign and size, and say how certain it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding, Level
from dbdyno.reading.claim import Claim, Subjects, find_claims
from dbdyno.reading.document import Document
from dbdyno.stats.verdict_rule import DIRECTIONS
from dbdyno.store.verdict import CombinedEffect, Comparison
from dbdyno.text import compose

# How far a sentence may round a percentage.
_ROUNDED_POINTS = 0.6


def findings(experiment: Experiment, comparisons: Sequence[Comparison]) -> Iterator[Finding]:
    """The findings about the sentences of `experiment.conclusion` that compare. A sentence that names no
    variant is about the only comparison; with several comparisons it is not examined.
    """
    names = [variant.name for variant in experiment.variants]
    subjects = Subjects(names)
    document = Document("conclusion", experiment.conclusion.splitlines())
    for claim in find_claims(document, frozenset()):
        about = subjects.of(claim)
        for effect, variant, is_reversed in _effects(claim, comparisons, names, about):
            yield from _compare(claim, effect, variant, is_reversed=is_reversed)


def _effects(
    claim: Claim, comparisons: Sequence[Comparison], names: Sequence[str], about: int | None
) -> Iterator[tuple[CombinedEffect, str, bool]]:
    """The effects that a claim is about, their variants, and whether it speaks of the baseline."""
    is_baseline = about == 0
    if is_baseline or about is None:
        chosen = comparisons if len(comparisons) == 1 else []
    else:
        chosen = [comparison for comparison in comparisons if comparison.variant == names[about]]
        # A sentence about all of several workloads cannot be compared with one of them.
        chosen = chosen if len(chosen) == 1 else []
    for entry in chosen:
        effects = [entry.curve, *(metric.curve for metric in entry.metrics or ())]
        suitable = [
            effect for effect in effects if claim.about.fits(is_throughput=effect.metric == THROUGHPUT)
        ]
        yield from ((effect, entry.variant, is_baseline) for effect in suitable[:1])


def _compare(claim: Claim, effect: CombinedEffect, variant: str, *, is_reversed: bool) -> Iterator[Finding]:
    says_faster = claim.is_better != is_reversed
    if effect.verdict not in DIRECTIONS:
        text = compose(
            'the conclusion says more than the verdict: "{sentence}"; the verdict is {verdict}',
            sentence=claim.text,
            verdict=effect.verdict,
        )
        yield _finding(text, "warn", variant)
    elif (effect.verdict == "faster") != says_faster:
        text = compose(
            'the conclusion contradicts the verdict: "{sentence}"; {statement}',
            sentence=claim.text,
            statement=effect.statement,
        )
        yield _finding(text, "stop", variant)
    elif _is_other_size(claim, effect, is_reversed=is_reversed):
        text = compose(
            'the conclusion has another size than the verdict: "{sentence}"; {statement}',
            sentence=claim.text,
            statement=effect.statement,
        )
        yield _finding(text, "stop", variant)
    elif (claim.percents or claim.is_strong) and not claim.has_interval:
        text = compose('the conclusion has no interval: "{sentence}"', sentence=claim.text)
        yield _finding(text, "note", variant)


def _is_other_size(claim: Claim, effect: CombinedEffect, *, is_reversed: bool) -> bool:
    """Whether the only percentage of a claim is outside the interval of the effect."""
    if len(claim.percents) != 1 or effect.interval_percent is None:
        return False
    ends = [end for end in effect.interval_percent if end is not None]
    if is_reversed:
        # 25 % more of one are 20 % less of the other.
        ends = [100 * (100 / (100 + end) - 1) for end in ends if end > -100]
    sizes = sorted(abs(end) for end in ends)
    claimed = claim.percents[0]
    return len(sizes) == 2 and not sizes[0] - _ROUNDED_POINTS <= claimed <= sizes[1] + _ROUNDED_POINTS


def _finding(text: str, level: Level, variant: str) -> Finding:
    fix = compose("Write what the verdict says: direction, size, interval and load")
    return Finding("Q02", level, text, subject=variant, fix=fix)
