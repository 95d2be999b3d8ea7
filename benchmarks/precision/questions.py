"""The questions that every design answers: two equal servers, or a server and a slower one.

The planted difference is a setting of the second server that costs CPU time, so that every tool meets the
same one. It takes about a tenth of the throughput; its exact size comes from the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.experiment.server import Product

Settings = Mapping[str, str | int | float | bool]

TABLES, TABLE_SIZE = 4, 20_000
# Length of a trial and of its warm-up, as in the quick profiles of the examples.
TRIAL_S, WARMUP_S = 5.0, 2.0
SERVER_CPU, CLIENT_CPU = "0", "1"
BASELINE, OTHER = "a", "b"


@dataclass(frozen=True, eq=False)
class Question:
    """One comparison of two servers."""

    name: str
    product: Product
    workload: str
    connections: int
    settings: Settings
    # What the second server has in addition; nothing in an A/A test.
    planted: Settings

    @property
    def text(self) -> str:
        """The question in words."""
        what = ", ".join(f"{name} = {value}" for name, value in self.planted.items())
        return f"{self.product}, {self.workload}, {self.connections} connections, {what or 'A/A'}"

    def experiment(self, name: str, design: Mapping[str, object], trial_s: float, warmup_s: float) -> str:
        """The experiment file."""
        variants = [
            f"[[variant]]\nname = {json.dumps(variant)}\n[variant.server]\nkind = 'local'\n"
            f"product = {json.dumps(self.product)}\ncpus = '{SERVER_CPU}'\nvariables = {_inline(settings)}"
            for variant, settings in self.servers().items()
        ]
        parts = [
            f"[experiment]\nname = {json.dumps(name)}",
            f"[[workload]]\nname = {json.dumps(self.workload)}\ntables = {TABLES}\ntable_size = {TABLE_SIZE}",
            f"[load]\nconnections = [{self.connections}]\n"
            f"duration = '{trial_s:g}s'\nwarmup = '{warmup_s:g}s'",
            "[design]\n" + "\n".join(f"{key} = {_inline(value)}" for key, value in design.items()),
            f"[client]\ncpus = '{CLIENT_CPU}'",
            *variants,
        ]
        return "\n\n".join(parts) + "\n"

    def servers(self) -> dict[str, Settings]:
        """The settings of both servers."""
        return {BASELINE: self.settings, OTHER: {**self.settings, **self.planted}}


def _inline(value: object) -> str:
    """A value as TOML, in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def _pair(
    product: Product, workload: str, connections: int, settings: Settings, planted: Settings
) -> list[Question]:
    """An A/A test and a planted difference, under the same load."""
    return [
        Question(f"{product}-aa", product, workload, connections, settings, {}),
        Question(f"{product}-planted", product, workload, connections, settings, planted),
    ]


QUESTIONS = [
    *_pair(
        "mariadb",
        "oltp_point_select",
        4,
        {"innodb_buffer_pool_size": "256M"},
        {"performance_schema": True},
    ),
    *_pair(
        "postgresql",
        "oltp_read_write",
        16,
        # The rate has no effect without log_min_duration_sample, which then logs so many of the statements.
        {"shared_buffers": "256MB", "synchronous_commit": False, "log_statement_sample_rate": 0.4},
        {"log_min_duration_sample": 0},
    ),
]
