"""The engine's limits for a plan, so that dbdyno reports exceeded limits together with a file's other errors.

`make docs` writes limits.json from engine/schema/src/plan/limits.rs; a test compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path

LIMITS: dict[str, int] = json.loads(Path(__file__).with_name("limits.json").read_text())
