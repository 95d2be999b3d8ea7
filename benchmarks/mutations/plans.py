"""Mutated plans, through the engine: `describe`, and short runs without a server (the null target)."""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

from dbdyno.problem import Problem
from dbdyno.run.engine import find_engine

from .mutate import mutate_json, mutate_json_text
from .trial import TIME_LIMIT_S, Tally, Wrong

# Exit codes of the engine: done, invalid plan, not reachable, aborted.
CODES = (0, 2, 3, 4)
MEMORY_MAX = 4 << 30
BROKEN = re.compile(r"panicked|RUST_BACKTRACE|overflow", re.I)
EXAMPLE = Path(__file__).resolve().parents[2] / "schema" / "examples" / "open-loop.jsonl"
OLTP: dict[str, Any] = {
    "schema": 1,
    "target": {"protocol": "null"},
    "workload": {"name": "oltp_read_write", "options": {"tables": 2, "table_size": 1000}},
    "load": {"connections": 4},
    "phases": {"warmup_us": 10_000, "measure_us": 50_000, "drain_us": 500_000},
    "reconnect": {"give_up_us": 100_000},
    "seed": 1,
}
SQL: dict[str, Any] = {
    **OLTP,
    "workload": {
        "name": "sql",
        "sql": {
            "parameters": {
                "id": {"integer": {"low": 1, "high": 1000, "distribution": {"zipfian": {"exponent": 0.9}}}},
                "next": {"sequence": {"first": 1000}},
                "why": {"one_of": {"values": ["it's", "?", None], "weights": [1, 1, 1]}},
                "owner": {"result": {"statement": "look"}},
            },
            "transactions": [
                {
                    "name": "write",
                    "weight": 3,
                    "statements": [
                        {"sql": "SELECT owner FROM item WHERE id = :id", "name": "look", "rows": 1},
                        {"sql": "INSERT INTO log VALUES (:next, :id, :why, :owner)", "repeat": 2},
                    ],
                }
            ],
        },
    },
}


def _complete_plan() -> dict[str, Any]:
    """A plan with every key, as the engine repeats it in its first record."""
    record = json.loads(EXAMPLE.read_text().splitlines()[0])
    plan: dict[str, Any] = record["data"]["plan"]
    return {**plan, "phases": OLTP["phases"]}


def measure(count: int, seed: int) -> Tally:
    """Describe or run `count` mutated plans."""
    tally = Tally("plans")
    engine, plans = str(find_engine()), (OLTP, SQL, _complete_plan())
    for number in range(count):
        generator = random.Random(f"{seed} {number}")
        plan = generator.choice(plans)
        if generator.random() < 0.5:
            command, content = "describe", mutate_json_text(json.dumps(plan).encode(), generator)
        else:
            command, content = "run", _runnable(plan, generator)
        tally.add(content, lambda: _call(engine, command, content))  # noqa: B023 — called at once.
    return tally


def _runnable(plan: dict[str, Any], generator: random.Random) -> bytes:
    """A mutated plan that names no server and ends soon, if it runs."""
    changed = mutate_json(plan, generator)
    if isinstance(changed, dict):
        changed["target"], changed["phases"] = plan["target"], plan["phases"]
    return json.dumps(changed).encode()


def _call(engine: str, command: str, content: bytes) -> None:
    """Raises Problem if the engine refuses the plan, and Wrong if it fails."""
    try:
        answer = subprocess.run(
            [engine, command],
            input=content + b"\n",
            capture_output=True,
            timeout=TIME_LIMIT_S,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX)),
        )
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"{command}: not ended after {TIME_LIMIT_S:g} s") from error
    text = answer.stderr.decode(errors="replace")
    if answer.returncode not in CODES or BROKEN.search(text):
        raise Wrong(f"{command}: status {answer.returncode}: {text.strip()[:120]}")
    if answer.returncode != 0:
        raise Problem(text)
