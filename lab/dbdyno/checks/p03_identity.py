"""P03: it is the same server throughout, and the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.checks.finding import Check, Context, Finding, Moment
from dbdyno.servers.server import Description

# What names a server for good. MariaDB has no server_uuid; a server we start is known by where its data and
# its doors are. A restored copy carries the same uuid as its snapshot, so that alone would prove nothing.
LASTING = ("datadir", "socket", "port", "server_uuid", "server_uid", "uuid", "system_identifier", "hostname")

# What names one start of it.
ONE_START = ("pid", "start_unix_us")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """The server under load is the one that was seen first, and inside a group the very same process.

    Catches results that belong to another server than the label says. In seed 001 the tables were loaded
    through a socket path and the load ran over `localhost` and a port, which the client library sends to
    its default socket: the two may have been different servers. Seed 003 verified the settings of one of
    its two servers only.

    Rule: product, version, data directory, socket, port, and uuid and host name where the server has them,
    equal the first description of that variant; process id and start time may change between groups, not
    inside one (a server that crashed and came back has an empty cache); no two variants were answered by
    the same process, and variants that ask for the same software got the same version. Anything else is a
    stop.
    """
    description = context.description
    if description is None:
        return
    if moment is Moment.AFTER_GROUP:
        if context.server is not None:
            now = context.server.describe()
            yield from _changed(
                description, now, (*LASTING, *ONE_START), "since the group began", context.subject
            )
        return
    if context.first is not None:
        yield from _changed(context.first, description, LASTING, "since it was first seen", context.subject)
    for name, peer in context.peers.items():
        if name != context.subject:
            yield from _against_peer(context, name, description, peer)


def _changed(
    before: Description, now: Description, keys: tuple[str, ...], since: str, subject: str
) -> Iterator[Finding]:
    old, new = _facts(before), _facts(now)
    changed = [
        key
        for key in ("product", "version", *keys)
        if old.get(key) is not None and new.get(key) is not None and old[key] != new[key]
    ]
    if changed:
        details = ", ".join(f"{key} was {old[key]} and is {new[key]}" for key in changed)
        yield Finding(
            code="P03",
            level="stop",
            text=f"another server answers {since}: {details}. Results of two servers were mixed; "
            "find out who restarted or replaced it, and run again.",
            evidence={key: {"before": old[key], "now": new[key]} for key in changed},
            subject=subject,
        )


def _against_peer(context: Context, name: str, mine: Description, peer: Description) -> Iterator[Finding]:
    ours, theirs = _facts(mine), _facts(peer)
    if all(ours.get(key) is not None and ours.get(key) == theirs.get(key) for key in ONE_START):
        yield Finding(
            code="P03",
            level="stop",
            text=f"{context.subject} and {name} were answered by the same server process (pid "
            f"{ours['pid']}): one server was measured twice. Give each variant a server of its own.",
            evidence={key: ours[key] for key in ONE_START},
            subject=context.subject,
        )
    if ours["version"] != theirs["version"] and _same_software(context, name):
        yield Finding(
            code="P03",
            level="stop",
            text=f"{context.subject} runs version {ours['version']} and {name} runs {theirs['version']}, "
            "but the experiment asks for the same software in both. Say so with basedir, or install one "
            "version.",
            evidence={"version": {context.subject: ours["version"], name: theirs["version"]}},
            subject=context.subject,
        )


def _facts(description: Description) -> Mapping[str, Any]:
    return {**description.identity, "product": description.product, "version": description.version}


def _same_software(context: Context, name: str) -> bool:
    """Whether the experiment asks for the same binaries in both variants; reached servers may differ by
    design.
    """
    peer = next((variant.server for variant in context.experiment.variants if variant.name == name), None)
    if context.variant is None or peer is None:
        return False
    mine = context.variant.server
    return mine.kind == peer.kind == "local" and (mine.product, mine.basedir) == (peer.product, peer.basedir)


CHECK = Check("P03", "Identity", frozenset({Moment.READY, Moment.AFTER_GROUP}), find)
