"""Which judgement of a run a report shows, and which others the run has."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.store import Run
from dbdyno.store.afterwards import ChosenAfterwards, choices_text
from dbdyno.store.judgement import LaterJudgement, later_judgements
from dbdyno.store.verdict import VerdictFile
from dbdyno.text import compose, compose_count, join


def judgement_texts(run: Run, verdict: VerdictFile) -> list[str]:
    """What was chosen when data had been seen, then the other judgements of the run; [] if the run has one
    judgement and that was planned. Raises StoreProblem.
    """
    texts: list[str] = [_choice(one) for one in verdict.chosen_afterwards or ()]
    others = [one for one in later_judgements(run) if one.judged_path != run.judged_path]
    if isinstance(run, LaterJudgement):
        where = compose("The planned judgement of this run is in {folder}.", folder=run.path.name)
        return [*texts, where, *([_count(len(others) + 1)] if others else [])]
    if not others:
        return texts
    shown = compose_count(
        len(others),
        "This is the judgement that was planned; when the data had been seen, the run was judged again once:",
        "This is the judgement that was planned; when the data had been seen, the run was judged again "
        "{number} times, and error rates do not hold for a choice among these:",
    )
    return [*texts, shown, *(_headlines(one) for one in others)]


def _count(number: int) -> str:
    return compose(
        "The run was judged again {number} times, and error rates do not hold for a choice among these.",
        number=number,
    )


def _choice(choice: ChosenAfterwards) -> str:
    """One choice, and when it was made."""
    text = compose(
        "Chosen afterwards, when {trials} trials had been measured: {choices}",
        trials=choice.trials,
        choices=_every_text([choice]),
    )
    overridden = [one for one in choice.changes if one.key.startswith("override.") and one.now]
    reasons = [choice.reason] if choice.reason else [str(one.now) for one in overridden]
    return join("", (text, compose(" (“{reason}”)", reason="”, “".join(reasons)) if reasons else "", "."))


def _every_text(choices: Sequence[ChosenAfterwards]) -> str:
    return join(", ", [text for one in choices for text in one.texts()])


def _headlines(judgement: LaterJudgement) -> str:
    """The sentences of a later judgement; what it changed, if its files are missing."""
    judged = judgement.judge_files()
    folder = str(judgement.judged_path.relative_to(judgement.path))
    sentences = [choices_text([judgement.choice])] if judged is None else judged[0].headlines
    return compose("{folder}: {sentences}", folder=folder, sentences=join(" ", sentences))
