"""D02: whether the server's machine had no CPU time or memory to give.

P10: whether the machine of the servers that dbdyno starts has changed between trials.

P12: how long a round trip to each server takes, and whether it decides the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding, Level
from dbdyno.measure.foreign_load import CODE, ForeignLoad
from dbdyno.measure.server_state import ServerState, by_variant
from dbdyno.result_text import blocks_count
from dbdyno.rules.register import rule
from dbdyno.store.measured import Figures, MeasuredTrial
from dbdyno.text import compose, join, mark

# Percent of the CPU time that a hypervisor may give to other machines.
_STEAL_LIMIT = 2.0
_STEAL_FIX = mark("Measure on a machine that does not share its CPUs")
_MEMORY_FIX = mark("Declare smaller caches, or stop other programs on the server's machine")


@dataclass(frozen=True)
class _Limit:
    """A counter of the machine whose mean over the trials of a variant must not exceed a limit."""

    counter: str
    # The unit of `limit`: percent of the time of all CPUs, percent of the time, or 1/s.
    per: str
    limit: float
    level: Level
    text: str
    fix: str

    def value(self, state: ServerState) -> float:
        growth = state.machine[self.counter]
        if self.per == "CPU time":
            return 100.0 * growth / state.cpu_s if state.cpu_s else 0.0
        return (100.0 if self.per == "time" else 1.0) * growth / state.seconds if state.seconds else 0.0


_LIMITS = (
    _Limit(
        "host_steal_s",
        "CPU time",
        _STEAL_LIMIT,
        "warn",
        mark(
            "the hypervisor gave {mean:.1f} % of the CPU time of the server's machine to other machines in "
            "the trials of {variant} (limit {limit:g} %)"
        ),
        _STEAL_FIX,
    ),
    _Limit(
        # A machine may swap a few pages that nobody uses.
        "host_swapped_pages",
        "second",
        10.0,
        "warn",
        mark(
            "the server's machine swapped {mean:,.0f} pages per second in the trials of {variant} "
            "(limit {limit:g})"
        ),
        _MEMORY_FIX,
    ),
    _Limit(
        "host_memory_wait_s",
        "time",
        1.0,
        "warn",
        mark(
            "processes of the server's machine waited for memory in {mean:.1f} % of the time of the trials "
            "of {variant} (limit {limit:g} %)"
        ),
        _MEMORY_FIX,
    ),
    _Limit(
        "host_iowait_s",
        "CPU time",
        20.0,
        "note",
        mark(
            "the CPUs of the server's machine were idle for {mean:.0f} % of the time of the trials of "
            "{variant} because of its disks, which limit the throughput"
        ),
        "",
    ),
)


# Steal of the load generator's machine, where it is not that of the server.
_CLIENT = _Limit(
    "generator_steal",
    "CPU time",
    _STEAL_LIMIT,
    "warn",
    mark(
        "the hypervisor gave {mean:.1f} % of the CPU time of the load generator's machine to other machines "
        "in the trials of {variant} (limit {limit:g} %)"
    ),
    _STEAL_FIX,
)


@rule("D02", caveat=mark("the server lacked CPU time or memory"))
def machine(trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]) -> Iterator[Finding]:
    """Variants in whose trials the machine lacked CPU time or memory; `states` is by index of the trial."""
    of_client = {
        trial.index: 100.0 * trial.figures.generator_steal
        for trial in trials
        if trial.figures is not None and "host_steal_s" not in states.get(trial.index, ServerState()).machine
    }
    yield from _above(_CLIENT, trials, of_client)
    for limit in _LIMITS:
        values = {i: limit.value(state) for i, state in states.items() if limit.counter in state.machine}
        yield from _above(limit, trials, values)


def _above(limit: _Limit, trials: Sequence[MeasuredTrial], values: Mapping[int, float]) -> Iterator[Finding]:
    for variant, of_variant in by_variant(trials, values).items():
        mean = fmean(of_variant)
        if mean > limit.limit:
            yield Finding(
                "D02",
                limit.level,
                compose(limit.text, mean=mean, variant=variant, limit=limit.limit),
                {"counter": limit.counter, "mean": mean, "largest": max(of_variant)},
                variant,
                fix=compose(limit.fix) if limit.fix else "",
            )


@rule("P10")
def changed_hosts(trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]) -> Iterator[Finding]:
    """A warning if trials ran on machines with other kernels, processors or memory; `states` is by index of
    the trial.
    """
    values: dict[str, list[str]] = {}
    for trial in trials:
        for key, value in states.get(trial.index, ServerState()).host.items():
            of_key = values.setdefault(key, [])
            if value not in of_key:
                of_key.append(value)
    changed = {key: of_key for key, of_key in values.items() if len(of_key) > 1}
    if not changed:
        return
    listed = join("; ", (join("", (f"{key}: ", join(", ", of_key))) for key, of_key in changed.items()))
    yield Finding(
        "P10",
        "warn",
        compose(
            "trials ran on different machines, or their machine was changed: {listed}. Blocks that have "
            "trials of both do not compare the variants alone",
            listed=listed,
        ),
        {key: list(of_key) for key, of_key in changed.items()},
        fix=compose("Resume a run on the machine on which it began, and with the same kernel"),
    )


# A difference of round trips between two variants counts if it is larger than a share of the round trip, and,
# for all statements of a transaction, than a share of its latency at the lowest load.
ROUND_TRIPS_DIFFERENCE = 0.05
OF_LATENCY = 0.01
# Round trips must take a smaller share of the latency at the lowest load.
ROUND_TRIPS_SHARE = 0.5
# Shorter round trips are mostly CPU time of client and server, whose shares D01 and the costs show.
NETWORK_US = 200.0


@dataclass(frozen=True)
class _RoundTrips:
    """The round trips of one variant in all its trials, and its transactions at the lowest load."""

    min_us: float
    p50_us: float
    p99_us: float
    statements: float
    latency_us: float


@rule("P12", caveat=mark("round trips decide a part of the result"))
def round_trips(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState], experiment: Experiment
) -> Iterator[Finding]:
    """A note with the round trips of all variants, and warnings about them; `states` is by index of the
    trial.
    """
    measured = {
        variant.name: _round_trips_of(variant.name, trials, states) for variant in experiment.variants
    }
    with_round_trips = {name: round_trips for name, round_trips in measured.items() if round_trips}
    if not with_round_trips:
        return
    listed = join(
        "; ",
        (
            compose(
                "{name} {p50:,.0f} us (minimum {least:,.0f}, p99 {p99:,.0f})",
                name=name,
                p50=entry.p50_us,
                least=entry.min_us,
                p99=entry.p99_us,
            )
            for name, entry in with_round_trips.items()
        ),
    )
    evidence = {name: vars(entry) for name, entry in with_round_trips.items()}
    text = compose("a round trip to the server (SELECT 1) takes: {listed}", listed=listed)
    yield Finding("P12", "note", text, {"round_trips": evidence})
    for name, value in with_round_trips.items():
        share = value.p50_us * value.statements / value.latency_us
        if value.p50_us > NETWORK_US and share > ROUND_TRIPS_SHARE:
            yield Finding(
                "P12",
                "warn",
                compose(
                    "round trips of {p50:,.0f} us take {share:.0f} % of the time of a transaction of {name} "
                    "at the lowest load (statements: {statements:g}): the result is mostly about the network",
                    p50=value.p50_us,
                    share=100.0 * share,
                    name=name,
                    statements=round(value.statements, 1),
                ),
                {"share": share},
                name,
                fix=compose("Run dbdyno close to the server, or compare loads with many connections"),
            )
    yield from _differences(with_round_trips, experiment.variants[0].name)


def _differences(table: Mapping[str, _RoundTrips], baseline: str) -> Iterator[Finding]:
    base = table.get(baseline)
    for name, entry in table.items() if base is not None else ():
        assert base is not None, "the loop runs only with a baseline"
        less, more = sorted((base.p50_us, entry.p50_us))
        of_latency = (more - less) * base.statements / base.latency_us
        if (
            name != baseline
            and more > NETWORK_US
            and more > (1 + ROUND_TRIPS_DIFFERENCE) * less
            and of_latency > OF_LATENCY
        ):
            yield Finding(
                "P12",
                "warn",
                compose(
                    "a round trip takes {base:,.0f} us to {baseline} and {own:,.0f} us to {name}: at the "
                    "lowest load this alone is {percent:.0f} % of the time of a transaction",
                    base=base.p50_us,
                    baseline=baseline,
                    own=entry.p50_us,
                    name=name,
                    percent=100.0 * of_latency,
                ),
                {"baseline_us": base.p50_us, "variant_us": entry.p50_us},
                name,
                fix=compose("Reach both servers by the same way, from a machine at the same distance"),
            )


def _round_trips_of(
    variant: str, trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]
) -> _RoundTrips | None:
    of_variant = [trial for trial in trials if trial.variant == variant and trial.figures is not None]
    records = [
        record for trial in of_variant for record in states.get(trial.index, ServerState()).round_trips
    ]
    if not records:
        return None
    lowest = min(of_variant, key=lambda trial: trial.point).point
    figures: list[Figures] = [
        entry.figures for entry in of_variant if entry.point == lowest and entry.figures is not None
    ]
    return _RoundTrips(
        min(record["min_us"] for record in records),
        median(record["p50_us"] for record in records),
        median(record["p99_us"] for record in records),
        median(figure.statements / figure.events for figure in figures),
        median(figure.latency_mean_us for figure in figures),
    )


def _caveat_of_foreign_load(finding: Finding) -> str:
    if percents := finding.evidence.get("percents"):
        (baseline, baseline_percent), (variant, variant_percent) = percents.items()
        return compose(
            "other processes used {one:.1f} % of the CPUs ({baseline}) and {other:.1f} % ({variant})",
            one=baseline_percent,
            baseline=baseline,
            other=variant_percent,
            variant=variant,
        )
    names = [str(process["name"]) for process in finding.evidence.get("processes", ())]
    listed = f" ({', '.join(names[:3])})" if names else ""
    blocks = finding.evidence.get("remaining", 0)
    where = compose(" in {count}", count=blocks_count(blocks)) if blocks else ""
    return compose("other processes{listed} used CPUs{where}", listed=listed, where=where)


@rule(CODE, may_forbid=True, caveat=_caveat_of_foreign_load)
def foreign_load(
    foreign: ForeignLoad, trials: Sequence[MeasuredTrial], experiment: Experiment
) -> Iterator[Finding]:
    """The load of other processes, or that it is not known."""
    yield from foreign.findings
    if any(trial.figures for trial in trials):
        yield from unchecked(foreign, experiment)


def unchecked(foreign: ForeignLoad, experiment: Experiment) -> Iterator[Finding]:
    """A note if the foreign load of no trial is known, because dbdyno did not start the server."""
    if not foreign.shares and not all(variant.server.is_private for variant in experiment.variants):
        yield Finding(
            CODE,
            "note",
            compose(
                "foreign load was not checked: the processes of a server that dbdyno did not start are "
                "unknown, so other processes may have disturbed the trials"
            ),
            {"what": "unchecked"},
            fix=compose("Look at the machine's other processes while measuring"),
        )
