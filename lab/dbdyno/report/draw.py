"""Renders charts in a child process: specifications on standard input, SVG and PNG on standard output.

The chart library contains a JavaScript engine that reserves more address space than some machines allow, and
kills its process if it does not get it. Only this file imports the library, and `drawing.py` runs this file
as a child process, so that the report survives.

Reads one JSON object per line, {"name", "specification"}; writes one per line, {"name", "svg", "png"} with
the PNG in base64, or {"name", "error"}.
"""

from __future__ import annotations

import base64
import json
import resource
import sys
from typing import Any

import vl_convert

PNG_SCALE = 2.0


def draw(specification: dict[str, Any]) -> dict[str, str]:
    """One chart as an SVG document, and as a PNG at twice its nominal size."""
    svg = vl_convert.vegalite_to_svg(specification)
    png = vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    return {"svg": svg, "png": base64.b64encode(png).decode()}


def main() -> None:
    """Draw every chart of standard input, in order."""
    # An end by a signal is expected here, and must not leave a core file of gigabytes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        chart = json.loads(line)
        try:
            picture = draw(chart["specification"])
        except ValueError as error:
            picture = {"error": " ".join(str(error).split())}
        sys.stdout.write(json.dumps({"name": chart["name"], **picture}) + "\n")
        # Earlier charts survive if a later one kills the process.
        sys.stdout.flush()


if __name__ == "__main__":
    main()
