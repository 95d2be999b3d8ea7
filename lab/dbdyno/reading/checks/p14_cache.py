"""P14: whether the data fit into the server's cache decides what is measured."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.experiment.quantities import number
from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# A row of sbtest with its share of both indexes, in InnoDB's pages at 15/16 and after splits.
_ROW_BYTES = (220, 260)
_BORDERLINE = (0.8, 1.25)
_CACHES = ("innodb_buffer_pool_size", "shared_buffers")
_GIB = 1 << 30


def find(reading: Reading) -> Iterator[Finding]:
    """Compares the size of sysbench's tables with that of the cache.

    Catches results that depend on a few per cent of cache. A published benchmark has 40 GB of data and a pool
    of 40 GB.
    """
    call = next((one for one in reading.calls if one.tool == "sysbench" and one.phase == "prepare"), None)
    cache = cache_bytes(reading)
    if call is None or cache is None:
        return
    rows = (call.number("tables", "oltp-tables-count") or 1) * (
        call.number("table-size", "oltp-table-size") or 10_000
    )
    low, high = (rows * size for size in _ROW_BYTES)
    size, index = cache
    values = {"low": low / _GIB, "high": high / _GIB, "cache": size / _GIB}
    if high < _BORDERLINE[0] * size:
        text = compose(
            "about {low:.3g} to {high:.3g} GiB of data fit into {cache:.3g} GiB of cache: nothing is read "
            "from disk",
            **values,
        )
        yield finding(reading, "P14", "note", text, (call.first, index))
    elif low <= _BORDERLINE[1] * size:
        text = compose(
            "about {low:.3g} to {high:.3g} GiB of data are about as large as the cache ({cache:.3g} GiB), "
            "so small differences of the "
            "cache change the result",
            **values,
        )
        yield finding(
            reading,
            "P14",
            "warn",
            text,
            (call.first, index),
            fix=compose("Choose data of half or of twice the cache"),
        )


def cache_bytes(reading: Reading) -> tuple[float, int] | None:
    """The size of the server's cache in the first settings that have it, and the line."""
    sizes = (
        (float(number(block.values[name][0]) or 0.0), block.values[name][1])
        for block in reading.settings
        for name in _CACHES
        if name in block.values
    )
    return next((one for one in sizes if one[0]), None)


CHECK = DocumentCheck("P14", find)
