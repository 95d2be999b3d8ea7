"""The results of random faults: a file of JSON lines, to which several calls append, and their table."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class CaseResult:
    """What followed the faults of a case."""

    seed: int
    number: int
    # Kind and host of each fault.
    faults: list[str]
    # The phase of the attempt that the first one hit.
    phase: str = "unknown"
    # Seconds from the first fault until all engines had ended, and until dbdyno had given up or completed the
    # attempt.
    engines_s: float = 0.0
    given_up_s: float = 0.0
    # Why the attempt was given up; empty if it is complete.
    reason: str = ""
    problems: list[str] = field(default_factory=list)
    # Seconds from the end of the attempt before until all engines of this one had started.
    waited_s: float = 0.0

    @property
    def outcome(self) -> str:
        """What became of the attempt."""
        if self.phase == "unknown":
            return "dbdyno continued it with --resume"
        return f"given up: {self.reason}" if self.reason else "complete"


class Results:
    """The results of this call, which it appends to a file, and those of earlier calls."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path = path
        self._lines: list[dict[str, Any]] = []
        if path is not None and path.exists():
            self._lines = [json.loads(line) for line in path.read_text().splitlines()]
        if any(line["seed"] == seed for line in self._lines):
            raise SystemExit(f"{path} has the seed {seed} already; choose another one")
        self._seed, self._began = seed, time.monotonic()
        # Attempts since the last one that met a fault of a host.
        self.since_host_fault = 0
        # Folders of runs whose numbers were checked.
        self.checked: set[str] = set()

    def faults(self) -> int:
        """The number of faults of this call."""
        return sum(len(line.get("faults", ())) for line in self._lines if line["seed"] == self._seed)

    def problems(self) -> list[str]:
        """All problems of this call."""
        own = [line for line in self._lines if line["seed"] == self._seed]
        return [problem for line in own for problem in line["problems"]]

    def add(self, result: CaseResult) -> None:
        """Keep and print the result of a case."""
        self._append(asdict(result))
        print(
            f"{self._elapsed()} case {result.number}: {' and '.join(result.faults) or 'no fault'}; "
            f"phase {result.phase}; engines ended after {result.engines_s:.1f} s, the attempt after "
            f"{result.given_up_s:.1f} s; {result.outcome} (began after {result.waited_s:.1f} s)",
            flush=True,
        )
        self._print(result.problems)

    def add_comparison(self, complete: int, lost: int, problems: list[str]) -> None:
        """Keep the result of a comparison."""
        self._append({"seed": self._seed, "complete": complete, "lost": lost, "problems": problems})
        print(
            f"{self._elapsed()} comparison: {complete} trials are complete, {lost} attempts were lost",
            flush=True,
        )
        self._print(problems)

    def complain(self, problem: str) -> None:
        """Keep a problem."""
        self._append({"seed": self._seed, "problems": [problem]})
        self._print([problem])

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:5.0f} s"

    def _append(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    @staticmethod
    def _print(problems: list[str]) -> None:
        for problem in problems:
            print(f"  wrong: {problem}", flush=True)

    def table(self, kinds: list[str]) -> str:
        """Tables of the faults and of the phases that they hit, and the totals."""
        times: Counter[str] = Counter()
        phases: Counter[str] = Counter()
        slowest_s: dict[str, list[float]] = {kind: [0.0, 0.0] for kind in kinds}
        for line in self._lines:
            for fault in line.get("faults", ()):
                kind = re.sub(r" on \S+$", "", fault)
                times[kind] += 1
                phases[line["phase"]] += 1
                if line["reason"] or line["phase"] == "unknown":
                    slowest = slowest_s[kind]
                    slowest[:] = max(slowest[0], line["engines_s"]), max(slowest[1], line["given_up_s"])
        lines = [
            "| fault, alone or with others | times | engines ended after at most | given up after at most |",
            "|---|---:|---:|---:|",
        ]
        for kind in kinds:
            cells = [f"{seconds:.1f} s" if seconds else "-" for seconds in slowest_s[kind]]
            lines.append(f"| {kind} | {times[kind]} | {cells[0]} | {cells[1]} |")
        seeds = {line["seed"] for line in self._lines}
        lost, complete = (sum(line.get(key, 0) for line in self._lines) for key in ("lost", "complete"))
        problems = sum(len(line["problems"]) for line in self._lines)
        hit = ", ".join(f"{count} {phase}" for phase, count in phases.most_common())
        lines += [
            "",
            f"{times.total():,} faults (seeds: {len(seeds)}; phases: {hit}); {lost:,} attempts were lost, "
            f"{complete:,} trials are complete, the sums of three engines and what the server counted; "
            f"{problems} problems.",
        ]
        return "\n".join(lines)
