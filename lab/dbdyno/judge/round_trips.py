"""P12: how long a round trip to each server takes, and whether it decides the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.server_state import ServerState
from dbdyno.store.measured import Figures, MeasuredTrial
from dbdyno.text import compose, join

# A difference of round trips between two variants counts if it is larger than a share of the round trip, and,
# for all statements of a transaction, than a share of its latency at the lowest load.
DIFFERENCE = 0.05
OF_LATENCY = 0.01
# Round trips must take a smaller share of the latency at the lowest load.
SHARE = 0.5
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


def round_trips(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState], experiment: Experiment
) -> Iterator[Finding]:
    """A note with the round trips of all variants, and warnings about them; `states` is by index of the
    trial.
    """
    known = {one.name: found for one in experiment.variants if (found := _of(one.name, trials, states))}
    if not known:
        return
    listed = join(
        "; ",
        (
            compose(
                "{name} {p50:,.0f} us (minimum {least:,.0f}, p99 {p99:,.0f})",
                name=name,
                p50=one.p50_us,
                least=one.min_us,
                p99=one.p99_us,
            )
            for name, one in known.items()
        ),
    )
    evidence = {name: vars(one) for name, one in known.items()}
    text = compose("a round trip to the server (SELECT 1) takes: {listed}", listed=listed)
    yield Finding("P12", "note", text, {"round_trips": evidence})
    for name, one in known.items():
        share = one.p50_us * one.statements / one.latency_us
        if one.p50_us > NETWORK_US and share > SHARE:
            yield Finding(
                "P12",
                "warn",
                compose(
                    "round trips of {p50:,.0f} us take {share:.0f} % of the time of a transaction of {name} "
                    "at the lowest load ({statements:g} statements): the result is mostly about the network",
                    p50=one.p50_us,
                    share=100.0 * share,
                    name=name,
                    statements=round(one.statements, 1),
                ),
                {"share": share},
                name,
                fix=compose("Run dbdyno close to the server, or compare loads with many connections"),
            )
    yield from _differences(known, experiment.variants[0].name)


def _differences(known: Mapping[str, _RoundTrips], baseline: str) -> Iterator[Finding]:
    base = known.get(baseline)
    for name, one in known.items() if base is not None else ():
        assert base is not None, "the loop runs only with a baseline"
        less, more = sorted((base.p50_us, one.p50_us))
        of_latency = (more - less) * base.statements / base.latency_us
        if (
            name != baseline
            and more > NETWORK_US
            and more > (1 + DIFFERENCE) * less
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
                    own=one.p50_us,
                    name=name,
                    percent=100.0 * of_latency,
                ),
                {"baseline_us": base.p50_us, "variant_us": one.p50_us},
                name,
                fix=compose("Reach both servers by the same way, from a machine at the same distance"),
            )


def _of(
    variant: str, trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]
) -> _RoundTrips | None:
    own = [trial for trial in trials if trial.variant == variant and trial.figures is not None]
    records = [record for trial in own for record in states.get(trial.index, ServerState()).round_trips]
    if not records:
        return None
    lowest = min(own, key=lambda trial: trial.point).point
    figures: list[Figures] = [one.figures for one in own if one.point == lowest and one.figures is not None]
    return _RoundTrips(
        min(record["min_us"] for record in records),
        median(record["p50_us"] for record in records),
        median(record["p99_us"] for record in records),
        median(one.statements / one.events for one in figures),
        median(one.latency_mean_us for one in figures),
    )
