"""P06: a server that may lose transactions is another one."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.reading.setting import Settings
from dbdyno.text import compose, join
from dbdyno.variables.durability import is_weaker


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for settings under which a commit does not wait for the disk.

    Catches speed that was paid with transactions: such a variant is fast for another reason than the one that
    is compared.
    """
    weak = {
        name: entry
        for block in reading.settings
        for name, entry in block.values.items()
        if name != "transaction_isolation" and is_weaker(name, _values(block), "mysql")
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


def _values(block: Settings) -> dict[str, str]:
    """The values of a file, with a binary log, as MySQL 8.0 has one, unless the file says otherwise."""
    own = {name: value.strip("'\"") for name, (value, _) in block.values.items()}
    return {"log_bin": "ON", **own}


CHECK = DocumentCheck("P06", find)
