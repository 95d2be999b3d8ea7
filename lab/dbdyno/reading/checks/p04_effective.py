"""P04: a setting in a file is a wish; the server must have been asked for its value."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_SHOWN_MAX = 4
# Settings that say where the server is, not what it does.
_PLACES = linear(r"port|socket|pid|dir$|^user$|log_error|bind|server_id|listen|character|collation")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for settings of configuration files that no output of the server confirms.

    Catches files that the server did not read. A published benchmark mounts a my.cnf into a container and
    never reads a variable back; a server ignores a file that everybody can write.
    """
    shown = {name for block in reading.settings if block.is_shown for name in block.values}
    files = [block for block in reading.settings if not block.is_shown]
    missing = {
        name for block in files for name in block.values if name not in shown and not _PLACES.search(name)
    }
    if not missing or not (reading.results or reading.claims):
        return
    names = ", ".join(sorted(missing)[:_SHOWN_MAX]) + (" …" if len(missing) > _SHOWN_MAX else "")
    yield finding(
        reading,
        "P04",
        "warn",
        compose("no output of the server confirms {names}", names=names),
        (block.first for block in files),
        fix=compose("Show SHOW VARIABLES, or pg_settings, of every variant"),
    )


CHECK = DocumentCheck("P04", find)
