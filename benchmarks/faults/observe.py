"""Runs one cell: starts dbdyno, injects the fault in its phase, and judges what follows."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from dbdyno.problem import ExitCode
from dbdyno.servers.server import ServerProblem
from dbdyno.store import Run

from . import experiment
from .cells import Cell, Outcome, Result
from .fault import Fault
from .reached import Existing, ServerPool, started_by_commands
from .registry import FAULTS
from .scene import Scene

# Longest times in seconds: until the phase begins, from the fault to the end of dbdyno, and of a resumed run.
REACH_S, RESUME_S = 90.0, 90.0
# What a killed dbdyno had started may live so much longer.
ENDING_S = 3.0
LINES_SHOWN = 3
REPORTS = re.compile(
    r"fail|error|interrupt|cannot|could not|lost|warn|stop|killed|waiting|no space|refused", re.I
)
MESSAGE = re.compile(r"^(error|dbdyno|warning): ", re.M)
BROKEN = re.compile(r"Traceback|internal error|panicked|Aborted!|^\w+Error: ", re.M)
# Progress lines, which are no messages, and what the message of a failed trial ends with.
PROGRESS = re.compile(
    r"^\[\d+/\d+\] .*transactions/s"
    r"|^(Continue with:|[\d,]+ of [\d,]+|results in|run:|done in|block \d+, .*:) "
)
FINDING = re.compile(r"\b[PRD]\d\d\b")
LEFT = re.compile(r"; (about )?[\d.]+ ?(ms|s|min|h)[\w. ]* left$")


class PhaseNotReached(Exception):  # noqa: N818 — the cell is repeated by the next call.
    """dbdyno ended, or took too long, before the phase of the cell."""


class Observer:
    """Runs cells one after the other, in one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)
        self._folder = folder.absolute()
        self._pool: ServerPool | None = None

    def close(self) -> None:
        """Stop the servers that cells have shared."""
        if self._pool is not None:
            self._pool.close()

    def run(self, cell: Cell) -> Result:
        """The result of a cell. Raises PhaseNotReached, NothingToHit."""
        began = time.monotonic()
        fault = FAULTS[cell.fault]
        with ExitStack() as stack:
            scene, existing = self._scene(cell, stack)
            stack.callback(_undo, scene)
            fault.before(scene)
            options = () if cell.phase == "report" else ("--no-report",)
            scene.start(*options)
            stack.callback(_kill, scene)
            if not scene.reach(cell.phase, REACH_S):
                raise PhaseNotReached(f"{cell.name}: {_last(scene.lines)}")
            result = self._hit(fault, scene, existing, began)
            self._log(cell, scene)
            return result

    def _log(self, cell: Cell, scene: Scene) -> None:
        """Keep everything that dbdyno printed after its last start."""
        folder = self._folder / "logs"
        folder.mkdir(exist_ok=True)
        lines = [f"{at - scene.lines[0][0]:8.2f}  {text}\n" for at, text in scene.lines]
        (folder / f"{cell.name}.log").write_text("".join(lines))

    def _scene(self, cell: Cell, stack: ExitStack) -> tuple[Scene, Sequence[Existing]]:
        results = self._folder / f"{cell.product}-{cell.kind}"
        results.mkdir(exist_ok=True)
        results.chmod(0o711)
        shutil.rmtree(results / experiment.NAME, ignore_errors=True)
        scene = Scene(results, results / f"{experiment.NAME}.toml", phase=cell.phase)
        existing: Sequence[Existing] = ()
        reached: list[experiment.Reached] = []
        if cell.kind == "remote":
            self._pool = self._pool or ServerPool(self._folder)
            existing = self._pool.pair(cell.product)
            reached = [one.reached for one in existing]
            scene.directories = [one.directory for one in existing]
            scene.proxies = [one.proxy for one in existing]
        elif cell.kind == "command":
            started = stack.enter_context(started_by_commands(results))
            reached = [one for one, _, _ in started]
            scene.directories = [directory for _, directory, _ in started]
            scene.proxies = [proxy for _, _, proxy in started]
        elif cell.kind == "docker":
            from tests.end_to_end.docker_engine import running  # noqa: PLC0415 — only these cells need it.

            engine = stack.enter_context(running())
            engine.import_mariadb()
            scene.environment = dict(os.environ)
        # A new seed has no cached data, so that its loading can be hit.
        is_hit = cell.phase == "prepare"
        seed = time.time_ns() % 10**9 if is_hit else 1
        scene.experiment.write_text(
            experiment.text(cell.product, cell.kind, seed=seed, is_loading_hit=is_hit, reached=reached)
        )
        return scene, existing

    def _hit(self, fault: Fault, scene: Scene, existing: Sequence[Existing], began: float) -> Result:
        before = scene.finished()
        below = scene.descendants()
        fault.inject(scene)
        hit_at = time.monotonic()
        code = scene.end(fault.limit_s)
        ended_at = time.monotonic()
        left = wait_for_the_end(below)
        after = [(at, line) for at, line in scene.lines if at >= hit_at or fault.acts_from_start]
        # Read before the fault is undone, because a full disk is unmounted then.
        finished, run = scene.finished(), scene.run()
        has_report = run is not None and (run / "report.html").exists()
        damage = _damage(run)
        _undo(scene)
        resume_failure = None
        if fault.ends_lab and code != 0 and run is not None:
            resume_failure = resume(scene, before)
            finished, damage = scene.finished(), _damage(scene.run())
        left += _tables(existing)
        kept = sum(finished.get(index) == stamp for index, stamp in before.items())
        if kept < len(before):
            damage = f"{len(before) - kept} finished trials are gone"
        reported_s = next((at - hit_at for at, line in after if REPORTS.search(line)), None)
        outcome, why = _judge(fault, _Ending(code, after, damage, left, resume_failure))
        return Result(
            outcome=outcome,
            why=why,
            sees=_sees(after) or _findings(scene),
            exit_code=code,
            before=len(before),
            kept=kept,
            finished=len(finished),
            planned=experiment.PLANNED,
            has_report=has_report,
            left=left,
            reported_s=None if reported_s is None else round(max(reported_s, 0.0), 1),
            ended_s=round(ended_at - hit_at, 1),
            took_s=round(time.monotonic() - began, 1),
        )


@dataclass(frozen=True)
class _Ending:
    """How dbdyno ended after a fault."""

    # None if it did not end.
    code: int | None
    # Time and text of the lines on standard error after the fault.
    after: Sequence[tuple[float, str]]
    # What is wrong with the stored run; empty if nothing is.
    damage: str
    left: Sequence[str]
    # Why the run could not be resumed, empty if it could; None if it was not tried.
    resume_failure: str | None


def _judge(fault: Fault, ending: _Ending) -> tuple[Outcome, str]:
    """The outcome, and why it is a forbidden one."""
    text, code = "\n".join(line for _, line in ending.after), ending.code
    if code is None:
        return Outcome.HANGS, f"not ended {fault.limit_s:.0f} s after the fault"
    if broken := BROKEN.search(text):
        return Outcome.FAULT, f"printed {broken[0]!r}"
    if ending.damage:
        return Outcome.LOST, ending.damage
    if processes := [one for one in ending.left if not one.startswith("table ")]:
        return Outcome.FAULT, f"left running: {', '.join(processes)}"
    if ending.resume_failure is not None:
        return (Outcome.LOST if ending.resume_failure else Outcome.RESUMED), ending.resume_failure
    if code < 0 or code not in set(ExitCode):
        return (Outcome.ENDS, "") if fault.ends_lab else (Outcome.FAULT, f"ended with status {code}")
    if code in (ExitCode.WORSE, ExitCode.UNDECIDED):
        return Outcome.FAULT, f"exit code {code}, which is a result of --max-loss"
    if code == 0:
        return Outcome.WENT_ON, ""
    if not fault.is_silent and not MESSAGE.search(text):
        return Outcome.FAULT, f"exit code {code} without a message"
    return Outcome.ENDS, ""


def _damage(run: Path | None) -> str:
    """Why the stored run cannot be read; empty if it can."""
    if run is None or not run.exists():
        return ""
    try:
        for trial in Run.open(run).trials():
            if trial.is_done:
                list(trial.records())
    except Exception as error:
        return f"the stored run is damaged: {error}"
    return ""


def resume(scene: Scene, before: dict[int, str]) -> str:
    """Continue the run; why that failed, or an empty text."""
    killed = scene.run()
    has_terminal, scene.has_terminal = scene.has_terminal, False
    scene.start("--no-report", "--resume")
    scene.has_terminal = has_terminal
    code = scene.end(RESUME_S)
    if code is None:
        return f"--resume did not end within {RESUME_S:.0f} s"
    if code == ExitCode.USAGE and not before:
        # A run without a trial may have been removed; then there is nothing to continue.
        return ""
    finished = scene.finished()
    if scene.run() != killed:
        return "--resume continued another run"
    if code != 0 or len(finished) != scene.planned:
        count = f"{len(finished)} of {scene.planned} trials"
        return f"--resume ended with {code} and {count}: {_last(scene.lines)}"
    return ""


def wait_for_the_end(below: Sequence[psutil.Process]) -> list[str]:
    """Names of processes that dbdyno had started and that still run, a moment after its end."""
    _, alive = psutil.wait_procs(below, timeout=ENDING_S)
    names = []
    for process in alive:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                names.append(process.name())
        except psutil.NoSuchProcess:
            continue
    return sorted(names)


def _tables(existing: Sequence[Existing]) -> list[str]:
    """Tables that a run has left on servers that still run."""
    found: list[str] = []
    for one in existing:
        try:
            found += [f"table {name}" for name in one.tables()]
        except ServerProblem:
            continue
    return found


def _undo(scene: Scene) -> None:
    while scene.undo:
        scene.undo.pop()()


def _kill(scene: Scene) -> None:
    if scene.lab.poll() is None:
        scene.lab.kill()
        scene.lab.wait()


def _last(lines: Sequence[tuple[float, str]]) -> str:
    return " / ".join(text for _, text in lines[-LINES_SHOWN:])


def _findings(scene: Scene) -> list[str]:
    """Findings on standard output, except that of too few blocks."""
    path = scene.stdout_path()
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if FINDING.search(line) and "P15" not in line][:LINES_SHOWN]


def _sees(after: Sequence[tuple[float, str]]) -> list[str]:
    """The last lines that are messages."""
    texts = [LEFT.sub("", line.strip()) for _, line in after]
    return [text for text in texts if text and not PROGRESS.search(text)][-LINES_SHOWN:]
