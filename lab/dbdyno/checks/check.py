"""The form of a check: when it runs, what it may look at, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.finding import Finding
from dbdyno.servers.server import Description, Server


class Moment(StrEnum):
    """When a check looks."""

    DESIGN = "design"
    """Nothing runs yet: only the experiment is known."""

    READY = "ready"
    """The server runs and its data are restored; no load has touched it."""

    AFTER_GROUP = "after-group"
    """The group's trials are over and the server is still up."""


@dataclass(frozen=True)
class Context:
    """What a check may look at. What is None is not known at that moment."""

    experiment: Experiment
    # The variant whose server runs; None at DESIGN.
    variant: Variant | None = None
    # The running server; None at DESIGN.
    server: Server | None = None
    # What that server said when this group began.
    description: Description | None = None
    # What the same variant's server said at its first start; None at that first start.
    first: Description | None = None
    # Where dbdyno has put that server for this group: datadir, socket and port, as its identity names them.
    # Empty for servers that dbdyno does not start, and where servers keep a place of their own.
    place: Mapping[str, Any] = field(default_factory=dict)
    # The first description of every variant seen so far, by name.
    peers: Mapping[str, Description] = field(default_factory=dict)
    # The workload of the group; None stands for all of the experiment's.
    workload: Workload | None = None

    @property
    def subject(self) -> str:
        """The name findings about the running server carry."""
        return self.variant.name if self.variant else ""


@dataclass(frozen=True)
class Check:
    """One entry of the catalogue. `find` yields what it finds and nothing when all is well."""

    code: str
    # What it holds together, in a few words; the heading in docs/checks.md.
    title: str
    moments: frozenset[Moment]
    find: Callable[[Moment, Context], Iterator[Finding]]
