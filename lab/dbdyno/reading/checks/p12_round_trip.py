"""P12: where the network takes most of the time, the server is not what is measured."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.checks.p11_shared import is_local
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import Result
from dbdyno.text import compose

# A statement of sysbench's OLTP tests takes a server with cached data about a tenth of this.
_STATEMENT_MS = 0.7
_FEW_CONNECTIONS = 4


def find(reading: Reading) -> Iterator[Finding]:
    """Divides the mean latency at few connections by the statements of a transaction.

    Catches round trips that are taken for the server's time. In a published benchmark each of 20 statements
    takes 1.3 ms at two connections, for both variants.
    """
    results = [
        one
        for one in reading.results
        if one.connections and one.connections <= _FEW_CONNECTIONS and not one.is_rate_limited
    ]
    slow = [one for one in results if (_statement_ms(one) or 0) > _STATEMENT_MS]
    if slow and not any(is_local(call) for call in reading.calls):
        yield finding(
            reading,
            "P12",
            "note",
            compose(
                "each statement takes {time:,.1f} ms at {connections} connections: the round trip of the "
                "network was not measured, and may be most of it",
                time=_statement_ms(slow[0]),
                connections=slow[0].connections,
            ),
            (one.first for one in slow),
            fix=compose("Measure SELECT 1 from the same client to every variant"),
        )


def _statement_ms(result: Result) -> float | None:
    mean, tps, qps = (result.value(name) for name in ("mean_ms", "tps", "qps"))
    return mean * tps / qps if mean and tps and qps and qps > tps else None


CHECK = DocumentCheck("P12", find)
