"""The list of all checks of documents. A new one is a file in this folder that defines a `CHECK`, and one
line here.
"""

from __future__ import annotations

import itertools
from importlib import import_module

from dbdyno.finding import LEVELS, Finding
from dbdyno.reading.checks.check import DocumentCheck
from dbdyno.reading.limits import FINDINGS_MAX
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_MODULES = (
    "d03_errors",
    "p01_same_data",
    "p02_rows",
    "p03_server",
    "p04_effective",
    "p05_settings",
    "p06_durability",
    "p07_capacity",
    "p08_statements",
    "p10_hosts",
    "p11_shared",
    "p12_round_trip",
    "p13_client",
    "p14_cache",
    "p15_design",
    "p16_loads",
    "p17_effect",
    "p18_duration",
    "p19_limits",
    "p20_secrets",
    "p21_scripts",
    "q02_claims",
    "q03_coverage",
    "q04_figures",
    "q05_definitions",
    "q07_beyond",
    "q08_labels",
    "q09_price",
    "r01_steady",
    "r02_drift",
    "r03_arithmetic",
    "r04_complete",
    "r05_control",
    "r06_loads",
    "r07_region",
    "r11_files",
)

ALL: tuple[DocumentCheck, ...] = tuple(
    import_module(f"dbdyno.reading.checks.{name}").CHECK for name in _MODULES
)


def examine(reading: Reading) -> list[Finding]:
    """The findings about a document, the most severe first, those of a level by their lines."""
    findings: list[Finding] = []
    for check in ALL:
        iterator = check.find(reading)
        findings += itertools.islice(iterator, FINDINGS_MAX)
        if (more := next(iterator, None)) is not None:
            text = compose(
                "only the first {limit} findings of {code} are listed", limit=FINDINGS_MAX, code=check.code
            )
            reading.document.left_out.add(check.code, (more.evidence["lines"] or [1])[0], text)
    return sorted(findings, key=lambda one: (LEVELS.index(one.level), one.evidence["lines"][:1], one.code))
