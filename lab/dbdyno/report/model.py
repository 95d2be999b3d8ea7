"""What a report shows, gathered from a run's folder and from nowhere else.

Everything a template or a chart needs is read once into plain values; nothing is computed here that could
change a verdict. The judge wrote verdict.json and measured.json before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.finding import FINDINGS, LEVELS, Finding
from dbdyno.report.differences import Difference, differences
from dbdyno.store import EXPLAINED, MEASURED, VERDICT_SCHEMA, Run, StoreProblem
from dbdyno.store.files import read_json
from dbdyno.store.rehearsal import rehearsed_warmup_s

# Rows of significant changes that are shown.
REASONS = 15
# The same for each of several loads.
REASONS_AT = 3
# What a transaction costs: key of explained.json and head of its column, in order. Columns that no row has
# are left out.
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
# Findings of one check about one subject that are shown in full.
ALIKE_SHOWN = 3


@dataclass(frozen=True)
class Trial:
    """One planned trial. Every figure is None where the trial has none."""

    index: int
    block: int
    variant: str
    workload: str
    # "connections" or "rate", and how many.
    unit: str
    level: float
    failure: str | None
    # "server" where the failure is a result; else the trial is left out ("harness", "not-run").
    failed_by: str | None
    figures: Mapping[str, Any] | None
    # Start and end of what counts, and end of the warm-up phase, in seconds since the start of the run.
    window_s: tuple[float, float] | None
    # Middle of each interval in seconds, and transactions per second in it.
    series: Sequence[tuple[float, float]]
    # The block that this one repeats.
    repeats: int | None = None

    def value(self, metric: str) -> float | None:
        """A figure. The throughput of a trial that failed by its server is 0."""
        if self.figures is not None:
            return float(self.figures[metric])
        return 0.0 if metric == "throughput" and self.failed_by == "server" else None


@dataclass(frozen=True)
class Report:
    """A whole report."""

    run_id: str
    experiment: Experiment
    profile: str | None
    source: str
    environment: Mapping[str, Any]
    verdict: Mapping[str, Any]
    # Per comparison the effect of every single block: measured.json.
    blocks: Sequence[Mapping[str, Any]]
    trials: Sequence[Trial]
    # Variant -> server.json of its first trial.
    servers: Mapping[str, Mapping[str, Any]]
    differences: Sequence[Difference]
    # explained.json; empty where the run was judged before there was one.
    why: Mapping[str, Any] = field(default_factory=dict)
    # Variant -> encryption, compression and authentication of the load's connections.
    sessions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The warm-up of the trials: what a rehearsal chose, else that of the experiment.
    warmup_s: float = 0.0

    @property
    def checks(self) -> list[Finding]:
        """All findings, stops first."""
        findings = FINDINGS.validate_python(self.verdict["checks"])
        return sorted(findings, key=lambda finding: LEVELS.index(finding.level))

    @property
    def shown_checks(self) -> list[tuple[Finding, int]]:
        """The findings to show, and how many like each are left out: some are made in every block."""
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
    def sentences(self) -> list[tuple[str, str | None, Mapping[str, Any]]]:
        """Sentence, verdict code and entry of everything that gets a word."""
        return sentences(self.verdict)

    @property
    def variants(self) -> list[str]:
        """Names in order of the file; the first is the baseline."""
        return [variant.name for variant in self.experiment.variants]

    @property
    def workloads(self) -> list[str]:
        """Names in order of the file."""
        return [workload.title for workload in self.experiment.workloads]

    def reasons(self, comparison: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What changed significantly between the variants, first things first; at most `REASONS`."""
        return self._changed(comparison)[:REASONS]

    def changed(self, comparison: Mapping[str, Any]) -> int:
        """How many metrics changed significantly; parts of another one are not counted."""
        return sum(one["group"] != "part" for one in self._changed(comparison))

    def _changed(self, comparison: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return [one for one in self._explained(comparison).get("measures", ()) if one["moved"]]

    def reasons_at(
        self, comparison: Mapping[str, Any]
    ) -> list[tuple[Mapping[str, float], Sequence[Mapping[str, Any]], int]]:
        """The same at each of several loads: the load, at most `REASONS_AT` of them, and how many more."""
        return [
            (point["at"], point["moved"][:REASONS_AT], max(0, len(point["moved"]) - REASONS_AT))
            for point in self._explained(comparison).get("points", ())
            if point["moved"]
        ]

    def counted(self, comparison: Mapping[str, Any]) -> int:
        """How many metrics were tested."""
        return sum(one["group"] != "part" for one in self._explained(comparison).get("measures", ()))

    def _explained(self, comparison: Mapping[str, Any]) -> Mapping[str, Any]:
        for entry in self.why.get("comparisons", ()):
            if (entry["variant"], entry["workload"]) == (comparison["variant"], comparison["workload"]):
                found: Mapping[str, Any] = entry
                return found
        return {}

    def cost_rows(self, workload: str) -> list[Mapping[str, Any]]:
        """What a transaction cost each variant at each load, where the server's processes were seen."""
        return [row for row in self.why.get("costs", ()) if row["workload"] == workload and row["told"]]

    def cost_columns(self, workload: str) -> list[tuple[str, str]]:
        """Key and title of the columns that some of these rows have."""
        rows = self.cost_rows(workload)
        return [(key, title) for key, title in COSTS if any(key in row["told"] for row in rows)]

    def factor_rows(self, workload: str) -> list[Mapping[str, Any]]:
        """The effects of the factors on a workload, then interactions; [] where the experiment has none."""
        return [row for row in self.verdict.get("factors", ()) if row["workload"] == workload]

    def scaling_rows(self, workload: str) -> list[Mapping[str, Any]]:
        """How each variant scales on a workload; [] where there are too few loads."""
        return [row for row in self.verdict.get("scaling", ()) if row["workload"] == workload]

    @property
    def open_loop(self) -> bool:
        """Whether the load is a rate, so that latency is compared."""
        return bool(self.experiment.load.rate)


def gather(run: Run) -> Report:
    """Read a judged run. Raises StoreProblem where it has no verdict of this schema or cannot be read."""
    verdict = run.verdict()
    if verdict is None or to_judge(run):
        raise StoreProblem(
            f"{run.path} has not been judged", f"Run dbdyno report {run.path}, which judges it first"
        )
    if verdict["schema"] > VERDICT_SCHEMA:
        raise StoreProblem(
            f"{run.path} was judged by a newer dbdyno (schema {verdict['schema']}; this one reads "
            f"{VERDICT_SCHEMA})",
            "Use that version, or remove verdict.json to have it judged again",
        )
    measured = read_json(run.path / MEASURED)
    repeats = {entry["index"]: entry.get("repeats") for entry in run.schedule()}
    servers: dict[str, Mapping[str, Any]] = {}
    sessions: dict[str, Mapping[str, Any]] = {}
    for stored in run.trials():
        name = str(stored.meta["variant"])
        if name not in servers and stored.server:
            servers[name] = stored.server
        if not sessions.get(name):
            sessions[name] = stored.session()
    experiment = run.experiment()
    rehearsed_s = rehearsed_warmup_s(run)
    return Report(
        run_id=run.path.name,
        experiment=experiment,
        profile=run.profile,
        source=(run.path / "experiment.toml").read_text(encoding="utf-8", errors="replace"),
        environment=run.environment,
        verdict=verdict,
        blocks=measured["comparisons"],
        trials=[_trial(entry, repeats) for entry in measured["trials"]],
        servers={v.name: servers[v.name] for v in experiment.variants if v.name in servers},
        sessions={v.name: sessions[v.name] for v in experiment.variants if sessions.get(v.name)},
        differences=differences(servers, [v.name for v in experiment.variants if v.name in servers]),
        why=read_json(run.path / EXPLAINED) if (run.path / EXPLAINED).exists() else {},
        warmup_s=experiment.load.warmup_allowance_s() if rehearsed_s is None else rehearsed_s,
    )


def to_judge(run: Run) -> bool:
    """Whether a run has no verdict yet, or one of an older form, which would lack what is shown today."""
    verdict = run.verdict()
    return verdict is None or verdict.get("schema", 0) < VERDICT_SCHEMA or not (run.path / MEASURED).exists()


def sentences(verdict: Mapping[str, Any]) -> list[tuple[str, str | None, Mapping[str, Any]]]:
    """Sentence, verdict code and entry of everything that gets a word: comparisons, then factors.

    The comparisons of a factorial run have none; their words stand in its factors.
    """
    factors = verdict.get("factors", ())
    curves = [(entry["curve"], entry) for entry in verdict["comparisons"]]
    chosen = [
        *((curve, entry) for curve, entry in curves if curve["verdict"] or not factors),
        *((row, row) for row in factors),
    ]
    return [(words["sentence"], words["verdict"], entry) for words, entry in chosen]


def _trial(entry: Mapping[str, Any], repeats: Mapping[int, int | None]) -> Trial:
    place, window = entry["place"], entry["window"]
    ((unit, level),) = place["at"].items()
    return Trial(
        index=place["index"],
        block=place["block"],
        variant=place["variant"],
        workload=place["workload"],
        unit=unit,
        level=level,
        failure=entry["failure"],
        failed_by=entry["failed_by"],
        figures=entry["figures"],
        window_s=None if window is None else (window["start_us"] / 1e6, window["end_us"] / 1e6),
        series=[
            ((start_us + end_us) / 2e6, events / ((end_us - start_us) / 1e6))
            for start_us, end_us, events in entry["seconds"]
        ],
        repeats=repeats.get(place["index"]),
    )
