"""Writes what accompanies a verdict sentence: the caveats at its end (short warnings with their codes,
overrides with their reasons), and at its beginning that something was chosen when data of the run had been
seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from dbdyno.finding import Finding, caveat_of, form
from dbdyno.rules.register import CAVEATS as RULES_CAVEATS
from dbdyno.store.afterwards import ChosenAfterwards, choices_text
from dbdyno.store.verdict import (
    CombinedEffect,
    Comparison,
    FactorEffect,
    Gate,
    GatedComparison,
    GatedSuite,
    HighestThroughput,
    MetricComparison,
    Suite,
    VerdictFile,
    caveats_text,
)
from dbdyno.text import Text, compose, join


def with_caveats(result: str, listed: Sequence[str]) -> str:
    """The sentence `result`, followed by its caveats."""
    return join("", (result, ".")) + caveats_text(listed)


def caveats(findings: Sequence[Finding], failures: Iterable[str] = ()) -> list[str]:
    """Failures of servers, overrides and warnings as short texts, without duplicates."""
    overridden = [
        compose("{code} overridden: “{override}”", code=finding.code, override=finding.override)
        for finding in findings
        if finding.override and finding.level != "note"
    ]
    warnings = [_summary(finding) for finding in findings if finding.level == "warn" and not finding.override]
    failed = [join("", (text, " (R04)")) for text in failures]
    return list(dict.fromkeys([*failed, *sorted(overridden), *filter(None, warnings)]))


def code_of(caveat: str) -> str:
    """The code of a caveat."""
    match = re.search(r"^[A-Z]\d\d(?= )|[A-Z]\d\d(?=\)?$)", caveat)
    return match.group() if match else caveat


def _summary(finding: Finding) -> str:
    """A warning as a short text; "" if the sentence already mentions it."""
    text = RULES_CAVEATS.get(finding.code) or caveat_of(finding.code)
    short = text(finding) if callable(text) else form(text, finding.evidence)
    if short is None:
        return compose("see {code}", code=finding.code)
    return join("", (short, f" ({finding.code})")) if short else ""


# An effect with a sentence that ends with its caveats.
_Effect = TypeVar("_Effect", CombinedEffect, FactorEffect)
# One with a sentence without caveats.
_WithSentence = TypeVar("_WithSentence", Suite, GatedSuite, GatedComparison, HighestThroughput)
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
    return verdict.model_copy(
        update={
            "chosen_afterwards": list(choices),
            "family": verdict.family.model_copy(update={"text": text}),
            "comparisons": [_comparison(comparison, listed) for comparison in verdict.comparisons],
            "suites": verdict.suites and [_sentence(suite, listed) for suite in verdict.suites],
            "factors": verdict.factors and [_effect(factor, listed) for factor in verdict.factors],
            "gate": verdict.gate and mark_gate(verdict.gate, choices),
        }
    )


def mark_gate(gate: Gate, choices: Sequence[ChosenAfterwards]) -> Gate:
    """The gate whose sentences say what was chosen; the same one without choices."""
    if not choices:
        return gate
    listed = choices_text(choices)
    comparisons = [_sentence(entry, listed) for entry in gate.comparisons]
    suites = gate.suites and [_sentence(entry, listed) for entry in gate.suites]
    return gate.model_copy(update={"comparisons": comparisons, "suites": suites})


def _comparison(entry: Comparison, listed: Text) -> Comparison:
    highest = entry.highest_throughput
    return _compared(entry, listed).model_copy(
        update={
            "highest_throughput": highest and _sentence(highest, listed),
            "metrics": entry.metrics and [_compared(metric, listed) for metric in entry.metrics],
        }
    )


def _compared(entry: _Compared, listed: Text) -> _Compared:
    return entry.model_copy(update={"curve": _effect(entry.curve, listed)})


def _effect(effect: _Effect, listed: Text) -> _Effect:
    sentence = _prefixed(effect.statement, listed) + caveats_text(effect.caveats)
    return effect.model_copy(update={"sentence": sentence})


def _sentence(entry: _WithSentence, listed: Text) -> _WithSentence:
    return entry.model_copy(update={"sentence": _prefixed(entry.sentence, listed)})


def _prefixed(sentence: str, listed: Text) -> Text:
    return compose("Chosen afterwards ({choices}): {sentence}", choices=listed, sentence=sentence)
