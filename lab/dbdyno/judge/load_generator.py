"""D01: whether the load generator was short of CPU time or late, so that it limits the result."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.experiment.schedule import trial_number
from dbdyno.finding import Finding
from dbdyno.judge.figures import figures_of
from dbdyno.judge.recording import Recording
from dbdyno.judge.wording import trials_count
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.records import EngineWarning
from dbdyno.text import compose

# Limits of the load generator, `x-limit` in schema/events.schema.json: CPU time per wall time of a
# thread; delay of its wake-ups; delay of reading replies, as a share of the median latency.
GENERATOR_CPU = 0.8
GENERATOR_LAG_US = 1000
CLIENT_DELAY = 0.1
# Code of a warning about the load generator -> the beginning of the finding.
_GENERATOR_PROBLEMS = {
    "generator-late": compose("the load generator woke up late"),
    "client-delay": compose("replies waited for the load generator"),
}


def generator(by_variant: Mapping[str, Sequence[MeasuredTrial]]) -> Iterator[Finding]:
    """Variants for which the load generator was short of CPU time."""
    for variant, trials in by_variant.items():
        cpu = {index: f.generator_cpu for index, f in figures_of(trials) if f.generator_cpu > GENERATOR_CPU}
        if cpu:
            yield Finding(
                "D01",
                "warn",
                compose(
                    "in {count} of {variant} the load generator used up to {values:.0f} % of a CPU per "
                    "worker (limit {generator_cpu:.0f} %): the server may be faster than measured",
                    count=trials_count(len(cpu)),
                    variant=variant,
                    values=max(cpu.values()) * 100,
                    generator_cpu=GENERATOR_CPU * 100,
                ),
                {"cpu": {str(index): share for index, share in cpu.items()}},
                variant,
                fix=compose("Give the load generator more CPUs and workers ([client] cpus, workers)"),
            )


def generator_delays(recording: Recording) -> Iterator[EngineWarning]:
    """Warnings about delays of the load generator in the measuring phase of one trial."""
    totals = recording.phases.get("measure")
    if not totals or not (generator := totals.get("generator")):
        # An older engine, which wrote these warnings itself.
        return
    fix = compose("Keep a CPU free for the load generator, or give it more workers or another machine")
    if generator["lag_us_p99"] > GENERATOR_LAG_US:
        late = compose(
            "1 % of its wake-ups came more than {lag_us_p99:.1f} ms late",
            lag_us_p99=generator["lag_us_p99"] / 1000.0,
        )
        yield {
            "code": "generator-late",
            "text": compose(
                "{late} (limit {generator_lag_us:g} ms)",
                late=late,
                generator_lag_us=GENERATOR_LAG_US / 1000.0,
            ),
            "hint": fix,
        }
    delay, latency = generator["client_delay_us_p99"], totals["percentiles_us"]
    limit_us = CLIENT_DELAY * latency["p50"]["value_us"] if latency else math.inf
    if delay is not None and delay > limit_us:
        text = compose(
            "it read 1 % of them {delay:.2f} ms or more after they arrived; the limit is "
            "{client_delay:.0f} % of the median latency, here {limit_us:.2f} ms",
            delay=delay / 1000.0,
            client_delay=CLIENT_DELAY * 100,
            limit_us=limit_us / 1000.0,
        )
        yield {"code": "client-delay", "text": text, "hint": fix}


def generator_warnings(
    warnings: Mapping[int, Sequence[EngineWarning]], measured: Sequence[MeasuredTrial]
) -> Iterator[Finding]:
    """Warnings about the load generator, one finding per code. `warnings` is by index of the trial."""
    lags = {index: figures.generator_lag_us for index, figures in figures_of(measured)}
    by_code: dict[str, list[tuple[int, EngineWarning]]] = defaultdict(list)
    for index, of_trial in warnings.items():
        for warning in of_trial:
            by_code[warning["code"]].append((index, warning))
    for code, entries in by_code.items():
        trials = sorted({index for index, _ in entries})
        index, first = entries[0]
        example = compose("trial {trial_number}", trial_number=trial_number(index))
        where = (
            compose("{count}, for example in {example}", count=trials_count(len(trials)), example=example)
            if len(trials) > 1
            else example
        )
        problem = _GENERATOR_PROBLEMS.get(code, compose("the load generator warned ({code})", code=code))
        yield Finding(
            "D01",
            "warn",
            compose("{problem} in {where}: {text}", problem=problem, where=where, text=first["text"]),
            {
                "warning": code,
                "trials": trials,
                "lag_us_p99": max((lags.get(index, 0.0) for index in trials), default=0.0),
            },
            fix=first["hint"],
        )
