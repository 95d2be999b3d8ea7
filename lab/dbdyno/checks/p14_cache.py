"""P14: the data must be clearly smaller or clearly larger than the cache."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.quantities import number
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.text import compose, mark

# Range of the ratio of data to cache in which a small difference in caching causes a large difference in
# reads.
BORDERLINE = (0.8, 1.25)
MIB, GIB = 1024.0**2, 1024.0**3


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds data whose size is close to that of the cache.

    Catches results that depend on which pages happen to be cached. A published benchmark had 40 GB of data
    for a buffer pool of 40 GB.

    Rule: the ratio of data and indexes to the cache must be below 0.8 or above 1.25; otherwise the
    finding is a warning. A note says whether the data fit. PostgreSQL also uses the OS page cache, so its
    finding is always a note.
    """
    assert moment is Moment.READY, "P14 is registered for READY only"
    description = context.description
    if description is None or context.workload is None:
        return
    data_bytes, cache_bytes = description.data_bytes or 0, _cache_bytes(description)
    if not data_bytes or not cache_bytes:
        return
    ratio = data_bytes / cache_bytes
    is_borderline = BORDERLINE[0] <= ratio <= BORDERLINE[1]
    is_postgresql = description.product == "postgresql"
    label = "borderline" if is_borderline else "in memory" if ratio < 1 else "more than the cache holds"
    values = {
        "workload": context.workload.title,
        "size": _size_text(data_bytes),
        "cache": "shared_buffers" if is_postgresql else compose("the buffer pool"),
        "cache_size": _size_text(cache_bytes),
    }
    if is_borderline:
        text = compose(
            "data and indexes of {workload} ({size}) are about as large as {cache} ({cache_size})", **values
        )
    elif ratio < 1:
        text = compose("data and indexes of {workload} ({size}) fit in {cache} ({cache_size})", **values)
    else:
        text = compose(
            "data and indexes of {workload} ({size}) do not fit in {cache} ({cache_size})", **values
        )
    if is_postgresql:
        text += compose(". PostgreSQL also uses the OS page cache")
    is_warning = is_borderline and not is_postgresql
    if is_warning:
        text += compose(". A small difference in caching then causes a large difference in reads")
    yield Finding(
        code="P14",
        level="warn" if is_warning else "note",
        text=text,
        evidence={
            "data_bytes": data_bytes,
            "cache_bytes": cache_bytes,
            "ratio": round(ratio, 3),
            "label": label,
        },
        subject=context.subject,
        fix=compose("Choose a buffer pool well above or below the size of the data") if is_warning else "",
    )


def _size_text(size_bytes: int) -> str:
    return (
        compose("{size_bytes:,.2f} GiB", size_bytes=size_bytes / GIB)
        if size_bytes >= GIB
        else compose("{size_bytes:.1f} MiB", size_bytes=size_bytes / MIB)
    )


def _cache_bytes(description: Description) -> int:
    name = "shared_buffers" if description.product == "postgresql" else "innodb_buffer_pool_size"
    return int(number(description.variables.get(name, "")) or Decimal(0))


CHECK = Check(
    "P14",
    "Data are clearly smaller or larger than the cache",
    frozenset({Moment.READY}),
    find,
    caveat=mark("the data are about as large as the cache"),
)
