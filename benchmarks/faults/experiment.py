"""The experiment that every cell runs: two variants, two blocks, four short trials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NAME = "faults"
CONNECTIONS, BLOCKS = 4, 2
PLANNED = 2 * BLOCKS
# Rows that are loaded in a moment, and rows whose loading lasts long enough to be hit.
ROWS, ROWS_TO_HIT = 2_000, 150_000
# How long dbdyno waits for a server that does not answer.
PATIENCE_S = 4
MYSQL = Path(__file__).resolve().parents[2] / ".servers" / "mysql-9.7"

Variables = Mapping[str, str | int | bool]
# Small servers, so that they start and are copied in a moment.
SMALL: Mapping[str, Variables] = {
    "mariadb": {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "16M"},
    "mysql": {
        "innodb_buffer_pool_size": "64M",
        "innodb_redo_log_capacity": "16M",
        "disable_log_bin": True,
        "performance_schema": False,
    },
    "postgresql": {"shared_buffers": "32MB"},
}
# What the second variant has in addition.
OTHER: Mapping[str, Variables] = {
    "mariadb": {"innodb_flush_log_at_trx_commit": 2},
    "mysql": {"innodb_flush_log_at_trx_commit": 2},
    "postgresql": {"synchronous_commit": False},
}


@dataclass(frozen=True)
class Reached:
    """A server that dbdyno does not start: how an experiment names it."""

    url: str
    password_file: Path
    # Command lines by their keys: start, stop.
    commands: Mapping[str, Sequence[str]]


def text(product: str, kind: str, *, seed: int, is_loading_hit: bool, reached: Sequence[Reached]) -> str:
    """The experiment file; `reached` has the two servers of the kinds that dbdyno does not start."""
    state = "restore" if kind in ("local", "docker") else "reset"
    patience = f'answer_timeout = "{PATIENCE_S}s"\n'
    parts = [
        f'[experiment]\nname = "{NAME}"',
        '[[workload]]\nname = "oltp_read_write"\ntables = 1\n'
        f"table_size = {ROWS_TO_HIT if is_loading_hit else ROWS}",
        f'[load]\nconnections = [{CONNECTIONS}]\nduration = "700ms"\nwarmup = "400ms"\n'
        f'give_up = "{PATIENCE_S}s"\n{patience}',
        f'[design]\nblocks = {BLOCKS}\npairing = "trials"\nrepeat_disturbed = false\nseed = {seed}\n'
        f'order_seed = 1\nstate = "{state}"',
        "[client]\nworkers = 1",
    ]
    for index, name in enumerate(("a", "b")):
        lines = [f'[[variant]]\nname = "{name}"\n[variant.server]\nkind = "{kind}"']
        if reached:
            one = reached[index]
            lines += [f"url = {json.dumps(one.url)}", f"password_file = {json.dumps(str(one.password_file))}"]
            lines += [f"{key} = {json.dumps(list(words))}" for key, words in one.commands.items()]
            lines += ['command_timeout = "5s"', 'start_timeout = "5s"'] if one.commands else []
        else:
            lines += _private(product, kind, {**SMALL[product], **(OTHER[product] if index else {})})
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def with_setup(reached: Sequence[Reached], sleep: str) -> str:
    """One block on two servers that dbdyno does not start; the setup sleeps between two tables."""
    setup = [
        "CREATE TABLE item (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO item VALUES {', '.join(f'({number}, {number})' for number in range(1, 101))}",
        sleep,
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO other VALUES (1)",
    ]
    parts = [
        f'[experiment]\nname = "{NAME}"',
        f'[[workload]]\nname = "sql"\nsetup = {json.dumps(setup)}\n'
        'parameters = { id = "uniform(1, 100)" }\n'
        'transactions = [{ name = "read", sql = "SELECT n FROM item WHERE id = :id", rows = 1 }]',
        f'[load]\nconnections = [{CONNECTIONS}]\nduration = "700ms"\nwarmup = "400ms"',
        '[design]\nblocks = 1\npairing = "trials"\nrepeat_disturbed = false\norder_seed = 1\nstate = "reset"',
        "[client]\nworkers = 1",
    ]
    for name, one in zip(("a", "b"), reached, strict=True):
        server = f"url = {json.dumps(one.url)}\npassword_file = {json.dumps(str(one.password_file))}"
        parts.append(f'[[variant]]\nname = "{name}"\n[variant.server]\nkind = "remote"\n{server}')
    return "\n\n".join(parts) + "\n"


def _private(product: str, kind: str, variables: Variables) -> list[str]:
    lines = [f'product = "{product}"'] if kind == "local" else []
    if kind == "local" and product == "mysql":
        lines.append(f"basedir = {json.dumps(str(MYSQL))}")
    if kind == "docker":
        from tests.end_to_end.docker_engine import IMAGE  # noqa: PLC0415 — only these cells need it.

        lines += [f'image = "{IMAGE}"', 'memory = "512M"']
    settings = ", ".join(f"{name} = {json.dumps(value)}" for name, value in variables.items())
    return [*lines, f"variables = {{ {settings} }}"]
