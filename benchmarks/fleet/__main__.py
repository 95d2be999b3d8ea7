"""What happens when a part of a fleet fails: `python -m benchmarks.fleet --output docs/fleet.md`.

Every fault hits a comparison on three hosts while its load runs. Root only. With `--random N` it injects N
faults, drawn at random and at random times, into short trials instead (see `random_faults`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from results import replace_between

from .faults import FAULTS, observe, scene, table_row
from .hosts import CPU_SHARE
from .random_faults import KINDS, inject_randomly
from .results_of_faults import Results

HEAD = (
    "| fault, while the load runs | what the user sees | all engines stopped after | kept | exit code |\n"
    "|---|---|---:|---|---:|"
)
# Random faults are many. Ray places engines faster on hosts with more CPU.
RANDOM_CPU_SHARE = 0.6
BEGIN, END = "<!-- table of benchmarks.fleet -->", "<!-- end of the table -->"
RANDOM_BEGIN = "<!-- table of benchmarks.fleet --random -->"


def main() -> int:
    """Inject every fault, or random ones; returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--random", type=int, metavar="N", help="inject N random faults into short trials")
    parser.add_argument("--minutes", type=float, default=60.0, help="with --random: stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="with --random: what all cases follow from")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="with --random: append to, and make the table from, FILE"
    )
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults, from 1")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table into this document")
    options = parser.parse_args()
    results = Results(options.results, options.seed)
    with scene(RANDOM_CPU_SHARE if options.random else CPU_SHARE) as made:
        if options.random:
            inject_randomly(made, options.random, options.minutes, options.seed, results)
            table = results.table([kind.name for kind in KINDS])
            print(table)
            if options.output:
                replace_between(options.output, RANDOM_BEGIN, END, table)
            return min(len(results.problems()), 1)
        rows, wrong = [], 0
        for number, fault in enumerate(FAULTS, start=1):
            if options.only and number not in options.only:
                continue
            outcome = observe(made, fault)
            rows.append(table_row(fault, outcome))
            print(rows[-1], flush=True)
            for problem in outcome.problems:
                print(f"  wrong: {problem}", flush=True)
            wrong += bool(outcome.problems)
    if options.output and not options.only:
        replace_between(options.output, BEGIN, END, "\n".join([HEAD, *rows]))
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
