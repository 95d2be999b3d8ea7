"""Renders chart specifications as SVG and PNG in a child process, without network or browser.

If the child fails, the caller gets the finished charts and the reason for the missing ones.
"""

from __future__ import annotations

import base64
import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from dbdyno.report.figure import Figure, finished

# Run by its path: it needs only the chart library, and importing this package would take half a second.
PROGRAM = Path(__file__).with_name("draw.py")
# Time limits. A chart usually takes less than a second; the first one also starts the library.
SECONDS_PER_CHART, SECONDS_TO_START = 20.0, 60.0


@dataclass(frozen=True)
class Picture:
    """One rendered chart."""

    svg: str
    png: bytes


@dataclass(frozen=True)
class Drawings:
    """The rendered charts by name of figure."""

    pictures: Mapping[str, Picture] = field(default_factory=dict)
    # Why charts are missing, as one line; "" if none is.
    failure: str = ""


def draw(figures: Sequence[Figure]) -> Drawings:
    """Draw all figures in one child process. Never raises because of the child."""
    if not figures:
        return Drawings()
    lines = [
        json.dumps({"name": figure.name, "specification": finished(figure.chart).to_dict()}) + "\n"
        for figure in figures
    ]
    output, failure = _run("".join(lines).encode(), len(figures))
    pictures: dict[str, Picture] = {}
    for line in output.decode(errors="replace").splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            # The child ended before it completed this line.
            continue
        if "error" in answer:
            failure = failure or f"the chart library rejects {answer['name']}: {answer['error']}"
        else:
            pictures[answer["name"]] = Picture(answer["svg"], base64.b64decode(answer["png"]))
    if not failure and len(pictures) < len(figures):
        failure = "the chart library ended early"
    return Drawings(pictures, failure)


def _run(specifications: bytes, charts: int) -> tuple[bytes, str]:
    """Standard output of the child, and why it failed, or ""."""
    limit_s = SECONDS_TO_START + charts * SECONDS_PER_CHART
    try:
        # -P: it must not import other files of this folder by accident.
        child = subprocess.run(
            [sys.executable, "-P", str(PROGRAM)],
            input=specifications,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return error.stdout or b"", f"the chart library did not finish within {limit_s:g} s"
    except OSError as error:
        return b"", f"the chart library cannot be started: {error.strerror or error}"
    return child.stdout, _failure(child.returncode, child.stderr)


def _failure(code: int, stderr: bytes) -> str:
    """Why a child with this exit code failed, or ""."""
    if code == 0:
        return ""
    if code < 0:
        return f"the chart library was ended by {_signal(-code)}{_memory_limit()}"
    last = stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"the chart library failed (exit code {code}){''.join(f': {line}' for line in last)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _memory_limit() -> str:
    """The likely cause if address space is limited, or ""."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    return f"; address space is limited to {limit / 2**30:.1f} GiB (ulimit -v) and it reserves more"


def inline(svg: str, figure: Figure) -> str:
    """An SVG document for use inside the page: scalable, with a text description and unique ids."""
    # Every chart numbers its clip paths from 0, so ids of several charts in one page would collide.
    own = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    own = re.sub(r'url\((?:&quot;|")?#([^)"&]+)(?:&quot;|")?\)', rf"url(#{figure.name}-\1)", own)
    width = re.search(r'<svg[^>]*? width="([\d.]+)"', own)
    style = f"width:100%;max-width:{width.group(1)}px;height:auto" if width else "width:100%"
    own = re.sub(r'(<svg[^>]*?) width="[\d.]+" height="[\d.]+"', r"\1", own, count=1)
    label = escape(figure.description, quote=True)
    return own.replace("<svg", f'<svg role="img" aria-label="{label}" style="{style}"', 1)
