"""Kills dbdyno at instants spread over a run: `--resume` must finish the plan and lose no finished trial.

On servers that dbdyno does not start, the workload has setup statements of a user, and a kill must leave no
load generator, no running statement and no table without dbdyno's mark; tables of the user keep their rows.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dbdyno.run.marked_tables import marked_tables
from dbdyno.servers.server import ServerProblem

from . import experiment
from .observe import ENDING_S, resume, wait_for_the_end
from .reached import Existing, ServerPool
from .scene import ROOT, Scene

FILE = "kills.json"
PLACES = ("local.mariadb", "remote.mariadb", "remote.mysql", "remote.postgresql")
# A statement of the setup lasts longer than a load generator may live.
SLEEP = {"mysql": "DO SLEEP({s})", "postgresql": "SELECT pg_sleep({s})"}
RUNNING = {
    "mysql": "SELECT info FROM information_schema.processlist "
    "WHERE id <> CONNECTION_ID() AND info IS NOT NULL",
    "postgresql": "SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active' "
    "AND backend_type = 'client backend'",
}
MINE = "mine"
OWN_ROWS = 100
GOLDEN_RATIO = 0.618_033_988_75


@dataclass(frozen=True)
class Kill:
    """One kill point."""

    # Seconds from the start of dbdyno to SIGKILL, and the line that it printed last.
    at_s: float
    during: str
    # Finished trials before.
    before: int
    # What went wrong; empty if nothing did.
    why: str
    # Kind of server and product.
    place: str = PLACES[0]
    # Whether `dbdyno data drop` was needed before the run could be resumed, as its message says.
    needed_drop: bool = False


def measure(results: Path, count: int, places: Sequence[str]) -> int:
    """Try kill points until each place has `count`; gives how many went wrong."""
    results.mkdir(parents=True, exist_ok=True)
    folder = (results / "runs" / "kills").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for one in (folder, folder.parent):
        one.chmod(0o711)
    pool = ServerPool(folder)
    try:
        for place in places:
            _measure_place(results, folder, count, place, pool)
    finally:
        pool.close()
    return sum(bool(one.why) for one in _read(results) if one.place in places)


def _measure_place(results: Path, folder: Path, count: int, place: str, pool: ServerPool) -> None:
    known = _read(results)
    done = sum(one.place == place for one in known)
    length_s = _length_s(folder, place, pool) if done < count else 0.0
    for number in range(done, count):
        # Spreads any number of instants evenly.
        at_s = (0.5 + number * GOLDEN_RATIO) % 1.0 * length_s
        known.append(_kill(folder, at_s, place, pool))
        (results / FILE).write_text(json.dumps([asdict(one) for one in known], indent=1))
        last = known[-1]
        print(
            f"  kill {number + 1}/{count}, {place}, after {at_s:.1f} s ({last.during}): "
            f"{last.why or 'resumed'}",
            file=sys.stderr,
        )


def lines(results: Path) -> Iterator[str]:
    """The section of the table."""
    known = _read(results)
    if not known:
        return
    yield from ("", "## Kill points", "")
    yield (
        "dbdyno was killed (SIGKILL) at instants spread over a run, and the run was resumed. On a `remote` "
        "server the workload creates its tables with statements of a user, and tables of the user are beside "
        "them. A kill is wrong if a finished trial is lost or measured again, the plan is not finished, "
        f"a load generator or a statement on the server lives longer than {ENDING_S:g} s, a table of "
        "dbdyno has no mark, or a row of the user is changed."
    )
    yield from ("", "| server | kills | all well | after `dbdyno data drop` | what was wrong |")
    yield "|---|---:|---:|---:|---|"
    for place in PLACES:
        kills = [one for one in known if one.place == place]
        wrong = [f"after {one.at_s:.1f} s ({one.during}): {one.why}" for one in kills if one.why]
        if kills:
            dropped = sum(one.needed_drop for one in kills)
            said = "; ".join(wrong) or "nothing"
            yield f"| {place} | {len(kills)} | {len(kills) - len(wrong)} | {dropped} | {said} |"


def _read(results: Path) -> list[Kill]:
    path = results / FILE
    return [Kill(**one) for one in json.loads(path.read_text())] if path.exists() else []


def _scene(folder: Path, place: str, pool: ServerPool) -> tuple[Scene, Sequence[Existing]]:
    shutil.rmtree(folder / experiment.NAME, ignore_errors=True)
    kind, _, product = place.partition(".")
    scene = Scene(folder, folder / f"{experiment.NAME}.toml")
    if kind == "local":
        text = experiment.text(product, kind, seed=1, is_loading_hit=False, reached=())
        scene.experiment.write_text(text)
        return scene, ()
    existing = pool.pair(product)
    scene.planned = experiment.PLANNED // experiment.BLOCKS
    sleep = SLEEP[existing[0].server.address().protocol].format(s=2 * ENDING_S)
    scene.experiment.write_text(experiment.with_setup([one.reached for one in existing], sleep))
    for one in existing:
        table = _own_table(one)
        one.server.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)")
        one.server.query(f"INSERT INTO {table} VALUES {', '.join(f'({n}, {n})' for n in range(OWN_ROWS))}")
    return scene, existing


def _own_table(one: Existing) -> str:
    return one.qualified(MINE)


def _length_s(folder: Path, place: str, pool: ServerPool) -> float:
    """How long an undisturbed run takes, with the data loaded."""
    for _ in range(2):
        scene, _existing = _scene(folder, place, pool)
        began = time.monotonic()
        scene.start("--no-report")
        if scene.end(120.0) != 0:
            raise SystemExit("the undisturbed run failed: " + "\n".join(text for _, text in scene.lines))
    return time.monotonic() - began


def _kill(folder: Path, at_s: float, place: str, pool: ServerPool) -> Kill:
    scene, existing = _scene(folder, place, pool)
    scene.start("--no-report")
    time.sleep(at_s)
    below, before = scene.descendants(), scene.finished()
    during = scene.lines[-1][1] if scene.lines else "before the first line"
    scene.lab.send_signal(signal.SIGKILL)
    scene.end(10.0)
    left = wait_for_the_end(below)
    problems = [f"left running: {', '.join(left)}"] if left else []
    for one in existing:
        problems += _left_on(one)
    failure = resume(scene, before) if scene.run() is not None else ""
    needed_drop = bool(failure) and any("dbdyno data drop" in text for _, text in scene.lines)
    if needed_drop:
        for one in existing:
            _drop(one)
        failure = resume(scene, before)
    problems += [failure] if failure else []
    after: Mapping[int, str] = scene.finished()
    if any(after.get(index) != stamp for index, stamp in before.items()):
        problems.append("a finished trial is gone")
    for one in existing:
        problems += _changed(one)
    return Kill(round(at_s, 2), during, len(before), "; ".join(dict.fromkeys(problems)), place, needed_drop)


def _drop(one: Existing) -> None:
    """Run the command that the message of a refused run names."""
    command = [sys.executable, "-m", "dbdyno", "data", "drop", "--yes", "--share-machine"]
    command += ["--target", one.reached.url, "--password-file", str(one.reached.password_file)]
    subprocess.run(
        command, check=False, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT / "lab")}
    )


def _left_on(one: Existing) -> list[str]:
    """What a kill has left on a server that `dbdyno data` does not find, or that still changes it."""
    running = [str(row[0]) for row in one.server.query(RUNNING[one.server.address().protocol])]
    marked = {table.name for table in marked_tables(one.server)}
    unmarked = sorted(set(one.tables()) - marked - {MINE})
    return [f"the statement still runs: {text[:60]}" for text in running] + [
        f"table without a mark: {name}" for name in unmarked
    ]


def _changed(one: Existing) -> list[str]:
    """Whether the user's rows have changed."""
    try:
        ((count, total),) = one.server.query(f"SELECT COUNT(*), SUM(n) FROM {_own_table(one)}")
    except ServerProblem as problem:
        return [f"the user's table: {problem.text}"]
    expected = (OWN_ROWS, sum(range(OWN_ROWS)))
    return [] if (int(count), int(total)) == expected else ["the user's rows have changed"]
