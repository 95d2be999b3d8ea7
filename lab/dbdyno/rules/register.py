"""The register of rules: what looks at a stored run and yields findings.

A rule is a function with the decorator `rule`. Its parameters are the names of what it needs: attributes of
`Records`, or of `Decided` if it looks at comparisons too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from dbdyno.decide.comparison import Comparison, finished_and_planned
from dbdyno.decide.cost_changes import explain
from dbdyno.decide.scaling import scaling
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.measure.evidence import Evidence
from dbdyno.store import JUDGED, Run, StoredTrial
from dbdyno.store.endings import Resumption, read_resumptions
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.preparation import Ceiling, is_warm_state_checked, read_ceilings
from dbdyno.store.verdict import Scaling

Find = Callable[..., Iterable[Finding]]
AnyFind = TypeVar("AnyFind", bound=Find)


@dataclass(frozen=True)
class Rule:
    """One rule, its codes, and the names of what it needs."""

    codes: tuple[str, ...]
    find: Find
    needs: tuple[str, ...]
    # Its findings may forbid a verdict, so a run that stops when its verdicts are decided looks at them too.
    may_forbid: bool

    @property
    def reads(self) -> type[Records]:
        """The class that has all that the rule needs."""
        return Records if all(map(Records.has, self.needs)) else Decided


# What may move an effect, or an end of its interval, by at most this share of half of the interval is a note
# and not a warning: the result would be the same without it.
SHARE_OF_INTERVAL = 0.1

# In the order in which their findings are listed.
RULES: list[Rule] = []
# Code -> the short form of its warnings at the end of a verdict sentence, or a function that writes it. Where
# a check has the same code, it gives the short form.
CAVEATS: dict[str, str | Callable[[Finding], str]] = {}


def rule(
    *codes: str, caveat: str | Callable[[Finding], str] | None = None, may_forbid: bool = False
) -> Callable[[AnyFind], AnyFind]:
    """Register a function that yields findings with one of these codes; see `CAVEATS`, `Rule.may_forbid`."""

    def register(find: AnyFind) -> AnyFind:
        if caveat is not None:
            CAVEATS.update(dict.fromkeys(codes, caveat))
        RULES.append(Rule(codes, find, tuple(inspect.signature(find).parameters), may_forbid))
        return find

    return register


def find_all(records: Records, *, that_forbid: bool = False) -> list[Finding]:
    """The findings of all rules, or of those that may forbid a verdict.

    With `Decided` these are the rules that need comparisons; the others have run before.
    """
    return [
        finding
        for each in RULES
        if each.reads is type(records) and (each.may_forbid or not that_forbid)
        for finding in each.find(**{name: records.read(name) for name in each.needs})
    ]


@dataclass(frozen=True)
class Records:
    """What is known about a run before its comparisons are decided."""

    run: Run
    experiment: Experiment
    evidence: Evidence

    @classmethod
    def has(cls, name: str) -> bool:
        """Whether there is such an attribute, here or in the evidence."""
        return hasattr(cls, name) or name in cls.__dataclass_fields__ or name in Evidence.__dataclass_fields__

    def read(self, name: str) -> object:
        """The value of an attribute, here or in the evidence."""
        return getattr(self.evidence if name in Evidence.__dataclass_fields__ else self, name)

    @cached_property
    def explanation(self) -> ExplainedFile:
        """The changes of the costs per transaction."""
        return explain(self.evidence.trials, self.evidence.costs, self.experiment)

    @cached_property
    def scaling(self) -> Sequence[Scaling]:
        """The scalability of each variant over the connections."""
        return scaling(self.evidence.trials, self.experiment)

    @property
    def stored(self) -> Sequence[StoredTrial]:
        """The trials as stored."""
        return self.run.trials()

    @property
    def schedule(self) -> Sequence[Trial]:
        """The planned trials."""
        return self.run.schedule()

    @cached_property
    def findings_of_run(self) -> Sequence[Finding]:
        """The findings of the checks before and during the run."""
        return self.run.findings()

    @cached_property
    def by_variant(self) -> Mapping[str, Sequence[MeasuredTrial]]:
        """Variant -> its trials."""
        return {
            variant.name: [trial for trial in self.evidence.trials if trial.variant == variant.name]
            for variant in self.experiment.variants
        }

    @property
    def by_workload(self) -> Mapping[str, Mapping[str, Sequence[MeasuredTrial]]]:
        """Workload -> variant -> trials."""
        return {
            workload.title: {
                variant: [trial for trial in trials if trial.workload == workload.title]
                for variant, trials in self.by_variant.items()
            }
            for workload in self.experiment.workloads
        }

    @property
    def planned_blocks(self) -> int:
        """Number of blocks in which a variant may have results."""
        _, planned = finished_and_planned(self.evidence.trials, self.experiment)
        return planned

    @property
    def has_warmup_trials(self) -> bool:
        """Whether a warm-up trial of every variant has completed."""
        return is_warm_state_checked(self.run)

    @property
    def resumed(self) -> Sequence[Resumption]:
        """The times at which the run was resumed."""
        return read_resumptions(self.run)

    @property
    def changed_files(self) -> Sequence[str]:
        """Files that were changed after they were measured, without those that the judge writes."""
        written = {str((self.run.judged_path / name).relative_to(self.run.path)) for name in JUDGED}
        return [name for name in self.run.changed_files() if name not in written]

    @property
    def ceilings(self) -> Mapping[str, Ceiling]:
        """Workload -> what the load generator reaches without a server."""
        return read_ceilings(self.run)


@dataclass(frozen=True)
class Decided(Records):
    """What is known once the comparisons are decided."""

    comparisons: Sequence[Comparison]
    # For each comparison those by the further metrics.
    further: Sequence[Sequence[Comparison]]

    @property
    def every_comparison(self) -> Sequence[Comparison]:
        """The comparisons, each followed by those by the further metrics."""
        return [
            each
            for first, by_metric in zip(self.comparisons, self.further, strict=True)
            for each in (first, *by_metric)
        ]
