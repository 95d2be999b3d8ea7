"""Judges a stored run: computes its verdicts and writes verdict.json.

The judge reads only files, so a run can be judged again later, on another machine, or after an interruption.
"""

from __future__ import annotations

from pathlib import Path

from dbdyno.decide.comparison import comparison_blocks
from dbdyno.decide.decision import compare_all, compare_further, with_overrides
from dbdyno.decide.factorial import judge_contrasts
from dbdyno.experiment.family import is_factorial
from dbdyno.measure.evidence import gather, scheduled
from dbdyno.rules import Decided, Records, find_all
from dbdyno.say.caveats import mark_chosen
from dbdyno.say.verdict_file import verdict_file
from dbdyno.store import EXPLAINED, MEASURED, VERDICT, Run
from dbdyno.store.document import write_texts
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import VerdictFile


def judge(run: Run) -> VerdictFile:
    """Judge a run: write verdict.json, measured.json and explained.json; returns the content of verdict.json.

    Raises StoreProblem if the run cannot be read or written.
    """
    experiment = scheduled(run)
    evidence = gather(run, experiment)
    records = Records(run, experiment, evidence)
    findings = with_overrides([*records.findings_of_run, *find_all(records)], experiment)
    comparisons = compare_all(evidence.trials, experiment, findings)
    further = compare_further(evidence.trials, experiment, findings)
    decided = Decided(run, experiment, evidence, comparisons, further)
    findings += with_overrides(find_all(decided), experiment)
    contrasts = judge_contrasts(evidence.trials, experiment, findings) if is_factorial(experiment) else None
    verdict = verdict_file(decided, contrasts, records.scaling, findings)
    verdict = mark_chosen(verdict, run.chosen_afterwards())
    trials = sorted([*evidence.trials, *evidence.replaced], key=lambda trial: trial.index)
    measured = MeasuredFile(trials=trials, comparisons=[comparison_blocks(one) for one in comparisons])
    _write(run.judged_path, verdict, measured, records.explanation)
    return verdict


def _write(folder: Path, verdict: VerdictFile, measured: MeasuredFile, explanation: ExplainedFile) -> None:
    measured.write(folder / MEASURED)
    explanation.write(folder / EXPLAINED)
    # Before the verdict, without which the run is judged again.
    failures = [trial.failure for trial in measured.trials]
    write_texts(folder, verdict.model_dump(mode="json"), explanation.model_dump(mode="json"), failures)
    verdict.write(folder / VERDICT)
