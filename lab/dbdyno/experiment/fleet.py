"""The model of `[fleet]`: several load generators, on one host or many, that run each trial together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dbdyno.experiment.base import Model
from dbdyno.experiment.errors import InputError

LOCAL, AUTO = "local", "auto"
_ADDRESS = re.compile(r"(?!ray:)(\[[0-9A-Fa-f:.%]+\]|[\w.-]+):\d{1,5}")


def _address(text: str) -> str:
    if text not in (LOCAL, AUTO) and not _ADDRESS.fullmatch(text):
        raise ValueError(f'an address is "{AUTO}", "{LOCAL}", or HOST:PORT of the head of a Ray cluster')
    return text


class Fleet(Model):
    """Several load generators that run each trial together, for more load than one host can make."""

    engines: int = Field(ge=1, le=10_000)
    """Load generators; each has an equal share of connections and rate."""
    per_host: int = Field(default=1, ge=1, le=256)
    """The most load generators on one host."""
    address: Annotated[str, AfterValidator(_address)] = AUTO
    """`auto`: the Ray cluster of this machine; HOST:PORT: a Ray cluster's head; `local`: processes here."""


def find_errors(experiment: Any) -> Iterator[InputError]:
    """Errors of a fleet that other sections cause."""
    fleet = experiment.fleet
    if fleet is None:
        return
    workers = 1 if experiment.client.workers == "auto" else experiment.client.workers
    loops = fleet.engines * workers
    for connections in experiment.load.connections:
        if connections < loops:
            problem = (
                f"{connections} connections are too few for {loops} event loops ({fleet.engines} engines)"
            )
            yield InputError(
                "load.connections", connections, problem, f"Use at least {loops}, or fewer engines"
            )
    if fleet.address == LOCAL:
        return
    for variant in experiment.variants:
        key = f"variant[{variant.name}].server"
        if variant.server.is_private:
            yield InputError(
                key,
                variant.server.kind,
                "servers that dbdyno starts listen on this machine only, and the fleet's hosts are others",
                f'Give the url of a server that they reach, or write address = "{LOCAL}" in [fleet]',
            )
        elif experiment.load_for(variant).transport == "unix":
            yield InputError(
                "load.transport",
                "unix",
                "other hosts have no unix socket of the server",
                'Write transport = "tcp"',
            )
