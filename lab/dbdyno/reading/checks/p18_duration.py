"""P18: a run that writes must be longer than what the server does later."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.checks.r02_drift import is_writing
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# The shortest interval between checkpoints that PostgreSQL allows; InnoDB flushes by a similar cycle.
_SECONDS_MIN = 30


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at the seconds of writing runs, of the outputs or else of the commands.

    Catches throughput whose price is paid after the end: pages that were changed are written later.
    """
    results = [one for one in reading.results if (one.value("elapsed_s") or _SECONDS_MIN) < _SECONDS_MIN]
    calls = [call for call in reading.calls if call.phase == "run" and is_writing(call)]
    if results and calls:
        yield finding(
            reading,
            "P18",
            "note",
            compose(
                "runs that write for {seconds:.0f} s end before the server's first checkpoint",
                seconds=results[0].value("elapsed_s"),
            ),
            (one.figures["elapsed_s"].index for one in results),
            fix=compose("Measure for several checkpoints"),
        )


CHECK = DocumentCheck("P18", find)
