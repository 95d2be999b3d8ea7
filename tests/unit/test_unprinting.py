"""What the comparison with sysbench hides and what it does not: a harness that cannot fail proves nothing."""

from __future__ import annotations

import pytest
from tests.unprinting import HISTOGRAM_HEAD, bucket_values, unprinted, unprinted_line

LINE = (
    "[ 10s ] thds: 4 tps: 400.37 qps: 8009.99 (r/w/o: 5608.97/1600.28/800.74) lat (ms,95%): 11.45 err/s: 0.00"
)
INTERVAL = f"{LINE} reconn/s: 0.00"


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("         min:                                   21.36", "         min: %39.2f"),
        ("         95th percentile:                       61.08", "         95th percentile: %27.2f"),
        ("    events per second:   123.45", "    events per second: %8.2f"),
        (
            "    total time:                          4.0234s",
            "    total time:                          %.4fs",
        ),
        (
            "    transactions:                        100    (24.85 per sec.)",
            "    transactions:                        100    (%.2f per sec.)",
        ),
        (
            "    ignored errors:                      0      (0.00 per sec.)",
            "    ignored errors:                      0      (0.00 per sec.)",
        ),
        (
            "    ignored errors:                      3      (0.30 per sec.)",
            "    ignored errors:                      3      (%.2f per sec.)",
        ),
        ("[ 2s ] queue length: 10, concurrency: 3", "[ 2s ] queue length: %u, concurrency: %u"),
        (
            "    events (avg/stddev):           50.0000/1.50",
            "    events (avg/stddev):           50.0000/%.2f",
        ),
        ("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)", "sysbench 1.0.20 (using %w LuaJIT %w)"),
    ],
)
def test_a_figure_becomes_its_format(line: str, hidden: str) -> None:
    assert unprinted_line(line) == hidden


@pytest.mark.parametrize(
    "line",
    [
        "         min:                                  21.36",
        "         min:                                    21.36",
        "         min:                                   21.4",
        "        min:                                    21.36",
        "         min:                                   21,36",
        "        95th percentile:                       61.08",
        "    total time:                          4.02s",
        "    total time:                           4.0234s",
        "    transactions:                        100   (24.85 per sec.)",
        "    transactions:                        100     (24.85 per sec.)",
        "    transactions:                        100    (24.8 per sec.)",
        "        read:                             1400",
        "        read:                            1400 ",
        INTERVAL.replace("thds", "threads"),
        INTERVAL.replace("400.37", "400.4"),
        f"{INTERVAL} ",
        "some 12.34 that nobody knows",
    ],
)
def test_what_no_format_prints_stays_as_it_is(line: str) -> None:
    assert unprinted_line(line) == line
    assert unprinted_line(line, timed=True) == line


def test_counts_are_hidden_only_where_the_clock_ends_the_run() -> None:
    line = "    total number of events:              100"
    assert unprinted_line(line) == line
    assert unprinted_line(line, timed=True).endswith("              %u")
    assert unprinted_line(INTERVAL, timed=True).startswith(
        "[ 10s ] thds: 4 tps: %.2f qps: %.2f (r/w/o: %.2f/"
    )
    assert unprinted_line(INTERVAL.replace("err/s: 0.00", "err/s: 0.50")) != unprinted_line(INTERVAL)


def rows(*counted: tuple[int, int]) -> list[str]:
    """A histogram's rows for (bucket, count), as sysbench draws them."""
    most = max(count for _, count in counted)
    values = bucket_values()
    return [f"{values[at]:12.3f} |{'*' * int(40 * n / most + 0.5):40} {n}" for at, n in counted]


def test_a_histogram_of_any_rows_is_one() -> None:
    for drawn in (rows((640, 3), (641, 1)), rows((10, 5), (640, 1), (900, 100))):
        text = "\n".join([HISTOGRAM_HEAD, *drawn, " ", "CPU speed:"])
        assert unprinted(text) == [HISTOGRAM_HEAD, "<rows of a histogram>", " ", "CPU speed:"]


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.replace(" |", "|"),
        lambda row: row.replace("**", "*"),
        lambda row: row[1:],
        lambda row: f"{99.99:12.3f}" + row[12:],
        lambda row: f"{row} ",
    ],
)
def test_a_row_that_is_drawn_otherwise_is_seen(change: object) -> None:
    assert callable(change)
    drawn = rows((640, 3), (641, 1))
    drawn[0] = change(drawn[0])
    assert drawn[0] in unprinted("\n".join([HISTOGRAM_HEAD, *drawn]))
