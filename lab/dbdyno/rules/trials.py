"""Rules about the records of a run: D03, D04 and D05 about trials, R03, R04 and R07 about the result.

One finding covers all affected trials of a variant.

R15: blocks that were measured partly before and partly after a run was resumed.

R16: files of the run were changed after they were measured.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding, Level
from dbdyno.measure.figures import OUTAGE_CLASSES, figures_of, merge_classes
from dbdyno.result_text import trials_count
from dbdyno.rules.register import rule
from dbdyno.say.wording import join_words, listed_loads
from dbdyno.store.endings import Resumption
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, compose_count, join, mark

# D03 is a warning above ERRORS_PER_1000 errors per 1,000 transactions. It is one too if a variant has more
# than ERRORS_RATIO times the errors of another one, and more than ERRORS_NOTEWORTHY.
ERRORS_PER_1000 = 1.0
ERRORS_RATIO = 2.0
ERRORS_NOTEWORTHY = 0.1
# R03 is a stop if more than one trial and more than this share of all trials have contradictory numbers.
CONTRADICTORY_SHARE = 0.05
# D04 is a stop above this share of statements with row-count mismatches, and a note up to CONFLICT_SHARE. So
# few may come from concurrency: PostgreSQL does not change a row that another transaction has deleted and
# inserted again. If the tables have the loaded rows after the load, more of them come from concurrency too.
MISMATCH_SHARE = 0.01
CONFLICT_SHARE = 1e-5

ByVariant = Mapping[str, Sequence[MeasuredTrial]]


def _caveat_of_completeness(finding: Finding) -> str:
    evidence = finding.evidence
    if "left_out" in evidence:
        return compose("{count} left out", count=trials_count(evidence["left_out"]))
    if "in_repeated" in evidence:
        number = trials_count(evidence["in_repeated"])
        return compose(
            "{number} of {subject} failed in a block that was repeated",
            number=number,
            subject=finding.subject,
        )
    # The server failures of a comparison are caveats without a finding. The sentence itself has the missing
    # trials, and it does not depend on counters.
    return ""


@rule("R04", caveat=_caveat_of_completeness)
def completeness(
    trials: Sequence[MeasuredTrial], planned_blocks: int, contradictions: Collection[int]
) -> Iterator[Finding]:
    """Planned trials without a result. If a variant has no result in any block of a load, that is a stop.

    `contradictions` contains the indices of trials that R03 reports.
    """
    yield from _server_failures(trials)
    without = [trial for trial in trials if trial.failed_by == "harness"]
    left_out = [trial for trial in without if trial.index not in contradictions]
    if left_out:
        reasons = Counter(str(trial.failure) for trial in left_out)
        yield Finding(
            "R04",
            "warn",
            compose(
                "{number} of {number_2} planned trials have no result and are left out, with their "
                "blocks ({most_common})",
                number=len(left_out),
                number_2=len(trials),
                most_common=_most_common(reasons),
            ),
            {
                "left_out": len(left_out),
                "trials": [trial.index for trial in left_out],
                "reasons": dict(reasons),
            },
            fix=compose("Repeat the command with --resume to run them again"),
        )
    not_run = sum(trial.failed_by == "not-run" for trial in trials)
    if not_run:
        yield Finding(
            "R04",
            "warn",
            compose(
                "{not_run} of {number} planned trials have not run, so there is no verdict",
                not_run=not_run,
                number=len(trials),
            ),
            {"not_run": not_run},
            fix=compose("Repeat the command with --resume to run them"),
        )
    yield from _points_without_result(without, planned_blocks)


def _points_without_result(without: Sequence[MeasuredTrial], blocks: int) -> Iterator[Finding]:
    """R04: loads at which a variant has no result in any of the `blocks`."""
    failed_points = Counter((t.variant, t.workload, t.point) for t in without)
    for (variant, workload, (unit, value)), number in failed_points.items():
        if number >= blocks:
            yield Finding(
                "R04",
                "stop",
                compose(
                    "{variant} has no result at {load} of {workload}",
                    variant=variant,
                    load=listed_loads([{unit: value}]),
                    workload=workload,
                ),
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
            compose(
                "{number} of {total} trials of {variant} failed because of their server and count as 0 "
                "transactions/s ({most_common})",
                number=len(indices),
                total=total,
                variant=variant,
                most_common=_most_common(reasons),
            ),
            {"failed": len(indices), "trials": indices, "reasons": dict(reasons)},
            variant,
            fix=compose("Find the cause in the server's log"),
        )


def _by_variant(trials: Iterable[MeasuredTrial], indices: Collection[int]) -> dict[str, list[int]]:
    """Variant -> the indices of its trials, of those in `indices`."""
    groups: dict[str, list[int]] = defaultdict(list)
    for trial in trials:
        if trial.index in indices:
            groups[trial.variant].append(trial.index)
    return groups


def _most_common(reasons: Counter[str]) -> str:
    return join(
        "; ",
        (
            join("", (f"{number} x ", reason)) if number > 1 else reason
            for reason, number in reasons.most_common(3)
        ),
    )


@rule("R04")
def repeated_attempts(
    attempts: Mapping[int, Sequence[str]], trials: Sequence[MeasuredTrial]
) -> Iterator[Finding]:
    """Trials that ran again after an attempt without a result.

    `attempts` maps the index of a trial to the reasons of its earlier attempts.
    """
    for variant, indices in _by_variant(trials, attempts).items():
        reasons = Counter(reason for index in indices for reason in attempts[index])
        text = mark("{count} of {variant} ran again after an attempt that gave no result ({most_common})")
        yield _finding_of_attempts("note", text, variant, reasons, number=len(indices), trials=indices)


@rule("R04")
def failures_in_repeated_blocks(replaced_failures: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Trials that failed because of their server, in blocks that were repeated because of foreign load: a
    variant and a reason for each of them.
    """
    for variant in dict.fromkeys(variant for variant, _ in replaced_failures):
        reasons = Counter(reason for name, reason in replaced_failures if name == variant)
        number = sum(reasons.values())
        text = mark(
            "{count} of {variant} failed in a block that was repeated because of foreign load "
            "({most_common}). The repeat counts"
        )
        yield _finding_of_attempts("warn", text, variant, reasons, number=number, in_repeated=number)


def _finding_of_attempts(
    level: Level, text: str, variant: str, reasons: Counter[str], *, number: int, **evidence: Any
) -> Finding:
    values = {"count": trials_count(number), "variant": variant, "most_common": _most_common(reasons)}
    return Finding("R04", level, compose(text, **values), {**evidence, "reasons": dict(reasons)}, variant)


@rule("R04")
def counters(unread: Mapping[int, str], trials: Sequence[MeasuredTrial]) -> Iterator[Finding]:
    """Trials with a result whose server's counters could not be read before and after the measurement.

    `unread` maps the index of a trial to the reason.
    """
    measured = [trial for trial in trials if trial.figures is not None]
    for variant, indices in _by_variant(measured, [i for i, reason in unread.items() if reason]).items():
        reasons = Counter(unread[index] for index in indices)
        reason, number = reasons.most_common(1)[0]
        yield Finding(
            "R04",
            "warn",
            compose(
                "the server's counters are missing for {count} of {variant}, so these trials are left "
                "out of the costs of a transaction and of the section Why ({detail}{reason})",
                count=trials_count(len(indices)),
                variant=variant,
                detail=f"{number} x " if number > 1 else "",
                reason=reason,
            ),
            {"trials": indices, "reasons": dict(reasons)},
            variant,
        )


def _caveat_of_arithmetic(finding: Finding) -> str:
    number = len(finding.evidence["trials"])
    return compose_count(
        number,
        "{number} contradictory trial of {variant} left out",
        "{number} contradictory trials of {variant} left out",
        variant=finding.subject,
    )


@rule("R03", may_forbid=True, caveat=_caveat_of_arithmetic)
def arithmetic(
    contradictions: Mapping[int, Sequence[str]], trials: Sequence[MeasuredTrial]
) -> Iterator[Finding]:
    """Trials whose numbers contradict each other; `contradictions` maps the index of a trial to texts.

    Such a trial is left out, with its block. Many of them are a stop.
    """
    by_variant = _by_variant(trials, contradictions)
    is_stop = sum(map(len, by_variant.values())) > max(1.0, CONTRADICTORY_SHARE * len(trials))
    consequence = (
        compose("No result of this run can be trusted") if is_stop else compose("The block is left out")
    )
    for variant, indices in by_variant.items():
        first = indices[0]
        yield Finding(
            "R03",
            "stop" if is_stop else "warn",
            compose(
                "the numbers of {count} of {variant} contradict each other; in trial {first}: {listed}. "
                "{consequence}",
                count=trials_count(len(indices)),
                variant=variant,
                first=first,
                listed=join("; ", contradictions[first]),
                consequence=consequence,
            ),
            {"variant": variant, "trials": {str(index): list(contradictions[index]) for index in indices}},
            # A stop is about the complete run, not about one variant.
            "" if is_stop else variant,
        )


@rule("D03", caveat=mark("errors were frequent or differ"))
def errors(by_workload: Mapping[str, ByVariant]) -> Iterator[Finding]:
    """Errors per 1,000 transactions of each workload, including those after which the transaction was
    retried.
    """
    for workload, by_variant in by_workload.items():
        yield from _errors(by_variant, workload)


def _errors(by_variant: ByVariant, workload: str) -> Iterator[Finding]:
    rates: dict[str, float] = {}
    codes: dict[str, dict[str, int]] = {}
    figures = {variant: [f for _, f in figures_of(trials)] for variant, trials in by_variant.items()}
    classes = merge_classes(entry.error_classes for of_variant in figures.values() for entry in of_variant)
    for variant, of_variant in figures.items():
        events = sum(entry.events for entry in of_variant)
        by_code: Counter[str] = Counter()
        for figure in of_variant:
            by_code.update(figure.errors)
        if events:
            rates[variant] = sum(by_code.values()) / events * 1000.0
            codes[variant] = dict(by_code)
    most, least = max(rates.values(), default=0.0), min(rates.values(), default=0.0)
    if most == 0.0:
        return
    differ = most > ERRORS_NOTEWORTHY and most > ERRORS_RATIO * least and len(rates) > 1
    listed = join(", ", (f"{variant} {rate:.2f}" for variant, rate in rates.items()))
    all_codes = sorted({code for by_code in codes.values() for code in by_code})
    yield Finding(
        "D03",
        "warn" if most > ERRORS_PER_1000 or differ else "note",
        compose(
            "errors per 1,000 transactions of {workload}: {listed} (server error {with_classes}; "
            "retried where possible)",
            workload=workload,
            listed=listed,
            with_classes=_with_classes(all_codes, classes),
        ),
        {"workload": workload, "per_1000": rates, "by_code": codes, "classes": classes},
    )


@rule("D05", caveat=mark("connections were lost"))
def lost_connections(by_variant: ByVariant) -> Iterator[Finding]:
    """Connections that were lost and opened again, for example because the server crashed."""
    for variant, trials in by_variant.items():
        by_trial: dict[int, dict[str, int]] = {}
        outages: set[str] = set()
        for index, figures in figures_of(trials):
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
        listed = join(", ", (f"{number} x {code}" for code, number in total.most_common()))
        idle = ""
        if any(trial.slices for trial in trials):
            idle = compose(
                ", or closes idle connections, as they are between slices (wait_timeout, a proxy's timeout)"
            )
        yield Finding(
            "D05",
            "warn",
            compose(
                "connections to {variant} were {listed} in {count} and opened again (errors {listed_2}): "
                "the results include the outage",
                variant=variant,
                listed=join_words(sorted(outages)),
                count=trials_count(len(by_trial)),
                listed_2=listed,
            ),
            {"trials": {str(index): lost for index, lost in by_trial.items()}},
            variant,
            fix=compose(
                "Find out from the server's log whether it restarted{idle}. With on_lost = 'stop' in "
                "[load] such a trial counts as a failure of its server",
                idle=idle,
            ),
        )


@rule("D04", may_forbid=True, caveat=mark("row-count mismatches"))
def row_counts(
    by_workload: Mapping[str, ByVariant], experiment: Experiment, findings_of_run: Iterable[Finding]
) -> Iterator[Finding]:
    """Statements that returned or changed an unexpected number of rows."""
    with_loaded_rows = _variants_with_loaded_rows(experiment, findings_of_run)
    for workload, by_variant in by_workload.items():
        yield from _row_counts(by_variant, workload, with_loaded_rows)


def _variants_with_loaded_rows(experiment: Experiment, findings_of_run: Iterable[Finding]) -> frozenset[str]:
    """The variants whose tables had the loaded rows and ids after every group, by P02."""
    if any(workload.changes_row_count for workload in experiment.workloads):
        return frozenset()
    others = {each.subject for each in findings_of_run if each.code == "P02" and each.level == "stop"}
    return frozenset(variant.name for variant in experiment.variants) - others


def _row_counts(by_variant: ByVariant, workload: str, with_loaded_rows: Collection[str]) -> Iterator[Finding]:
    for variant, trials in by_variant.items():
        figures = [entry for _, entry in figures_of(trials)]
        mismatches = sum(figure.row_count_mismatches for figure in figures)
        statements = sum(figure.statements for figure in figures)
        if not mismatches:
            continue
        share = mismatches / statements
        level: Level = "stop" if share > MISMATCH_SHARE else "warn" if share > CONFLICT_SHARE else "note"
        why = compose("the data are not those that were loaded")
        if variant in with_loaded_rows:
            level = "warn" if share > MISMATCH_SHARE else "note"
            why = compose(
                "concurrent transactions deleted these rows and inserted them again; the tables had the "
                "loaded rows after the load (P02)"
            )
        elif share <= CONFLICT_SHARE:
            why = compose(
                "a transaction deleted a row that another one was about to change, or a row is missing"
            )
        yield Finding(
            "D04",
            level,
            compose(
                "{mismatches} of {statements} statements of {workload} on {variant} returned or changed "
                "an unexpected number of rows: {why}",
                mismatches=mismatches,
                statements=statements,
                workload=workload,
                variant=variant,
                why=why,
            ),
            {"workload": workload, "row_count_mismatches": mismatches, "statements": statements},
            variant,
        )


def _caveat_of_overload(finding: Finding) -> str:
    trials = len(set(finding.evidence.get("backlog", ())))
    return compose(
        "{subject} could not keep up in {count}", subject=finding.subject, count=trials_count(trials)
    )


@rule("R07", caveat=_caveat_of_overload)
def overload(by_variant: ByVariant, experiment: Experiment) -> Iterator[Finding]:
    """Variants that did not start all scheduled transactions of an open loop, so latency is a lower bound."""
    if not experiment.load.rate or experiment.load.latency_objective:
        # Under a latency objective, rates that are too high are part of the design.
        return
    for variant, trials in by_variant.items():
        behind = {index: entry for index, entry in figures_of(trials) if not entry.keeps_up}
        if not behind:
            continue
        dropped = sum(entry.dropped for entry in behind.values())
        queued = sum(entry.backlog for entry in behind.values())
        parts = (
            [compose("{dropped:,} scheduled transactions were dropped", dropped=dropped)] if dropped else []
        )
        parts += (
            [compose("{queued:,} scheduled transactions were still queued at the end", queued=queued)]
            if queued
            else []
        )
        yield Finding(
            "R07",
            "warn",
            compose(
                "{variant} could not keep up in {count}: {listed}. Their latency is unknown but at least "
                "the time they had waited, so percentiles that they affect are lower bounds",
                variant=variant,
                count=trials_count(len(behind)),
                listed=join_words(parts),
            ),
            {
                "dropped": {str(index): entry.dropped for index, entry in behind.items()},
                "backlog": {str(index): entry.backlog for index, entry in behind.items()},
            },
            variant,
            fix=compose("Offer a lower rate or allow more connections"),
        )


def _with_classes(codes: Sequence[str], classes: Mapping[str, str]) -> str:
    """Error codes as text, each with its class if the records contain one."""
    names = {code: name.replace("-", " ") for code, name in classes.items() if name != "other"}
    names["script"] = compose("counted by the script itself")
    return join(
        ", ",
        (
            compose("{code} ({name})", code=code, name=names[code]) if code in names else code
            for code in codes
        ),
    )


@rule("R15")
def resumptions(resumed: Sequence[Resumption]) -> Iterator[Finding]:
    """A note for each time that a run was resumed."""
    for entry in resumed:
        time = datetime.fromtimestamp(entry.unix_us / 1e6, UTC)
        text = compose(
            "the run was resumed at {time} UTC, after {trials}",
            time=f"{time:%Y-%m-%d %H:%M:%S}",
            trials=trials_count(entry.trials),
        )
        if entry.blocks:
            numbers = join_words([str(block + 1) for block in entry.blocks])
            text += compose_count(
                len(entry.blocks),
                "; block {numbers} began before that and ended after it, so its variants may have met "
                "different conditions",
                "; blocks {numbers} began before that and ended after it, so their variants may have met "
                "different conditions",
                numbers=numbers,
            )
        evidence = {"unix_us": entry.unix_us, "trials": entry.trials, "blocks": list(entry.blocks)}
        yield Finding("R15", "note", text, evidence)


@rule("R16", caveat=mark("files were changed after they were measured"))
def changed_files(changed_files: Sequence[str]) -> Iterator[Finding]:
    """A warning that names the files."""
    if changed_files:
        text = compose(
            "changed since it was measured: {listed}; the verdict is about the changed files",
            listed=join(", ", changed_files),
        )
        yield Finding("R16", "warn", text, {"files": list(changed_files)})
