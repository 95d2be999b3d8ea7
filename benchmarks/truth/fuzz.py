"""Judges and shows drawn runs of every kind, and looks for faults: exceptions, and words without evidence.

::

    python -m benchmarks.truth.fuzz --experiments 10000 --seed 1
    python -m benchmarks.truth.fuzz --seed 1 --case 4711

Each run is judged as `compare` does it: the stopping rule after some of its blocks, then the judge; and shown
in the terminal, as Markdown, CSV and JSON. See `fuzz_cases` for what is drawn. A fault names its case, which
the second command repeats alone.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema_rs

from dbdyno.decide import stopping
from dbdyno.decide.gate import gate, require_gate
from dbdyno.experiment.metrics import HIGHER_IS_BETTER
from dbdyno.measure import evidence
from dbdyno.problem import Problem
from dbdyno.report import tables
from dbdyno.report.charts import all_charts
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.report.page import page
from dbdyno.report.rendering import RenderedCharts
from dbdyno.say.wording import DIRECTION_BY_HOLM
from dbdyno.store import EXPLAINED, MEASURED, VERDICT
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import VerdictFile
from dbdyno.terminal.result import show
from dbdyno.verdict import judge

from .fuzz_cases import Case, draw

EXPERIMENTS, SEED = 1_000, 1
# Of so many cases one is compared with the schemas, and one has a page with charts, because both take longer
# than all else; the models, from which the schemas are made, check every case.
SCHEMA_EVERY, PAGE_EVERY = 16, 64
FILES = {VERDICT: VerdictFile, MEASURED: MeasuredFile, EXPLAINED: ExplainedFile}
# A number that a sentence must not have.
NOT_A_NUMBER = re.compile(r"(?<![\w.-])[+-]?(?:nan|inf)(?![\w.-])", re.IGNORECASE)
# Verdicts that say something about the effect.
_WORDS = ("faster", "slower", "mixed", "equivalent")


def check(seed: int, number: int) -> list[str]:
    """The faults of one case, each with its place."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(os, "fsync"),
        warnings.catch_warnings(action="error"),
    ):
        try:
            case = draw(seed, number, Path(folder))
            with mock.patch.object(evidence, "_measure_group", case.measure_group):
                return list(_faults(case))
        except Exception as error:
            return [f"{type(error).__name__}: {error}, in {_place(error)}"]


def _place(error: Exception) -> str:
    """The last function of dbdyno in a traceback."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "/dbdyno/" in one.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.name}"


def _faults(case: Case) -> Iterator[str]:
    run = case.run
    if case.experiment.design.stop is not None:
        _look(case)
    judge(run)
    for name, document in FILES.items():
        text = (run.path / name).read_text(encoding="utf-8")
        value = json.loads(text, parse_constant=_refuse)
        errors = _validator(document).iter_errors(value) if case.number % SCHEMA_EVERY == 0 else ()
        for error in itertools.islice(errors, 3):
            place = "/".join(map(str, error.instance_path))
            yield f"{name} is not valid: {place}: {error.message}"
        yield from (f"{name}: {sentence!r}" for sentence in _texts(value) if NOT_A_NUMBER.search(sentence))
        if name == VERDICT:
            yield from _words(value)
        elif name == EXPLAINED:
            yield from _changes(value)
    for name, text in _shown(case).items():
        yield from (f"{name}: {line!r}" for line in text.splitlines() if NOT_A_NUMBER.search(line))


def _look(case: Case) -> None:
    """Ask the stopping rule after a third, two thirds and all of the trials."""
    count = len(case.run.ended)
    for until in (count // 3, 2 * count // 3, count):
        case.run.until = until
        stopping.decide(case.run)
    case.run.until = None


def _shown(case: Case) -> dict[str, str]:
    """What a user sees, by name of the form."""
    run, output, errors = case.run, io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        show(run, case.experiment)
    report = gather(run)
    language = "ko" if case.number % 4 == 0 else "en"
    forms = {
        "terminal": output.getvalue() + errors.getvalue(),
        "Markdown": as_markdown(report, language=language),
        "CSV": tables.as_csv(run),
        "JSON": tables.as_json(run),
        "gate": "\n".join(_other_gate(case)),
    }
    if case.number % PAGE_EVERY == 0:
        charts = all_charts(report)
        for chart in charts:
            json.dumps(chart.specification.to_dict(), allow_nan=False)
        forms["HTML"] = re.sub("<[^>]*>", "\n", page(report, charts, RenderedCharts(), language))
    return forms


def _other_gate(case: Case) -> list[str]:
    """The sentences of a gate whose limit was not declared before the run."""
    verdict = case.run.verdict()
    assert verdict is not None, "the run has been judged"
    try:
        require_gate(case.experiment)
    except Problem:
        return []
    return gate(verdict, 2.0).sentences


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@cache
def _validator(
    document: type[VerdictFile | MeasuredFile | ExplainedFile],
) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(document.schema_text()))


def _texts(value: object) -> Iterator[str]:
    """Every text of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _words(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Verdicts, results of gates, and directions that their intervals do not show."""
    for comparison in verdict["comparisons"]:
        for one in (comparison, *comparison.get("metrics", ())):
            for effect in (one["curve"], *one["points"]):
                yield from find_word_faults(effect)
            if one["curve"]["verdict"] == "mixed":
                words = {point["verdict"] for point in one["points"]}
                if not {"faster", "slower"} <= words:
                    yield f"mixed, but the loads are {sorted(map(str, words))}"
        for line in comparison.get("secondary_metrics", ()):
            if line["direction"] is not None:
                yield from _direction(line, is_above=line["direction"] == "worse")
    for factor in verdict.get("factors", ()):
        yield from find_word_faults(factor)
    for suite in verdict.get("suites", ()):
        for cell in itertools.chain.from_iterable(cost["tests"] for cost in suite["costs"]):
            if cell["direction"] is not None:
                yield from _direction(cell, is_above=cell["direction"] == "more")
    if "gate" in verdict:
        yield from _gate(verdict)


def find_word_faults(effect: Mapping[str, Any]) -> Iterator[str]:
    """A verdict whose interval is missing, or contradicts it. Holm's procedure may give a direction whose
    interval contains zero, if the sentence says so.
    """
    word, metric = effect["verdict"], effect["metric"]
    if word in ("faster", "slower"):
        if effect["interval_percent"] is None or DIRECTION_BY_HOLM not in effect.get("sentence", ""):
            yield from _direction(effect, is_above=(word == "faster") == (metric in HIGHER_IS_BETTER))
    elif word in _WORDS and effect["interval_percent"] is None:
        yield f"{word} without an interval"
    elif word == "unfinished" and effect["interval_percent"] is not None:
        yield "an unfinished run has an interval"
    elif word == "too-few-blocks" and effect["interval_percent"] is not None:
        yield f"{word}, but there is an interval"


def _direction(effect: Mapping[str, Any], *, is_above: bool) -> Iterator[str]:
    """A direction without an interval on that side of zero."""
    ends, estimate = effect["interval_percent"], effect["effect_percent"]
    if ends is None:
        yield "a direction without an interval"
        return
    if estimate is None and ends == [None, None]:
        # The baseline's server failed in every trial: estimate and interval are infinite, which JSON is not.
        return
    nearest = ends[0] if is_above else ends[1]
    if nearest is None or (nearest <= 0.0 if is_above else nearest >= 0.0):
        yield f"a direction ({'above' if is_above else 'below'} zero) with the interval {ends}"
    if estimate is not None and (estimate <= 0.0) == is_above:
        yield f"a direction ({'above' if is_above else 'below'} zero) with the estimate {estimate}"


def _excludes_zero(effect: Mapping[str, Any]) -> bool:
    low, high = effect["interval_percent"] or (None, None)
    return (low is not None and low > 0.0) or (high is not None and high < 0.0)


def _gate(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Results of a gate whose comparison has no interval."""
    entries = {(one["variant"], one["workload"]): one["curve"] for one in verdict["comparisons"]}
    for one in verdict["gate"]["comparisons"]:
        curve = entries[one["variant"], one["workload"]]
        if one["result"] in ("not-inferior", "worse") and curve["interval_percent"] is None:
            yield f"gate {one['result']} without an interval"


def _changes(explained: Mapping[str, Any]) -> Iterator[str]:
    """Significant changes of costs that their intervals do not show."""
    for comparison in explained["comparisons"]:
        for one in comparison["measures"]:
            if one["significant"] and not _excludes_zero(one):
                yield f"a significant change of {one['key']} with the interval {one['interval_percent']}"


def main() -> int:
    """Check the cases, and print the faults and how often each kind occurred."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth.fuzz", description=__doc__)
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--case", type=int, help="check only the case with this number")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.experiments)
    if options.case is not None:
        numbers = range(options.case, options.case + 1)
    kinds: Counter[str] = Counter()
    faulty = 0
    for number in numbers:
        faults = check(options.seed, number)
        faulty += bool(faults)
        kinds.update({re.sub(r"[-+]?\d[\d.e+-]*", "N", fault)[:160] for fault in faults})
        for fault in faults[:5]:
            print(f"case {number}: {fault}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:6}  {kind}")
    print(f"{faulty} of {len(numbers)} cases have faults (seed {options.seed})")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
