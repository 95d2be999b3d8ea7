"""Says in every sentence of a verdict that something was chosen when data of the run had been seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dbdyno.store.afterwards import ChosenAfterwards, choices_text
from dbdyno.store.verdict import (
    CombinedEffect,
    Comparison,
    FactorEffect,
    Gate,
    MetricComparison,
    VerdictFile,
    caveats_text,
)
from dbdyno.text import Text, compose

# An effect with a sentence that ends with its caveats.
_Effect = TypeVar("_Effect", CombinedEffect, FactorEffect)
_Compared = TypeVar("_Compared", Comparison, MetricComparison)


def mark_chosen(verdict: VerdictFile, choices: Sequence[ChosenAfterwards]) -> VerdictFile:
    """The verdict whose sentences say what was chosen; the same one without choices."""
    if not choices:
        return verdict
    listed = choices_text(choices)
    text = compose(
        "This judgement was chosen when data of the run had been seen. Error rates hold only for the "
        "judgement that was planned before."
    )
    suites = verdict.suites and [
        one.model_copy(update={"sentence": _prefixed(one.sentence, listed)}) for one in verdict.suites
    ]
    return verdict.model_copy(
        update={
            "chosen_afterwards": list(choices),
            "family": verdict.family.model_copy(update={"text": text}),
            "comparisons": [_comparison(one, listed) for one in verdict.comparisons],
            "suites": suites,
            "factors": verdict.factors and [_effect(one, listed) for one in verdict.factors],
            "gate": verdict.gate and mark_gate(verdict.gate, choices),
        }
    )


def mark_gate(gate: Gate, choices: Sequence[ChosenAfterwards]) -> Gate:
    """The gate whose sentences say what was chosen; the same one without choices."""
    if not choices:
        return gate
    listed = choices_text(choices)
    comparisons, suites = (
        [one.model_copy(update={"sentence": _prefixed(one.sentence, listed)}) for one in entries]
        for entries in (gate.comparisons, gate.suites or ())
    )
    return gate.model_copy(update={"comparisons": comparisons, "suites": gate.suites and suites})


def _comparison(entry: Comparison, listed: Text) -> Comparison:
    highest = entry.highest_throughput
    marked = highest and highest.model_copy(update={"sentence": _prefixed(highest.sentence, listed)})
    return _compared(entry, listed).model_copy(
        update={
            "highest_throughput": marked,
            "metrics": entry.metrics and [_compared(one, listed) for one in entry.metrics],
        }
    )


def _compared(entry: _Compared, listed: Text) -> _Compared:
    return entry.model_copy(update={"curve": _effect(entry.curve, listed)})


def _effect(effect: _Effect, listed: Text) -> _Effect:
    sentence = _prefixed(effect.statement, listed) + caveats_text(effect.caveats)
    return effect.model_copy(update={"sentence": sentence})


def _prefixed(sentence: str, listed: Text) -> Text:
    return compose("Chosen afterwards ({choices}): {sentence}", choices=listed, sentence=sentence)
