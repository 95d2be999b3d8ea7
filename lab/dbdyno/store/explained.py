"""explained.json: costs of a transaction and their changes; schema/explained.schema.json is generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.explain import Group
from dbdyno.store.document import Document, DocumentPart, PointDict
from dbdyno.store.verdict import Change
from dbdyno.text import Composed

Per = Literal["query", "transaction"]


class MeasuredChange(Change):
    """The change of one measure between baseline and variant."""

    key: str
    """Name of the measure."""
    title: Composed
    """Name of the measure in the report's tables."""
    group: Group
    """resource: CPU or disk of the machine; counter, wait: of the server; part: a component of a
    resource, which is not tested for significance."""
    unit: Literal["", "us", "KiB"]
    """Unit of the amounts."""
    per: Per
    """The unit of work to which the amounts refer."""
    baseline: float
    """Amount of the baseline: geometric mean over the loads of the median over the blocks."""
    variant: float
    """Amount of the variant, computed like the baseline's."""
    shown: tuple[str, str]
    """Both amounts with their units, as the report shows them."""
    blocks: int
    """Number of blocks in which both variants have an amount."""
    p_value: float
    """p-value of the hypothesis "no change", adjusted for all measures of all
    comparisons of the run; at a single load, for those at all loads."""
    significant: bool
    """Whether there are enough blocks, the interval excludes zero, and the p-value is within the level of the
    run: 0.02 (0.01 over all loads and 0.01 at single loads, if there are several), 0.05 below 8 blocks."""
    sentence: Composed
    """The change as a sentence."""


class PointChanges(DocumentPart):
    """Significant changes at one load."""

    at: PointDict
    """The load."""
    measures: list[MeasuredChange]
    """The most certain and largest change first."""


class ComparisonChanges(DocumentPart):
    """Changes of one variant against the baseline on one workload."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    measures: list[MeasuredChange]
    """All measures over all loads, the most certain and largest change first."""
    points: list[PointChanges]
    """Significant changes per load; empty for a single load."""


class Costs(DocumentPart):
    """Costs of a transaction of one variant at one load, medians over the blocks."""

    workload: str
    """Title of the workload."""
    variant: str
    """Name of the variant."""
    at: PointDict
    """The load."""
    per: Per
    """The unit of work to which the amounts refer."""
    blocks: int
    """Number of blocks whose trial has counters."""
    costs: Mapping[str, float]
    """Measure -> amount."""
    shown: Mapping[str, str]
    """The most important amounts with their units, as the report shows them."""


class ExplainedFile(Document):
    """The content of explained.json."""

    schema_version: Annotated[Literal[2], Field(alias="schema")] = 2
    """Version 2 renamed two keys to `shown` and `significant`."""
    baseline: str = ""
    """Name of the baseline, the first variant."""
    comparisons: list[ComparisonChanges]
    """One per comparison, in the order of verdict.json."""
    costs: list[Costs]
    """One per workload, variant and load, in this order."""
