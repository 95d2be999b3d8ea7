"""P26: what a server that dbdyno has not started does not report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.finding import Finding
from dbdyno.text import compose, join

# Name of a fact in `Description.unreported` -> the fact, and what it is for.
_FACTS: Mapping[str, tuple[str, str]] = {
    "settings": (
        compose("its settings"),
        compose("P04 and P07 do not see them, and the results have none"),
    ),
    "counters": (compose("its counters"), compose("a change has no reasons from them")),
    "size": (compose("the size of the data"), compose("P14 does not compare it with the cache")),
    "units": (compose("units of settings"), compose("sizes are compared as text")),
    "host": (compose("facts about its machine"), compose("the results have none")),
}


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds facts that a server does not report, because it speaks a protocol and is another product.

    Catches results that look as complete as those of MySQL, MariaDB or PostgreSQL, although the server
    answers only a part of the questions: databases that speak one of the protocols, poolers and proxies.

    Rule: when the server is ready, dbdyno asks for its settings, counters, identity and sizes. One note lists
    those that the server refused, its answers, and what is therefore not measured. Nothing fails for want of
    them. Servers that dbdyno starts report all of them.
    """
    assert moment is Moment.READY, "P26 is registered for READY only"
    unreported = context.description.unreported if context.description is not None else {}
    if not unreported:
        return
    parts = [
        compose("{fact} ({use})", fact=fact, use=use)
        for name, (fact, use) in _FACTS.items()
        if name in unreported
    ]
    text = compose("the server does not report {parts}", parts=join(", ", parts))
    yield Finding("P26", "note", text, {"answers": dict(unreported)}, context.subject)


CHECK = Check("P26", "The server reports what dbdyno asks for", frozenset({Moment.READY}), find)
