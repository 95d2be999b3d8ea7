"""The engine's limits of a plan, so that a file that exceeds them is refused together with its other errors.

`make docs` writes limits.json from engine/schema/src/plan/limits.rs; a test compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path

LIMITS: dict[str, int] = json.loads(Path(__file__).with_name("limits.json").read_text())
