"""Mutated experiment files, through the reader and the checks of the design."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.schedule import schedule

from .mutate import mutate_text
from .trial import Tally

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# What no example has.
MORE = b"""
[experiment]
name = "more"
[[workload]]
name = "sql"
setup = ["CREATE TABLE item (id INT PRIMARY KEY, owner VARCHAR(20), at TIMESTAMP)"]
[workload.tables.item]
rows = 1_000
columns = { id = "sequence()", owner = "text(5, 20, alphabet='ab', nulls=0.1)" }
[workload.parameters]
id = "zipfian(1, rows(item), exponent=0.9)"
kind = ["a", 1, 2.5]
[[workload.transactions]]
name = "buy"
statements = ["BEGIN", { sql = "SELECT owner FROM item WHERE id = :id", rows = 1 }, "COMMIT"]
[[workload]]
name = "select_random_points"
keys = { distribution = "zipfian", exponent = 1.1 }
[load]
connections = [8]
rate = [100, 200.5]
duration = "2s"
latency_objective = { p99 = "20ms" }
[design]
state = "reset"
stop = { max_blocks = 20, max_time = "1h", when = { half_width = "2%" } }
max_loss_percent = 3
[client]
workers = 2
[override]
P08 = "the scan is intended"
[factor.pool]
on = {}
[factor.pool.off.server]
variables = { thread_handling = "one-thread-per-connection" }
[[variant]]
[variant.server]
kind = "command"
url = "mysql://load@db1:3306/shop?tls=required"
start = ["true"]
stop = ["true"]
hook_timeout = "10s"
before_trial = ["true"]
[profile.quick]
"load.duration" = "500ms"
"workload.tables.item.rows" = 10
"""


def documents() -> Sequence[tuple[Path, bytes]]:
    """The files that are mutated, with their place."""
    return [
        *((path, path.read_bytes()) for path in sorted(EXAMPLES.glob("*.toml"))),
        (EXAMPLES / "more.toml", MORE),
    ]


def measure(count: int, seed: int) -> Tally:
    """Read `count` mutated files."""
    tally = Tally("experiment files")
    sources = documents()
    for number in range(count):
        generator = random.Random(f"{seed} {number}")
        path, source = generator.choice(sources)
        content = mutate_text(source, generator)
        profile = generator.choice((None, None, "quick", "smoke"))
        tally.add(content, lambda: _read(content, path, profile))  # noqa: B023 — called at once.
    return tally


def _read(content: bytes, path: Path, profile: str | None) -> None:
    experiment = read_bytes(content, path, profile)
    schedule(experiment)
