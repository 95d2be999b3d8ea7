"""Parses and formats durations with a unit: "500ms", "30s", "2m", "1h"."""

from __future__ import annotations

import re

UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")


def parse_duration_s(text: object) -> float:
    """The seconds of a duration such as "500ms" or "2m". Raises ValueError, whose text says what to write."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        raise ValueError(f'a duration needs a unit: "{text}s", "{text}ms" or "{text}m"')
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError('a duration is a number and a unit: "30s", "500ms", "2m" or "1h"')
    return float(match[1]) * UNIT_S[match[2]]


def format_duration(seconds: float) -> str:
    """A duration for display, in whole seconds: "9 s", "4 min 05 s", "1 h 02 min"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
