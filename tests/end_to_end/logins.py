"""One short run of the engine on a server, with what its login settled; shared by the tests of logging in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.server import Address

ROWS = 200
# Exit code of the engine when no connection could be opened.
NOT_REACHABLE = 3


@dataclass(frozen=True)
class Login:
    """How a run ended, and what its first connection settled (the `ready` record; empty without one)."""

    result: EngineResult
    ready: Mapping[str, Any]
    # Of the measured phase.
    events: int = 0
    bytes: int = 0
    row_count_mismatches: int = 0

    @property
    def words(self) -> str:
        """Why it failed, or nothing."""
        return self.result.failure()

    def refused(self, *parts: str) -> None:
        """Assert that no connection was opened, and that the reason holds `parts`."""
        assert self.result.exit_code == NOT_REACHABLE, (self.result.exit_code, self.words)
        assert all(part in self.words for part in parts), self.words


def plan(address: Address, target: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Two connections and some point selects on the table that `load` makes."""
    return {
        "schema": 1,
        "target": {**address.target(), **target},
        "workload": {"name": "oltp_point_select", "options": {"table_size": ROWS}},
        "load": {"connections": 2},
        "phases": {"measure_us": 100_000},
        "seed": 1,
        **changes,
    }


def load(address: Address) -> None:
    """Make the table."""
    result = Engine().run("prepare", plan(address, {}), address.environment())
    assert result.done, result.failure()


def log_in(
    address: Address,
    on_ready: Callable[[], None] | None = None,
    connections: int = 2,
    workload: Mapping[str, Any] | None = None,
    **target: Any,
) -> Login:
    """Run with `target` added to the address's; `on_ready` is called while the connections are open."""
    records: list[Any] = []
    changes: dict[str, Any] = {"load": {"connections": connections}}
    if workload is not None:
        changes["workload"] = workload
    if on_ready is not None:
        changes["start"] = {"on-command": {"start_timeout_us": 60_000_000}}
    asked = plan(address, target, **changes)
    result = Engine().run(
        "run", asked, address.environment(), records.append, on_ready=on_ready or (lambda: None)
    )
    ready = [record["data"] for record in records if record["type"] == "ready"]
    totals = result.end["phases"].get("measure", {}) if result.end else {}
    if address.password:
        assert address.password not in f"{records}{result.stderr}", "the password was printed"
    counts = {name: totals.get(name, 0) for name in ("events", "bytes", "row_count_mismatches")}
    return Login(result, ready[0] if ready else {}, **counts)
