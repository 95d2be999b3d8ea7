"""Designs without dbdyno, as a DBA writes them: both servers stay up, and sysbench has its own defaults.

`loop` alternates runs of the two servers, and tests the log ratios of the pairs with a t-test. `long` is one
run per server, each of half the time, and compares the means over their seconds with Welch's test. Seconds of
one run are not independent, so that interval claims more than it has.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from scipy import stats

sys.path.append(str(Path(__file__).resolve().parents[1]))

from peer import sysbench

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.server import Address
from dbdyno.stats.signed_rank import percent

from .cells import Answer, Cell, Result
from .questions import BASELINE, CLIENT_CPU, OTHER, SERVER_CPU, TABLE_SIZE, TABLES, TRIAL_S, Question

CONFIDENCE = 0.95
DESIGNS = {
    "loop": "sysbench runs in a loop, paired t-test",
    "long": "one long sysbench run each, Welch's test of the seconds",
}


def measure(cell: Cell, minutes: Sequence[float], folder: Path) -> Result:
    """Run a cell."""
    with _servers(cell.question, folder) as (addresses, version):
        for address in addresses:
            _sysbench(cell.question, address, "prepare")
        began, start = time.time(), time.monotonic()
        one = _loop if cell.design == "loop" else _long
        answers, ratios, measured_s = one(cell.question, addresses, minutes)
        wall_s = time.monotonic() - start
    return Result(
        question=cell.question.name,
        design=cell.design,
        repeat=cell.repeat,
        version=version,
        began=began,
        wall_s=wall_s,
        measuring=measured_s / wall_s,
        answers=answers,
        ratios=ratios,
    )


Measured = tuple[list[Answer], list[float], float]


def _loop(question: Question, addresses: Sequence[Address], minutes: Sequence[float]) -> Measured:
    """Runs of `TRIAL_S` in turn, a b b a, until the time is over."""
    start = time.monotonic()
    # When each pair ended, and its log ratio.
    pairs: list[tuple[float, float]] = []
    pair_s = 0.0
    while time.monotonic() - start + pair_s <= max(minutes) * 60.0:
        before = time.monotonic()
        measured = {
            address: _throughput(_sysbench(question, address, "run", f"--time={TRIAL_S:g}"))
            for address in addresses[:: -1 if len(pairs) % 2 else 1]
        }
        base, other = (measured[address] for address in addresses)
        now = time.monotonic()
        pair_s = now - before
        pairs.append((now - start, math.log(other / base)))
    answers = []
    for limit in minutes:
        ratios = [ratio for ended_s, ratio in pairs if ended_s <= limit * 60.0]
        ends: tuple[float | None, float | None] = (None, None)
        if len(ratios) > 1:
            found = stats.ttest_1samp(ratios, 0.0).confidence_interval(CONFIDENCE)
            ends = (percent(found.low), percent(found.high))
        answers.append(Answer(limit, len(ratios), *ends))
    return answers, [ratio for _, ratio in pairs], 2.0 * TRIAL_S * len(pairs)


def _long(question: Question, addresses: Sequence[Address], minutes: Sequence[float]) -> Measured:
    """One run each; a shorter time has the first seconds of both."""
    run_s = math.floor(max(minutes) * 30.0)
    base, other = (
        _seconds(_sysbench(question, address, "run", f"--time={run_s}", "--report-interval=1"))
        for address in addresses
    )
    answers = []
    for limit in minutes:
        count = min(len(base), len(other), math.floor(limit * 30.0))
        a, b = base[:count], other[:count]
        found = stats.ttest_ind(b, a, equal_var=False).confidence_interval(CONFIDENCE)
        mean = sum(a) / count
        answers.append(Answer(limit, count, 100.0 * found.low / mean, 100.0 * found.high / mean))
    ratio = math.log((sum(other) / len(other)) / (sum(base) / len(base)))
    return answers, [ratio], 2.0 * run_s


def _sysbench(question: Question, address: Address, action: str, *options: str) -> str:
    """The output of sysbench, on the client's CPU."""
    arguments = [
        f"--threads={question.connections}",
        f"--tables={TABLES}",
        f"--table-size={TABLE_SIZE}",
        *options,
        question.workload,
        action,
    ]
    with sysbench(address, *arguments) as command:
        pinned = ["taskset", "--cpu-list", CLIENT_CPU, *command]
        result = subprocess.run(pinned, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"sysbench {action} failed:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout


def _throughput(output: str) -> float:
    match = re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", output)
    if match is None:
        raise SystemExit(f"sysbench printed no throughput:\n{output[-2000:]}")
    return float(match.group(1))


def _seconds(output: str) -> list[float]:
    """Transactions per second of each second."""
    return [float(value) for value in re.findall(r"^\[ \d+s \].* tps: ([\d.]+)", output, re.MULTILINE)]


@contextmanager
def _servers(question: Question, folder: Path) -> Iterator[tuple[list[Address], str]]:
    """Both servers, empty and alive, with their version."""
    with ExitStack() as stack:
        workspace = stack.enter_context(closing(Workspace.open(folder)))
        addresses, version = [], ""
        for name in (BASELINE, OTHER):
            spec = ServerSpec(
                product=question.product, variables=dict(question.servers()[name]), cpus=SERVER_CPU
            )
            server = stack.enter_context(
                closing(open_server(Variant(name=name, server=spec), workspace, None))
            )
            server.restore()
            server.start()
            addresses.append(server.address())
            version = server.describe().version
        yield addresses, version
