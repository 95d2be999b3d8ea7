"""All faults, and which cells of the table are measured: a rule says why a cell is not."""

from __future__ import annotations

from collections.abc import Iterator

from . import clock, disk, limits, network, processes, streams
from .cells import KINDS, PHASES, PRODUCTS, Cell
from .fault import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for module in (processes, network, disk, limits, clock, streams)
    for fault in module.FAULTS
}
# MariaDB has every phase. dbdyno handles all products by the same code, so the others have one phase.
SAMPLE = "measure"
SAMPLED = "the same code as for MariaDB; measured in the phase measure"
# Kinds whose server is reached by the same code as that of another kind.
COMMAND_ALSO = ("rehearse", "restore")


def sample_phase(fault: Fault) -> str:
    """The phase in which a fault is measured for every product."""
    return SAMPLE if SAMPLE not in fault.never else next(one for one in PHASES if one not in fault.never)


def reason(cell: Cell, *, every_phase: bool = False) -> str:
    """Why a cell is not measured; empty if it is. With `every_phase` no phase is left out because
    MariaDB's shows the same.
    """
    fault = FAULTS[cell.fault]
    if cell.kind == "command" and cell.product != "mariadb":
        return "command lines are the same for every product"
    if cell.kind == "docker" and cell.product != "mariadb":
        return "the image of the tests is MariaDB's"
    if never := fault.never.get(cell.kind) or fault.never.get(cell.phase):
        return never
    sample = sample_phase(fault)
    if cell.product != "mariadb" and cell.phase != sample and not every_phase:
        return SAMPLED
    if cell.kind == "command" and cell.phase not in (sample, *COMMAND_ALSO):
        return "reached as the kind remote"
    if cell.kind == "docker" and cell.phase != sample:
        return "run as the kind local"
    return fault.missing()


def cells() -> Iterator[Cell]:
    """All cells. A series that is interrupted has every fault once before it has any in a second phase."""
    order = (SAMPLE, "restore", "warm-up", "prepare", "rehearse", "judge", "report")
    for phase in order:
        for kind in KINDS:
            for product in PRODUCTS:
                for name in FAULTS:
                    yield Cell(name, phase, kind, product)
