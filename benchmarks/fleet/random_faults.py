"""Random faults at random times: `python -m benchmarks.fleet --random N`.

A comparison runs many short trials, and most attempts at one meet one to three faults: while the engines
connect, while their load runs, or while their last records are on the way. Afterwards every trial that counts
must be the sum of three complete engines, and every other attempt must have a reason that the user can read.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.store import Run
from dbdyno.store.listing import list_runs

from .faults import (
    ACTOR,
    ENGINE,
    RAYLET,
    STOP_S_MAX,
    check_sum,
    earlier_attempts,
    restart_node,
    send_signal,
)
from .hosts import Host
from .scene import Scene

# Share of the attempts that meet no fault, so that there are also results.
UNDISTURBED = 0.1
# A fault happens up to so many seconds after all engines have started: connecting, a warm-up of 0.5 s and a
# measurement of 1 s take about that long.
DELAY_S_MAX = 2.0
# Seconds without a new trial, after which the comparison counts as hanging: a host that was lost is placed
# again within 60 s.
HANG_S = 120.0
# Seconds within which a trial with a slow network ends.
SLOW_TRIAL_S = 40.0
# A host that its engine keeps busy answers late, and one whose engine has little to do at once.
LOADS = ("connections = [3, 6, 9, 12]", "connections = [12]\nrate = [100, 200, 300, 400]")


@dataclass(frozen=True)
class RandomFault:
    """A kind of fault. `inject` returns False if what it would hit has just ended."""

    name: str
    inject: Callable[[Host, random.Random], bool]
    # How often it is drawn, relative to the others.
    weight: int
    # Numbers of the hosts that it may hit, from 0.
    hosts: tuple[int, ...] = (0, 1, 2)
    # Whether the engines of the trial must stop; otherwise it may also be complete.
    is_fatal: bool = True
    # Seconds within which the engines of the trial stop. One that hangs when the others have ended may
    # be waiting for transactions in flight, for which it has 10 s; then it is killed.
    limit_s: float = STOP_S_MAX
    # Restores the host when the engines of the trial have ended.
    repair: Callable[[Scene, Host], None] = lambda _scene, _host: None
    # Whether dbdyno itself ends, and the run is then resumed.
    is_driver: bool = False


@dataclass
class Tally:
    """What the faults did."""

    faults: Counter[str] = field(default_factory=Counter)
    # Kind of fault -> the longest time until the engines of the trial had ended, in seconds.
    slowest_s: dict[str, float] = field(default_factory=dict)
    trials: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    # The runs that are counted.
    runs: set[Path] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def complain(self, problem: str) -> None:
        """Keep a problem, and print it at once."""
        self.problems.append(problem)
        print(f"after {self.faults.total()} faults: {problem}", flush=True)

    def table(self) -> str:
        """A table of the faults, and a line with the totals."""
        lines = [
            "| fault, alone or with others | times | last engine stopped after at most |",
            "|---|---:|---:|",
        ]
        for fault in FAULTS:
            if times := self.faults[fault.name]:
                slowest_s = self.slowest_s.get(fault.name, 0.0)
                slowest = f"{slowest_s:.1f} s" if fault.is_fatal else "the load may go on"
                lines.append(f"| {fault.name} | {times} | {slowest} |")
        lines.append("")
        lines.append(
            f"{self.faults.total():,} faults; {self.lost.total():,} attempts were lost, "
            f"{self.trials:,} trials are "
            f"complete and the sums of three engines, {len(self.problems)} problems."
        )
        return "\n".join(lines)


def _signal(number: signal.Signals, *words: str) -> Callable[[Host, random.Random], bool]:
    return lambda host, _draw: send_signal(host, number, *words)


def _cut(host: Host, _draw: random.Random) -> bool:
    host.cut()
    return True


def _cut_briefly(host: Host, draw: random.Random) -> bool:
    host.cut()
    time.sleep(draw.uniform(0.1, 2.0))
    host.connect()
    return True


def _impair(host: Host, draw: random.Random) -> bool:
    host.impair(draw.uniform(0.0, 0.05), draw.uniform(0.0, 0.05))
    return True


def _step_clock(host: Host, draw: random.Random) -> bool:
    host.step_clock(draw.randint(-100, 100))
    return True


def _reconnect(scene: Scene, host: Host) -> None:
    host.connect()
    if not host.find(*RAYLET):
        restart_node(scene, host)


FAULTS = (
    RandomFault("`kill -9` of an engine", _signal(signal.SIGKILL, *ENGINE), 30),
    RandomFault("an engine hangs (SIGSTOP)", _signal(signal.SIGSTOP, *ENGINE), 10, limit_s=STOP_S_MAX + 12.0),
    RandomFault("`kill -9` of an actor", _signal(signal.SIGKILL, *ACTOR), 30),
    RandomFault("a host is cut off", _cut, 8, (1, 2), repair=restart_node),
    RandomFault(
        "a host is cut off for 0.1 to 2 s", _cut_briefly, 8, (1, 2), is_fatal=False, repair=_reconnect,
    ),
    RandomFault(
        "up to 50 ms delay and 5 % loss", _impair, 8, (2,), is_fatal=False,
        repair=lambda _scene, host: host.impair(),
    ),
    RandomFault("a clock jumps by up to 100 s", _step_clock, 8, (2,), is_fatal=False),
    RandomFault("`kill -9` of a raylet", _signal(signal.SIGKILL, *RAYLET), 2, (1, 2), repair=restart_node),
    RandomFault(
        "`kill -9` of dbdyno, then `--resume`", _signal(signal.SIGKILL, "dbdyno", "compare"), 4, (0,),
        is_driver=True,
    ),
)  # fmt: skip


def inject_randomly(scene: Scene, count: int, minutes: float, draw: random.Random) -> Tally:
    """Inject so many faults, or as many as are possible in a time."""
    tally, deadline = Tally(), time.monotonic() + 60.0 * minutes
    while tally.faults.total() < count and time.monotonic() < deadline:
        scene.write(blocks=10, seconds=1.0, load=draw.choice(LOADS))
        _disturb(scene, tally, lambda: tally.faults.total() >= count or time.monotonic() > deadline, draw)
        _check(scene, tally)
    return tally


def _disturb(scene: Scene, tally: Tally, is_over: Callable[[], bool], draw: random.Random) -> None:
    """One comparison, until it ends or the faults are over."""
    with (scene.folder / "output").open("w+") as output:
        process = scene.compare("--quiet", output=output)
        known: set[int] = set()
        began = time.monotonic()
        while process.poll() is None and not is_over():
            engines = set(scene.engines()) - known
            if len(engines) < 3:
                if time.monotonic() - began > HANG_S:
                    tally.complain(f"no trial began for {HANG_S:g} s")
                    break
                time.sleep(0.05)
                continue
            known |= engines
            began = time.monotonic()
            if draw.random() < UNDISTURBED:
                continue
            time.sleep(draw.uniform(0.0, DELAY_S_MAX))
            if _inject(scene, engines, tally, draw):
                process.wait()
                process = scene.compare("--resume", "--quiet", output=output)
        _end(scene, process, tally)
        output.seek(0)
        text = output.read()
        if "Traceback" in text or "internal error" in text:
            tally.complain(text[-2000:])


def _inject(scene: Scene, engines: set[int], tally: Tally, draw: random.Random) -> bool:
    """Let one to three faults happen, and wait until the engines have ended; returns whether dbdyno itself
    was killed.
    """
    done: list[tuple[RandomFault, Host]] = []
    for fault in draw.choices(FAULTS, [one.weight for one in FAULTS], k=draw.choice((1, 1, 2, 3))):
        host = scene.hosts[draw.choice(fault.hosts)]
        if _any_run(engines) and fault.inject(host, draw):
            done.append((fault, host))
        time.sleep(draw.uniform(0.0, 0.2))
    hit = time.monotonic()
    limit_s = max((fault.limit_s for fault, _ in done if fault.is_fatal), default=SLOW_TRIAL_S)
    while _any_run(engines) and time.monotonic() - hit < 2 * limit_s:
        time.sleep(0.02)
    stopped_s = time.monotonic() - hit
    names = " and ".join(f"{fault.name} on {host.name}" for fault, host in done)
    if stopped_s > limit_s:
        tally.complain(f"{names}: engines ran for {stopped_s:.1f} s after it")
    for fault, host in done:
        tally.faults[fault.name] += 1
        if fault.limit_s == limit_s:
            tally.slowest_s[fault.name] = max(stopped_s, tally.slowest_s.get(fault.name, 0.0))
        fault.repair(scene, host)
    return any(fault.is_driver for fault, _ in done)


def _any_run(processes: set[int]) -> bool:
    return any(Path(f"/proc/{process}").exists() for process in processes)


def _end(scene: Scene, process: subprocess.Popen[str], tally: Tally) -> None:
    """End the comparison as Ctrl-C does, if it still runs."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(60.0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tally.complain("dbdyno did not end within 60 s after SIGINT")
    began = time.monotonic()
    while scene.engines() and time.monotonic() - began < STOP_S_MAX:
        time.sleep(0.05)
    if scene.engines():
        tally.complain("an engine is left")


def _check(scene: Scene, tally: Tally) -> None:
    """The numbers of every trial that counts, and the reasons of the others."""
    runs = list_runs(scene.results, "fleet")
    if not runs or runs[0] in tally.runs:
        tally.complain("a comparison ended before its first trial")
        return
    tally.runs.add(runs[0])
    run = Run.open(runs[0])
    trials = run.trials()
    for trial in trials:
        if trial.is_done:
            tally.trials += 1
            for problem in check_sum(trial):
                tally.complain(problem)
    for lost in (*earlier_attempts(run), *(trial for trial in trials if not trial.is_done)):
        reason = str(lost.meta.get("reason"))
        tally.lost[re.sub(r"10\.231\.7\.\d+", "HOST", reason)] += 1
        if not re.search(r"was lost: |were not placed|interrupted", reason):
            tally.complain(f"a trial failed for another reason: {reason}")
