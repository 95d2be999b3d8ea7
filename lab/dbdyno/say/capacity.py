"""The sentence on the capacity of the only variant of a run, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.decide.capacity import MeasuredCapacity, Use
from dbdyno.experiment.load import rate_text
from dbdyno.finding import Finding
from dbdyno.result_text import blocks_count, connections_count
from dbdyno.say.caveats import caveats, with_caveats
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import blocks_needed
from dbdyno.text import Text, compose, join


def capacity_sentence(
    capacity: MeasuredCapacity, variant: str, connections: int, findings: Sequence[Finding]
) -> str:
    """The sentence; `connections` is the maximum number of busy connections, `findings` the relevant ones."""
    where = compose(
        "{workload}, at most {connections}; {blocks}",
        workload=capacity.workload,
        connections=connections_count(connections),
        blocks=blocks_count(capacity.blocks),
    )
    parts = [join(", ", (_rate(capacity, variant), where)), *filter(None, (_advice(capacity),))]
    return with_caveats(join("; ", parts), caveats(findings))


def _advice(capacity: MeasuredCapacity) -> str:
    """What limits the capacity, or the rates to give."""
    low, high = capacity.estimate
    if low is None:
        return compose("give lower rates")
    if high is None:
        return compose("give higher rates or more connections")
    return _limit(capacity.use) if capacity.use else ""


def _rate(capacity: MeasuredCapacity, variant: str) -> Text:
    low, high = capacity.estimate
    names = {"variant": variant, "objective": capacity.objective.text()}
    if low is None:
        return compose(
            "{variant} serves fewer than {rate} transactions/s while {objective}",
            rate=rate_text(high or capacity.rates[0]),
            **names,
        )
    if high is None:
        return compose(
            "{variant} serves more than {rate} transactions/s while {objective}", rate=rate_text(low), **names
        )
    return compose(
        "{variant} serves {rate} transactions/s while {objective} ({interval})",
        rate=rate_text(low),
        interval=_interval(capacity),
        **names,
    )


def _interval(capacity: MeasuredCapacity) -> Text:
    if capacity.interval is None:
        return compose("too few blocks for an interval: {number} are needed", number=blocks_needed(ALPHA))
    low, high = (None if end is None else rate_text(end) for end in capacity.interval)
    values = {"confidence": round((1 - ALPHA) * 100), "low": low, "high": high}
    if low is not None and high is not None:
        return compose("{confidence} % interval {low} to {high}", **values)
    if high is not None:
        return compose("{confidence} % interval at most {high}", **values)
    if low is not None:
        return compose("{confidence} % interval at least {low}", **values)
    return compose("the rates do not contain its interval: give lower and higher rates")


def _limit(use: Use) -> Text:
    """What limits the capacity, and where to look next."""
    rate = rate_text(use.rate)
    match use.limited_by:
        case "cpu":
            return compose(
                "its CPUs are the limit, {share:.0f} % busy at {rate}/s", share=_percent(use.cpu), rate=rate
            )
        case "locks":
            return compose(
                "row locks are the limit, {share:.0f} % of the mean latency at {rate}/s",
                share=_percent(use.locks),
                rate=rate,
            )
        case "generator":
            return compose(
                "the load generator is the limit, {share:.0f} % busy at {rate}/s: give it more CPUs or a "
                "fleet",
                share=_percent(use.generator),
                rate=rate,
            )
        case "unknown":
            return compose(
                "dbdyno does not see the CPUs and disks of this server: look at them at {rate}/s", rate=rate
            )
    disk = (
        compose(
            " and its disk ({reads:,.0f} reads and {writes:,.0f} writes per second)",
            reads=use.reads_per_s or 0.0,
            writes=use.writes_per_s or 0.0,
        )
        if (use.reads_per_s or 0.0) + (use.writes_per_s or 0.0) >= 1.0
        else ""
    )
    return compose(
        "its CPUs ({share:.0f} % busy), row locks and the load generator are not the limit at {rate}/s: look "
        "at its settings{disk}",
        share=_percent(use.cpu),
        rate=rate,
        disk=disk,
    )


def _percent(share: float | None) -> float:
    return 100.0 * (share or 0.0)
