"""The content of a report, read from a run's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.finding import LEVELS, Finding
from dbdyno.report.differences import Difference, differences
from dbdyno.store import Run, StoreProblem
from dbdyno.store.explained import ChangesAt, ComparisonChanges, Costs, ExplainedFile, MeasuredChange
from dbdyno.store.measured import ComparisonBlocks, MeasuredTrial
from dbdyno.store.verdict import Comparison, Factor, Scaling, VerdictFile
from dbdyno.store.warmup_trial import derived_warmup_s

# Maximum of significant changes in the table.
REASONS = 15
# Costs of a transaction: key in explained.json and column title, in order. Empty columns are not shown.
COSTS = (
    ("cpu_us", "CPU time"),
    ("context_switches", "context switches"),
    ("cpu_wait_us", "run-queue wait"),
    ("disk_reads", "disk reads"),
    ("read_calls", "read calls"),
    ("read_kib", "read"),
    ("disk_writes", "disk writes"),
    ("write_calls", "write calls"),
    ("write_kib", "written"),
)
# Maximum of findings of one check about one subject; the others are only counted.
ALIKE_SHOWN = 3


def value(trial: MeasuredTrial, metric: str) -> float | None:
    """A figure; None without one. The throughput is 0 if the server failed."""
    shown = trial.figures is not None or (metric == "throughput" and trial.failed_by == "server")
    return trial.value(metric) if shown else None


@dataclass(frozen=True)
class Report:
    """What page, charts and tables show of one judged run."""

    run_id: str
    experiment: Experiment
    profile: str | None
    source: str
    environment: Mapping[str, Any]
    verdict: VerdictFile
    # Per comparison the effect of every single block.
    blocks: Sequence[ComparisonBlocks]
    explained: ExplainedFile
    trials: Sequence[MeasuredTrial]
    # Trial -> the block that its block repeats.
    repeats: Mapping[int, int]
    # Variant -> server.json of its first trial.
    servers: Mapping[str, Mapping[str, Any]]
    differences: Sequence[Difference]
    # Variant -> encryption, compression and authentication of the load's connections.
    sessions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The warm-up of the trials, as determined by warm-up trials or else as in the experiment.
    warmup_s: float = 0.0

    @property
    def checks(self) -> list[Finding]:
        """All findings, stops first."""
        return sorted(self.verdict.checks, key=lambda finding: LEVELS.index(finding.level))

    @property
    def shown_checks(self) -> list[tuple[Finding, int]]:
        """The findings to show, each with the number of similar ones not shown: some occur in every block."""
        groups: dict[tuple[str | None, ...], list[Finding]] = {}
        for check in self.checks:
            key = (check.level, check.code, check.subject, check.override)
            groups.setdefault(key, []).append(check)
        result: list[tuple[Finding, int]] = []
        for alike in groups.values():
            shown = alike[:ALIKE_SHOWN]
            result += [(check, 0) for check in shown[:-1]]
            result.append((shown[-1], len(alike) - len(shown)))
        return result

    @property
    def variants(self) -> list[str]:
        """Names in order of the file; the first is the baseline."""
        return [variant.name for variant in self.experiment.variants]

    @property
    def workloads(self) -> list[str]:
        """Names in order of the file."""
        return [workload.title for workload in self.experiment.workloads]

    def changes(self, comparison: Comparison) -> list[MeasuredChange]:
        """The significant changes between the variants, the most certain and largest first."""
        return [one for one in self._measures(comparison) if one.significant]

    def tested(self, comparison: Comparison) -> int:
        """How many metrics were tested."""
        return sum(one.group != "part" for one in self._measures(comparison))

    def changes_at(self, comparison: Comparison) -> list[ChangesAt]:
        """The significant changes per load, without loads that have none."""
        return [point for one in self._explained(comparison) for point in one.points if point.measures]

    def _measures(self, comparison: Comparison) -> list[MeasuredChange]:
        return [measure for one in self._explained(comparison) for measure in one.measures]

    def _explained(self, comparison: Comparison) -> list[ComparisonChanges]:
        names = (comparison.variant, comparison.workload)
        return [one for one in self.explained.comparisons if (one.variant, one.workload) == names]

    def cost_rows(self, workload: str) -> list[Costs]:
        """Costs of a transaction of each variant at each load, if the server's processes were sampled."""
        return [row for row in self.explained.costs if row.workload == workload and row.shown]

    def cost_columns(self, workload: str) -> list[tuple[str, str]]:
        """Key and title of the columns that some of these rows have."""
        rows = self.cost_rows(workload)
        return [(key, title) for key, title in COSTS if any(key in row.shown for row in rows)]

    def factor_rows(self, workload: str) -> list[Factor]:
        """The effects of the factors on a workload, then interactions; [] if the experiment has no
        factors.
        """
        return [row for row in self.verdict.factors or () if row.workload == workload]

    def scaling_rows(self, workload: str) -> list[Scaling]:
        """How each variant scales on a workload; [] if there are too few loads."""
        return [row for row in self.verdict.scaling or () if row.workload == workload]

    @property
    def open_loop(self) -> bool:
        """Whether the load is a rate; then the verdict compares latency."""
        return bool(self.experiment.load.rate)


def gather(run: Run) -> Report:
    """Read a judged run. Raises StoreProblem if it was not judged or cannot be read."""
    judged = run.judged()
    if judged is None:
        raise StoreProblem(
            f"{run.path} has not been judged", f"Run dbdyno report {run.path}, which judges it first"
        )
    verdict, measured, explained = judged
    servers: dict[str, Mapping[str, Any]] = {}
    sessions: dict[str, Mapping[str, Any]] = {}
    for stored in run.trials():
        name = str(stored.meta["variant"])
        if name not in servers and stored.server:
            servers[name] = stored.server
        if not sessions.get(name):
            sessions[name] = stored.session()
    experiment = run.experiment()
    derived_s = derived_warmup_s(run)
    return Report(
        run_id=run.path.name,
        experiment=experiment,
        profile=run.profile,
        source=(run.path / "experiment.toml").read_text(encoding="utf-8", errors="replace"),
        environment=run.environment,
        verdict=verdict,
        blocks=measured.comparisons,
        explained=explained,
        trials=measured.trials,
        repeats={trial.index: trial.repeats for trial in run.schedule() if trial.repeats is not None},
        servers={v.name: servers[v.name] for v in experiment.variants if v.name in servers},
        sessions={v.name: sessions[v.name] for v in experiment.variants if sessions.get(v.name)},
        differences=differences(servers, [v.name for v in experiment.variants if v.name in servers]),
        warmup_s=experiment.load.warmup_allowance_s() if derived_s is None else derived_s,
    )
