"""Checks of the servers themselves: which one answers (P03), how it was built (P23), and what it reports
(P26).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.finding import Finding, FreeForm
from dbdyno.servers.server import Description
from dbdyno.servers.sources.source import has_version
from dbdyno.text import compose, join, mark

# Facts that identify a server. Data directory, socket and port identify a server that dbdyno starts, since
# MariaDB has no server_uuid and a restored copy has the uuid of its snapshot.
PERMANENT_FACTS = (
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
    "proxy",
)
# Facts that may be equal on two servers: defaults, and facts that a copy of the data keeps.
_AMBIGUOUS_FACTS = (
    "socket",
    "port",
    "datadir",
    "data_directory",
    "server_uuid",
    "system_identifier",
    "image",
    "proxy",
)

# Key of a slot (the data directory, socket and port that dbdyno assigned to a server) -> the variables in
# which the server reports the same path or port.
SLOT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "datadir": ("datadir", "data_directory"),
    "socket": ("socket",),
    "port": ("port",),
}

# Start time of a remote server, in whole seconds.
STARTED = "started_unix_s"
# Tolerance of comparisons of start times.
STARTED_SLACK_S = 3

# Facts that identify one start of a server.
START_FACTS = ("pid", "start_unix_us")

# Options of a C compiler that change the speed of a program.
_SPEED_OPTION = re.compile(
    r"-(?:O\S*|m(?:arch|tune)=\S+|flto\S*|f(?:no-)?omit-frame-pointer|fprofile-use\S*)"
)
# Options of PostgreSQL's configure that do.
_SLOW_CONFIGURE = ("--enable-cassert", "--enable-coverage", "--enable-profiling", "--disable-spinlocks")

# Name of a fact in `Description.unreported` -> the fact, and what it is for.
_UNREPORTED: Mapping[str, tuple[str, str]] = {
    "settings": (
        compose("its settings"),
        compose("P04 and P07 do not see them, and the results have none"),
    ),
    "counters": (compose("its counters"), compose("a change has no reasons from them")),
    "size": (compose("the size of the data"), compose("P14 does not compare it with the cache")),
    "units": (compose("units of settings"), compose("sizes are compared as text")),
    "host": (compose("facts about its machine"), compose("the results have none")),
}


@check(
    "P03",
    "Each variant keeps its server",
    Moment.READY,
    Moment.AFTER_GROUP,
    in_sweep=(Moment.AFTER_GROUP,),
    caveat={
        "databases": mark("the variants share one server and its cache"),
        "": mark("the server's identity is in doubt"),
    },
)
def server_identity(moment: Moment, context: Context, description: Description) -> Iterator[Finding]:
    """Finds trials that ran on another server than the variant's first one, or on a restarted one.

    Catches results that are attributed to the wrong server. A published benchmark created its
    tables over one socket but sent its queries to `localhost` and a port. The client library connects
    `localhost` to its default socket, which may belong to another server.

    The start time of a remote server must not change either: dbdyno does not restart it, and a server that
    restarted, for example after a failover, has an empty cache and may run on another machine. The user's own
    commands may start or restore the server before a group (all trials of one variant in one block), but not
    within a group.

    A server that dbdyno starts gets another data directory, socket and port in every block. It must then
    report those that dbdyno assigned to the current group.

    Rule: the server's version must start with the declared `version`. Product, version, data directory,
    socket, port, uuid and host name (if the server has them) must equal those of the variant's first
    description, or the paths and port that dbdyno assigned to the group. Process id and start time may
    change between groups but not within a group, because a restarted server has an empty cache. No two
    variants may use the same process, no two URLs (except for their options) may lead to the same database,
    and variants that declare the same software must have the same version. Otherwise the finding is a stop.
    Two databases of one server are a warning: they share its cache and its background work.
    """
    keys: tuple[str, ...]
    if moment is Moment.AFTER_GROUP:
        if context.server is not None:
            now = context.server.describe()
            keys = (*PERMANENT_FACTS, *START_FACTS, STARTED)
            yield from _change_findings(description, now, keys, compose("since the group began"))
        return
    yield from _version_findings(context, description)
    yield from _slot_findings(context, description)
    if context.first_description is not None:
        keys = PERMANENT_FACTS if _may_restart(context) else (*PERMANENT_FACTS, STARTED)
        keys = tuple(key for key in keys if key not in context.slot)
        yield from _change_findings(
            context.first_description, description, keys, compose("since it was first seen")
        )
    for name, peer in context.peers.items():
        if name != context.subject:
            yield from _peer_findings(context, name, description, peer)


def _slot_findings(context: Context, description: Description) -> Iterator[Finding]:
    """Findings if the server's paths or port differ from those of its slot."""
    wrong = {}
    for key, expected in context.slot.items():
        by_server = (description.variables.get(name) for name in SLOT_VARIABLES[key])
        answers = [description.identity.get(key), *by_server]
        wrong_places = [answer for answer in answers if answer and not _is_same_path(answer, expected)]
        if wrong_places:
            wrong[key] = {"expected": expected, "now": wrong_places[0]}
    if wrong:
        details = join(
            ", ",
            (
                compose(
                    "{key} is {now} instead of {expected}",
                    key=key,
                    now=values["now"],
                    expected=values["expected"],
                )
                for key, values in wrong.items()
            ),
        )
        yield make_finding(
            "stop",
            compose("another server answers than the one dbdyno started: {details}", details=details),
            wrong,
            compose("Find the process that listens on that port or socket, stop it, and run again"),
        )


def _is_same_path(answer: Any, expected: Any) -> bool:
    # Servers may add a slash to a directory's path, or resolve links in it.
    return str(answer) == str(expected) or os.path.realpath(str(answer)) == os.path.realpath(str(expected))


def _change_findings(
    before: Description, now: Description, keys: tuple[str, ...], since: str
) -> Iterator[Finding]:
    old, new = _identity_facts(before), _identity_facts(now)
    # Only facts that dbdyno's account on the server could read both times are compared.
    distinctive_keys = [
        key for key in ("product", "version", *keys) if old.get(key) is not None and new.get(key) is not None
    ]
    changed = [key for key in distinctive_keys if _differs(key, old[key], new[key])]
    if changed:
        details = join(
            ", ",
            (compose("{key} was {old} and is {new}", key=key, old=old[key], new=new[key]) for key in changed),
        )
        yield make_finding(
            "stop",
            compose(
                "the server changed {since}: {details}. The results of two servers were mixed",
                since=since,
                details=details,
            ),
            {key: {"before": old[key], "now": new[key]} for key in changed},
            compose("Find out why it restarted or was replaced, and run again"),
        )


def _differs(key: str, old: Any, new: Any) -> bool:
    # Start times are computed from the server's uptime in whole seconds, so they vary slightly.
    return abs(int(old) - int(new)) > STARTED_SLACK_S if key == STARTED else bool(old != new)


def _may_restart(context: Context) -> bool:
    """Whether the user's commands may restart the server before each group."""
    if context.variant is None:
        return False
    spec = context.variant.server
    return bool(spec.start) or (bool(spec.restore) and context.experiment.design.state == "restore")


def _peer_findings(context: Context, name: str, mine: Description, peer: Description) -> Iterator[Finding]:
    facts, peer_facts = _identity_facts(mine), _identity_facts(peer)
    if all(facts.get(key) is not None and facts.get(key) == peer_facts.get(key) for key in START_FACTS):
        yield make_finding(
            "stop",
            compose(
                "the same server process answers for {subject} and {name} (pid {pid}): one server was "
                "measured twice",
                subject=context.subject,
                name=name,
                pid=facts["pid"],
            ),
            {key: facts[key] for key in START_FACTS},
            compose("Give each variant its own server"),
        )
    if _is_same_server(facts, peer_facts):
        names = [_database(facts["url"]), _database(peer_facts["url"])]
        yield (
            _databases_warning(context.subject, name, names)
            if names[0] != names[1]
            else make_finding(
                "stop",
                compose(
                    "{subject} ({url}) and {name} ({url_2}) lead to the same server ({identity_text}): one "
                    "server was measured twice",
                    subject=context.subject,
                    url=facts["url"],
                    name=name,
                    url_2=peer_facts["url"],
                    identity_text=_identity_text(facts),
                ),
                {"urls": [facts["url"], peer_facts["url"]]},
                compose("Correct one of the URLs"),
            )
        )
    if facts["version"] != peer_facts["version"] and _is_same_software(context, name):
        yield make_finding(
            "stop",
            compose(
                "{subject} runs version {version} and {name} runs {version_2}, but the experiment "
                "declares the same software for both",
                subject=context.subject,
                version=facts["version"],
                name=name,
                version_2=peer_facts["version"],
            ),
            {"version": {context.subject: facts["version"], name: peer_facts["version"]}},
            compose("Set basedir if the versions should differ, or install one version"),
        )


def _version_findings(context: Context, description: Description) -> Iterator[Finding]:
    """A finding if the server does not have the declared version."""
    declared = context.variant.server.version if context.variant is not None else None
    if declared is None or has_version(description.version, declared):
        return
    yield make_finding(
        "stop",
        compose(
            "the server is {product} {version}, and the experiment declares version {declared}",
            product=description.product,
            version=description.version,
            declared=declared,
        ),
        {"version": description.version, "wanted": declared},
        compose("Fix basedir, image or url, or change `version` in the experiment"),
    )


def _is_same_server(facts: FreeForm, peer_facts: FreeForm) -> bool:
    """Whether two different URLs lead to one server. URLs that are equal, or differ only in their options,
    are intended: for an A/A test, or for variants that differ by `set_global`, `tls` or `compression`.
    """
    if "url" not in facts or "url" not in peer_facts or STARTED not in facts:
        return False
    if _endpoint(facts["url"]) == _endpoint(peer_facts["url"]):
        return False
    named = [key for key in PERMANENT_FACTS if key in facts and key in peer_facts]
    distinctive = [key for key in named if key not in _AMBIGUOUS_FACTS] or [
        "server_uuid",
        "system_identifier",
    ]
    return (
        all(facts.get(key) is not None and facts.get(key) == peer_facts.get(key) for key in distinctive)
        and all(facts[key] == peer_facts[key] for key in named)
        and not _differs(STARTED, facts[STARTED], peer_facts.get(STARTED, 0))
    )


def _endpoint(url: str) -> tuple[object, ...]:
    """A URL without the options that say how to connect. The option `socket` says where."""
    parts = urlsplit(url)
    return *parts[:3], parse_qs(parts.query).get("socket")


def _database(url: str) -> str:
    return unquote(urlsplit(url).path.removeprefix("/"))


def _databases_warning(subject: str, name: str, databases: Sequence[str]) -> Finding:
    text = compose(
        "{subject} and {name} are two databases of one server ({databases}): they share its cache and its "
        "background work, so one may be slower because of what the other left",
        subject=subject,
        name=name,
        databases=join(", ", databases),
    )
    fix = compose("Compare on two servers if the data of both do not fit into the cache together")
    return make_finding("warn", text, {"databases": list(databases)}, fix)


def _identity_text(facts: FreeForm) -> str:
    return join(", ", (f"{key} {facts[key]}" for key in PERMANENT_FACTS if key in facts))


def _identity_facts(description: Description) -> FreeForm:
    facts = {**description.identity, "product": description.product, "version": description.version}
    if proxy := description.identity.get("proxy"):
        facts["proxy"] = f"{proxy['program']} {proxy['version']}"
    return facts


def _is_same_software(context: Context, name: str) -> bool:
    """Whether the experiment declares the same binaries for both variants; remote servers may differ on
    purpose.
    """
    peer = next((variant.server for variant in context.experiment.variants if variant.name == name), None)
    if context.variant is None or peer is None:
        return False
    mine = context.variant.server
    if not (mine.is_private and mine.kind == peer.kind):
        return False
    return (mine.product, mine.basedir, mine.image, mine.version) == (
        peer.product,
        peer.basedir,
        peer.image,
        peer.version,
    )


@check(
    "P23",
    "Servers are built in the same way",
    Moment.READY,
    at_first_start=True,
    caveat=mark("the servers were built differently"),
)
def builds(context: Context, description: Description) -> Iterator[Finding]:
    """Finds servers of one product that were built with other compilers, options or libraries.

    Catches a build that is taken for a version: "18 is faster than 14" may only say that one was compiled
    with -O2 and the other with -Os.

    Rule: the compiler, those of its options that change speed, and the libraries that the server names must
    be the same as those of the variants of this product that started before; otherwise the finding is a
    warning. A server that does not say how it was built is not compared.
    """
    mine = _speed_facts(description)
    for name, peer in context.peers.items():
        if name == context.subject or peer.product != description.product:
            continue
        facts = _speed_facts(peer)
        different = [key for key in mine if key in facts and mine[key] != facts[key]]
        if not different:
            continue
        details = join(
            "; ",
            (
                compose(
                    "{key} is {mine} and {other}",
                    key=key.replace("_", " "),
                    mine=repr(mine[key]),
                    other=repr(facts[key]),
                )
                for key in different
            ),
        )
        yield make_finding(
            "warn",
            compose(
                "the servers of {subject} and {name} were built differently: {details}. A difference "
                "between them may be one of the builds",
                subject=context.subject,
                name=name,
                details=details,
            ),
            {key: {context.subject: mine[key], name: facts[key]} for key in different},
            compose("Compare versions from one source, as dbdyno servers install provides them"),
        )


def _speed_facts(description: Description) -> Mapping[str, str]:
    """What the server says about its build that may change its speed, by name."""
    build = dict(description.build)
    facts = {}
    if "CFLAGS" in build:
        facts["compiler options"] = " ".join(_SPEED_OPTION.findall(build.pop("CFLAGS")))
    if "CONFIGURE" in build:
        configure = build.pop("CONFIGURE")
        facts["configure options"] = " ".join(entry for entry in _SLOW_CONFIGURE if entry in configure)
    # Libraries change with the versions of a server; their names are enough.
    return {
        name: re.sub(r"[\s-]*\d+(\.\d+)+\w*.*", "", text) if name == "ssl_library" else text
        for name, text in build.items()
    } | facts


@check("P26", "The server reports what dbdyno asks for", Moment.READY, in_sweep=(Moment.READY,))
def unreported_facts(description: Description) -> Iterator[Finding]:
    """Finds facts that a server does not report, because it speaks a protocol and is another product.

    Catches results that look as complete as those of MySQL, MariaDB or PostgreSQL, although the server
    answers only a part of the questions: databases that speak one of the protocols, poolers and proxies.

    Rule: when the server is ready, dbdyno asks for its settings, counters, identity and sizes. One note lists
    those that the server refused, its answers, and what is therefore not measured. Nothing fails for want of
    them. Servers that dbdyno starts report all of them.
    """
    unreported = description.unreported
    if not unreported:
        return
    parts = [
        compose("{fact} ({use})", fact=fact, use=use)
        for name, (fact, use) in _UNREPORTED.items()
        if name in unreported
    ]
    text = compose("the server does not report {parts}", parts=join(", ", parts))
    yield make_finding("note", text, {"answers": dict(unreported)})
