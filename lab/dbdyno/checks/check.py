"""The interface of a check: when it runs, what it may read, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dbdyno.codes import Caveat
from dbdyno.experiment.model import Experiment, Load, Variant, Workload
from dbdyno.finding import Finding
from dbdyno.servers.server import Description, Server


class Moment(StrEnum):
    """When a check runs."""

    DESIGN = "design"
    """Nothing runs yet: only the experiment is known."""

    READY = "ready"
    """The server runs and its data are restored; no load has run since."""

    AFTER_GROUP = "after-group"
    """All trials of the group have ended, and the server still runs."""


@dataclass(frozen=True)
class Context:
    """What a check may read. A field is None where it is unknown at that moment."""

    experiment: Experiment
    # The variant whose server runs; None at DESIGN.
    variant: Variant | None = None
    # The running server; None at DESIGN.
    server: Server | None = None
    # That server's description at the beginning of this group.
    description: Description | None = None
    # The description of the same variant's server at its first start; None at that first start.
    first_description: Description | None = None
    # Data directory, socket and port that dbdyno assigned to this group, by the keys of
    # `Description.identity`. Empty if dbdyno does not start the server or does not rotate slots.
    slot: Mapping[str, Any] = field(default_factory=dict)
    # The first description of every variant that has started so far, by the variant's name.
    peers: Mapping[str, Description] = field(default_factory=dict)
    # The workload of the group; None: all workloads of the experiment.
    workload: Workload | None = None

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workload of the group; without a group every workload of the variant, or of all variants."""
        if self.workload is not None:
            return (self.workload,)
        if self.variant is not None:
            return self.experiment.workloads_of(self.variant)
        return self.experiment.distinct_workloads()

    @property
    def load(self) -> Load:
        """The load of the variant, or of the experiment if no variant's server runs."""
        return self.experiment.load_for(self.variant) if self.variant is not None else self.experiment.load

    @property
    def subject(self) -> str:
        """The variant that findings about the running server name."""
        return self.variant.name if self.variant else ""


@dataclass(frozen=True)
class Check:
    """One check. `find` yields its findings; a check without findings has passed."""

    code: str
    # The heading in docs/checks.md.
    title: str
    moments: frozenset[Moment]
    find: Callable[[Moment, Context], Iterator[Finding]]
    # The short form of its warnings at the end of a verdict sentence.
    caveat: Caveat = None
