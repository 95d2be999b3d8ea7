"""The texts of the live view: plain lines, readable without colour. The head fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbdyno import result_text
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import LEVELS, SEVERITIES
from dbdyno.measure.figures import live_percentile_us
from dbdyno.store.endings import ended_text
from dbdyno.store.live import LiveRun, LiveTrial, Part
from dbdyno.text import compose, compose_count, join

COLUMNS = (
    compose("block"),
    compose("variant"),
    compose("load"),
    compose("transactions/s"),
    "p95 ms",
    "p99 ms",
    compose("errors"),
    compose("CPUs"),
    compose("state"),
)
# Cells of all columns except the variant, with those between columns and a state such as "running".
_OTHER_CELLS = 72
# Signs of a block in the line of progress.
DONE, WITH_FAILURES, TO_COME = "#", "!", "."
# What runs before the first trial, as `LiveRun.preparation` names it.
_PREPARATIONS = {"pilot": compose("pilot"), "warm-up trials": compose("warm-up trials")}
# Phases of a load and states of a trial.
_WORDS = {
    "warmup": compose("warm-up"),
    "measure": compose("measurement"),
    "running": compose("running"),
    "done": compose("done"),
    "interrupted": compose("interrupted"),
}


def state_line(now: LiveRun) -> str:
    """What the run does now, in one sentence."""
    if not now.is_running:
        is_sweep = now.ending is None and now.verdict is not None
        why = compose("it is judged") if is_sweep else ended_text(now.ending, now.findings)
        return compose("ENDED: {why}", why=why)
    if now.running:
        return compose("RUNNING: {trials}", trials=join("; ", map(_running_text, now.running)))
    if now.preparation:
        return compose(
            "RUNNING: {preparation}, before the first trial",
            preparation=_PREPARATIONS.get(now.preparation, now.preparation),
        )
    if now.step:
        return compose("RUNNING: {step}", step=now.step)
    if not now.trials:
        return compose("RUNNING: preparing servers and data")
    if len(now.ended) == len(now.planned):
        return compose("RUNNING: the trials have ended and are judged")
    return compose("RUNNING: between two trials")


def trials_text(now: LiveRun) -> str:
    """How many trials have ended, and the time left."""
    failed = sum(entry.state == "failed" for entry in now.ended)
    parts = [
        compose("{ended} of {planned} trials have ended", ended=len(now.ended), planned=len(now.planned)),
        *([compose("{number} of them failed", number=failed)] if failed else []),
        *([] if now.left_s is None else [compose("about {time} left", time=format_duration(now.left_s))]),
    ]
    return join(", ", parts)


def progress_lines(now: LiveRun, width: int) -> list[str]:
    """The number of trials with the time left, and a sign for each block."""
    signs = "".join(_sign(now, block) for block in dict.fromkeys(entry.block for entry in now.planned))
    room = max(10, width - len("blocks  "))
    rows = [signs[at : at + room] for at in range(0, len(signs), room)]
    return [
        trials_text(now),
        *(
            join("", (compose("blocks  ") if number == 0 else " " * 8, row))
            for number, row in enumerate(rows)
        ),
        compose(
            "        {done} ended, {failed} with failed trials, 0-9 tenths ended, {to_come} to come",
            done=DONE,
            failed=WITH_FAILURES,
            to_come=TO_COME,
        ),
    ]


def newest_text(now: LiveRun) -> str:
    """The figures of the newest interval of each running trial."""
    return join(
        "; ", (_prefix(now, entry) + _figures(entry.parts[-1]) for entry in now.running if entry.parts)
    )


def rows(now: LiveRun, experiment: Experiment, width: int) -> list[tuple[str, ...]]:
    """A row of `COLUMNS` for each trial that has begun, the newest first; `width` in cells."""
    several = len(experiment.workloads) > 1
    newest = sorted(now.trials, key=lambda entry: (entry.state == "running", entry.trial.index), reverse=True)
    room = max(8, width - _OTHER_CELLS)
    return [_row(entry, room, several_workloads=several) for entry in newest]


def finding_lines(now: LiveRun) -> list[str]:
    """Findings, the most severe first, of one level the newest first."""
    return [
        join(" ", (SEVERITIES[level], finding.summary))
        for level in LEVELS
        for finding in reversed(now.findings)
        if finding.level == level
    ]


def findings_title(now: LiveRun) -> str:
    """How many findings there are of each level."""
    stops, warnings, notes = (sum(finding.level == level for finding in now.findings) for level in LEVELS)
    parts = [
        *([compose_count(stops, "{number} stop", "{number} stops")] if stops else []),
        *([compose_count(warnings, "{number} warning", "{number} warnings")] if warnings else []),
        *([compose_count(notes, "{number} note", "{number} notes")] if notes else []),
    ]
    return join(", ", parts) if parts else compose("no findings")


def verdict_lines(now: LiveRun, experiment: Experiment) -> list[str]:
    """The verdict sentences; why there are none if the run has ended without."""
    if now.verdict is not None:
        sentences = now.verdict.summary_sentences
        return sentences or [compose("One variant: there is nothing to compare.")]
    if now.is_running:
        return []
    several = len(experiment.variants) > 1
    return [compose("No verdict yet: dbdyno show computes it.")] if several else []


def _prefix(now: LiveRun, live_trial: LiveTrial) -> str:
    """The variant, if several run in turn."""
    return f"{live_trial.trial.variant}: " if len(now.running) > 1 else ""


def _running_text(live_trial: LiveTrial) -> str:
    phase = _WORDS.get(live_trial.phase, live_trial.phase) if live_trial.phase else compose("connecting")
    at = join(", ", (trial_text(live_trial.trial), phase))
    seconds = [part.end_us - part.start_us for part in live_trial.parts if part.phase == live_trial.phase]
    return join(" ", (at, f"{sum(seconds) / 1e6:.1f} s")) if seconds else at


def trial_text(trial: Trial) -> str:
    """A trial's place: "block 2, variant, 16 connections"; blocks count from 1."""
    repeats = (
        "" if trial.repeats is None else compose(" (repeats block {repeats})", repeats=trial.repeats + 1)
    )
    return compose(
        "block {block}{repeats}, {variant}, {load}",
        block=trial.block + 1,
        repeats=repeats,
        variant=trial.variant,
        load=compose_count(trial.point.connections, "{number:,} connection", "{number:,} connections")
        if trial.point.rate is None
        else _load(trial),
    )


def _row(live_trial: LiveTrial, room: int, *, several_workloads: bool) -> tuple[str, ...]:
    trial, part = live_trial.trial, live_trial.measured
    variant = f"{trial.variant}, {trial.workload}" if several_workloads else trial.variant
    state = (
        compose("failed: {reason}", reason=live_trial.reason)
        if live_trial.state == "failed"
        else _WORDS[live_trial.state]
    )
    figures = ("", "", "", "") if part is None else _cells(part)
    cpus = "" if live_trial.server_cpus is None else f"{live_trial.server_cpus:.2f}"
    return (str(trial.block + 1), _shortened(variant, room), _load(trial), *figures, cpus, state)


def _shortened(text: str, room: int) -> str:
    """The text in `room` characters: its beginning and its end, since names often differ in one of them."""
    if len(text) <= room:
        return text
    end = (room - 1) // 2
    return f"{text[: room - 1 - end]}…{text[len(text) - end :]}"


def _cells(part: Part) -> tuple[str, str, str, str]:
    p95, p99 = (result_text.milliseconds(live_percentile_us(part, entry)) for entry in (95.0, 99.0))
    return result_text.rate(part.throughput), p95, p99, f"{part.error_count:,}"


def _figures(part: Part) -> str:
    rate, p95, p99, errors = _cells(part)
    return compose(
        "{rate} transactions/s, p95 {p95} ms, p99 {p99} ms, {errors} errors",
        rate=rate,
        p95=p95,
        p99=p99,
        errors=errors,
    )


def _load(trial: Trial) -> str:
    point = trial.point
    return f"{point.connections}" if point.rate is None else f"{point.rate:g}/s"


def _sign(now: LiveRun, block: int) -> str:
    planned = sum(entry.block == block for entry in now.planned)
    ended = _of_block(now.ended, block)
    if len(ended) == planned:
        return WITH_FAILURES if any(entry.state == "failed" for entry in ended) else DONE
    has_begun = bool(_of_block(now.trials, block))
    return str(10 * len(ended) // planned) if has_begun else TO_COME


def _of_block(trials: Iterable[LiveTrial], block: int) -> Sequence[LiveTrial]:
    return [entry for entry in trials if entry.trial.block == block]
