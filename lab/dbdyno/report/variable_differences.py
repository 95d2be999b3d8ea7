"""Server variables whose values differ between the variants, by the reason of the difference.

A variable may be declared in the experiment file, or it may contain a path or port, which differ between any
two servers. All other differences are unintended and could explain the result, so the report lists them
separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from dbdyno.finding import FreeForm
from dbdyno.server_record import ServerRecord

Kind = Literal["declared", "location", "other"]
# Variables that identify a server; they differ between any two servers.
IDENTITY_VARIABLES = frozenset({"admin_port", "extra_port", "hostname", "server_uid", "server_uuid"})
# Minimum length of a path or port to be recognised within a value; shorter ones would match unrelated text.
LENGTH_MIN = 4


@dataclass(frozen=True)
class Difference:
    """One variable, with its value for each variant; None if the variant's server does not have it."""

    name: str
    kind: Kind
    values: Mapping[str, str | None]


def differences(servers: Mapping[str, ServerRecord], order: Sequence[str]) -> list[Difference]:
    """All differing variables in alphabetical order. `servers` is by variant."""
    variables = {name: servers[name].get("variables", {}) for name in order}
    declared = {_normalized(key) for name in order for key in servers[name].get("declared", {})}
    result: list[Difference] = []
    for key in sorted({key for values in variables.values() for key in values}):
        values = {name: variables[name].get(key) for name in order}
        if len(set(values.values())) > 1:
            result.append(Difference(key, _kind(key, values, declared, servers), values))
    return result


def _kind(
    key: str, values: Mapping[str, str | None], declared: set[str], servers: Mapping[str, ServerRecord]
) -> Kind:
    if _normalized(key) in declared:
        return "declared"
    if key in IDENTITY_VARIABLES:
        return "location"
    without_location = {
        value if value is None else _without_location(value, servers[name].get("identity", {}))
        for name, value in values.items()
    }
    return "location" if len(without_location) == 1 else "other"


def _without_location(value: str, identity: FreeForm) -> str:
    """`value` with the server's paths and ports replaced by placeholders."""
    locations = {key: str(text) for key, text in identity.items() if len(str(text)) >= LENGTH_MIN}
    for key, text in list(locations.items()):
        if text.startswith("/"):
            # Sockets, logs and temporary files have the same parent as the data directory.
            locations[f"{key}'s folder"] = str(PurePosixPath(text).parent)
    # Longest first, because a path may start with another one.
    for key, text in sorted(locations.items(), key=lambda item: -len(item[1])):
        if text != "/":
            value = value.replace(text, f"<{key}>")
    return value


def _normalized(key: str) -> str:
    """The name in lower case with underscores. The experiment file may have it with dashes and in
    any case.
    """
    return key.lower().replace("-", "_")
