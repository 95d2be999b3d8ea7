"""Renders charts as SVG and PNG in a child process, without network or browser.

If the child fails, the caller gets the charts rendered before the failure, and the reason for the missing
ones.
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

from dbdyno.languages import IN_ENGLISH, Translator
from dbdyno.report.chart import Chart, styled

# The child runs this file by its path, not as a module: importing the package would take half a second.
PROGRAM = Path(__file__).with_name("render_charts.py")
# Time limits. A chart usually takes less than a second; the first one also starts the library.
SECONDS_PER_CHART, SECONDS_TO_START = 20.0, 60.0


@dataclass(frozen=True)
class RenderedChart:
    """One rendered chart."""

    svg: str
    png: bytes


@dataclass(frozen=True)
class RenderedCharts:
    """The result of rendering all charts of a report."""

    # Name of a chart -> the rendered chart.
    by_name: Mapping[str, RenderedChart] = field(default_factory=dict)
    # Why charts are missing, in one line; "" if none is missing.
    failure: str = ""


def render(charts: Sequence[Chart], translate: Translator = IN_ENGLISH) -> RenderedCharts:
    """Render all charts in one child process, with their texts translated.

    A failure of the child is in the result, not an exception.
    """
    if not charts:
        return RenderedCharts()
    drawings = {chart.name: styled(chart.specification, chart.padding) for chart in charts}
    drawings |= {chart.narrow_name: styled(chart.narrow) for chart in charts if chart.narrow is not None}
    lines = [
        json.dumps({"name": name, "specification": translate.inside(document)}) + "\n"
        for name, document in drawings.items()
    ]
    output, failure = _run("".join(lines).encode(), len(drawings))
    rendered: dict[str, RenderedChart] = {}
    for line in output.decode(errors="replace").splitlines():
        try:
            result = json.loads(line)
        except ValueError:
            # The child ended in the middle of this line.
            continue
        if "error" in result:
            failure = failure or f"the chart library rejects {result['name']}: {result['error']}"
        else:
            rendered[result["name"]] = RenderedChart(result["svg"], base64.b64decode(result["png"]))
    if not failure and len(rendered) < len(drawings):
        failure = "the chart library ended early"
    return RenderedCharts(rendered, failure)


def _run(specifications: bytes, count: int) -> tuple[bytes, str]:
    """Standard output of the child, and the reason of its failure ("" without one)."""
    limit_s = SECONDS_TO_START + count * SECONDS_PER_CHART
    try:
        # -P keeps this folder out of sys.path, where its files would hide modules of the same names.
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


def _failure(exit_code: int, stderr: bytes) -> str:
    """The reason of the child's failure; "" if it succeeded."""
    if exit_code == 0:
        return ""
    if exit_code < 0:
        return f"the chart library was ended by {signal.Signals(-exit_code).name}{_memory_limit()}"
    last = stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"the chart library failed (exit code {exit_code}){''.join(f': {line}' for line in last)}"


def _memory_limit() -> str:
    """The limit of the address space, which is the likely cause of a killed child; "" without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    return f"; address space is limited to {limit / 2**30:.1f} GiB (ulimit -v) and it reserves more"


def inline_svg(svg: str, description: str, name: str) -> str:
    """The drawing `name` of a chart for use inside the page: scalable, with its description, and with ids
    unique in the page.
    """
    # The library numbers the clip paths of every chart from 0, so ids of different charts would collide.
    result = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    result = re.sub(r'url\((?:&quot;|")?#([^)"&]+)(?:&quot;|")?\)', rf"url(#{name}-\1)", result)
    width = re.search(r'<svg[^>]*? width="([\d.]+)"', result)
    style = f"width:100%;max-width:{width.group(1)}px;height:auto" if width else "width:100%"
    result = re.sub(r'(<svg[^>]*?) width="[\d.]+" height="[\d.]+"', r"\1", result, count=1)
    label = escape(description, quote=True)
    return result.replace("<svg", f'<svg role="img" aria-label="{label}" style="{style}"', 1)
