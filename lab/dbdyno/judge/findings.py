"""What the judge itself finds in the records, in the same form as the findings of the checks.

Codes are those of the catalogue: D01, D03, D04, D05 for what went on during the trials, R03, R04, R05, R07
for what is left afterwards. One finding tells of all trials of a variant, not one per trial.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dbdyno.judge.measured import Figures, Measured, merge_classes
from dbdyno.judge.wording import change, count, finite, interval
from dbdyno.stats.paired import Effect

# D01: share of a CPU each thread of the generator used.
GENERATOR_CPU = 0.80
# D03: errors per 1,000 transactions, and how far two arms may differ.
ERRORS_PER_1000 = 1.0
ERRORS_RATIO = 2.0
ERRORS_NOTEWORTHY = 0.1
# D05: classes of errors that mean an outage: the connection ended, or could not be opened again.
OUTAGE = ("lost", "refused")
# R03: share of trials whose numbers contradict each other that stops a comparison; a single one never does.
CONTRADICTIONS = 0.05
# R07: transactions that wait at the end, as a share of those that ended, that are no longer chance.
BACKLOG = 0.01
# D04: share of statements off contract that is no longer an accident, and up to which transactions that meet
# at a row explain it: PostgreSQL changes none that another one has deleted and inserted again meanwhile.
OFF_CONTRACT = 0.01
MET_AT_A_ROW = 1e-5

Finding = dict[str, Any]
ByVariant = Mapping[str, Sequence[Measured]]


def finding(code: str, level: str, text: str, subject: str = "", **evidence: Any) -> Finding:
    """A finding in stored form; `override` is filled in by the caller who knows the experiment."""
    return {
        "code": code,
        "level": level,
        "text": text,
        "evidence": evidence,
        "subject": subject,
        "override": None,
    }


def completeness(
    trials: Sequence[Measured], blocks: int, contradictory: Collection[int] = ()
) -> Iterator[Finding]:
    """R04: planned trials without figures. A load at which a variant has no result in any block is a stop.

    `contradictory` are trials, by index, that R03 speaks of.
    """
    yield from _server_failures(trials)
    without = [trial for trial in trials if trial.failed_by == "harness"]
    left_out = [trial for trial in without if trial.place.index not in contradictory]
    if left_out:
        reasons = Counter(str(trial.failure) for trial in left_out)
        yield finding(
            "R04",
            "warn",
            f"{len(left_out)} of {len(trials)} planned trials have no result and are left out, with their "
            f"blocks ({_most_common(reasons)}). Repeat the command with --resume to run them again",
            left_out=len(left_out),
            trials=[trial.place.index for trial in left_out],
            reasons=dict(reasons),
        )
    waiting = [trial for trial in trials if trial.failed_by == "not-run"]
    if waiting:
        yield finding(
            "R04",
            "warn",
            f"{len(waiting)} of {len(trials)} planned trials have not run, so no verdict is given. Repeat "
            "the command with --resume to run them",
            not_run=len(waiting),
        )
    places = Counter((t.place.variant, t.place.workload, t.place.level) for t in without)
    for (variant, workload, (unit, value)), number in places.items():
        if number >= blocks:
            yield finding(
                "R04",
                "stop",
                f"{variant} has no result at {value:g} {_unit(unit)} of {workload}",
                variant,
                workload=workload,
                at={unit: value},
            )


def _server_failures(trials: Sequence[Measured]) -> Iterator[Finding]:
    """R04: trials that count as 0 transactions per second, by variant."""
    for variant in dict.fromkeys(trial.place.variant for trial in trials):
        mine = [trial for trial in trials if trial.place.variant == variant]
        failed = [trial for trial in mine if trial.failed_by == "server"]
        if failed:
            reasons = Counter(str(trial.failure) for trial in failed)
            yield finding(
                "R04",
                "warn",
                f"{len(failed)} of {len(mine)} trials of {variant} failed by their server and count as "
                f"0 transactions/s ({_most_common(reasons)}). Find the cause in the server's log",
                variant,
                failed=len(failed),
                trials=[trial.place.index for trial in failed],
                reasons=dict(reasons),
            )


def _most_common(reasons: Counter[str]) -> str:
    return "; ".join(
        f"{number} x {reason}" if number > 1 else reason for reason, number in reasons.most_common(3)
    )


def repeated_attempts(attempts: Mapping[int, Sequence[str]], trials: Sequence[Measured]) -> Iterator[Finding]:
    """R04: trials that ran again after an attempt without a result; `attempts` has the reasons by trial."""
    by_variant: dict[str, list[int]] = defaultdict(list)
    for trial in trials:
        if attempts.get(trial.place.index):
            by_variant[trial.place.variant].append(trial.place.index)
    for variant, indices in by_variant.items():
        reasons = Counter(reason for index in indices for reason in attempts[index])
        yield finding(
            "R04",
            "note",
            f"{count(len(indices), 'trial')} of {variant} ran again after an attempt that gave no result "
            f"({_most_common(reasons)})",
            variant,
            trials=indices,
            reasons=dict(reasons),
        )


def twins(found: Effect | None, names: tuple[str, str, str]) -> Iterator[Finding]:
    """R05: two identical variants whose interval leaves zero out; `names` are baseline, variant, workload."""
    if found is None or not found.is_sure or found.interval_percent is None:
        return
    baseline, variant, workload = names
    low, high = found.interval_percent
    yield finding(
        "R05",
        "warn",
        f"{baseline} and {variant} are identical, and differ by {change(found)} ({interval((low, high))}) on "
        f"{workload}: something besides the variants differs (the place on disk, the order, other "
        "processes), or this is one of the 5 % of experiments in which chance does it. Repeat the experiment",
        variant,
        workload=workload,
        effect_percent=finite(found.effect_percent),
        interval_percent=[finite(low), finite(high)],
    )


def failures_in_repeated_blocks(failures: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """R04: trials that their server failed in blocks that were repeated; `failures`: variant and reason."""
    for variant in dict.fromkeys(variant for variant, _ in failures):
        reasons = Counter(reason for name, reason in failures if name == variant)
        number = sum(reasons.values())
        yield finding(
            "R04",
            "warn",
            f"{count(number, 'trial')} of {variant} failed in a block that was repeated because of foreign "
            f"load ({_most_common(reasons)}). The repeat counts",
            variant,
            in_repeated=number,
            reasons=dict(reasons),
        )


def counters(unread: Mapping[int, str], trials: Sequence[Measured]) -> Iterator[Finding]:
    """R04: trials that count, and whose server's counters could not be read at both edges of the measurement;
    `unread` has the reason by trial index.
    """
    by_variant: dict[str, list[int]] = defaultdict(list)
    for trial in trials:
        if trial.figures is not None and unread.get(trial.place.index):
            by_variant[trial.place.variant].append(trial.place.index)
    for variant, indices in by_variant.items():
        told = Counter(unread[index] for index in indices)
        reason, number = told.most_common(1)[0]
        yield finding(
            "R04",
            "warn",
            f"of {count(len(indices), 'trial')} of {variant} the server's counters are not known, so that "
            "what a transaction costs, and why the variants differ, is told without them "
            f"({f'{number} x ' if number > 1 else ''}{reason})",
            variant,
            trials=indices,
            reasons=dict(told),
        )


def arithmetic(contradictions: Mapping[int, Sequence[str]], trials: Sequence[Measured]) -> Iterator[Finding]:
    """R03: trials whose own numbers contradict each other, by variant; `contradictions` is by trial index.

    Such a trial is left out, with its block. More of them than chance explains are a stop.
    """
    by_variant: dict[str, list[int]] = defaultdict(list)
    for trial in trials:
        if contradictions.get(trial.place.index):
            by_variant[trial.place.variant].append(trial.place.index)
    many = sum(map(len, by_variant.values())) > max(1.0, CONTRADICTIONS * len(trials))
    consequence = "No result of this run can be trusted" if many else "The block is left out"
    for variant, indices in by_variant.items():
        first = indices[0]
        yield finding(
            "R03",
            "stop" if many else "warn",
            f"the numbers of {count(len(indices), 'trial')} of {variant} contradict each other; in trial "
            f"{first}: {'; '.join(contradictions[first])}. {consequence}",
            # A stop is about the whole run.
            "" if many else variant,
            variant=variant,
            trials={str(index): list(contradictions[index]) for index in indices},
        )


def generator(by_variant: ByVariant) -> Iterator[Finding]:
    """D01: the load generator was the limit."""
    for variant, trials in by_variant.items():
        busy = {t.place.index: t.figures.generator_cpu for t in trials if t.figures}
        busy = {index: cpu for index, cpu in busy.items() if cpu > GENERATOR_CPU}
        if busy:
            yield finding(
                "D01",
                "warn",
                f"in {count(len(busy), 'trial')} of {variant} the load generator used up to "
                f"{max(busy.values()) * 100:.0f} % of a CPU per worker (limit {GENERATOR_CPU * 100:.0f} %): "
                "the server may be faster than measured. Give it more CPUs and workers "
                "([client] cpus, workers)",
                variant,
                cpu={str(index): cpu for index, cpu in busy.items()},
            )


def engine_warnings(
    warnings: Mapping[int, Sequence[Mapping[str, Any]]], measured: Sequence[Measured]
) -> Iterator[Finding]:
    """D01: what the engine itself warned of, each of its codes once. `warnings` is by trial index."""
    lags = {trial.place.index: trial.figures.generator_lag_us for trial in measured if trial.figures}
    by_code: dict[str, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    for index, told in warnings.items():
        for warning in told:
            by_code[str(warning["code"])].append((index, warning))
    for code, entries in by_code.items():
        trials = sorted({index for index, _ in entries})
        first = entries[0][1]
        yield finding(
            "D01",
            "warn",
            f"the engine warned in {count(len(trials), 'trial')} ({code}): {first['text']}. {first['hint']}",
            warning=code,
            trials=trials,
            lag_us_p99=max((lags.get(index, 0.0) for index in trials), default=0.0),
        )


def errors(by_variant: ByVariant, workload: str) -> Iterator[Finding]:
    """D03: errors per 1,000 transactions of one workload, retried ones included."""
    rates: dict[str, float] = {}
    codes: dict[str, dict[str, int]] = {}
    classes = merge_classes(f.error_classes for trials in by_variant.values() for f in _figures(trials))
    for variant, trials in by_variant.items():
        found = _figures(trials)
        events = sum(figures.events for figures in found)
        by_code: Counter[str] = Counter()
        for figures in found:
            by_code.update(figures.errors)
        if events:
            rates[variant] = sum(by_code.values()) / events * 1000.0
            codes[variant] = dict(by_code)
    most, least = max(rates.values(), default=0.0), min(rates.values(), default=0.0)
    if most == 0.0:
        return
    apart = most > ERRORS_NOTEWORTHY and most > ERRORS_RATIO * least and len(rates) > 1
    level = "warn" if most > ERRORS_PER_1000 or apart else "note"
    told = ", ".join(f"{variant} {rate:.2f}" for variant, rate in rates.items())
    seen = sorted({code for by_code in codes.values() for code in by_code})
    yield finding(
        "D03",
        level,
        f"errors per 1,000 transactions of {workload}: {told} (server error "
        f"{_with_classes(seen, classes)}; retried where it can be)",
        workload=workload,
        per_1000=rates,
        by_code=codes,
        classes=classes,
    )


def lost_connections(by_variant: ByVariant) -> Iterator[Finding]:
    """D05: connections that were lost and opened again: a server that crashes must not pass silently."""
    for variant, trials in by_variant.items():
        by_trial: dict[int, dict[str, int]] = {}
        outages: set[str] = set()
        for index, figures in ((t.place.index, t.figures) for t in trials if t.figures is not None):
            classes = figures.error_classes
            lost = {code: number for code, number in figures.errors.items() if classes.get(code) in OUTAGE}
            outages.update(classes[code] for code in lost)
            if lost:
                by_trial[index] = lost
        if not by_trial:
            continue
        total: Counter[str] = Counter()
        for lost in by_trial.values():
            total.update(lost)
        told = ", ".join(f"{number} x {code}" for code, number in total.most_common())
        outage = f"{' and '.join(sorted(outages))} in {count(len(by_trial), 'trial')}"
        yield finding(
            "D05",
            "warn",
            f"connections to {variant} were {outage} and opened again "
            f"(errors {told}): the figures hold the outage. See in the server's log whether it restarted, "
            'and use [load] on_lost = "stop" where such a trial must not count',
            variant,
            trials={str(index): lost for index, lost in by_trial.items()},
        )


def contract(by_variant: ByVariant, workload: str) -> Iterator[Finding]:
    """D04: statements that returned or changed another number of rows than the workload promises."""
    for variant, trials in by_variant.items():
        found = _figures(trials)
        off = sum(figures.off_contract for figures in found)
        statements = sum(figures.statements for figures in found)
        if off:
            share = off / statements
            why = "the data are not what was loaded"
            if share <= MET_AT_A_ROW:
                why = "two transactions met at a row, of which one deletes it, or a row is missing"
            yield finding(
                "D04",
                "stop" if share > OFF_CONTRACT else "warn" if share > MET_AT_A_ROW else "note",
                f"{off} of {statements} statements of {workload} on {variant} touched another number of "
                f"rows than the workload promises: {why}",
                variant,
                workload=workload,
                off_contract=off,
                statements=statements,
            )


def overload(by_variant: ByVariant) -> Iterator[Finding]:
    """R07: transactions that were due in an open loop and never started, so that latency is a lower bound."""
    for variant, trials in by_variant.items():
        figures = {t.place.index: t.figures for t in trials if t.figures}
        behind = {index: f for index, f in figures.items() if f.dropped or f.backlog > BACKLOG * f.events}
        if not behind:
            continue
        dropped = sum(f.dropped for f in behind.values())
        waiting = sum(f.backlog for f in behind.values())
        told = [f"{dropped} were dropped"] if dropped else []
        told += [f"{waiting} still waited at the end"] if waiting else []
        yield finding(
            "R07",
            "warn",
            f"{variant} could not keep up in {count(len(behind), 'trial')}: of the transactions that "
            f"were due {' and '.join(told)}. Their latency is known to be more than they had waited, and a "
            "percentile among them is a lower bound. Offer a lower rate or allow more connections",
            variant,
            dropped={str(index): f.dropped for index, f in behind.items()},
            backlog={str(index): f.backlog for index, f in behind.items()},
        )


def _figures(trials: Sequence[Measured]) -> list[Figures]:
    return [trial.figures for trial in trials if trial.figures is not None]


def _with_classes(codes: Sequence[str], classes: Mapping[str, str]) -> str:
    """Error codes, each with what it means where the records say so."""
    named = {code: word for code, word in classes.items() if word != "other"}
    named["script"] = "counted by the script itself"
    return ", ".join(f"{code} ({named[code].replace('-', ' ')})" if code in named else code for code in codes)


def _unit(unit: str) -> str:
    return "connections" if unit == "connections" else "transactions per second"
