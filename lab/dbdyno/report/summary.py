"""A stored run in a few words and numbers, for lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno import result_text
from dbdyno.experiment.metrics import metric_text
from dbdyno.report import formatting
from dbdyno.store import ChangedRun, Run, StoreProblem
from dbdyno.store.document import read_texts
from dbdyno.store.endings import ended_text, read_endings
from dbdyno.store.listing import Imported, began, is_imported, is_running
from dbdyno.store.run import run_order
from dbdyno.store.verdict import CombinedEffect, Comparison, FactorEffect, ServerCapacity
from dbdyno.text import compose, join, recall


@dataclass(frozen=True)
class Summary:
    """A stored run in a few words and numbers."""

    number: int
    path: str
    experiment: str
    # ISO 8601 without a time zone, which is UTC; empty if the folder's name does not tell it.
    began: str
    # judged, not-judged, running, changed, unreadable, or document: read by dbdyno read.
    state: str
    # Number of trials that have begun, and of planned ones.
    trials: int = 0
    planned: int = 0
    # One per verdict sentence.
    results: Sequence[dict[str, Any]] = ()
    # The same as text, or why the run cannot be read.
    text: str = ""
    # A text for each of the results.
    texts: Sequence[str] = ()

    @property
    def words(self) -> set[str]:
        """What `dbdyno list --verdict` may name: the state, and the verdicts of a judged run."""
        return {self.state, *(str(result["verdict"]) for result in self.results)}


def summarize(path: Path) -> Summary:
    """The summary of the run in a folder, which may be unreadable."""
    time = began(path)
    table: dict[str, Any] = {
        "number": run_order(path)[0],
        "path": str(path),
        "experiment": path.parent.name,
        "began": "" if time is None else f"{time:%Y-%m-%dT%H:%M:%S}",
    }
    try:
        if is_imported(path):
            text = recall(str(Imported.open(path).reading["verdict"]))
            return Summary(**table, state="document", text=text)
        run = Run.open(path, quick=True)
        trials, planned = run.trials_begun(), len(run.schedule())
        verdict = None if is_running(run) else run.verdict()
        if verdict is not None and verdict.is_summed_up:
            # Others are composed here.
            read_texts(run.judged_path)
        if verdict is None:
            state = "running" if is_running(run) else "not-judged"
            why = ended_text(next(reversed(read_endings(run)), None), run.findings())
            text = compose("running") if state == "running" else compose("not judged: {why}", why=why)
            return Summary(**table, state=state, trials=trials, planned=planned, text=text)
    except ChangedRun as problem:
        text = compose("changed since it was measured: {listed}", listed=problem.listed)
        return Summary(**table, state="changed", text=text)
    except StoreProblem as problem:
        return Summary(**table, state="unreadable", text=compose("cannot be read: {text}", text=problem.text))
    several = len({entry.workload for _, entry in verdict.sentences}) > 1
    texts = [_text(entry, with_workload=several) for _, entry in verdict.sentences]
    if verdict.is_summed_up:
        texts = [recall(sentence) for sentence in verdict.summary_sentences]
    elif verdict.factors:
        texts = [formatting.factor_ranking(verdict.factors)]
    elif verdict.capacities:
        texts = [_capacity(entry) for entry in verdict.capacities]
    elif verdict.chosen_afterwards:
        texts = [compose("{text} (chosen afterwards)", text=text) for text in texts]
    return Summary(
        **table,
        state="judged",
        trials=trials,
        planned=planned,
        results=[_result(effect, entry) for effect, entry in verdict.sentences],
        text=join("; ", texts) if texts else compose("one variant"),
        texts=texts,
    )


def _capacity(entry: ServerCapacity) -> str:
    """A capacity in a few words: "mariadb: 2,960/s [2,910, 3,020] with p99 below 20 ms"."""
    low, high = entry.capacity
    rate = f"> {low:,.0f}" if high is None and low else f"< {high:,.0f}" if low is None else f"{low:,.0f}"
    ends = entry.interval or (None, None)
    shown = "" if None in ends else f" [{ends[0]:,.0f}, {ends[1]:,.0f}]"
    return compose(
        "{variant}: {rate}/s{interval} with {metric} below {limit:g} ms",
        variant=entry.variant,
        rate=rate,
        interval=shown,
        metric=metric_text(entry.metric),
        limit=entry.limit_us / 1e3,
    )


def _result(effect: CombinedEffect | FactorEffect, entry: Comparison | FactorEffect) -> dict[str, Any]:
    name = {"factors": entry.factors} if isinstance(entry, FactorEffect) else {"variant": entry.variant}
    figures = {"effect_percent": effect.effect_percent, "interval_percent": effect.interval_percent}
    return {
        **name,
        "workload": entry.workload,
        "metric": effect.metric,
        "verdict": effect.verdict,
        **figures,
        "sentence": effect.sentence,
    }


def _text(entry: Comparison | FactorEffect, *, with_workload: bool) -> str:
    """A verdict in a few words: "b: faster +10.0 % [+8.0, +12.0]"."""
    if isinstance(entry, FactorEffect):
        name, word, effect = " x ".join(entry.factors), formatting.factor_verdict(entry), entry
        shown = formatting.estimate_and_interval(effect)
    else:
        name, word = entry.variant, formatting.heading(entry)
        shown = formatting.estimate_and_interval(entry.curve)
    of = compose("{name} on {workload}", name=name, workload=entry.workload) if with_workload else name
    if shown in (result_text.MISSING, formatting.UNKNOWN):
        return compose("{name}: {verdict}", name=of, verdict=word)
    return compose("{name}: {verdict} {effect}", name=of, verdict=word, effect=shown)
