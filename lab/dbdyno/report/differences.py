"""Server variables that differ between the variants, and whether the differences are expected.

Declared differences are what the experiment compares. Paths and ports always differ. All other differences
are undeclared and could explain a result, so the report lists them separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

Kind = Literal["declared", "place", "other"]
# Variables that identify a server; they differ between any two servers.
NAMES = frozenset({"admin_port", "extra_port", "hostname", "server_uid", "server_uuid"})
# Shorter identity values would also match unrelated text.
SHORTEST_PLACE = 4


@dataclass(frozen=True)
class Difference:
    """One variable and its value per variant; None if a server does not have it."""

    name: str
    kind: Kind
    values: Mapping[str, str | None]


def differences(servers: Mapping[str, Mapping[str, Any]], order: Sequence[str]) -> list[Difference]:
    """Every variable in which the servers differ, by name. `servers` holds one server.json per variant."""
    variables = {name: servers[name].get("variables", {}) for name in order}
    declared = {_plain(key) for name in order for key in servers[name].get("declared", {})}
    listed: list[Difference] = []
    for key in sorted({key for values in variables.values() for key in values}):
        values = {name: variables[name].get(key) for name in order}
        if len(set(values.values())) > 1:
            listed.append(Difference(key, _kind(key, values, declared, servers), values))
    return listed


def _kind(
    key: str, values: Mapping[str, str | None], declared: set[str], servers: Mapping[str, Mapping[str, Any]]
) -> Kind:
    if _plain(key) in declared:
        return "declared"
    if key in NAMES:
        return "place"
    placeless = {
        value if value is None else _without_place(value, servers[name].get("identity", {}))
        for name, value in values.items()
    }
    return "place" if len(placeless) == 1 else "other"


def _without_place(value: str, identity: Mapping[str, Any]) -> str:
    """`value` with the server's own directory, port and the like replaced by their names."""
    places = {key: str(own) for key, own in identity.items() if len(str(own)) >= SHORTEST_PLACE}
    for key, own in list(places.items()):
        if own.startswith("/"):
            # Sockets, logs and temporary files have the same parent as the data directory.
            places[f"{key}'s folder"] = str(PurePosixPath(own).parent)
    for key, own in sorted(places.items(), key=lambda place: -len(place[1])):
        if own != "/":
            value = value.replace(own, f"<{key}>")
    return value


def _plain(key: str) -> str:
    """The name in lower case with underscores: it may be declared with dashes and in any case."""
    return key.lower().replace("-", "_")
