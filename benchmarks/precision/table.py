"""The table of precision per minute, from the finished cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from dbdyno.stats.signed_rank import hodges_lehmann, percent

from .cells import Answer, Cell, Result
from .questions import QUESTIONS, Question


def table(results: Mapping[Cell, Result], minutes: Sequence[float], designs: Mapping[str, str]) -> str:
    """Tables of all questions that have results, in Markdown."""
    parts = ["; ".join(f"`{name}`: {text}" for name, text in designs.items()) + "."]
    for question in QUESTIONS:
        found = {cell: one for cell, one in results.items() if cell.question is question}
        if found:
            parts.append(_of_question(question, found, minutes, list(designs)))
    return "\n\n".join(parts)


def _of_question(
    question: Question, results: Mapping[Cell, Result], minutes: Sequence[float], designs: Sequence[str]
) -> str:
    changes = _changes(results.values())
    said = "The servers are equal: the truth is 0."
    if question.planted:
        listed = ", ".join(f"{name} {change:+.1f} %" for name, change in changes.items())
        said = (
            f"The change that each design found (Hodges-Lehmann estimate of its blocks or pairs): {listed}. "
            "The truth of a row is the median of the other designs' changes."
        )
    versions = ", ".join(sorted({one.version for one in results.values()}))
    shown = "".join(f"half width, {limit:g} min | " for limit in minutes)
    lines = [
        f"### {question.text}",
        f"{versions}. {said}",
        "",
        f"| design | {shown}interval | blocks or pairs | holds the truth | measuring |",
        "|---|" + "---:|" * len(minutes) + "---|---:|---|---:|",
    ]
    for cell in sorted(results, key=lambda cell: (designs.index(cell.design), cell.repeat)):
        others = [change for name, change in changes.items() if name != cell.design]
        truth = 0.0 if not question.planted else median(others) if others else None
        lines.append(_row(results[cell], truth))
    return "\n".join([lines[0], "", *lines[1:]])


def _row(result: Result, truth: float | None) -> str:
    last = result.answers[-1]
    ends = "none" if last.low is None else f"{last.low:+.1f} to {last.high:+.1f} %"
    holds = None if truth is None else last.holds(truth)
    cells = [
        result.design,
        *(_half_width(one) for one in result.answers),
        ends,
        str(last.count),
        "" if holds is None else "yes" if holds else "**no**",
        f"{result.measuring * 100:.0f} %",
    ]
    return f"| {' | '.join(cells)} |"


def _half_width(answer: Answer) -> str:
    width = answer.half_width
    return "none" if width is None else f"{width:.2f} %"


def _changes(results: Iterable[Result]) -> dict[str, float]:
    """Design -> the change in percent that all its cells found."""
    ratios: dict[str, list[float]] = {}
    for one in results:
        ratios.setdefault(one.design, []).extend(one.ratios)
    return {name: percent(hodges_lehmann(values)) for name, values in ratios.items() if values}
