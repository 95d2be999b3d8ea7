"""What `dbdyno read` says of one document, for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from dbdyno.finding import Finding, Level
from dbdyno.reading.attribution import Series
from dbdyno.reading.call import CallGroup, group_calls
from dbdyno.reading.judgement import Contrast, verdict
from dbdyno.reading.limits import sentence
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import Result
from dbdyno.text import Composed, Text, compose_count


class ReadFigure(BaseModel):
    """A number, and the line that has it."""

    value: float
    line: int


class ReadResult(BaseModel):
    """One result of a variant."""

    tool: str
    connections: int | None
    lines: tuple[int, int]
    figures: dict[str, ReadFigure]


class ReadVariant(BaseModel):
    """A variant, and its results by their places in the document."""

    name: str
    """Empty if the document does not name it."""
    workload: str
    heading: str
    results: list[ReadResult]


class ReadChange(BaseModel):
    """The change of one figure from the baseline to a variant."""

    baseline: str
    variant: str
    figure: str
    connections: list[int | None]
    change_percent: list[float]
    interval_percent: tuple[float, float] | None
    """The 95 % interval of the mean change over all loads; null without enough repetitions."""
    is_better: bool | None
    """Whether the variant is better at all loads; null if that depends on the load."""
    sentence: Composed


class ReadFinding(BaseModel):
    """A mistake, and the lines that show it."""

    code: str
    level: Level
    lines: list[int]
    text: Composed
    fix: Composed


class ReadCall(BaseModel):
    """Calls of a benchmark program with one test and one phase."""

    tool: str
    phase: str
    test: str
    """Empty if the calls do not name one."""
    connections: list[int]
    seconds: list[int]
    repetitions: tuple[int, int]
    """The smallest and the largest number of runs with the same options."""
    lines: list[int]
    sentence: Composed


class ReadOmission(BaseModel):
    """What exceeded a limit first of its kind, and how often something of this kind did."""

    line: int
    text: Composed
    count: int


class ReadDoubt(BaseModel):
    """What was taken for what, without certainty, and the line of the first result that it concerns."""

    line: int
    text: Composed


class ReadDocument(BaseModel):
    """One document."""

    file: str
    variants: list[ReadVariant]
    changes: list[ReadChange]
    verdict: Composed
    doubts: list[ReadDoubt] = []
    """Why no interval is computed although results may be repetitions."""
    findings: list[ReadFinding]
    left_out: list[ReadOmission] = []
    """What of the document was not read because it exceeds a limit."""
    calls: list[ReadCall] = []
    """The calls of benchmark programs."""


def record(reading: Reading, findings: Sequence[Finding]) -> ReadDocument:
    """The record of a reading."""
    return ReadDocument(
        file=reading.document.name,
        variants=[_variant(reading, entry) for entry in reading.series],
        changes=[_change(contrast) for contrast in reading.contrasts],
        verdict=verdict(reading.series, reading.contrasts, _other_parts(reading)),
        doubts=list(_doubts(reading)),
        findings=[
            ReadFinding(
                code=finding.code,
                level=finding.level,
                lines=finding.evidence["lines"],
                text=finding.text,
                fix=finding.fix,
            )
            for finding in findings
        ],
        left_out=[
            ReadOmission(line=entry.line, text=sentence(entry), count=entry.count)
            for entry in reading.document.left_out
        ],
        calls=[_call(reading, call) for call in group_calls(reading.calls)],
    )


def _call(reading: Reading, group: CallGroup) -> ReadCall:
    numbers = reading.document.numbers
    return ReadCall(
        tool=group.tool,
        phase=group.phase,
        test=group.test,
        connections=group.connections,
        seconds=group.seconds,
        repetitions=group.repetitions,
        lines=[numbers[index] for index in group.lines],
        sentence=group.text(),
    )


def _other_parts(reading: Reading) -> list[Text]:
    """What was read besides results, as texts."""
    calls, claims = len(reading.calls), len(reading.claims)
    settings = sum(len(setting.values) for setting in reading.settings)
    parts = []
    if calls:
        parts.append(compose_count(calls, "{number} call of a benchmark", "{number} calls of benchmarks"))
    if settings:
        parts.append(compose_count(settings, "{number} setting", "{number} settings"))
    if claims:
        parts.append(
            compose_count(claims, "{number} sentence that compares", "{number} sentences that compare")
        )
    return parts


def _doubts(reading: Reading) -> Iterator[ReadDoubt]:
    """Each doubt once."""
    seen: set[str] = set()
    for entry in reading.series:
        if entry.doubt and entry.doubt not in seen:
            seen.add(entry.doubt)
            yield ReadDoubt(line=reading.document.numbers[entry.results[0].first], text=entry.doubt)


def _variant(reading: Reading, series: Series) -> ReadVariant:
    return ReadVariant(
        name=series.label,
        workload=series.workload,
        heading=series.heading.text,
        results=[_result(reading, result) for result in series.results],
    )


def _result(reading: Reading, result: Result) -> ReadResult:
    numbers = reading.document.numbers
    return ReadResult(
        tool=result.tool,
        connections=result.connections,
        lines=(numbers[result.first], numbers[result.last]),
        figures={
            name: ReadFigure(value=figure.value, line=numbers[figure.index])
            for name, figure in result.figures.items()
        },
    )


def _change(contrast: Contrast) -> ReadChange:
    return ReadChange(
        baseline=contrast.baseline.label,
        variant=contrast.variant.label,
        figure=contrast.figure,
        connections=[pair.connections for pair in contrast.pairs],
        change_percent=[round(change, 3) for change in contrast.changes],
        interval_percent=contrast.interval_percent,
        is_better=contrast.is_better,
        sentence=contrast.sentence,
    )
