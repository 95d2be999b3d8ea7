"""Real experiments whose truth is known, on private MariaDB servers of this machine.

- `aa`: two variants that differ in a setting which this load does not use, so that the judge does not know
  that they are equal. Every faster, slower or mixed is a wrong verdict.
- `planted`: the variant computes 25 % more per transaction, so that its throughput is 20 % lower. The load is
  a statement that evaluates a function as often as a server variable says; what a transaction costs besides
  is measured first and allowed for.
- `default`: the same slow-down under the design of somebody who declares none: long trials, few blocks. Each
  experiment takes about a quarter of an hour.

A series continues from its records: experiments that are finished are not run again, one that was interrupted
is resumed. `python -m benchmarks.truth.series aa --count 20 --results DIR`
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# How often the baseline evaluates its function, and what the variant's throughput is against it.
BASELINE_LOOPS, TRUTH_PERCENT = 20_000, -20.0
LOOPS_MAX = 65_535
CALIBRATION = "calibration"
DIRECTED = frozenset({"faster", "slower", "mixed"})

# The duration has no default; this is the one that the error for a missing one proposes.
DEFAULT_HEAD = """
[experiment]
name = "{name}"
[load]
connections = {connections}
duration = "30s"
"""
HEAD = """
[experiment]
name = "{name}"
[load]
connections = {connections}
duration = "{duration}"
warmup = "{warmup}"
[design]
blocks = {blocks}
"""
AA_WORKLOAD = """
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 10_000
"""
# A server variable that nothing else of this load uses carries the number of loops.
LOOPS_WORKLOAD = """
[[workload]]
name = "sql"
label = "loops"
transactions = [{ name = "loop", sql = "SELECT BENCHMARK(@@max_error_count, MD5('dbdyno'))", rows = 1 }]
"""
VARIANT = """
[[variant]]
name = "{name}"
[variant.server]
variables = {{ innodb_buffer_pool_size = "64M", max_error_count = {loops} }}
"""


@dataclass(frozen=True)
class Outcome:
    """The verdict of one experiment of a series."""

    run: Path
    verdict: str
    effect_percent: float | None
    interval_percent: tuple[float, float] | None
    sentence: str
    # Verdicts of the single loads.
    points: tuple[str, ...]


def variants(loops: Mapping[str, int]) -> str:
    """The variants of an experiment, each with the number of loops that its server is given."""
    return "".join(VARIANT.format(name=name, loops=count) for name, count in loops.items())


def aa(name: str, blocks: int) -> str:
    """An experiment of two equal variants."""
    head = HEAD.format(name=name, connections=[4, 16], duration="1s", warmup="300ms", blocks=blocks)
    return head + AA_WORKLOAD + variants({"a": 64, "b": 65})


def planted(name: str, blocks: int, loops: int) -> str:
    """An experiment whose second variant has 80 % of the first one's throughput."""
    head = HEAD.format(name=name, connections=[4], duration="1s", warmup="300ms", blocks=blocks)
    return head + LOOPS_WORKLOAD + variants({"a": BASELINE_LOOPS, "b": loops})


def default(name: str, loops: int) -> str:
    """The same experiment, and nothing declared about its design."""
    head = DEFAULT_HEAD.format(name=name, connections=[4])
    return head + LOOPS_WORKLOAD + variants({"a": BASELINE_LOOPS, "b": loops})


def run(text: str, name: str, results: Path) -> Outcome:
    """Run an experiment, or continue it, unless it is finished."""
    results.mkdir(parents=True, exist_ok=True)
    file = results / f"{name}.toml"
    if not file.exists():
        file.write_text(text)
    done = finished(results / name)
    if done is None:
        begun = sorted((results / name).glob("*/experiment.json"))
        command = [
            sys.executable,
            "-m",
            "dbdyno",
            "compare",
            str(file),
            "--results",
            str(results),
            "--no-report",
        ]
        subprocess.run([*command, *(["--resume"] if begun else [])], stdout=subprocess.DEVNULL, check=True)
        done = finished(results / name)
    if done is None:
        raise SystemExit(f"{name} did not finish; run the same command again to continue it")
    return done


def finished(folder: Path) -> Outcome | None:
    """The outcome of the newest run in a folder; None where there is none or it is unfinished."""
    judged = sorted(folder.glob("*/verdict.json"))
    if not judged:
        return None
    return outcome(judged[-1].parent)


def outcome(path: Path) -> Outcome | None:
    """The verdict of a judged run; None where it is unfinished."""
    verdict: dict[str, Any] = json.loads((path / "verdict.json").read_text())
    (comparison,) = verdict["comparisons"]
    curve = comparison["curve"]
    if curve["verdict"] == "unfinished":
        return None
    ends = curve["interval_percent"]
    return Outcome(
        run=path,
        verdict=str(curve["verdict"]),
        effect_percent=curve["effect_percent"],
        interval_percent=(ends[0], ends[1]) if ends else None,
        sentence=curve["sentence"],
        points=tuple(str(point["verdict"]) for point in comparison["points"]),
    )


def calibrate(results: Path) -> int:
    """The loops with which a transaction takes 1 / 0.8 of the baseline's time, from what loops cost and what
    a transaction costs without them.
    """
    text = HEAD.format(name=CALIBRATION, connections=[4], duration="1s", warmup="300ms", blocks=6)
    text += LOOPS_WORKLOAD + variants({"with": BASELINE_LOOPS, "without": 0})
    done = run(text, CALIBRATION, results)
    ratio = done.effect_percent
    assert ratio is not None, "both variants have results"
    # Seconds of a transaction without loops, as a share of one with them.
    rest = 1.0 / (1.0 + ratio / 100.0)
    loops = round(BASELINE_LOOPS * (1.0 / (1.0 + TRUTH_PERCENT / 100.0) - rest) / (1.0 - rest))
    assert loops <= LOOPS_MAX, "the server variable holds no more"
    return loops


def series(kind: str, count: int, results: Path) -> Iterator[Outcome]:
    """The outcomes of a series, each as it is there."""
    loops = 0 if kind == "aa" else calibrate(results)
    for number in range(1, count + 1):
        name = f"{kind}-{number:02}"
        texts = {"aa": aa(name, 8), "planted": planted(name, 20, loops), "default": default(name, loops)}
        yield run(texts[kind], name, results)


def main() -> int:
    """Run a series and print the verdict of each experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth.series", description=__doc__)
    parser.add_argument("kind", choices=("aa", "planted", "default"))
    parser.add_argument("--count", type=int, help="experiments; 20 of aa and 10 of the others otherwise")
    parser.add_argument("--results", type=Path, default=Path("results/truth"))
    options = parser.parse_args()
    count = options.count or (20 if options.kind == "aa" else 10)
    outcomes = []
    for done in series(options.kind, count, options.results):
        outcomes.append(done)
        print(f"{len(outcomes):3} {done.verdict:12} {done.sentence}", flush=True)
    words = [(done.verdict, *done.points) for done in outcomes]
    directed = sum(any(word in DIRECTED for word in row) for row in words)
    print(f"{directed} of {len(outcomes)} experiments have a word of direction; runs in {options.results}")
    if options.kind != "aa":
        inside = sum(
            done.interval_percent is not None
            and done.interval_percent[0] <= TRUTH_PERCENT <= done.interval_percent[1]
            for done in outcomes
        )
        slower = sum(done.verdict == "slower" for done in outcomes)
        print(f"{slower} are slower; the interval holds {TRUTH_PERCENT:g} % in {inside}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
