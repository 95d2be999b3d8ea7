"""The tables of docs/reliability.md, from the finished cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .cells import KINDS, PHASES, PRODUCTS, Cell, Outcome, Result
from .registry import FAULTS, cells, reason, sample_phase

SHORT = {
    Outcome.ENDS: "ends",
    Outcome.WENT_ON: "went on",
    Outcome.RESUMED: "resumed",
    Outcome.LOST: "**lost**",
    Outcome.HANGS: "**hangs**",
    Outcome.FAULT: "**fault of dbdyno**",
}
WIDTH = 240
# Findings about short trials on a busy machine, with or without a fault.
NOISE = re.compile(r"(warning|warn|note) (P11|P14|P15|R01|D01|D03|D06)\b")


def table(results: Mapping[Cell, Result], extra: Sequence[str] = ()) -> str:
    """All tables in Markdown."""
    return "\n".join([*_summary(results), "", *_faults(), *_overviews(results), *_details(results), *extra])


def _summary(results: Mapping[Cell, Result]) -> Iterator[str]:
    planned = [cell for cell in cells() if not reason(cell)]
    counts = dict.fromkeys(Outcome, 0)
    for result in results.values():
        counts[result.outcome] += 1
    took = sum(result.took_s for result in results.values())
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    yield (
        f"{len(results)} of {len(planned)} planned cells are measured: {said or 'none'}. They took "
        f"{took / 60:.0f} minutes, at most {max((r.took_s for r in results.values()), default=0):.0f} s each."
    )


def _faults() -> Iterator[str]:
    yield from ("| fault | what happens |", "|---|---|")
    yield from (f"| `{name}` | {fault.text} |" for name, fault in FAULTS.items())
    yield ""


def _overviews(results: Mapping[Cell, Result]) -> Iterator[str]:
    """A matrix of faults and phases for each kind of server on MariaDB, and one of the other products."""
    notes: dict[str, str] = {}
    main, *others = PRODUCTS
    for kind in KINDS:
        rows = [[Cell(name, phase, kind, main) for phase in PHASES] for name in FAULTS]
        yield from _matrix(f"{main}, kind {kind}", PHASES, rows, results, notes)
    pairs = [(kind, product) for kind in KINDS[:2] for product in others]
    columns = [f"{product}, {kind}" for kind, product in pairs]
    rows = [
        [Cell(name, sample_phase(FAULTS[name]), kind, product) for kind, product in pairs] for name in FAULTS
    ]
    yield from _matrix("other products, in the phase measure", columns, rows, results, notes)
    yield from (f"({mark}) {text}.  " for text, mark in notes.items())
    yield ""


def _matrix(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    results: Mapping[Cell, Result],
    notes: dict[str, str],
) -> Iterator[str]:
    """A row for each fault; `notes` gets a mark for each reason why a cell is not measured."""
    yield from (f"### {title}", "", f"| fault | {' | '.join(columns)} |")
    yield "|---" * (len(columns) + 1) + "|"
    for cells_of_fault in rows:
        entries = " | ".join(_entry(cell, results.get(cell), notes) for cell in cells_of_fault)
        yield f"| `{cells_of_fault[0].fault}` | {entries} |"
    yield ""


def _entry(cell: Cell, result: Result | None, notes: dict[str, str]) -> str:
    if result is None:
        why = reason(cell) or "not measured yet"
        return f"({notes.setdefault(why, chr(ord('a') + len(notes)))})"
    parts = [SHORT[result.outcome]]
    if result.exit_code is not None and result.outcome is Outcome.ENDS:
        parts[0] += f" {result.exit_code}"
    if result.ended_s is not None and result.outcome in (Outcome.ENDS, Outcome.RESUMED):
        parts.append(f"{result.ended_s:.1f} s")
    return ", ".join(parts)


def _details(results: Mapping[Cell, Result]) -> Iterator[str]:
    """What the user sees, for every measured cell."""
    yield from (
        "## What the user sees",
        "",
        "| fault | phase | server | what the user sees | exit code | trials kept | left behind "
        "| reported after |",
        "|---|---|---|---|---:|---|---|---:|",
    )
    for cell in sorted(results, key=_place):
        one = results[cell]
        said = _escape(" / ".join(line for line in one.sees if not NOISE.match(line))) or "nothing"
        if one.outcome.is_forbidden:
            said = f"**{one.outcome}**: {_escape(one.why)}. {said}"
        code = "none" if one.exit_code is None else str(one.exit_code)
        kept = f"{one.kept} of {one.before}, then {one.finished} of {one.planned}"
        left = _escape(", ".join(one.left)) or "nothing"
        after = "" if one.reported_s is None else f"{one.reported_s:.1f} s"
        yield (
            f"| `{cell.fault}` | {cell.phase} | {cell.kind}, {cell.product} | {said} | {code} | {kept} "
            f"| {left} | {after} |"
        )


def _place(cell: Cell) -> tuple[int, ...]:
    return (
        list(FAULTS).index(cell.fault),
        KINDS.index(cell.kind),
        PRODUCTS.index(cell.product),
        PHASES.index(cell.phase),
    )


def _escape(text: str) -> str:
    shortened = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
    return shortened.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
