"""What the tests of `dbdyno.reading` share: readings of texts and of fixtures."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from dbdyno.finding import Finding
from dbdyno.reading.checks import examine
from dbdyno.reading.document import load, parse
from dbdyno.reading.reading import Reading, read

FIXTURES = Path(__file__).parents[1] / "fixtures"
CASE_STUDIES = FIXTURES / "case_studies"
DOCUMENTS = FIXTURES / "documents"


def reading_of(text: str, name: str = "document.txt") -> Reading:
    """The reading of a text."""
    return read(parse(dedent(text).encode(), name))


def findings_of(text: str) -> list[Finding]:
    return examine(reading_of(text))


def codes_of(text: str) -> set[str]:
    return {one.code for one in findings_of(text)}


def of_case(name: str) -> Reading:
    return read(load(CASE_STUDIES / name))


def summary(
    threads: int, tps: float, *, seconds: float = 60.0, mean_ms: float | None = None, intervals: str = ""
) -> str:
    """The summary that sysbench 1.0 prints, with figures that agree with each other."""
    transactions = round(tps * seconds)
    mean = 1000 * threads / tps if mean_ms is None else mean_ms
    return f"""\
sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)

Running the test with following options:
Number of threads: {threads}

{intervals}
SQL statistics:
    queries performed:
        read:                            {14 * transactions}
        write:                           {4 * transactions}
        other:                           {2 * transactions}
        total:                           {20 * transactions}
    transactions:                        {transactions} ({tps:.2f} per sec.)
    queries:                             {20 * transactions} ({20 * tps:.2f} per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          {seconds:.4f}s
    total number of events:              {transactions}

Latency (ms):
         min:                                    1.00
         avg:                                  {mean:.2f}
         max:                                  100.00
         95th percentile:                      20.00
         sum:                              {mean * transactions:.2f}

Threads fairness:
    events (avg/stddev):           {transactions / threads:.4f}/1.00
    execution time (avg/stddev):   {seconds:.4f}/0.00

"""
