"""Renders charts in a child process: specifications on standard input, SVG and PNG on standard output.

The chart library (vl-convert) contains a JavaScript engine. It reserves more address space than some machines
allow, and if the reservation fails, it kills the process. Only this file imports the library, and
`rendering.py` runs it in a child process, so that the report is written even without charts.

Each input line is a JSON object {"name", "specification"}. Each output line is {"name", "svg", "png"} with
the PNG in base64, or {"name", "error"}.
"""

from __future__ import annotations

import base64
import json
import resource
import sys
from typing import Any

import vl_convert

# Pixels per unit of the specification.
PNG_SCALE = 2.0


def render(specification: dict[str, Any]) -> dict[str, str]:
    """Render one Vega-Lite specification as SVG and PNG."""
    svg = vl_convert.vegalite_to_svg(specification)
    png = vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    return {"svg": svg, "png": base64.b64encode(png).decode()}


def main() -> None:
    """Render every chart on standard input, in order."""
    # If the library kills this process, the core file would have gigabytes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        chart = json.loads(line)
        try:
            result = render(chart["specification"])
        except ValueError as error:
            result = {"error": " ".join(str(error).split())}
        sys.stdout.write(json.dumps({"name": chart["name"], **result}) + "\n")
        # If a later chart kills the process, the caller still has this one.
        sys.stdout.flush()


if __name__ == "__main__":
    main()
