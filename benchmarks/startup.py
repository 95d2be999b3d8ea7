"""Measures how much later `dbdyno sysbench --version` ends than the compat program called directly."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from dbdyno.binary import COMPAT, find_program

PAIRS = 20
TARGET_MS = 60


def main() -> int:
    """Exit code 0 if the target is met, 1 otherwise."""
    lab = [str(Path(sys.executable).with_name("dbdyno")), "sysbench", "--version"]
    alone = [find_program(COMPAT), "sysbench", "--version"]
    extra = sorted(_wall_ms(lab) - _wall_ms(alone) for _ in range(PAIRS))
    print(f"dbdyno sysbench begins {median(extra):.0f} ms later ({PAIRS} pairs, at most {TARGET_MS})")
    return 0 if median(extra) < TARGET_MS else 1


def _wall_ms(command: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
