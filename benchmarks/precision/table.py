"""The table of precision per minute, from the finished cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import hodges_lehmann, interval, percent

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
    truth, said = _truth(question, list(results.values()))
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


def _truth(question: Question, results: Sequence[Result]) -> tuple[float | None, str]:
    """The true change in percent, and how it is known."""
    if not question.planted:
        return 0.0, "The servers are equal: the truth is 0."
    ratios = [ratio for one in results for ratio in one.ratios]
    if not ratios:
        return None, "The true change is not known yet."
    change = percent(hodges_lehmann(ratios))
    ends = interval(ratios, ALPHA)
    text = f" ({percent(ends.low):+.1f} to {percent(ends.high):+.1f} %)" if ends else ""
    designs = len({one.design for one in results})
    return change, (
        f"The true change is taken to be {change:+.1f} %{text}: Hodges-Lehmann estimate of the {len(ratios)} "
        f"blocks and pairs of {designs} designs together."
    )
