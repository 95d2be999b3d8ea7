"""Writes `results.md`, which has one section per table. A new measurement replaces its section."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

HEAD = (
    "# What was measured\n\n"
    "Ratios of paired runs; [README.md](README.md) describes the method. `make bench` writes this file.\n"
)


def write_section(path: Path, name: str, text: str) -> None:
    """Replace section `name` of the file by `text`; append a section that the file does not have."""
    old = path.read_text() if path.exists() else HEAD
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{text.rstrip()}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    new, count = pattern.subn(lambda _: section, old)
    path.write_text(new if count else f"{old.rstrip()}\n\n{section}\n")


def write_table(path: Path, name: str, text: str, about: str) -> None:
    """Write a table to section `name`; the line `about` the measurement follows the title."""
    title, _, rest = text.partition("\n")
    write_section(path, name, f"{title}\n\n{about}\n\n{rest.lstrip()}")


def machine() -> str:
    """CPUs and kernel of the machine, in one line."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cpus = len(os.sched_getaffinity(0))
    return f"{cpus} CPUs ({model.group(1) if model else platform.machine()}), Linux {platform.release()}"


def replace_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace the lines between two marks of a document. Ends the program if the document lacks them."""
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path} lacks the lines {begin} and {end}")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
