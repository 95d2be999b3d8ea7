"""Measures how long commands take to answer when there is nothing to measure.

Every time is the median of what a command takes longer than `python -c pass`, run in turn with it. A drop-in
is compared with the compat program called directly.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from dbdyno.binary import COMPAT, DROP_INS, find_program
from dbdyno.commands import COMMANDS

PAIRS = 20
DROP_IN_MS, HELP_MS, MISTAKE_MS = 60, 300, 500
NOTHING = [sys.executable, "-c", "pass"]
DBDYNO = str(Path(sys.executable).with_name("dbdyno"))
MISTAKE = '[experiment]\nname = "mistake"\nblocks = 3\n'


def main() -> int:
    """Exit code 0 if all targets are met, 1 otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mistake.toml")
        file.write_text(MISTAKE)
        are_met = [
            _is_met(
                [DBDYNO, "sysbench", "--version"], [find_program(COMPAT), "sysbench", "--version"], DROP_IN_MS
            ),
            *(
                _is_met([DBDYNO, *command, "--help"], NOTHING, HELP_MS)
                for command in ([], *([name] for name in COMMANDS if name not in DROP_INS))
            ),
            *(
                _is_met([DBDYNO, command, str(file)], NOTHING, MISTAKE_MS)
                for command in ("check", "plan", "compare")
            ),
        ]
    return 0 if all(are_met) else 1


def _is_met(command: list[str], peer: list[str], target_ms: float) -> bool:
    extra = median(_wall_ms(command) - _wall_ms(peer) for _ in range(PAIRS))
    words = " ".join(Path(word).name for word in command)
    print(f"{words:26} {extra:4.0f} ms more than {Path(peer[0]).name} (at most {target_ms})", flush=True)
    return extra < target_ms


def _wall_ms(command: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
