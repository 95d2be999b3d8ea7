"""The content of a report, read from a judged run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from dbdyno import result_text
from dbdyno.experiment.differences import changes_server
from dbdyno.experiment.metrics import is_latency
from dbdyno.experiment.model import Experiment
from dbdyno.explain import TABLE_COLUMNS
from dbdyno.finding import LEVELS, Finding, FreeForm
from dbdyno.report.replication import embedded
from dbdyno.result_text import trials_count
from dbdyno.server_record import ServerRecord
from dbdyno.store import Run, StoredTrial
from dbdyno.store.afterwards import ChosenAfterwards, choices_text
from dbdyno.store.endings import Shares, read_endings, read_resumptions, time_shares
from dbdyno.store.explained import ComparisonChanges, Costs, ExplainedFile, MeasuredChange, PointChanges
from dbdyno.store.judgement import LaterJudgement, later_judgements
from dbdyno.store.measured import ComparisonBlockEffects, MeasuredTrial
from dbdyno.store.preparation import chosen_workers, derived_warmup_s
from dbdyno.store.trial import Session, sessions_of
from dbdyno.store.verdict import Comparison, FactorEffect, Scaling, VerdictFile
from dbdyno.text import compose, compose_count, join
from dbdyno.variables.differences import DURABILITY_NAMES, Difference, differences, durability

# Maximum number of shown findings of one check about one subject; the others are only counted.
SIMILAR_MAX = 3
# Comparisons that the page shows unfolded.
COMPARISONS_MAX = 3


def value(trial: MeasuredTrial, metric: str) -> float | None:
    """A metric of a trial; None if it is unknown. The throughput is 0 if the server failed."""
    is_known = trial.figures is not None or (metric == "throughput" and trial.failed_by == "server")
    return trial.value(metric) if is_known else None


# Loads with charts of their own; those of ten would make the page longer, and say no more.
LOADS_MAX = 4


@dataclass(frozen=True)
class Report:
    """The data of one judged run that page, charts and tables show."""

    run_id: str
    experiment: Experiment
    profile: str | None
    # The text of experiment.toml.
    source: str
    environment: FreeForm
    verdict: VerdictFile
    # The effects of the single blocks of each comparison, in the order of `verdict.comparisons`.
    blocks: Sequence[ComparisonBlockEffects]
    explained: ExplainedFile
    trials: Sequence[MeasuredTrial]
    # Index of a trial in a repeated block -> the number of the original block.
    repeats: Mapping[int, int]
    # Numbers of the blocks that were measured partly before and partly after the run was resumed.
    resumed_blocks: frozenset[int]
    # Variant -> server.json of its first trial.
    servers: Mapping[str, ServerRecord]
    differences: Sequence[Difference]
    # Variant -> encryption, compression and authentication of the load generator's connections.
    sessions: Mapping[str, Session] = field(default_factory=dict)
    # The warm-up of every trial: as measured by the warm-up trials, else as in the experiment file.
    warmup_s: float = 0.0
    # Event loops of the load generator in every trial.
    workers: int = 1
    # The engines of a fleet; empty without one.
    engines: Sequence[EngineRow] = ()
    # The shares of the steps in the time of all calls of `compare`; None if it is not known.
    shares: Shares | None = None
    # SHA-256 of the experiment, taken before the first trial.
    hash: str = ""
    # Which judgement of the run this is, and which others it has.
    judgements: Sequence[str] = ()
    # What `dbdyno replicate` needs, as JSON without characters of HTML.
    replication: str = ""

    @property
    def checks(self) -> list[Finding]:
        """All findings, stops first."""
        return sorted(self.verdict.checks, key=lambda finding: LEVELS.index(finding.level))

    @property
    def shown_checks(self) -> list[tuple[Finding, int]]:
        """The findings to show. The last of several similar findings has the number of those not shown."""
        groups: dict[tuple[str | None, ...], list[Finding]] = {}
        for check in self.checks:
            key = (check.level, check.code, check.subject, check.override)
            groups.setdefault(key, []).append(check)
        result: list[tuple[Finding, int]] = []
        for similar in groups.values():
            shown = similar[:SIMILAR_MAX]
            result += [(check, 0) for check in shown[:-1]]
            result.append((shown[-1], len(similar) - len(shown)))
        return result

    @property
    def check_groups(self) -> list[list[tuple[Finding, int]]]:
        """`shown_checks` by code: the page shows the first of a group, and folds the others. Every stop has a
        cause of its own, and is a group.
        """
        groups: dict[tuple[str, ...], list[tuple[Finding, int]]] = {}
        for check, more in self.shown_checks:
            of_stop = (check.subject, check.text) if check.level == "stop" else ()
            groups.setdefault((check.level, check.code, *of_stop), []).append((check, more))
        return list(groups.values())

    @property
    def is_long(self) -> bool:
        """Whether there are so many comparisons that the page shows the verdicts, and folds the rest."""
        is_summed_up = self.verdict.is_summed_up or bool(self.verdict.factors)
        return is_summed_up or len(self.verdict.comparisons) > COMPARISONS_MAX

    @property
    def main_charts(self) -> str:
        """The beginning of the names of the charts that show the result."""
        if self.is_long:
            return "latency-" if self.is_open_loop else "throughput-"
        return "effect-"

    @property
    def durability(self) -> dict[str, list[str | None]]:
        """The settings of durability and isolation: variable -> its value in each of `servers`."""
        values = [
            durability(server, self.experiment.variant(name).session.variables)
            for name, server in self.servers.items()
        ]
        return {
            key: [entry.get(key) for entry in values]
            for key in DURABILITY_NAMES
            if any(key in entry for entry in values)
        }

    @property
    def blocks_text(self) -> str:
        """The number of planned blocks, or where and by which rule the run stopped."""
        design, rule = self.experiment.design, self.verdict.stopping
        if design.stop is None or rule is None:
            return f"{design.blocks}"
        return compose(
            "stopped after {blocks} of at most {blocks_at_most} ({stop_text})",
            blocks=rule.blocks,
            blocks_at_most=rule.blocks_at_most,
            stop_text=design.stop_text,
        )

    @property
    def skips_loads(self) -> bool:
        """Whether the charts of single loads leave some out."""
        return len({trial.point for trial in self.trials}) > LOADS_MAX

    @property
    def summary(self) -> str:
        """The verdicts without their caveats, for a preview of the page."""
        sentences = [judged.statement for judged, _ in self.verdict.sentences]
        sentences += [capacity.statement for capacity in self.verdict.capacities or ()]
        if self.verdict.suites:
            sentences = self.verdict.summary_sentences
        return join(" ", sentences) if sentences else compose("One variant only.")

    @property
    def variants(self) -> list[str]:
        """Names of the variants in the order of the experiment file; the first is the baseline."""
        return [variant.name for variant in self.experiment.variants]

    @property
    def workloads(self) -> list[str]:
        """Titles of the workloads in the order of the experiment file."""
        return [workload.title for workload in self.experiment.workloads]

    def changes(self, comparison: Comparison) -> list[MeasuredChange]:
        """The costs that differ significantly between the two variants: resources first, the largest change
        first.
        """
        return [change for change in self._cost_changes(comparison) if change.significant]

    def tested_count(self, comparison: Comparison) -> int:
        """Number of costs that were tested for a significant change."""
        return sum(change.group != "part" for change in self._cost_changes(comparison))

    def changes_per_load(self, comparison: Comparison) -> list[PointChanges]:
        """The significant changes at each load, without loads that have none."""
        return [point for entry in self._entries(comparison) for point in entry.points if point.measures]

    def _cost_changes(self, comparison: Comparison) -> list[MeasuredChange]:
        return [change for entry in self._entries(comparison) for change in entry.measures]

    def _entries(self, comparison: Comparison) -> list[ComparisonChanges]:
        """The entry of explained.json for a comparison, as a list of one; [] without one."""
        names = (comparison.variant, comparison.workload)
        return [entry for entry in self.explained.comparisons if (entry.variant, entry.workload) == names]

    def cost_rows(self, workload: str) -> list[Costs]:
        """The costs of a transaction for each variant and load; [] if the servers' processes were not
        sampled.
        """
        return [row for row in self.explained.costs if row.workload == workload and row.shown]

    def cost_columns(self, workload: str) -> list[tuple[str, str]]:
        """Key and title of the columns that at least one of these rows has."""
        rows = self.cost_rows(workload)
        return [(key, title) for key, title in TABLE_COLUMNS.items() if any(key in row.shown for row in rows)]

    def factor_rows(self, workload: str) -> list[FactorEffect]:
        """The effects of the factors on a workload, then the interactions; [] without factors."""
        return [row for row in self.verdict.factors or () if row.workload == workload]

    def scaling_rows(self, workload: str) -> list[Scaling]:
        """How each variant scales on a workload; [] if there are too few loads."""
        return [row for row in self.verdict.scaling or () if row.workload == workload]

    @property
    def has_tied_latency(self) -> bool:
        """Whether the report compares latencies that throughput determines."""
        has_latency = any(map(is_latency, self.experiment.metrics))
        return self.experiment.ties_latency and (
            has_latency or any(comparison.secondary_metrics for comparison in self.verdict.comparisons)
        )

    @property
    def is_open_loop(self) -> bool:
        """Whether the load is a rate. If it is, the verdict compares latency."""
        return self.experiment.load.is_open


def gather(run: Run) -> Report:
    """Read a judged run. Raises StoreProblem if the run was not judged or a file cannot be read."""
    verdict, measured, explained = run.require_judged()
    servers: dict[str, ServerRecord] = {}
    trials = run.trials()
    sessions = sessions_of(trials)
    for trial in trials:
        name = str(trial.meta["variant"])
        if name not in servers and trial.server:
            servers[name] = trial.server
    experiment = run.experiment()
    derived_s, declared = derived_warmup_s(run), experiment.client.workers
    return Report(
        run_id=run.path.name,
        experiment=experiment,
        profile=run.profile,
        source=run.source(),
        environment=run.environment,
        verdict=verdict,
        blocks=measured.comparisons,
        explained=explained,
        trials=measured.trials,
        repeats={trial.index: trial.repeats for trial in run.schedule() if trial.repeats is not None},
        resumed_blocks=frozenset(
            block for resumption in read_resumptions(run) for block in resumption.blocks
        ),
        servers={v.name: servers[v.name] for v in experiment.variants if v.name in servers},
        sessions={v.name: sessions[v.name] for v in experiment.variants if sessions.get(v.name)},
        differences=differences(
            servers,
            [variant.name for variant in experiment.variants if variant.name in servers],
            {variant.name for variant in experiment.variants[1:] if changes_server(experiment, variant)},
        ),
        warmup_s=experiment.load.warmup_allowance_s() if derived_s is None else derived_s,
        workers=chosen_workers(run) or (1 if declared == "auto" else declared),
        engines=engine_rows(trials),
        shares=time_shares(read_endings(run)),
        hash=run.hash,
        judgements=judgement_texts(run, verdict),
        replication=embedded(run, verdict, servers) if verdict.sentences else "",
    )


@dataclass(frozen=True)
class EngineRow:
    """One engine in all trials of a variant."""

    variant: str
    name: str
    # Clock offset and largest skew of the start in milliseconds, share of the transactions, mean latency in
    # milliseconds, and CPU time per wall time of its threads in its busiest trial.
    cells: Sequence[str]


def engine_rows(trials: Iterable[StoredTrial]) -> list[EngineRow]:
    """A row for each variant and engine; empty without a fleet."""
    records: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    events: dict[str, int] = {}
    for trial in trials:
        variant = str(trial.meta["variant"])
        for engine in trial.meta.get("fleet", ()) if trial.is_done else ():
            records.setdefault((variant, str(engine["name"])), []).append(engine)
            events[variant] = events.get(variant, 0) + int(engine["events"])
    return [
        EngineRow(variant, name, _engine_cells(of_engine, events[variant]))
        for (variant, name), of_engine in records.items()
    ]


def _engine_cells(of_engine: Sequence[Mapping[str, Any]], events: int) -> list[str]:
    latencies = [entry["latency_mean_us"] for entry in of_engine if entry["latency_mean_us"] is not None]
    events_of_engine = sum(int(entry["events"]) for entry in of_engine)
    return [
        f"{median(entry['clock_offset_us'] for entry in of_engine) / 1000.0:+.1f}",
        f"{max(abs(entry['start_skew_us']) for entry in of_engine) / 1000.0:.1f}",
        f"{100.0 * events_of_engine / events:.1f} %" if events else result_text.MISSING,
        result_text.milliseconds(median(latencies)) if latencies else result_text.MISSING,
        f"{100.0 * max(float(entry['generator_cpu'] or 0.0) for entry in of_engine):.0f} %",
    ]


def judgement_texts(run: Run, verdict: VerdictFile) -> list[str]:
    """What was chosen when data had been seen, then the other judgements of the run; [] if the run has one
    judgement and that was planned. Raises StoreProblem.
    """
    texts: list[str] = [_choice(afterward) for afterward in verdict.chosen_afterwards or ()]
    others = [judgement for judgement in later_judgements(run) if judgement.judged_path != run.judged_path]
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
    return [*texts, shown, *(_summary_sentences(entry) for entry in others)]


def _count(number: int) -> str:
    return compose(
        "The run was judged again {number} times, and error rates do not hold for a choice among these.",
        number=number,
    )


def _choice(choice: ChosenAfterwards) -> str:
    """One choice, and when it was made."""
    text = compose(
        "Chosen afterwards, after {trials}: {choices}",
        trials=trials_count(choice.trials),
        choices=join(", ", [*choice.texts()]),
    )
    overridden = [change for change in choice.changes if change.key.startswith("override.") and change.now]
    reasons = [choice.reason] if choice.reason else [str(entry.now) for entry in overridden]
    return join("", (text, compose(" (“{reason}”)", reason="”, “".join(reasons)) if reasons else "", "."))


def _summary_sentences(judgement: LaterJudgement) -> str:
    """The sentences of a later judgement; what it changed, if its files are missing."""
    judged = judgement.judge_files()
    folder = str(judgement.judged_path.relative_to(judgement.path))
    sentences = [choices_text([judgement.choice])] if judged is None else judged[0].summary_sentences
    return compose("{folder}: {sentences}", folder=folder, sentences=join(" ", sentences))
