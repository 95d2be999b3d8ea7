"""Mutated stored runs, through `dbdyno report`: judged again, and as Markdown, CSV and JSON."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import shutil
from pathlib import Path

from tests.unit.stored_run import Making, judged

from dbdyno.commands.report import Format, report
from dbdyno.store import digests

from .mutate import mutate_json_text, mutate_text
from .trial import Tally

JUDGED = ("verdict.json", "measured.json", "explained.json")


def measure(count: int, seed: int, folder: Path) -> Tally:
    """Report `count` mutated runs."""
    tally = Tally("stored runs")
    base = Path(
        judged(folder / "base", Making(blocks=3, connections=(4,), duration_s=1.0, warmup_s=0.5))["path"]
    )
    names = sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_file())
    for number in range(count):
        generator = random.Random(f"{seed} {number}")
        copied = folder / "mutated"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(base, copied, copy_function=_link)
        changed = _mutate(copied, names, generator)
        output: Format = generator.choice(("md", "json", "csv"))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            is_accepted = generator.random() < 0.8
            tally.add(changed, lambda: report(copied, output, accept_changes=is_accepted))  # noqa: B023 — called at once.
    return tally


def _link(source: str, target: str) -> None:
    """Link a file, since a mutated one is written again; copy the digests, to which a report appends."""
    (shutil.copy2 if Path(source).name == digests.NAME else os.link)(source, target)


def _mutate(run: Path, names: list[str], generator: random.Random) -> bytes:
    """Change one or two files; their names and contents."""
    shown = b""
    if generator.random() < 0.6:
        # Then the run is judged again.
        (run / generator.choice(JUDGED)).unlink()
    for name in generator.sample(names, generator.randint(1, 2)):
        path = run / name
        source = path.read_bytes() if path.exists() else b"{}"
        path.unlink(missing_ok=True)
        content = _changed(name, source, generator)
        if content is not None:
            path.write_bytes(content)
        shown += f"{name}\n".encode() + (content or b"removed") + b"\n"
    return shown


def _changed(name: str, source: bytes, generator: random.Random) -> bytes | None:
    if generator.random() < 0.05:
        return None
    if not name.endswith(".gz"):
        return mutate_json_text(source, generator)
    if generator.random() < 0.3:
        return mutate_text(source, generator)
    lines = gzip.decompress(source).split(b"\n")
    number = generator.randrange(len(lines))
    lines[number] = mutate_json_text(lines[number], generator)
    return gzip.compress(b"\n".join(lines), 1)
