"""From chart specifications to pictures, without network and without a browser."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import vl_convert

from dbdyno.report.figure import Figure, finished

PNG_SCALE = 2.0


def svg(figure: Figure) -> str:
    """A chart as a whole SVG document."""
    drawn: str = vl_convert.vegalite_to_svg(_specification(figure))
    return drawn


def png(figure: Figure) -> bytes:
    """A chart as a PNG at twice its nominal size."""
    drawn: bytes = vl_convert.vegalite_to_png(_specification(figure), scale=PNG_SCALE)
    return drawn


def inline(drawn: str, figure: Figure) -> str:
    """An SVG document as a part of the page: it scales, says what it shows, and keeps its ids to itself."""
    # Every chart numbers its clip paths from 0; in one page they would clip one another.
    own = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', drawn)
    own = re.sub(r'url\((?:&quot;|")?#([^)"&]+)(?:&quot;|")?\)', rf"url(#{figure.name}-\1)", own)
    width = re.search(r'<svg[^>]*? width="([\d.]+)"', own)
    style = f"width:100%;max-width:{width.group(1)}px;height:auto" if width else "width:100%"
    own = re.sub(r'(<svg[^>]*?) width="[\d.]+" height="[\d.]+"', r"\1", own, count=1)
    label = escape(figure.description, quote=True)
    return own.replace("<svg", f'<svg role="img" aria-label="{label}" style="{style}"', 1)


def _specification(figure: Figure) -> dict[str, Any]:
    specification: dict[str, Any] = finished(figure.chart).to_dict()
    return specification
