"""Reads the trials of a comparison in slices, whose servers take turns, and pairs them slice by slice.

::

    slice   0         1         2         3            A slice has the same number in all trials of a block.
    a     |guard|count|  |count|  |count|  |count|
    b              |count|  |count|  |count|  |count|    Slices of the warm-up do not count.

The log ratio of throughput in a block is the median of the log ratios of its slices. A median, because these
have heavy tails: other processes, a checkpoint or the hypervisor often stop one of the two servers for a part
of its slice. In simulations of 40 slices, the standard error of the median was 1.2 times that of the
Hodges-Lehmann estimator under normal noise and 1.1 times under t noise with 3 degrees of freedom, but 0.6
times if 20 % and 0.3 times if 30 % of the slices stall. A median also needs no finite ratios: a slice
without any transaction counts as the smallest. A loss in less than half of the slices hardly changes the
median; the throughput of a trial is that of all its slices, and shows it.

The latencies of a slice are those of the transactions that ended after its guard time, in the slice or after
it: without those in flight at its end, long transactions would be missing. But long transactions are also the
likelier to outlast the guard time in which they began. So each latency has a weight, the reciprocal of the
number of transactions that would have been recorded if all took that long. As a transaction begins
independently of how long it will take, the weighted latencies are without bias (Wald 1944, Ann. Math. Stat.
15:283; Horvitz & Thompson 1952, J. Am. Stat. Assoc. 47:663).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from dbdyno.measure.recording import Recording
from dbdyno.stats.histogram import Histogram, bucket_width_us, merge
from dbdyno.store.measured import Drift, MeasuredTrial, Window
from dbdyno.store.records import Slice


def keep_common(recordings: Sequence[Recording]) -> bool:
    """Let only the slices count that all of these trials have. False if there are none.

    Trials that are not in slices stay as they are.
    """
    sliced = [recording for recording in recordings if recording.is_sliced]
    if sliced:
        common = set.intersection(*({entry["slice"] for entry in recording.counted} for recording in sliced))
        for recording in sliced:
            recording.counted = [entry for entry in recording.counted if entry["slice"] in common]
    return all(recording.counted for recording in sliced)


def window(recording: Recording) -> Window:
    """From the first to the last slice that counts. Raises IndexError if there is none."""
    first, last = recording.counted[0], recording.counted[-1]
    return Window(first["start_us"], last["end_us"], None, counted_us=_length_us(recording.counted))


def drift(recording: Recording) -> Drift:
    """How throughput changed between parts of a trial."""
    counted = recording.counted
    warmup = [entry for entry in recording.slices if entry["slice"] < recording.first_slice]
    return Drift(
        within=_log_ratio(counted[len(counted) // 2 :], counted[: len(counted) // 2]),
        late=_log_ratio(counted, warmup[len(warmup) // 2 :]),
        early=_log_ratio(counted, warmup[: len(warmup) // 2]),
    )


def latencies(recording: Recording) -> dict[int, int]:
    """The latencies of the slices that count, in thousandths of a transaction; {} if their records lack those
    of the transactions in flight, or if the trial is not in slices.
    """
    parts = recording.counted
    if not parts or any("in_flight_latency_us" not in part for part in parts):
        return {}
    guard_us = parts[0]["start_us"] - parts[0]["resumed_us"]
    # Every connection begins a transaction at the resume, and one whenever a transaction ends in the slice.
    at_resume = recording.plan["load"]["connections"] * len(parts)
    in_guard, in_slice = (sum(part[key] for part in parts) for key in ("guard_events", "events"))

    def recorded(latency_us: int) -> float:
        """The number of transactions that would have been recorded."""
        if latency_us >= guard_us:
            return float(at_resume + in_guard + in_slice)
        return float(in_slice + in_guard * latency_us / guard_us)

    latencies_us = merge(
        buckets for part in parts for buckets in (part["latency_us"], part["in_flight_latency_us"])
    )
    return {
        lower_us: round(1000 * count * in_slice / recorded(lower_us))
        for lower_us, count in latencies_us.items()
    }


def mean_us(histogram: Histogram) -> float:
    """The mean of `latencies`."""
    total = sum((lower + (bucket_width_us(lower) - 1) / 2.0) * count for lower, count in histogram.items())
    return total / sum(histogram.values())


def throughputs(recording: Recording) -> dict[int, float]:
    """Number of each slice that counts -> transactions per second."""
    return {entry["slice"]: _rate([entry]) for entry in recording.counted}


def block_ratio(weights: Sequence[tuple[float, MeasuredTrial]], metric: str) -> float | None:
    """The weighted sum of the logarithms of the trials' throughput, the median over the slices that all have.

    With the weights -1 and 1 it is a log ratio. None for other metrics, and unless all trials are in slices.
    """
    slices = [(weight, trial.slices) for weight, trial in weights if trial.slices]
    if metric != "throughput" or len(slices) < len(weights):
        return None
    common = set.intersection(*(set(rates) for _, rates in slices))
    sums = [_weighted_sum([(weight, rates[number]) for weight, rates in slices]) for number in sorted(common)]
    return median(sums) if sums else None


def _weighted_sum(rates: Sequence[tuple[float, float]]) -> float:
    """The weighted sum of logarithms; 0 if servers of both signs did nothing, as that favours neither."""
    idle = {weight > 0 for weight, rate in rates if rate <= 0.0}
    if idle:
        return 0.0 if len(idle) > 1 else -math.inf if idle == {True} else math.inf
    return math.fsum(weight * math.log(rate) for weight, rate in rates)


def _log_ratio(later: Sequence[Slice], earlier: Sequence[Slice]) -> float | None:
    rates = _rate(later), _rate(earlier)
    return math.log(rates[0] / rates[1]) if min(rates) > 0.0 else None


def _rate(slices: Sequence[Slice]) -> float:
    """Transactions per second; 0 without slices."""
    length_us = _length_us(slices)
    return sum(entry["events"] for entry in slices) / (length_us / 1e6) if length_us else 0.0


def _length_us(slices: Sequence[Slice]) -> int:
    return sum(entry["end_us"] - entry["start_us"] for entry in slices)
