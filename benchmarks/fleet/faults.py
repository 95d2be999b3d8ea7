"""Breaks a part of a fleet while a comparison on three hosts runs, and observes what follows."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.problem import ExitCode
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoredTrial, files
from dbdyno.store.listing import list_runs

from .hosts import CPU_SHARE, Host, cluster, network, start_node
from .scene import ENGINE, Scene, servers
from .sums import check_sum

STOP_S_MAX = 5.0
RUN_S_MAX = 240.0


@dataclass(frozen=True)
class Fault:
    """One fault: what it is, how it happens to a host, and whether hosts are left for all engines."""

    name: str
    inject: Callable[[Host], None]
    # Engines that may run on one host: with 2, two of three hosts have room for the fleet.
    per_host: int = 1
    # Restores the host for the next fault.
    repair: Callable[[Scene, Host], None] = lambda _scene, _host: None
    # Whether a trial fails; a slow network makes none fail.
    is_fatal: bool = True
    # Whether dbdyno itself ends, and the run is then resumed.
    is_driver: bool = False


@dataclass
class Outcome:
    """What followed a fault."""

    exit_code: int
    seen: str
    # Seconds from the fault until no engine ran; None if the load went on.
    stopped_s: float | None
    kept: str
    problems: list[str] = field(default_factory=list)


def send_signal(host: Host, number: signal.Signals, *words: str) -> bool:
    """Send a signal to the processes of a host whose command lines have all words; returns whether there were
    any.
    """
    processes = host.find(*words)
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
    return bool(processes)


def _kill(*words: str, number: signal.Signals = signal.SIGKILL) -> Callable[[Host], None]:
    """A fault that sends a signal."""

    def inject(host: Host) -> None:
        assert send_signal(host, number, *words), f"no process {words} on {host.name}"

    return inject


def restart_node(scene: Scene, host: Host) -> None:
    """Bring a host back into the cluster."""
    host.connect()
    send_signal(host, signal.SIGKILL, "ray")
    with host.unlimited():
        start_node(host, scene.environment, scene.hosts[0])


def _restart(scene: Scene, host: Host) -> None:
    restart_node(scene, host)
    time.sleep(3.0)


ACTOR, RAYLET = ("ray::EngineHost",), ("raylet/raylet", "--")
FAULTS = (
    Fault("`kill -9` of an engine", _kill(*ENGINE)),
    Fault("an engine hangs (SIGSTOP)", _kill(*ENGINE, number=signal.SIGSTOP)),
    Fault("`kill -9` of an actor", _kill(*ACTOR)),
    Fault("an actor hangs (SIGSTOP)", _kill(*ACTOR, number=signal.SIGSTOP)),
    Fault(
        "a raylet hangs (SIGSTOP); the other hosts have room",
        _kill(*RAYLET, number=signal.SIGSTOP), 2, _restart,
    ),
    Fault("`kill -9` of dbdyno, then `--resume`", _kill("dbdyno", "compare"), is_driver=True),
    Fault("`kill -9` of a raylet; the other hosts have room", _kill(*RAYLET), 2, _restart),
    Fault("`kill -9` of a raylet; no room for all engines", _kill(*RAYLET), 1, _restart),
    Fault("a host is cut off; the others have room", Host.cut, 2, _restart),
    Fault("a host is cut off; no room for all engines", Host.cut, 1, _restart),
    Fault(
        "a host answers 30 ms late",
        lambda host: host.impair(delay_s=0.015),
        repair=lambda _scene, host: host.impair(),
        is_fatal=False,
    ),
    Fault(
        "the clock of a host jumps by 7 s",
        lambda host: host.step_clock(7),
        1,
        lambda _scene, host: host.step_clock(0),
        is_fatal=False,
    ),
    Fault(
        "a host loses 3 % of its packets",
        lambda host: host.impair(loss=0.03),
        repair=lambda _scene, host: host.impair(),
        is_fatal=False,
    ),
)  # fmt: skip


@contextmanager
def scene(cpu_share: float = CPU_SHARE) -> Iterator[Scene]:
    """Three hosts of so many CPUs with a Ray node each, and two servers on a fourth one."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="dbdyno-fleet-", dir="/var/tmp"))
        )
        *hosts, server = stack.enter_context(network(3))
        tables = stack.enter_context(servers(server, Workspace.open(folder / "servers"), folder))
        environment = stack.enter_context(cluster(hosts))
        for host in hosts:
            # Without cgroups, as in some containers, the hosts share all CPUs.
            with suppress(OSError):
                host.limit_cpu(cpu_share)
        yield Scene((*hosts, server), environment, folder, tables)


def observe(
    scene: Scene, fault: Fault, *, blocks: int = 1, seconds: float = 4.0, delay_s: float = 1.5
) -> Outcome:
    """Compare, and let the fault happen while the load of a trial runs."""
    scene.write(blocks=blocks, seconds=seconds, per_host=fault.per_host)
    process = scene.compare()
    began = time.monotonic()
    while len(scene.engines()) < 3 and process.poll() is None and time.monotonic() - began < 120.0:
        time.sleep(0.1)
    time.sleep(delay_s)
    host = scene.hosts[0] if fault.is_driver else _host_with_engine(scene)
    stopped_s = None
    if process.poll() is None:
        before = set(scene.engines())
        fault.inject(host)
        hit = time.monotonic()
        # The repeat of the trial has other processes.
        while before & set(scene.engines()) and time.monotonic() - hit < 60.0:
            time.sleep(0.05)
        stopped_s = time.monotonic() - hit
    try:
        out, err = process.communicate(timeout=RUN_S_MAX)
    except Exception:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += "\nit did not end"
    if fault.is_driver:
        out, err = scene.compare("--resume").communicate(timeout=RUN_S_MAX)
    fault.repair(scene, host)
    return _outcome(scene, fault, process.returncode, out + err, stopped_s)


def _host_with_engine(scene: Scene) -> Host:
    """A host to hit: not the first, which has dbdyno. Ray chooses which hosts get the engines."""
    others = scene.hosts[2], scene.hosts[1]
    return next((host for host in others if host.find(*ENGINE)), others[0])


def _outcome(scene: Scene, fault: Fault, code: int, text: str, stopped_s: float | None) -> Outcome:
    run = Run.open(list_runs(scene.results, "fleet")[0])
    trials = run.trials()
    attempts = earlier_attempts(run)
    failed = [trial for trial in trials if not trial.is_done]
    reasons = list(dict.fromkeys(str(one.meta.get("reason")) for one in (*attempts, *failed)))
    done = [trial for trial in trials if trial.is_done]
    kept = f"{len(done)} of {len(run.schedule())} trials; {len(attempts)} repeated, records in attempt-1"
    if not attempts:
        kept = f"{len(done)} of {len(run.schedule())} trials"
    seen = "; ".join(reasons) or _finding(run)
    if code == ExitCode.NOT_COMPARABLE:
        # An error, or what stopped the run.
        why = [line for line in text.splitlines() if line.startswith(("dbdyno: ", "stop ", "Not comparable"))]
        seen += "; then: " + " ".join(why)
    outcome = Outcome(code, seen, stopped_s if fault.is_fatal else None, kept)
    outcome.problems += [problem for trial in done for problem in check_sum(trial)]
    if fault.is_driver:
        outcome.seen = "the shell's message; `--resume` runs the interrupted trial again"
        reasons = [outcome.seen]
    if fault.is_fatal and not reasons:
        outcome.problems.append("no trial failed")
    if fault.is_fatal and (stopped_s is None or stopped_s > STOP_S_MAX):
        outcome.problems.append(f"engines ran for {stopped_s} s after the fault")
    if scene.engines():
        outcome.problems.append("an engine is left")
    if "did not end" in text or "Traceback" in text or "internal error" in text:
        outcome.problems.append(text[-2000:])
    return outcome


def earlier_attempts(run: Run) -> list[StoredTrial]:
    """The attempts of all trials before the last one, also those of a trial that could not run again."""
    return [StoredTrial(path.parent) for path in sorted(run.path.glob("trials/*/attempt-*/trial.json"))]


def _finding(run: Run) -> str:
    """What the report says about the load generators; the trials are complete."""
    verdict = files.read_json(run.path / "verdict.json")
    texts = [f"{check['text']} (D08)" for check in verdict["checks"] if check["code"] == "D08"]
    return "; ".join(texts) or "nothing: the trials are complete, and count"


def table_row(fault: Fault, outcome: Outcome) -> str:
    stopped = "the load goes on" if outcome.stopped_s is None else f"{outcome.stopped_s:.1f} s"
    seen = re.sub(r"\s+", " ", outcome.seen)
    return f"| {fault.name} | {seen} | {stopped} | {outcome.kept} | {outcome.exit_code} |"
