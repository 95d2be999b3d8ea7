"""Do covariates make intervals narrower? A probe of the host's speed, and other processes' CPU time.

`run` runs comparisons by trials, with a probe on the server's CPU: a fixed loop of some 50 us every 20 ms.
`analyse` reads stored runs, also runs without a probe. `simulate` proves that the intervals hold.

The covariates of a block are differences between its two trials, as its log ratio is: of the logarithm of the
probe's mean CPU time, and of the share of the CPUs that other processes used. The adjusted effect is the log
ratio of a block in which neither differs. That is the effect only if the variant does not change the
covariate, so the output also has the covariate's own difference with its interval. A busy machine shows why:
what a server does not use, other processes take, so their share depends on the variant. Two intervals:

- `flip`: Walsh averages of residuals of a regression through the origin, for each value of the effect
  (Rosenbaum 2002, Stat. Sci. 17:286). Exchanging the variants of a block changes the sign of its log ratio
  and of its covariates at once, and then that of its residual, because the slope through the origin stays.
  So the signed-rank test is exact, whatever the relation of ratio and covariate.
- `ols`: the intercept of ordinary least squares, with t at n - 1 - p degrees of freedom; for normal noise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import FrameType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

sys.path.append(str(Path(__file__).resolve().parent))

import results
import slices_agree

from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import cut_off, interval, percent
from dbdyno.store.trial import StoredTrial

Array = NDArray[np.float64]
SECTION = "covariates"
PROBE_S, PERIOD_S, SERVER_CPU = 50e-6, 0.02, 0
COVARIATES = ("probe", "foreign")


@dataclass(frozen=True)
class Adjusted:
    """An adjusted effect, as a log ratio."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def plain(ratios: Array) -> Adjusted | None:
    """The interval that the verdict has, without covariates."""
    found = interval(ratios, ALPHA)
    return Adjusted(found.low, found.high) if found else None


def flip(ratios: Array, covariates: Array) -> Adjusted | None:
    """The signed-rank interval of the residuals; `covariates` has a row per block. None with too few blocks.

    With r = ratios - effect, the residuals are linear in the effect: a - effect * w. So their Walsh averages
    change sign at one effect each. The interval is the smallest one that has all effects that the test does
    not reject.
    """
    n = len(ratios)
    cut = cut_off(n, ALPHA, 0.0)
    if cut == 0:
        return None
    both = np.column_stack([ratios, np.ones(n)])
    a, w = (both - covariates @ np.linalg.lstsq(covariates, both, rcond=None)[0]).T
    rows, columns = np.triu_indices(n)
    averages, weights = (a[rows] + a[columns]) / 2, (w[rows] + w[columns]) / 2
    changes = np.sort(averages[weights != 0] / weights[weights != 0])
    edges = np.concatenate([[changes[0] - 1.0], changes, [changes[-1] + 1.0]])
    middles = (edges[1:] + edges[:-1]) / 2
    signs = averages[None, :] - middles[:, None] * weights[None, :]
    accepted = np.minimum((signs <= 0).sum(axis=1), (signs >= 0).sum(axis=1)) >= cut
    if not accepted.any():
        return None
    first, last = int(np.argmax(accepted)), len(accepted) - 1 - int(np.argmax(accepted[::-1]))
    return Adjusted(
        float(edges[first]) if first else -math.inf,
        float(edges[last + 1]) if last + 1 < len(accepted) else math.inf,
    )


def ols(ratios: Array, covariates: Array) -> Adjusted | None:
    """The interval of the intercept; None without degrees of freedom."""
    design = np.column_stack([np.ones(len(ratios)), covariates])
    rank = int(np.linalg.matrix_rank(design))
    if len(ratios) <= rank:
        return None
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ ratios
    residuals = ratios - design @ coefficients
    variance = float(residuals @ residuals) / (len(ratios) - rank) * float(inverse[0, 0])
    half = float(student.ppf(1 - ALPHA / 2, len(ratios) - rank)) * math.sqrt(variance)
    return Adjusted(float(coefficients[0]) - half, float(coefficients[0]) + half)


METHODS = {"flip": flip, "ols": ols}


# --- simulation


def simulated(
    generator: np.random.Generator, n: int, correlations: Sequence[float], noise: str
) -> tuple[Array, Array]:
    """Log ratios of equal servers, and covariates with these correlations to them (with normal noise)."""
    draws = generator.standard_normal((n, len(correlations) + 1))
    if noise == "t3":
        draws = generator.standard_t(3, draws.shape)
    if noise == "bursts":
        # Most blocks have no foreign load, and some have much: one of the two trials.
        draws[:, 1:] *= generator.random((n, 1)) < 0.25
    rest = math.sqrt(1.0 - sum(one**2 for one in correlations))
    ratios = rest * draws[:, 0] + draws[:, 1:] @ np.asarray(correlations)
    return 0.05 * ratios, draws[:, 1:]


def simulate(experiments: int) -> Iterator[str]:
    """The table of the simulation, line by line. Adding an effect to all ratios moves every interval by as
    much, so 100 % minus the false words is the coverage of any effect.
    """
    yield (
        "| noise | correlation | blocks | false words: plain | flip | ols | "
        "half width, flip / plain | ols / plain |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    kinds = ((0.0,), (0.5,), (0.7,), (0.5, 0.5))
    for noise, correlations, n in product(("normal", "t3", "bursts"), kinds, (6, 8, 12, 20)):
        generator = np.random.default_rng([n, len(noise), round(100 * sum(correlations))])
        false = dict.fromkeys(("plain", *METHODS), 0)
        widths: dict[str, list[float]] = {name: [] for name in METHODS}
        for _ in range(experiments):
            ratios, covariates = simulated(generator, n, correlations, noise)
            without = plain(ratios)
            assert without is not None
            false["plain"] += not without.low <= 0 <= without.high
            for name, method in METHODS.items():
                found = method(ratios, covariates)
                false[name] += found is not None and not found.low <= 0 <= found.high
                widths[name].append(found.half_width / without.half_width if found else math.inf)
        shares = " | ".join(f"{100 * count / experiments:.1f} %" for count in false.values())
        ratio = " | ".join(f"{float(np.median(one)):.2f}" for one in widths.values())
        yield f"| {noise} | {' and '.join(map(str, correlations))} | {n} | {shares} | {ratio} |"


# --- stored runs


@dataclass(frozen=True)
class Blocks:
    """The blocks of one comparison: log ratios, and a column of differences per covariate."""

    name: str
    ratios: Array
    covariates: dict[str, Array]


def read(run: Path) -> Iterator[Blocks]:
    """The comparisons of a stored run, all loads combined."""
    measured = json.loads((run / "measured.json").read_text())
    probe = np.fromfile(run / "probe.bin", np.int64).reshape(-1, 3) if (run / "probe.bin").exists() else None
    values: dict[tuple[int, str, str], list[dict[str, float]]] = {}
    for trial in measured["trials"]:
        if trial["figures"] is None:
            continue
        place = trial["place"]
        one = {"ratio": math.log(trial["figures"]["throughput"])}
        if trial["foreign"] is not None:
            one["foreign"] = trial["foreign"]
        if probe is not None and (mean := probe_mean(run, place["index"], probe)):
            one["probe"] = math.log(mean)
        values.setdefault((place["block"], place["variant"], place["workload"]), []).append(one)
    baseline = json.loads((run / "verdict.json").read_text())["baseline"]
    for comparison in measured["comparisons"]:
        variant, workload = comparison["variant"], comparison["workload"]
        rows = []
        for block in sorted({number for number, _, _ in values}):
            ours, theirs = (values.get((block, name, workload), []) for name in (variant, baseline))
            if len(ours) == len(theirs) == len(comparison["points"]):
                keys = set.intersection(*(set(one) for one in [*ours, *theirs]))
                pairs = {key: [[one[key] for one in side] for side in (ours, theirs)] for key in keys}
                rows.append({key: float(np.mean(new) - np.mean(old)) for key, (new, old) in pairs.items()})
        if len(rows) > 1:
            kept = [key for key in COVARIATES if all(key in row for row in rows)]
            columns = {key: np.array([row[key] for row in rows]) for key in ("ratio", *kept)}
            yield Blocks(f"{run.parent.name}, {variant}, {workload}", columns.pop("ratio"), columns)


def probe_mean(run: Path, index: int, probe: NDArray[np.int64]) -> float | None:
    """Mean CPU time of the probe's loop during a trial's measurement, in nanoseconds."""
    edges = StoredTrial(run / "trials" / f"{index:04}").server.get("edges")
    if not edges or "begin" not in edges or "end" not in edges:
        return None
    begin, end = (1000 * edges[name]["unix_us"] for name in ("begin", "end"))
    inside = probe[(probe[:, 0] >= begin) & (probe[:, 0] < end), 2]
    return float(inside.mean()) if inside.size else None


def analyse(runs: Sequence[Path]) -> Iterator[str]:
    """The table of stored runs, line by line."""
    yield (
        "| run | blocks | covariates | correlation | its own difference, % | plain, % | flip, % | "
        "ols, % | half width, flip / plain | ols / plain |"
    )
    yield "|---|---:|---|---|---|---|---|---|---:|---:|"
    for blocks in (one for run in runs for one in read(run)):
        chosen = [(name,) for name in blocks.covariates]
        for names in [*chosen, tuple(blocks.covariates)] if len(chosen) > 1 else chosen:
            yield _line(blocks, names)


def _line(blocks: Blocks, names: Sequence[str]) -> str:
    covariates = np.column_stack([blocks.covariates[name] for name in names])
    correlations, own = [], []
    for column in covariates.T:
        varies = column.std() > 0 and blocks.ratios.std() > 0
        correlations.append(f"{np.corrcoef(blocks.ratios, column)[0, 1]:+.2f}" if varies else "none")
        # Differences of logarithms and of shares, in hundredths.
        own.append(_ends(plain(column), lambda value: 100 * value))
    without = plain(blocks.ratios)
    found = {name: method(blocks.ratios, covariates) for name, method in METHODS.items()}
    cells = [blocks.name, str(len(blocks.ratios)), " and ".join(names), " and ".join(correlations)]
    cells += [" and ".join(own), _ends(without), *map(_ends, found.values())]
    for one in found.values():
        cells.append(f"{one.half_width / without.half_width:.2f}" if one and without else "")
    return f"| {' | '.join(cells)} |"


def _ends(one: Adjusted | None, scale: Callable[[float], float] = percent) -> str:
    return f"{scale(one.low):+.1f} to {scale(one.high):+.1f}" if one else "too few blocks"


# --- the probe


def _loop(count: int) -> int:
    total = 0
    for number in range(count):
        total += number & 7
    return total


def probe(output: Path, cpu: int) -> None:
    """Time the loop until SIGTERM: start (Unix time), wall time and CPU time of each call, in nanoseconds."""
    os.sched_setaffinity(0, {cpu})
    is_over = False

    def end(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_over
        is_over = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    fastest = min(_timed(10_000)[2] for _ in range(50)) / 10_000
    count = round(PROBE_S * 1e9 / fastest)
    began, used = time.monotonic(), time.process_time()
    with output.open("wb") as file:
        while not is_over:
            file.write(struct.pack("=3q", *_timed(count)))
            time.sleep(PERIOD_S)
    share = (time.process_time() - used) / (time.monotonic() - began)
    output.with_suffix(".json").write_text(json.dumps({"cpu": cpu, "iterations": count, "cpu_share": share}))


def _timed(count: int) -> tuple[int, int, int]:
    at, wall, cpu = time.time_ns(), time.perf_counter_ns(), time.thread_time_ns()
    _loop(count)
    return at, time.perf_counter_ns() - wall, time.thread_time_ns() - cpu


def run(options: argparse.Namespace) -> list[Path]:
    """Run one comparison per kind, with the probe, unless it is stored; returns the runs' folders."""
    found = []
    for kind in options.kinds:
        folder = options.results.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        name = f"covariates-{kind}"
        file, recorded = folder / f"{name}.toml", folder / f"{name}.bin"
        text = slices_agree.KINDS[kind].experiment(name, options, "trials")
        if stored := stored_run(folder / name, text):
            found.append(stored)
            continue
        file.write_text(text)
        command = [
            sys.executable,
            "-m",
            "benchmarks.precision_covariates",
            "probe",
            "--output",
            str(recorded),
        ]
        probing = subprocess.Popen(command)
        try:
            subprocess.run(
                [sys.executable, "-m", "dbdyno", "compare", file, "--results", folder, "--no-report"],
                check=True,
            )
        finally:
            probing.terminate()
            probing.wait()
        stored = max((folder / name).glob("*/verdict.json")).parent
        recorded.with_suffix(".json").rename(stored / "probe.json")
        # The last file of a complete comparison.
        recorded.rename(stored / "probe.bin")
        share = json.loads((stored / "probe.json").read_text())["cpu_share"]
        print(f"the probe used {100 * share:.2f} % of CPU {SERVER_CPU}", flush=True)
        found.append(stored)
    return found


def stored_run(folder: Path, text: str) -> Path | None:
    """The newest complete run of this experiment file, with its probe; None if there is none."""
    complete = [path.parent for path in sorted(folder.glob("*/probe.bin"))]
    same = [path for path in complete if (path / "experiment.toml").read_text() == text]
    return same[-1] if same else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision_covariates", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run comparisons with the probe, and analyse them")
    running.add_argument("--results", type=Path, required=True)
    kinds = list(slices_agree.KINDS)
    running.add_argument(
        "--kinds", nargs="+", choices=kinds, default=["aa-reads", "aa-writes"], metavar="KIND"
    )
    running.add_argument("--blocks", type=int, default=20)
    running.add_argument("--seconds", type=float, default=5.0)
    running.add_argument("--warmup", type=float, default=2.0)
    analysing = commands.add_parser("analyse", help="analyse stored runs")
    analysing.add_argument("runs", type=Path, nargs="+")
    for one in (running, analysing):
        one.add_argument("--output", type=Path, help="Markdown file, whose section is replaced")
    simulating = commands.add_parser("simulate", help="false words and half widths on simulated runs")
    simulating.add_argument("--experiments", type=int, default=4_000)
    probing = commands.add_parser("probe")
    probing.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "probe":
        probe(options.output, SERVER_CPU)
        return 0
    if options.command == "simulate":
        for line in simulate(options.experiments):
            print(line, flush=True)
        return 0
    if options.command == "run":
        options.aa_blocks = options.blocks
    lines = analyse(run(options) if options.command == "run" else options.runs)
    text = "\n".join(["## Covariates of the host's speed", "", f"{results.machine()}.", "", *lines])
    print(text)
    if options.output:
        results.write_section(options.output, SECTION, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
