"""Findings about the records of a run: D01, D03, D04 and D05 about trials, R03, R04, R05 and R07 about the
result.

One finding covers all affected trials of a variant.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from dbdyno.experiment.schedule import trial_number
from dbdyno.finding import Finding
from dbdyno.judge.figures import OUTAGE_CLASSES, merge_classes
from dbdyno.judge.recording import Recording
from dbdyno.judge.wording import change, count, finite, interval
from dbdyno.stats.paired import Effect
from dbdyno.store.measured import Figures, MeasuredTrial
from dbdyno.store.records import EngineWarning

# D01: limits of the load generator, `x-limit` in schema/events.schema.json: CPU time per wall time of a
# thread; delay of its wake-ups; delay of reading replies, as a share of the median latency.
GENERATOR_CPU = 0.8
GENERATOR_LAG_US = 1000
CLIENT_DELAY = 0.1
# D01: code of a warning about the load generator -> the beginning of the finding.
_GENERATOR_PROBLEMS = {
    "generator-late": "the load generator woke up late",
    "client-delay": "replies waited for the load generator",
}
# D03 is a warning above ERRORS_PER_1000 errors per 1,000 transactions. It is one too if a variant has more
# than ERRORS_RATIO times the errors of another one, and more than ERRORS_NOTEWORTHY.
ERRORS_PER_1000 = 1.0
ERRORS_RATIO = 2.0
ERRORS_NOTEWORTHY = 0.1
# R03 is a stop if more than one trial and more than this share of all trials have contradictory numbers.
CONTRADICTORY_SHARE = 0.05
# D04 is a stop above this share of statements with row-count mismatches, and a note up to CONFLICT_SHARE. So
# few may come from concurrency: PostgreSQL does not change a row that another transaction has deleted and
# inserted again.
MISMATCH_SHARE = 0.01
CONFLICT_SHARE = 1e-5

ByVariant = Mapping[str, Sequence[MeasuredTrial]]


def completeness(
    trials: Sequence[MeasuredTrial], blocks: int, contradictory: Collection[int] = ()
) -> Iterator[Finding]:
    """R04: planned trials without a result. If a variant has no result in any block of a load, that is a
    stop.

    `contradictory` contains the indices of trials that R03 reports.
    """
    yield from _server_failures(trials)
    without = [trial for trial in trials if trial.failed_by == "harness"]
    left_out = [trial for trial in without if trial.index not in contradictory]
    if left_out:
        reasons = Counter(str(trial.failure) for trial in left_out)
        yield Finding(
            "R04",
            "warn",
            f"{len(left_out)} of {len(trials)} planned trials have no result and are left out, with their "
            f"blocks ({_most_common(reasons)})",
            {
                "left_out": len(left_out),
                "trials": [trial.index for trial in left_out],
                "reasons": dict(reasons),
            },
            fix="Repeat the command with --resume to run them again",
        )
    not_run = sum(trial.failed_by == "not-run" for trial in trials)
    if not_run:
        yield Finding(
            "R04",
            "warn",
            f"{not_run} of {len(trials)} planned trials have not run, so there is no verdict",
            {"not_run": not_run},
            fix="Repeat the command with --resume to run them",
        )
    failed_points = Counter((t.variant, t.workload, t.point) for t in without)
    for (variant, workload, (unit, value)), number in failed_points.items():
        if number >= blocks:
            load = f"{value:g} transactions/s" if unit == "rate" else count(round(value), "connection")
            yield Finding(
                "R04",
                "stop",
                f"{variant} has no result at {load} of {workload}",
                {"workload": workload, "at": {unit: value}},
                variant,
            )


def _server_failures(trials: Sequence[MeasuredTrial]) -> Iterator[Finding]:
    """R04: trials that failed because of their server; they count as 0 transactions/s."""
    failed = {trial.index: str(trial.failure) for trial in trials if trial.failed_by == "server"}
    for variant, indices in _by_variant(trials, failed).items():
        reasons = Counter(failed[index] for index in indices)
        total = sum(trial.variant == variant for trial in trials)
        yield Finding(
            "R04",
            "warn",
            f"{len(indices)} of {total} trials of {variant} failed because of their server and count as "
            f"0 transactions/s ({_most_common(reasons)})",
            {"failed": len(indices), "trials": indices, "reasons": dict(reasons)},
            variant,
            fix="Find the cause in the server's log",
        )


def _by_variant(trials: Iterable[MeasuredTrial], indices: Collection[int]) -> dict[str, list[int]]:
    """Variant -> the indices of its trials, of those in `indices`."""
    groups: dict[str, list[int]] = defaultdict(list)
    for trial in trials:
        if trial.index in indices:
            groups[trial.variant].append(trial.index)
    return groups


def _most_common(reasons: Counter[str]) -> str:
    return "; ".join(
        f"{number} x {reason}" if number > 1 else reason for reason, number in reasons.most_common(3)
    )


def repeated_attempts(
    attempts: Mapping[int, Sequence[str]], trials: Sequence[MeasuredTrial]
) -> Iterator[Finding]:
    """R04: trials that ran again after an attempt without a result.

    `attempts` maps the index of a trial to the reasons of its earlier attempts.
    """
    for variant, indices in _by_variant(trials, attempts).items():
        reasons = Counter(reason for index in indices for reason in attempts[index])
        yield Finding(
            "R04",
            "note",
            f"{count(len(indices), 'trial')} of {variant} ran again after an attempt that gave no result "
            f"({_most_common(reasons)})",
            {"trials": indices, "reasons": dict(reasons)},
            variant,
        )


def identical_variants(effect: Effect | None, names: tuple[str, str, str]) -> Iterator[Finding]:
    """R05: two identical variants that differ significantly; `names` are baseline, variant, workload."""
    if effect is None or not effect.is_significant or effect.interval_percent is None:
        return
    baseline, variant, workload = names
    low, high = effect.interval_percent
    yield Finding(
        "R05",
        "warn",
        f"{baseline} and {variant} are identical, but differ by {change(effect)} ({interval((low, high))}) "
        f"on {workload}: either something else differs (position on disk, order, other processes), or this "
        "is one of the 5 % of experiments in which such a difference occurs by chance",
        {
            "workload": workload,
            "effect_percent": finite(effect.effect_percent),
            "interval_percent": [finite(low), finite(high)],
        },
        variant,
        fix="Repeat the experiment",
    )


def failures_in_repeated_blocks(failures: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """R04: trials that failed because of their server, in blocks that were repeated because of foreign load.

    `failures` contains a variant and a reason for each of them.
    """
    for variant in dict.fromkeys(variant for variant, _ in failures):
        reasons = Counter(reason for name, reason in failures if name == variant)
        number = sum(reasons.values())
        yield Finding(
            "R04",
            "warn",
            f"{count(number, 'trial')} of {variant} failed in a block that was repeated because of foreign "
            f"load ({_most_common(reasons)}). The repeat counts",
            {"in_repeated": number, "reasons": dict(reasons)},
            variant,
        )


def counters(unread: Mapping[int, str], trials: Sequence[MeasuredTrial]) -> Iterator[Finding]:
    """R04: trials with a result whose server's counters could not be read before and after the measurement.

    `unread` maps the index of a trial to the reason.
    """
    measured = [trial for trial in trials if trial.figures is not None]
    for variant, indices in _by_variant(measured, [i for i, reason in unread.items() if reason]).items():
        reasons = Counter(unread[index] for index in indices)
        reason, number = reasons.most_common(1)[0]
        yield Finding(
            "R04",
            "warn",
            f"the server's counters are missing for {count(len(indices), 'trial')} of {variant}, so "
            "these trials are left out of the costs of a transaction and of the section Why "
            f"({f'{number} x ' if number > 1 else ''}{reason})",
            {"trials": indices, "reasons": dict(reasons)},
            variant,
        )


def arithmetic(
    contradictions: Mapping[int, Sequence[str]], trials: Sequence[MeasuredTrial]
) -> Iterator[Finding]:
    """R03: trials whose numbers contradict each other; `contradictions` maps the index of a trial to texts.

    Such a trial is left out, with its block. Many of them are a stop.
    """
    by_variant = _by_variant(trials, contradictions)
    is_stop = sum(map(len, by_variant.values())) > max(1.0, CONTRADICTORY_SHARE * len(trials))
    consequence = "No result of this run can be trusted" if is_stop else "The block is left out"
    for variant, indices in by_variant.items():
        first = indices[0]
        yield Finding(
            "R03",
            "stop" if is_stop else "warn",
            f"the numbers of {count(len(indices), 'trial')} of {variant} contradict each other; in trial "
            f"{first}: {'; '.join(contradictions[first])}. {consequence}",
            {"variant": variant, "trials": {str(index): list(contradictions[index]) for index in indices}},
            # A stop is about the complete run, not about one variant.
            "" if is_stop else variant,
        )


def generator(by_variant: ByVariant) -> Iterator[Finding]:
    """D01: variants for which the load generator was short of CPU time."""
    for variant, trials in by_variant.items():
        cpu = {index: f.generator_cpu for index, f in _figures(trials) if f.generator_cpu > GENERATOR_CPU}
        if cpu:
            yield Finding(
                "D01",
                "warn",
                f"in {count(len(cpu), 'trial')} of {variant} the load generator used up to "
                f"{max(cpu.values()) * 100:.0f} % of a CPU per worker (limit {GENERATOR_CPU * 100:.0f} %): "
                "the server may be faster than measured",
                {"cpu": {str(index): share for index, share in cpu.items()}},
                variant,
                fix="Give the load generator more CPUs and workers ([client] cpus, workers)",
            )


def generator_delays(recording: Recording) -> Iterator[EngineWarning]:
    """D01: warnings about delays of the load generator in the measuring phase of one trial."""
    totals = recording.phases.get("measure")
    if not totals or not (generator := totals.get("generator")):
        # An older engine, which wrote these warnings itself.
        return
    fix = "Keep a CPU free for the load generator, or give it more workers or another machine"
    if generator["lag_us_p99"] > GENERATOR_LAG_US:
        late = f"1 % of its wake-ups came more than {generator['lag_us_p99'] / 1000.0:.1f} ms late"
        yield {
            "code": "generator-late",
            "text": f"{late} (limit {GENERATOR_LAG_US / 1000.0:g} ms)",
            "hint": fix,
        }
    delay, latency = generator["client_delay_us_p99"], totals["percentiles_us"]
    limit_us = CLIENT_DELAY * latency["p50"]["value_us"] if latency else math.inf
    if delay is not None and delay > limit_us:
        text = (
            f"it read 1 % of them {delay / 1000.0:.2f} ms or more after they arrived; the limit is "
            f"{CLIENT_DELAY * 100:.0f} % of the median latency, here {limit_us / 1000.0:.2f} ms"
        )
        yield {"code": "client-delay", "text": text, "hint": fix}


def generator_warnings(
    warnings: Mapping[int, Sequence[EngineWarning]], measured: Sequence[MeasuredTrial]
) -> Iterator[Finding]:
    """D01: warnings about the load generator, one finding per code. `warnings` is by index of the trial."""
    lags = {index: figures.generator_lag_us for index, figures in _figures(measured)}
    by_code: dict[str, list[tuple[int, EngineWarning]]] = defaultdict(list)
    for index, of_trial in warnings.items():
        for warning in of_trial:
            by_code[warning["code"]].append((index, warning))
    for code, entries in by_code.items():
        trials = sorted({index for index, _ in entries})
        index, first = entries[0]
        example = f"trial {trial_number(index)}"
        where = f"{count(len(trials), 'trial')}, for example in {example}" if len(trials) > 1 else example
        problem = _GENERATOR_PROBLEMS.get(code, f"the load generator warned ({code})")
        yield Finding(
            "D01",
            "warn",
            f"{problem} in {where}: {first['text']}",
            {
                "warning": code,
                "trials": trials,
                "lag_us_p99": max((lags.get(index, 0.0) for index in trials), default=0.0),
            },
            fix=first["hint"],
        )


def errors(by_variant: ByVariant, workload: str) -> Iterator[Finding]:
    """D03: errors per 1,000 transactions of one workload, including those after which the transaction was
    retried.
    """
    rates: dict[str, float] = {}
    codes: dict[str, dict[str, int]] = {}
    figures = {variant: [f for _, f in _figures(trials)] for variant, trials in by_variant.items()}
    classes = merge_classes(one.error_classes for of_variant in figures.values() for one in of_variant)
    for variant, of_variant in figures.items():
        events = sum(one.events for one in of_variant)
        by_code: Counter[str] = Counter()
        for one in of_variant:
            by_code.update(one.errors)
        if events:
            rates[variant] = sum(by_code.values()) / events * 1000.0
            codes[variant] = dict(by_code)
    most, least = max(rates.values(), default=0.0), min(rates.values(), default=0.0)
    if most == 0.0:
        return
    differ = most > ERRORS_NOTEWORTHY and most > ERRORS_RATIO * least and len(rates) > 1
    listed = ", ".join(f"{variant} {rate:.2f}" for variant, rate in rates.items())
    all_codes = sorted({code for by_code in codes.values() for code in by_code})
    yield Finding(
        "D03",
        "warn" if most > ERRORS_PER_1000 or differ else "note",
        f"errors per 1,000 transactions of {workload}: {listed} (server error "
        f"{_with_classes(all_codes, classes)}; retried where possible)",
        {"workload": workload, "per_1000": rates, "by_code": codes, "classes": classes},
    )


def lost_connections(by_variant: ByVariant) -> Iterator[Finding]:
    """D05: connections that were lost and opened again, for example because the server crashed."""
    for variant, trials in by_variant.items():
        by_trial: dict[int, dict[str, int]] = {}
        outages: set[str] = set()
        for index, figures in _figures(trials):
            classes = figures.error_classes
            lost = {
                code: number for code, number in figures.errors.items() if classes.get(code) in OUTAGE_CLASSES
            }
            outages.update(classes[code] for code in lost)
            if lost:
                by_trial[index] = lost
        if not by_trial:
            continue
        total: Counter[str] = Counter()
        for lost in by_trial.values():
            total.update(lost)
        listed = ", ".join(f"{number} x {code}" for code, number in total.most_common())
        idle = ""
        if any(trial.slices for trial in trials):
            idle = (
                ", or closes idle connections, as they are between slices (wait_timeout, a proxy's timeout)"
            )
        yield Finding(
            "D05",
            "warn",
            f"connections to {variant} were {' and '.join(sorted(outages))} in "
            f"{count(len(by_trial), 'trial')} and opened again (errors {listed}): the results include the "
            "outage",
            {"trials": {str(index): lost for index, lost in by_trial.items()}},
            variant,
            fix=f"Find out from the server's log whether it restarted{idle}. With on_lost = 'stop' in [load] "
            "such a trial counts as a failure of its server",
        )


def row_counts(by_variant: ByVariant, workload: str) -> Iterator[Finding]:
    """D04: statements that returned or changed an unexpected number of rows."""
    for variant, trials in by_variant.items():
        figures = [one for _, one in _figures(trials)]
        mismatches = sum(one.row_count_mismatches for one in figures)
        statements = sum(one.statements for one in figures)
        if mismatches:
            share = mismatches / statements
            why = "the data are not those that were loaded"
            if share <= CONFLICT_SHARE:
                why = "a transaction deleted a row that another one was about to change, or a row is missing"
            yield Finding(
                "D04",
                "stop" if share > MISMATCH_SHARE else "warn" if share > CONFLICT_SHARE else "note",
                f"{mismatches} of {statements} statements of {workload} on {variant} returned or changed an "
                f"unexpected number of rows: {why}",
                {"workload": workload, "row_count_mismatches": mismatches, "statements": statements},
                variant,
            )


def overload(by_variant: ByVariant) -> Iterator[Finding]:
    """R07: variants that did not start all scheduled transactions of an open loop, so latency is a
    lower bound.
    """
    for variant, trials in by_variant.items():
        behind = {index: one for index, one in _figures(trials) if not one.keeps_up}
        if not behind:
            continue
        dropped = sum(one.dropped for one in behind.values())
        queued = sum(one.backlog for one in behind.values())
        parts = [f"{dropped:,} scheduled transactions were dropped"] if dropped else []
        parts += [f"{queued:,} scheduled transactions were still queued at the end"] if queued else []
        yield Finding(
            "R07",
            "warn",
            f"{variant} could not keep up in {count(len(behind), 'trial')}: {' and '.join(parts)}. Their "
            "latency is unknown but at least the time they had waited, so percentiles that they affect are "
            "lower bounds",
            {
                "dropped": {str(index): one.dropped for index, one in behind.items()},
                "backlog": {str(index): one.backlog for index, one in behind.items()},
            },
            variant,
            fix="Offer a lower rate or allow more connections",
        )


def _figures(trials: Iterable[MeasuredTrial]) -> list[tuple[int, Figures]]:
    """Index and figures of the trials that have figures."""
    return [(trial.index, trial.figures) for trial in trials if trial.figures is not None]


def _with_classes(codes: Sequence[str], classes: Mapping[str, str]) -> str:
    """Error codes as text, each with its class if the records contain one."""
    names = {code: name for code, name in classes.items() if name != "other"}
    names["script"] = "counted by the script itself"
    return ", ".join(f"{code} ({names[code].replace('-', ' ')})" if code in names else code for code in codes)
