"""Random faults at random times: `python -m benchmarks.fleet --random N --seed S`.

A comparison runs many short trials, and most attempts at one meet a case: one to three faults within half a
second, while the engines connect, while their load runs, or while their last records are on the way. All
cases follow from the seed. The attempt must be given up, and its engines must have ended, within LIMIT_S of
the first fault, and the reason must be one that the user can read. Every trial that counts must have the sums
of three complete engines, and the statements that the server has counted.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dbdyno.problem import Problem
from dbdyno.store import Run, StoredTrial
from dbdyno.store.listing import list_runs

from .faults import ACTOR, RAYLET, earlier_attempts, restart_node, send_signal
from .hosts import Host
from .results_of_faults import CaseResult, Results
from .scene import ENGINE, Scene
from .sums import check_sum

# Seconds from the first fault within which the attempt is given up and all its engines have ended.
LIMIT_S = 5.0
# Share of the cases without a fault, so that there are also results.
UNDISTURBED = 0.1
# A fault happens up to so many seconds after all engines have started: connecting, a warm-up of 0.5 s and a
# measurement of 1 s take about that long.
DELAY_S_MAX = 2.2
# Seconds without a new attempt, after which the comparison counts as hanging: a host that was lost is placed
# again within 60 s.
HANG_S = 120.0
# So many attempts after a fault of a host, Ray has counted it as lost and another raylet runs there.
QUIET = 4
# Seconds within which a trial ends that goes on, with a slow network.
SLOW_TRIAL_S = 40.0
# A host that its engine keeps busy answers late, and one whose engine has little to do at once.
LOADS = {
    "closed": "connections = [3, 6, 9, 12]",
    "open": "connections = [12]\nrate = [100, 200, 300, 400]",
}
# Reasons of attempts that failed because of a fault, as the user sees them.
_REASONS = re.compile(r"was lost: |were not placed|interrupted|process was stopped")
# Servers that hang, or a network that loses packets, may leave a measurement of 1 s without a transaction.
_NO_TRANSACTION = "no transaction ended in the measurement"


@dataclass(frozen=True)
class Kind:
    """A kind of fault. `inject` returns False if what it would hit has just ended."""

    name: str
    inject: Callable[[Scene, Host, random.Random], bool]
    # How often it is drawn, relative to the others.
    weight: int
    # Numbers of the hosts that it may hit, from 0.
    hosts: tuple[int, ...] = (0, 1, 2)
    # Whether the attempt must be given up; otherwise it may also be complete.
    is_fatal: bool = True
    # Whether the attempt must be complete, if it meets only such faults.
    is_harmless: bool = False
    # Whether Ray may count the host as lost because of it, which may also end an attempt that follows.
    is_of_host: bool = False
    # Whether dbdyno may give up an attempt late because of it: a network that stays slow may end one at any
    # time, and servers that hang answer dbdyno late when it asks why.
    is_slow: bool = False
    # Restores the host when the attempt has ended.
    repair: Callable[[Scene, Host], None] = lambda _scene, _host: None
    # Whether dbdyno itself ends, and the run is then resumed.
    is_driver: bool = False


@dataclass(frozen=True)
class Fault:
    """A fault of a case: its kind, the host, and the pause after it in seconds."""

    kind: Kind
    host: int
    pause_s: float
    draw: random.Random


@dataclass(frozen=True)
class Case:
    """What one attempt meets, `delay_s` after its engines have started. It follows from seed and number."""

    seed: int
    number: int
    delay_s: float
    faults: tuple[Fault, ...]


def draw_cases(seed: int) -> Iterator[Case]:
    """The cases of a seed."""
    number = 0
    while True:
        number += 1
        draw = random.Random(f"{seed}/{number}")
        count = 0 if draw.random() < UNDISTURBED else draw.choice((1, 1, 2, 3))
        kinds = draw.choices(KINDS, [one.weight for one in KINDS], k=count)
        faults = tuple(
            Fault(kind, draw.choice(kind.hosts), draw.uniform(0.0, 0.2), random.Random(draw.random()))
            for kind in kinds
        )
        yield Case(seed, number, draw.uniform(0.0, DELAY_S_MAX), faults)


def _signal(number: signal.Signals, *words: str) -> Callable[[Scene, Host, random.Random], bool]:
    return lambda _scene, host, _draw: send_signal(host, number, *words)


def _cut(_scene: Scene, host: Host, _draw: random.Random) -> bool:
    host.cut()
    return True


def _cut_briefly(_scene: Scene, host: Host, draw: random.Random) -> bool:
    host.cut()
    threading.Timer(draw.uniform(0.1, 2.0), host.connect).start()
    return True


def _impair(_scene: Scene, host: Host, draw: random.Random) -> bool:
    host.impair(draw.uniform(0.0, 0.05), draw.uniform(0.0, 0.05))
    return True


def _step_clock(_scene: Scene, host: Host, draw: random.Random) -> bool:
    host.step_clock(draw.randint(-100, 100))
    return True


def _stall_servers(scene: Scene, _host: Host, draw: random.Random) -> bool:
    server = scene.hosts[-1]
    threading.Timer(draw.uniform(0.5, 4.0), send_signal, (server, signal.SIGCONT, *SERVER)).start()
    return send_signal(server, signal.SIGSTOP, *SERVER)


def _continue(*words: str) -> Callable[[Scene, Host], None]:
    """A repair that lets stopped processes go on."""

    def repair(_scene: Scene, host: Host) -> None:
        send_signal(host, signal.SIGCONT, *words)

    return repair


SERVER, DRIVER = ("mariadbd", "--datadir"), ("dbdyno", "compare")
KINDS = (
    Kind("`kill -9` of an engine", _signal(signal.SIGKILL, *ENGINE), 20),
    Kind("an engine hangs (SIGSTOP)", _signal(signal.SIGSTOP, *ENGINE), 20),
    Kind("`kill -9` of an actor", _signal(signal.SIGKILL, *ACTOR), 14),
    Kind("an actor hangs (SIGSTOP)", _signal(signal.SIGSTOP, *ACTOR), 10, repair=_continue(*ACTOR)),
    Kind(
        "a host is cut off", _cut, 8, (1, 2), is_of_host=True, repair=lambda _scene, host: host.connect(),
    ),
    Kind(
        "a host is cut off for 0.1 to 2 s", _cut_briefly, 8, (1, 2), is_fatal=False, is_of_host=True,
        repair=lambda _scene, host: host.connect(),
    ),
    Kind(
        "up to 50 ms delay and 5 % loss", _impair, 8, (2,), is_fatal=False, is_slow=True, is_of_host=True,
        repair=lambda _scene, host: host.impair(),
    ),
    # A raylet whose wall clock went back places no actors until it reaches the earlier time again.
    Kind(
        "a clock jumps by up to 100 s", _step_clock, 3, (2,), is_fatal=False, is_of_host=True,
        repair=restart_node,
    ),
    Kind(
        "the servers hang for 0.5 to 4 s", _stall_servers, 8, is_fatal=False, is_harmless=True, is_slow=True,
    ),
    Kind("`kill -9` of a raylet", _signal(signal.SIGKILL, *RAYLET), 3, (1, 2), is_of_host=True),
    Kind(
        "a raylet hangs (SIGSTOP)", _signal(signal.SIGSTOP, *RAYLET), 4, (1, 2), is_of_host=True,
        repair=_continue(*RAYLET),
    ),
    Kind("dbdyno hangs (SIGSTOP)", _signal(signal.SIGSTOP, *DRIVER), 4, (0,), is_slow=True),
    Kind(
        "`kill -9` of dbdyno, then `--resume`", _signal(signal.SIGKILL, *DRIVER), 4, (0,), is_driver=True,
    ),
)  # fmt: skip


def inject_randomly(scene: Scene, count: int, minutes: float, seed: int, results: Results) -> None:
    """Inject so many faults of a seed, or as many as are possible in a time."""
    cases, deadline = draw_cases(seed), time.monotonic() + 60.0 * minutes

    def is_over() -> bool:
        return results.faults() >= count or time.monotonic() > deadline

    for number in range(1 << 30):
        if is_over():
            return
        load = list(LOADS.values())[number % len(LOADS)]
        scene.write(blocks=10, seconds=1.0, load=load)
        _disturb(scene, results, is_over, cases)
        _check(scene, results)


def _disturb(scene: Scene, results: Results, is_over: Callable[[], bool], cases: Iterator[Case]) -> None:
    """One comparison, until it ends or the faults are over."""
    with (scene.folder / "output").open("w+") as output:
        process = scene.compare("--quiet", output=output)
        known: set[int] = set()
        began = time.monotonic()
        while process.poll() is None and not is_over():
            engines = set(scene.engines()) - known
            if len(engines) < 3:
                if time.monotonic() - began > HANG_S:
                    results.complain(f"no attempt began for {HANG_S:g} s")
                    break
                _restart_lost_nodes(scene)
                time.sleep(0.05)
                continue
            known |= engines
            waited_s, case = time.monotonic() - began, next(cases)
            if _meet(scene, case, engines, results, waited_s):
                process.wait()
                process = scene.compare("--resume", "--quiet", output=output)
            began = time.monotonic()
        _end(scene, process, results)
        output.seek(0)
        text = output.read()
        if ended := [line for line in text.splitlines() if line.startswith("dbdyno: ")]:
            print(f"        {ended[-1]}", flush=True)
        if "Traceback" in text or "internal error" in text:
            results.complain(text[-2000:])


def _meet(scene: Scene, case: Case, engines: set[int], results: Results, waited_s: float) -> bool:
    """Let the faults of a case happen, and wait until the attempt has ended; returns whether dbdyno itself
    was killed.
    """
    done: list[tuple[Kind, Host]] = []
    hit, hit_us = time.monotonic(), time.time_ns() // 1000
    time.sleep(case.delay_s if case.faults else 0.0)
    for fault in case.faults:
        host = scene.hosts[fault.host]
        if _any_run(engines) and fault.kind.inject(scene, host, fault.draw):
            if not done or not any(kind.is_fatal for kind, _ in done):
                hit, hit_us = time.monotonic(), time.time_ns() // 1000
            done.append((fault.kind, host))
        time.sleep(fault.pause_s)
    kinds = [kind for kind, _ in done]
    is_fatal = any(kind.is_fatal for kind in kinds)
    while _any_run(engines) and time.monotonic() - hit < (4.0 * LIMIT_S if is_fatal else SLOW_TRIAL_S):
        time.sleep(0.02)
    if case.faults and not done:
        # The attempt had ended before.
        return False
    result = CaseResult(case.seed, case.number, [f"{kind.name} on {host.name}" for kind, host in done])
    result.waited_s = round(waited_s, 1)
    result.engines_s = round(time.monotonic() - hit, 2)
    send_signal(scene.hosts[0], signal.SIGCONT, *DRIVER)
    if not any(kind.is_driver for kind in kinds):
        _describe_attempt(scene, hit_us, result)
    for kind, host in done:
        kind.repair(scene, host)
    result.problems += _judge(result, kinds, was_quiet=results.since_host_fault >= QUIET)
    if any(kind.is_of_host for kind in kinds):
        results.since_host_fault = 0
    results.since_host_fault += 1
    results.add(result)
    return any(kind.is_driver for kind in kinds)


def _describe_attempt(scene: Scene, hit_us: int, result: CaseResult) -> None:
    """Add what dbdyno has stored of the attempt that a fault has hit."""
    deadline = time.monotonic() + 4.0 * LIMIT_S
    while time.monotonic() < deadline:
        with suppress(OSError, Problem, IndexError):
            run = Run.open(list_runs(scene.results, "fleet")[0])
            for trial in (*earlier_attempts(run), *run.trials()):
                if trial.meta["started_unix_us"] <= hit_us <= trial.meta["ended_unix_us"]:
                    result.phase = _phase(trial, hit_us)
                    result.reason = "" if trial.is_done else str(trial.meta.get("reason"))
                    result.given_up_s = round((trial.meta["ended_unix_us"] - hit_us) / 1e6, 2)
                    return
        time.sleep(0.1)
    result.problems.append("dbdyno has stored no attempt at this time")


def _phase(trial: StoredTrial, hit_us: int) -> str:
    """The phase of an attempt at an instant."""
    begins = {"connecting": 0}
    for record in trial.records():
        if record["type"] == "phase":
            begins[record["data"]["name"]] = int(record["data"]["at_unix_us"])
    if "measure" in begins:
        begins["end"] = begins["measure"] + 1_000_000
    return [name for name, at_us in begins.items() if at_us <= hit_us][-1]


def _judge(result: CaseResult, kinds: list[Kind], *, was_quiet: bool) -> list[str]:
    """What is wrong with an attempt. `was_quiet`: whether the attempts before it met no fault of a host."""
    problems = []
    is_fatal = any(kind.is_fatal for kind in kinds)
    is_slow = any(kind.is_slow for kind in kinds)
    is_starved = is_slow and result.reason == _NO_TRANSACTION
    if result.reason and not (is_starved or _REASONS.search(result.reason)):
        problems.append(f"it failed for another reason: {result.reason}")
    if result.reason and not is_starved and was_quiet and all(kind.is_harmless for kind in kinds):
        problems.append(f"it was given up without a reason: {result.reason}")
    times_s = [result.engines_s] if is_fatal else []
    if (is_fatal or result.reason) and not is_slow:
        times_s.append(result.given_up_s)
    if max(times_s, default=0.0) > LIMIT_S:
        problems.append(
            f"engines ran for {result.engines_s:.1f} s, and it was given up after {result.given_up_s:.1f} s"
        )
    return problems


def _any_run(processes: set[int]) -> bool:
    """Whether a process runs. One that has ended stays until its parent, which may be stopped, reads that."""
    for process in processes:
        with suppress(OSError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                return True
    return False


def _restart_lost_nodes(scene: Scene) -> None:
    """Restart Ray where the raylet has ended: it was killed, or the head counted its host as lost, of which a
    raylet learns when it is connected again.
    """
    for host in scene.hosts[1:-1]:
        if not host.find(*RAYLET):
            restart_node(scene, host)


def _end(scene: Scene, process: subprocess.Popen[str], results: Results) -> None:
    """End the comparison as Ctrl-C does, if it still runs."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(60.0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        results.complain("dbdyno did not end within 60 s after SIGINT")
    began = time.monotonic()
    while scene.engines() and time.monotonic() - began < LIMIT_S:
        time.sleep(0.05)
    if scene.engines():
        results.complain("an engine is left")


def _check(scene: Scene, results: Results) -> None:
    """The numbers of every trial of the last comparison that counts, and the reasons of the others."""
    runs = list_runs(scene.results, "fleet")
    if not runs:
        results.complain("a comparison ended before its first trial")
        return
    run = Run.open(runs[0])
    if str(run.path) in results.checked:
        # The time was over before it began, or its own message says why it did not.
        return
    results.checked.add(str(run.path))
    trials = run.trials()
    done = [trial for trial in trials if trial.is_done]
    problems = [problem for trial in done for problem in check_sum(trial)]
    lost = [*earlier_attempts(run), *(trial for trial in trials if not trial.is_done)]
    reasons = {str(trial.meta.get("reason")) for trial in lost} - {_NO_TRANSACTION}
    problems += [f"an attempt failed: {reason}" for reason in reasons if not _REASONS.search(reason)]
    results.add_comparison(len(done), len(lost), problems)
