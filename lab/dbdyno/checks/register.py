"""The register of checks: what looks at an experiment and its servers before and during a run.

A check is a function with the decorator `check`. Its parameters are the names of what it needs: `moment`,
`context`, or attributes of `Context`. It runs only if all of them are known.
"""

from __future__ import annotations

import inspect
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from dbdyno.checks.tables import ExistingTables
from dbdyno.experiment.model import Experiment, Load, Variant, Workload
from dbdyno.finding import LEVELS, Caveat, Finding, FreeForm, Level
from dbdyno.servers.server import Description, Server, ServerProblem, StatementRefused
from dbdyno.text import compose

Find = Callable[..., Iterator[Finding]]
AnyFind = TypeVar("AnyFind", bound=Find)


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
    # Existing tables that are compared between the variants; None after the first start of a variant's
    # server, and if there are none.
    existing_tables: ExistingTables | None = None
    # Those of every variant that has started so far, by the variant's name.
    peer_tables: Mapping[str, ExistingTables] = field(default_factory=dict)
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
        """The load of the variant, or of the experiment if no variant's server runs. A workload of SQL may
        replace its `reconnect_every`.
        """
        return self.experiment.load_for(self.variant) if self.variant is not None else self.experiment.load

    @property
    def subject(self) -> str:
        """The variant that findings about the running server name."""
        return self.variant.name if self.variant else ""

    @property
    def baseline(self) -> Variant:
        """The variant with which the others are compared."""
        return self.experiment.variants[0]

    @property
    def baseline_description(self) -> Description | None:
        """The first description of the baseline; None if the baseline itself runs, or has not started yet."""
        return None if self.subject == self.baseline.name else self.peers.get(self.baseline.name)


@dataclass(frozen=True)
class Check:
    """One check. A check without findings has passed."""

    code: str
    # The heading in docs/checks.md.
    title: str
    moments: frozenset[Moment]
    find: Find
    # The names of what it needs.
    needs: tuple[str, ...]
    # The moments at which it runs in a sweep, which compares nothing.
    in_sweep: frozenset[Moment]
    # Whether the data must be loaded, at READY and later.
    needs_data: bool
    # Whether it runs only at the first start of each variant's server: later starts have the same findings,
    # or must not be delayed.
    at_first_start: bool
    # Whether tables that exist must pass it before a sweep uses them.
    admits_tables: bool
    # Whether it asks what a comparison needs, so that a run of one variant does not show its findings.
    of_comparison: bool
    # The short form of its warnings at the end of a verdict sentence.
    caveat: Caveat

    def findings(self, moment: Moment, context: Context) -> Iterator[Finding]:
        """Its findings; none if something that it needs is unknown."""
        arguments = {"moment": moment, "context": context}
        needed = {name: arguments.get(name) or getattr(context, name) for name in self.needs}
        is_late = self.at_first_start and context.first_description is not None
        if not is_late and all(value is not None for value in needed.values()):
            of_server = "" if moment is Moment.DESIGN else context.subject
            for finding in self.find(**needed):
                # A finding about the machine has its code already, and no subject: it is said once.
                subject = finding.subject or of_server
                yield finding if finding.code else replace(finding, code=self.code, subject=subject)


def make_finding(
    level: Level, text: str, evidence: FreeForm | None = None, fix: str = "", subject: str = ""
) -> Finding:
    """A finding of the check that yields it, whose code it gets. `subject`: by default the variant whose
    server runs.
    """
    return Finding("", level, text, evidence or {}, subject, fix=fix)


# In the order of their codes, in which they run.
CHECKS: list[Check] = []


def check(
    code: str,
    title: str,
    *moments: Moment,
    in_sweep: Collection[Moment] = (),
    needs_data: bool = False,
    at_first_start: bool = False,
    admits_tables: bool = False,
    of_comparison: bool = False,
    caveat: Caveat = None,
) -> Callable[[AnyFind], AnyFind]:
    """Register a function that yields the findings of a check at these moments; see `Check`."""

    def register(find: AnyFind) -> AnyFind:
        registered = Check(
            code,
            title,
            frozenset(moments),
            find,
            tuple(inspect.signature(find).parameters),
            frozenset(in_sweep),
            needs_data,
            at_first_start,
            admits_tables,
            of_comparison,
            caveat,
        )
        insort(CHECKS, registered, key=lambda each: each.code)
        return find

    return register


def codes_of(moment: Moment, *, in_sweep: bool = False, needs_data: bool | None = None) -> list[str]:
    """The codes of the checks of a moment: of all or of those in a sweep, and of those that need loaded data,
    those that do not, or (None) both.
    """
    return [
        each.code
        for each in CHECKS
        if moment in (each.in_sweep if in_sweep else each.moments)
        and (needs_data is None or each.needs_data == needs_data)
    ]


def run(moment: Moment, context: Context, codes: Iterable[str] | None = None) -> list[Finding]:
    """Run the checks of this moment and return their findings, the most severe first.

    `codes` selects some of the checks. A stop with an override in the experiment gets the reason of
    the override. A check whose statement a server refuses that dbdyno has not started yields a note. Raises
    `servers.server.ServerProblem` if the server no longer answers and no check yields a stop.
    """
    selected = None if codes is None else frozenset(codes)
    findings: list[Finding] = []
    first_problem: ServerProblem | None = None
    for each in CHECKS:
        if moment in each.moments and (selected is None or each.code in selected):
            try:
                # Those before a refusal stay.
                findings.extend(
                    _apply_override(finding, context) for finding in each.findings(moment, context)
                )
            except StatementRefused as refusal:
                if context.server is None or context.server.private:
                    first_problem = first_problem or refusal
                else:
                    # A server that speaks the protocol may be another product.
                    text = compose("not checked, because {refusal}", refusal=refusal.text)
                    findings.append(Finding(each.code, "note", text, {}, context.subject))
            except ServerProblem as problem:
                first_problem = first_problem or problem
    # A stop explains more than the error of another check.
    if first_problem is not None and not blocking_findings(findings):
        raise first_problem
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def blocking_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that forbid a comparison: those of level stop without an override."""
    return [finding for finding in findings if finding.is_blocking]


def _apply_override(finding: Finding, context: Context) -> Finding:
    """The finding with its override. Only a stop can be overridden, not a warning."""
    reason = context.experiment.override.get(finding.code)
    return replace(finding, override=reason) if reason is not None and finding.level == "stop" else finding
