"""When a comparison ends: `design.stop` in the experiment file.

A comparison without `design.stop` has a fixed number of blocks. One with it runs block after block, until the
judge's word is sure, or an interval is narrow enough, or a limit is reached.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from dbdyno.experiment.base import Duration, Model
from dbdyno.experiment.durations import parse_duration_s
from dbdyno.experiment.errors import InputError
from dbdyno.text import compose

MAX_BLOCKS = 20
MAX_TIME_S = 1_800.0
# No run has more blocks.
BLOCKS_LIMIT = 1_000
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


class Stop(Model):
    """The rule by which a comparison ends, and its limits."""

    half_width_percent: float | None = Field(default=None, gt=0, lt=100, allow_inf_nan=False)
    """The rule: until every comparison has a verdict, or until every interval is within ± `half_width`."""
    max_blocks: int = Field(default=MAX_BLOCKS, ge=1, le=BLOCKS_LIMIT)
    """Maximum number of blocks."""
    max_time_s: Duration = MAX_TIME_S
    """Maximum time of one call of `compare`; no block begins that is expected to end later."""
    # Without, the looks spend more of the error rate per block.
    top_up: bool = True
    """Blocks may be added after the end; `false` shows the same difference with fewer blocks."""

    def text(self) -> str:
        """The rule as a clause: "until the verdict is sure"."""
        if self.half_width_percent is None:
            return compose("until the verdict is sure")
        return compose("until every interval is within ±{percent:g} %", percent=self.half_width_percent)


def parse_percent(text: object) -> float | None:
    """The number of a percentage such as "1.5%"; None if it is something else."""
    match = _PERCENT.fullmatch(text.strip()) if isinstance(text, str) else None
    return None if match is None else float(match[1])


def resolve(design: dict[str, Any], errors: list[InputError]) -> dict[str, Any]:
    """[design] with the names and units of the model `Design`."""
    if "stop" not in design:
        return design
    if "blocks" in design:
        fix = "Drop stop for a fixed number of blocks, or drop blocks and write stop.max_blocks"
        errors.append(
            InputError("design.blocks", design["blocks"], "blocks and stop exclude each other", fix)
        )
    design = {key: value for key, value in design.items() if key != "blocks"}
    if not isinstance(design["stop"], dict):
        return design
    stop = dict(design["stop"])
    for name in ("half_width_percent", "max_time_s"):
        if name in stop:
            fix = 'Write when = { half_width = "1%" }' if name == "half_width_percent" else "Write max_time"
            errors.append(InputError(f"design.stop.{name}", stop.pop(name), "there is no such key", fix))
    if "max_time" in stop:
        value = stop.pop("max_time")
        try:
            stop["max_time_s"] = parse_duration_s(value)
        except ValueError as error:
            errors.append(InputError("design.stop.max_time", value, str(error)))
    when = stop.pop("when", "sure")
    if when != "sure":
        text = when.get("half_width") if isinstance(when, dict) and set(when) == {"half_width"} else None
        percent = parse_percent(text)
        if percent is None:
            fix = 'Write when = "sure" or when = { half_width = "1%" }'
            errors.append(InputError("design.stop.when", when, "there is no such rule", fix))
        else:
            stop["half_width_percent"] = percent
    return {**design, "stop": stop}
