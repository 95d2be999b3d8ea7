"""The lines that `dbdyno bisect` prints: one for each step, and at the end a sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console

from dbdyno.commands.bisect_versions import Versions
from dbdyno.commands.console import print_text, result_console
from dbdyno.experiment.metrics import HIGHER_IS_BETTER, metric_text
from dbdyno.runs.bisection import Answer, Question, Step, steps_of
from dbdyno.say.wording import blocks_count, effect_text, join_words, relation
from dbdyno.store.several_runs import BisectionRecord


def announce(console: Console, question: Question, number: int, versions: Versions) -> None:
    """Say on standard error what a step asks."""
    if question.candidate is None:
        steps = steps_of(versions.names)
        text = f"Do {question.good} and {question.bad} differ? If so, at most {steps} steps follow."
    else:
        text = f"Step {number}: is {question.candidate} like "
        text += f"{question.good} or like {question.bad}?"
    print_text(console, text, "bold")


def show_step(question: Question, number: int, step: Step, record: BisectionRecord) -> None:
    """Print the result of a step, and its run."""
    run = record.steps[number].run
    where = f"; {run}" if run else ""
    what = "good and bad" if question.candidate is None else f"step {number}"
    print_text(result_console(), f"{what}: {_step_text(question, step, record.metric)}{where}", indent=2)
    sys.stdout.flush()


def _step_text(question: Question, step: Step, metric: str) -> str:
    effects = ", ".join(
        f"{effect_text(metric, one)} against {other}" for (_, other), one in step.effects.items()
    )
    name = question.candidate or question.bad
    measured = f"{effects}; {blocks_count(step.blocks)}"
    reason = f" ({step.reason})" if step.reason else ""
    match step.outcome.value:
        case "skipped":
            return f"{name} is skipped: {step.reason}"
        case "cannot-tell":
            return f"{name} cannot be distinguished from {_others(question)}{reason}: {measured}"
        case "between":
            return f"{name} is between {question.good} and {question.bad}: {measured}"
        case "like-bad" if question.candidate is None:
            return f"{question.good} and {name} differ: {measured}"
        case outcome:
            like = question.good if outcome == "like-good" else question.bad
            return f"{name} is like {like}: {measured}"


def _others(question: Question) -> str:
    return question.good if question.candidate is None else f"{question.good} and {question.bad}"


def show_result(sentence: str) -> None:
    """Print the result."""
    print_text(result_console(), sentence, "bold")
    sys.stdout.flush()


def sentence(answer: Answer, versions: Versions, record: BisectionRecord) -> str:
    """The result in a sentence."""
    whole, noun, metric = answer.whole, versions.noun, record.metric
    good, bad = versions.names[0], versions.names[-1]
    blocks = sum(step.blocks for step in record.steps)
    if whole is None or not answer.possible:
        estimate = f": {effect_text(metric, whole)}" if whole else ""
        reason = f" ({answer.premise.reason})" if answer.premise.reason else ""
        return (
            f"Nothing to bisect: {bad} does not surely differ from {good}{estimate}; {blocks_count(blocks)}"
            f"{reason}."
        )
    clause = _clause(metric, whole.effect_percent)
    steps = sum(step.outcome != "skipped" for step in record.steps[1:])
    cost = f"{steps} step{'' if steps == 1 else 's'}, {blocks_count(blocks)}"
    first = answer.first_bad
    if first is None:
        names = join_words([versions.title(versions.names[number]) for number in answer.possible])
        return f"Undecided: the first {noun} that {clause} is one of {names}{_why(answer, record)}; {cost}."
    parts = [cost, *_more(answer, versions, metric)]
    if answer.effect:
        parts.insert(0, f"{effect_text(metric, answer.effect)} against {versions.names[answer.good]}")
    parts.append(f"the chance that this is the wrong {noun} is at most 5 %.")
    return f"{versions.title(first)} is the first {noun} that {clause}: {'; '.join(parts)}"


def _clause(metric: str, percent: float) -> str:
    """The direction of the change, as in "is slower"."""
    is_better = (percent > 0.0) == (metric in HIGHER_IS_BETTER)
    return relation(metric, "", "", faster=is_better).strip().removesuffix(" than")


def _why(answer: Answer, record: BisectionRecord) -> str:
    """Why more than one version is possible."""
    last = record.steps[-1]
    reasons = [f"{name} was skipped" for name in answer.skipped]
    if last.outcome == "cannot-tell":
        reason = last.reason or f"in {blocks_count(last.blocks)}"
        reasons.append(f"{last.candidate} cannot be distinguished from {last.good} and {last.bad} ({reason})")
    return f" ({'; '.join(reasons)})" if reasons else ""


def _more(answer: Answer, versions: Versions, metric: str) -> Iterator[str]:
    """What says that the found change is not the only one."""
    if answer.between:
        names = join_words(answer.between)
        verb = "is" if len(answer.between) == 1 else "are"
        other = f"another {versions.noun} changes the {metric_text(metric)} too"
        yield f"{names} {verb} between good and bad, so {other}"
    elif answer.whole is not None and answer.is_part:
        good, bad = versions.names[0], versions.names[-1]
        change = effect_text(metric, answer.whole)
        yield f"{bad} has {change} against {good}, so another {versions.noun} changes it too"
