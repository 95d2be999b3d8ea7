"""P05: variables that differ between two servers are declared, or have the defaults of their versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.differences import changes_server
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.text import compose, compose_count, join, mark
from dbdyno.variables.differences import Difference, Kind, differences
from dbdyno.variables.durability import NAMES

# Maximum number of variables that a text lists.
LISTED_MAX = 6


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds variables that differ between a variant and the baseline, although nobody declared them.

    Catches a comparison of two servers with several differences, of which the experiment names one. A
    published benchmark gave one of its two versions a redo log of 512 MB and the other one of 1 GB.

    Rule: all global variables of both servers are compared, under both names if a version has renamed them,
    and optimizer_switch flag by flag. A differing variable is declared, or it is a default: nobody has set it
    on either server, by the origins that the servers report or by a table of defaults, and the versions
    differ, or declared settings from which the server computes it. All others are unexplained, which is a
    warning. Defaults are a note. Paths, ports and the settings of P06 are left out.
    """
    assert moment is Moment.READY, "P05 is registered for READY only"
    baseline = context.experiment.variants[0].name
    peer, own = context.peers.get(baseline), context.description
    if peer is None or own is None or context.subject == baseline or context.first_description is not None:
        return
    records = {baseline: peer.record(), context.subject: own.record()}
    by_kind: dict[Kind, list[Difference]] = defaultdict(list)
    changed = {v.name for v in context.experiment.variants[1:] if changes_server(context.experiment, v)}
    for one in differences(records, [baseline, context.subject], changed):
        if one.name not in NAMES:
            by_kind[one.kind].append(one)
    if other := by_kind["other"]:
        yield Finding(
            "P05",
            "warn",
            compose_count(
                len(other),
                "{number} variable differs between {baseline} and {name}, which neither the experiment "
                "declares nor the versions explain: {listed}. It may be the cause of a measured difference",
                "{number} variables differ between {baseline} and {name}, which neither the experiment "
                "declares nor the versions explain: {listed}. They may be the cause of a measured difference",
                baseline=baseline,
                name=context.subject,
                listed=_listed(other),
            ),
            _evidence(other),
            context.subject,
            fix=compose("Set the same values on both servers, or declare them in [variant.server.variables]"),
        )
    if defaults := by_kind["default"]:
        yield _note(defaults, baseline, peer, context.subject, own)


def _note(
    defaults: Sequence[Difference], baseline: str, peer: Description, name: str, own: Description
) -> Finding:
    """Variables of which the servers chose the values."""
    is_other_version = (peer.product, peer.version) != (own.product, own.version)
    reason = (
        compose("by the defaults of their versions, or because of other settings")
        if is_other_version
        else compose("because of other settings")
    )
    fix = compose("To separate the version from its defaults, add a variant that declares the old ones")
    text = compose_count(
        len(defaults),
        "{number} variable differs between {baseline} and {name} {reason}: {listed}",
        "{number} variables differ between {baseline} and {name} {reason}: {listed}",
        reason=reason,
        baseline=baseline,
        name=name,
        listed=_listed(defaults),
    )
    return Finding("P05", "note", text, _evidence(defaults), name, fix=fix if is_other_version else "")


def _listed(found: Sequence[Difference]) -> str:
    """The first variables with both values."""
    parts: list[str] = []
    for one in found[:LISTED_MAX]:
        before, after = (compose("none") if value is None else value or "''" for value in one.values.values())
        parts.append(compose("{name} ({before} and {after})", name=one.name, before=before, after=after))
    if len(found) > LISTED_MAX:
        parts.append(compose("{number} more", number=len(found) - LISTED_MAX))
    return join(", ", parts)


def _evidence(found: Sequence[Difference]) -> dict[str, object]:
    return {"variables": {one.name: dict(one.values) for one in found}}


CHECK = Check(
    "P05",
    "Differing variables are explained",
    frozenset({Moment.READY}),
    find,
    caveat=mark("variables differ that nobody declared"),
)
