"""Two builds of dbdyno-engine on one private MariaDB, in pairs of alternating order: what did a change cost?

`python benchmarks/engine/versions.py OLD NEW` prints the ratio new / old of client CPU per query and of
throughput, with intervals. Exit code 1 where the interval of the CPU's ratio does not exclude `--most`.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import shared
from sides import Dbdyno, Setting, in_turn
from table import paired_ratio

LEVELS = (16, 256, 1024)
# Six pairs are the fewest that carry a 95 % interval.
PAIRS = 8


def main() -> int:
    """Exit code 0 when every interval lies below `--most`, 1 otherwise."""
    parser = sweep.parser("versions", __doc__, LEVELS)
    parser.set_defaults(pairs=PAIRS, workload=["oltp_point_select"])
    parser.add_argument("old", type=Path, help="a dbdyno-engine")
    parser.add_argument("new", type=Path, help="another one")
    parser.add_argument("--most", type=float, default=1.03, help="ratio of CPU per query to be excluded")
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, shared(Path(scratch)) as laid:
        sides = [Dbdyno(laid.address, name, getattr(options, name).resolve()) for name in ("old", "new")]
        sides[0].prepare(Setting("oltp_read_write", 1, launcher=laid.launcher))
        for workload in options.workload:
            for connections in options.connections:
                setting = Setting(
                    workload, connections, options.seconds, options.count_from, launcher=laid.launcher
                )
                sides[0].run(replace(setting, seconds=2, count_from=1))
                old, new = in_turn(sides, setting, options.pairs)
                for key in ("cpu_per_query", "throughput"):
                    estimate, reach = paired_ratio(
                        [getattr(run, key) for run in new], [getattr(run, key) for run in old]
                    )
                    line = f"{workload}, {connections} connections, {key}: new / old {estimate:.3f} ({reach})"
                    print(line, flush=True)
                    if key == "cpu_per_query" and not (reach and float(reach.split()[-1]) < options.most):
                        missed.append(f"{line}; {options.most} is not excluded")
    return sweep.end(missed)


if __name__ == "__main__":
    sys.exit(main())
