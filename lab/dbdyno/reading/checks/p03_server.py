"""P03: the server that was measured must be the one that the document describes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.limits import LISTED_MAX
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# The name in a command that creates a server of a cloud.
_CREATED = linear(
    r"--db-instance-identifier[ =]+([\w\-]+)|gcloud sql instances create ([\w\-]+)|"
    r"(?:postgres|mysql) flexible-server create .{0,300}?--name[ =]+([\w\-]+)"
)
_CREATE = linear(r"create-db-instance|sql instances create|flexible-server create")
_COMMAND_LINES = 8
# The host of a managed server begins with the server's name.
_MANAGED = linear(
    r"(?<![\w.\-])([a-zA-Z][\w\-]{1,62}+)\.(?:[\w\-]{1,62}+\.){0,9}(?:rds\.amazonaws\.com|database\.azure\.com|\bsql\.goog)"
)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for servers that were measured and not created, and for a host that makes clients ignore the
    port.

    Catches results of another server. A published benchmark creates an instance of size 16x and measures one
    of size 8x, whose creation it does not show.
    """
    yield from _not_created(reading)
    seen = False
    for call in reading.calls:
        if seen or call.options.get("mysql-host") != "localhost" or "mysql-port" not in call.options:
            continue
        if "mysql-socket" not in call.options:
            seen = True
            yield finding(
                reading,
                "P03",
                "warn",
                compose(
                    "--mysql-host=localhost connects to the client library's default socket and ignores "
                    "--mysql-port={port}, so which server answered is not known",
                    port=call.options["mysql-port"],
                ),
                [call.first],
                fix=compose("Name 127.0.0.1, or the socket"),
            )


def _not_created(reading: Reading) -> Iterator[Finding]:
    created: dict[str, int] = {}
    used: dict[str, int] = {}
    command_at = -_COMMAND_LINES
    for index, text in reading.document.lines():
        if _CREATE.search(text):
            command_at = index
        if index - command_at <= _COMMAND_LINES and (match := _CREATED.search(text)):
            created.setdefault(next(name for name in match.groups() if name), index)
        for match in _MANAGED.finditer(text):
            used.setdefault(match[1], index)
    names = ", ".join(itertools.islice(created, LISTED_MAX)) + (" …" if len(created) > LISTED_MAX else "")
    for name, index in used.items():
        if created and name not in created:
            yield finding(
                reading,
                "P03",
                "stop",
                compose(
                    "{name} is measured, but the document creates {created}",
                    name=name,
                    created=names,
                ),
                (index, *itertools.islice(created.values(), LISTED_MAX)),
                fix=compose("Store the server's own answer about its class and version with every result"),
            )


CHECK = DocumentCheck("P03", find)
