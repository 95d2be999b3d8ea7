"""`results.md`: one section per table, each replaced by the run that measures it again."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

HEAD = "# What was measured\n\nRatios of neighbouring runs; see README.md for how. Written by `make bench`.\n"


def write_section(path: Path, name: str, text: str) -> None:
    """Put `text` in place of section `name` of the file, or at its end."""
    old = path.read_text() if path.exists() else HEAD
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{text.rstrip()}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    new, count = pattern.subn(lambda _: section, old)
    path.write_text(new if count else f"{old.rstrip()}\n\n{section}\n")


def write_table(path: Path, name: str, text: str, about: str) -> None:
    """Put a table of the engine's benchmarks in section `name`, with a line `about` it under its title."""
    title, _, rest = text.partition("\n")
    write_section(path, name, f"{title}\n\n{about}\n\n{rest.lstrip()}")


def machine() -> str:
    """One line on the machine."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cpus = len(os.sched_getaffinity(0))
    return f"{cpus} CPUs ({model.group(1) if model else platform.machine()}), Linux {platform.release()}"
