"""D02: whether the server's machine had no CPU time or memory to give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dbdyno.finding import Finding, Level
from dbdyno.judge.server_state import ServerState, by_variant
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, mark

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


def machine(trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]) -> Iterator[Finding]:
    """Variants in whose trials the machine lacked CPU time or memory; `states` is by index of the trial."""
    yield from _client(trials, states)
    for limit in _LIMITS:
        values = {i: limit.value(state) for i, state in states.items() if limit.counter in state.machine}
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


def _client(trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]) -> Iterator[Finding]:
    """Steal of the load generator's machine, where it is not that of the server."""
    values = {
        trial.index: 100.0 * trial.figures.generator_steal
        for trial in trials
        if trial.figures is not None and "host_steal_s" not in states.get(trial.index, ServerState()).machine
    }
    for variant, of_variant in by_variant(trials, values).items():
        if (mean := fmean(of_variant)) > _STEAL_LIMIT:
            yield Finding(
                "D02",
                "warn",
                compose(
                    "the hypervisor gave {mean:.1f} % of the CPU time of the load generator's machine to "
                    "other machines in the trials of {variant} (limit {limit:g} %)",
                    mean=mean,
                    variant=variant,
                    limit=_STEAL_LIMIT,
                ),
                {"counter": "generator_steal", "mean": mean, "largest": max(of_variant)},
                variant,
                fix=compose(_STEAL_FIX),
            )
