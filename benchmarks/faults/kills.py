"""Kills dbdyno at random instants of a run: `--resume` must finish the plan and lose no finished trial."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from . import experiment
from .observe import resume, wait_for_the_end
from .scene import Scene

FILE = "kills.json"


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


def measure(results: Path, count: int) -> int:
    """Try kill points until there are `count`; gives how many went wrong."""
    results.mkdir(parents=True, exist_ok=True)
    known = _read(results)
    folder = (results / "runs" / "kills").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, folder.parent):
        place.chmod(0o711)
    length_s = 0.0
    while len(known) < count:
        length_s = length_s or _length_s(folder)
        # Each point has its own instant, whatever call tries it.
        at_s = random.Random(len(known)).uniform(0.0, length_s)
        known.append(_kill(folder, at_s))
        (results / FILE).write_text(json.dumps([asdict(one) for one in known], indent=1))
        last = known[-1]
        print(
            f"  kill {len(known)}/{count} after {at_s:.1f} s ({last.during}): {last.why or 'resumed'}",
            file=sys.stderr,
        )
    return sum(bool(one.why) for one in known)


def lines(results: Path) -> Iterator[str]:
    """The section of the table."""
    known = _read(results)
    if not known:
        return
    wrong = [one for one in known if one.why]
    yield from ("", "## Random kill points", "")
    yield (
        f"dbdyno was killed (SIGKILL) at {len(known)} random instants of a run and resumed: in "
        f"{len(known) - len(wrong)} the plan was finished and no finished trial was lost or measured again."
    )
    yield from (f"* after {one.at_s:.1f} s ({one.during}): {one.why}" for one in wrong)


def _read(results: Path) -> list[Kill]:
    path = results / FILE
    return [Kill(**one) for one in json.loads(path.read_text())] if path.exists() else []


def _scene(folder: Path) -> Scene:
    shutil.rmtree(folder / experiment.NAME, ignore_errors=True)
    scene = Scene(folder, folder / f"{experiment.NAME}.toml")
    scene.experiment.write_text(experiment.text("mariadb", "local", seed=1, is_loading_hit=False, reached=()))
    return scene


def _length_s(folder: Path) -> float:
    """How long an undisturbed run takes, with the data loaded."""
    for _ in range(2):
        scene = _scene(folder)
        began = time.monotonic()
        scene.start("--no-report")
        if scene.end(120.0) != 0:
            raise SystemExit("the undisturbed run failed: " + "\n".join(text for _, text in scene.lines))
    return time.monotonic() - began


def _kill(folder: Path, at_s: float) -> Kill:
    scene = _scene(folder)
    scene.start("--no-report")
    time.sleep(at_s)
    below, before = scene.descendants(), scene.finished()
    during = scene.lines[-1][1] if scene.lines else "before the first line"
    scene.lab.send_signal(signal.SIGKILL)
    scene.end(10.0)
    left = wait_for_the_end(below)
    why = f"left running: {', '.join(left)}" if left else ""
    if scene.run() is not None:
        why = why or resume(scene, before)
        after = scene.finished()
        if any(after.get(index) != stamp for index, stamp in before.items()):
            why = "a finished trial is gone"
    return Kill(round(at_s, 2), during, len(before), why)
