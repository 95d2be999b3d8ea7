"""P06: a server that may lose transactions is another one."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose, join

# Values with which a crash loses committed transactions, or which leave out what protects pages.
_WEAK = {
    "innodb_flush_log_at_trx_commit": ("0", "2"),
    "sync_binlog": ("0", "100", "1000"),
    "innodb_doublewrite": ("0", "off"),
    "fsync": ("off", "0", "false"),
    "synchronous_commit": ("off", "0", "false"),
    "full_page_writes": ("off", "0", "false"),
}


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for settings under which a commit does not wait for the disk.

    Catches speed that was paid with transactions: such a variant is fast for another reason than the one that
    is compared.
    """
    weak = {
        name: (value, index)
        for block in reading.settings
        for name, (value, index) in block.values.items()
        if value.strip("'\"").lower() in _WEAK.get(name, ())
    }
    if weak:
        yield finding(
            reading,
            "P06",
            "warn",
            compose(
                "a crash loses committed transactions: {settings}",
                settings=join(", ", (f"{name} = {value}" for name, (value, _) in weak.items())),
            ),
            (index for _, index in weak.values()),
            fix=compose("Say so with every result"),
        )


CHECK = DocumentCheck("P06", find)
