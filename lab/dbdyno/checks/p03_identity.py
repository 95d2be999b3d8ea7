"""P03: it is the same server throughout, and the one that was meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.finding import Finding
from dbdyno.servers.server import Description

# What names a server for good. MariaDB has no server_uuid; a server we start is known by where its data and
# its doors are. A restored copy carries the same uuid as its snapshot, so that alone would prove nothing.
LASTING = (
    "datadir",
    "data_directory",
    "socket",
    "port",
    "address",
    "server_uuid",
    "server_uid",
    "uuid",
    "system_identifier",
    "hostname",
    "aurora_server_id",
    "image",
)
# Of these, one that is equal on two servers says nothing: defaults, and what a copy takes along.
_SHARED = ("socket", "port", "datadir", "data_directory", "server_uuid", "system_identifier", "image")

# Variables in which a server itself names its place, by the key of its identity.
PLACE_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "datadir": ("datadir", "data_directory"),
    "socket": ("socket",),
    "port": ("port",),
}

# When a server that is only reached was started; known to the second.
STARTED = "started_unix_s"
STARTED_SLACK_S = 3

# What names one start of it.
ONE_START = ("pid", "start_unix_us")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """The server under load is the one that was seen first, and inside a group the very same process.

    Catches results that belong to another server than the label says. In seed 001 the tables were loaded
    through a socket path and the load ran over `localhost` and a port, which the client library sends to
    its default socket: the two may have been different servers. Seed 003 verified the settings of one of
    its two servers only.

    A server that is only reached keeps its start time too: nobody of us restarts it, and one that went away
    and came back (a failover, say) has another cache and perhaps another machine. Where the user's own
    commands start or restore it, they do so before a group, and never inside one.

    Servers of a comparison exchange their places on disk from block to block. Then the expected directory,
    socket and port are those of the group's place, and the server itself must name them.

    Rule: what the experiment declares as `version` begins the server's own; product, version, data directory,
    socket, port, and uuid and host name where the server has them, equal the first description of that
    variant, and the group's place where dbdyno assigns one; process id and start time may change between
    groups, not inside one (a server that crashed and came back has an empty cache); no two variants were
    answered by the same process, no two URLs lead to the same server, and variants that ask for the same
    software got the same version. Anything else is a stop.
    """
    description = context.description
    if description is None:
        return
    keys: tuple[str, ...]
    if moment is Moment.AFTER_GROUP:
        if context.server is not None:
            now = context.server.describe()
            keys = (*LASTING, *ONE_START, STARTED)
            yield from _changed(description, now, keys, "since the group began", context.subject)
        return
    yield from _declared_version(context, description)
    yield from _misplaced(context, description)
    if context.first is not None:
        keys = LASTING if _restarted_by_us(context) else (*LASTING, STARTED)
        keys = tuple(key for key in keys if key not in context.place)
        yield from _changed(context.first, description, keys, "since it was first seen", context.subject)
    for name, peer in context.peers.items():
        if name != context.subject:
            yield from _against_peer(context, name, description, peer)


def _misplaced(context: Context, description: Description) -> Iterator[Finding]:
    """A server that is elsewhere than dbdyno has put it for this group, or says that it is."""
    wrong = {}
    for key, expected in context.place.items():
        by_server = (description.variables.get(name) for name in PLACE_VARIABLES[key])
        answers = [description.identity.get(key), *by_server]
        other = [answer for answer in answers if answer and not _is_place(answer, expected)]
        if other:
            wrong[key] = {"expected": expected, "now": other[0]}
    if wrong:
        details = ", ".join(
            f"{key} is {one['now']} instead of {one['expected']}" for key, one in wrong.items()
        )
        yield Finding(
            code="P03",
            level="stop",
            text=f"another server answers than the one dbdyno started: {details}. Find out what listens on "
            "that port or socket, stop it, and run again.",
            evidence=wrong,
            subject=context.subject,
        )


def _is_place(answer: Any, expected: Any) -> bool:
    # Servers end a directory with a slash, and may resolve links.
    return str(answer) == str(expected) or os.path.realpath(str(answer)) == os.path.realpath(str(expected))


def _changed(
    before: Description, now: Description, keys: tuple[str, ...], since: str, subject: str
) -> Iterator[Finding]:
    old, new = _facts(before), _facts(now)
    # What an account was once not allowed to ask says nothing.
    asked = [
        key for key in ("product", "version", *keys) if old.get(key) is not None and new.get(key) is not None
    ]
    changed = [key for key in asked if _differ(key, old[key], new[key])]
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


def _differ(key: str, old: Any, new: Any) -> bool:
    # Reckoned from the server's uptime, in whole seconds.
    return abs(int(old) - int(new)) > STARTED_SLACK_S if key == STARTED else bool(old != new)


def _restarted_by_us(context: Context) -> bool:
    """Whether commands of the user's, run before each group, restart the server, or may."""
    if context.variant is None:
        return False
    spec = context.variant.server
    return bool(spec.start) or (bool(spec.restore) and context.experiment.design.state == "restore")


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
    if _reached_twice(ours, theirs):
        yield Finding(
            code="P03",
            level="stop",
            text=f"{context.subject} ({ours['url']}) and {name} ({theirs['url']}) lead to the same server "
            f"({_named(ours)}): one server was measured twice. Check the two URLs.",
            evidence={"urls": [ours["url"], theirs["url"]]},
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


def _declared_version(context: Context, description: Description) -> Iterator[Finding]:
    """A server that is of another version than the experiment says."""
    wanted = context.variant.server.version if context.variant is not None else None
    if wanted is None or re.match(rf"{re.escape(wanted.rstrip('.'))}(?![0-9])", description.version):
        return
    yield Finding(
        code="P03",
        level="stop",
        text=f"the server is {description.product} {description.version}, and the experiment asks for "
        f"version {wanted}. Name the right one in basedir, image or url, or correct version.",
        evidence={"version": description.version, "wanted": wanted},
        subject=context.subject,
    )


def _reached_twice(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether two different URLs lead to one server. Equal URLs are an A/A experiment, or differ by
    `set_global`.
    """
    urls = ours.get("url"), theirs.get("url")
    if None in urls or urls[0] == urls[1] or STARTED not in ours:
        return False
    named = [key for key in LASTING if key in ours and key in theirs]
    telling = [key for key in named if key not in _SHARED] or ["server_uuid", "system_identifier"]
    return (
        all(ours.get(key) is not None and ours.get(key) == theirs.get(key) for key in telling)
        and all(ours[key] == theirs[key] for key in named)
        and not _differ(STARTED, ours[STARTED], theirs.get(STARTED, 0))
    )


def _named(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {facts[key]}" for key in LASTING if key in facts)


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
    if not (mine.started and mine.kind == peer.kind):
        return False
    return (mine.product, mine.basedir, mine.image, mine.version) == (
        peer.product,
        peer.basedir,
        peer.image,
        peer.version,
    )


CHECK = Check("P03", "Identity", frozenset({Moment.READY, Moment.AFTER_GROUP}), find)
