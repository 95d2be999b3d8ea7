"""The case studies: every mistake that invalidates their conclusions is found, and changes with the
document.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.unit.reading import CASE_STUDIES, of_case

from dbdyno.finding import Finding
from dbdyno.reading.checks import examine
from dbdyno.reading.document import parse
from dbdyno.reading.reading import Reading, read

POOL, VERSIONS, NETWORK = "thread-pool-one-cpu.txt", "thread-pool-8.4.md", "network-architecture.md"
AURORA, INSTANCES = "aurora-instances.md", "buffer-pool-instances.txt"
# The mistakes of severity A: the study, the code, words of the finding, and words of a line that it names.
MISTAKES = (
    (VERSIONS, "P01", "90 % name no row", "--table-size=1000000"),
    (VERSIONS, "R02", "the rows that those before it left", "run"),
    (VERSIONS, "P07", "500 connections need 23,000 prepared statements (46 each)", "500"),
    (VERSIONS, "Q03", "16 % at which load? 5 loads", "16%"),
    (VERSIONS, "Q04", "in pictures only", "chart.png"),
    (POOL, "Q02", "contradicts the numbers", "더 많은 트랜잭션"),
    (POOL, "Q08", "their order in the document decides", "SQL statistics"),
    (POOL, "P01", "mysql-socket is missing", "prepare"),
    (POOL, "P03", "ignores --mysql-port=3310", "--mysql-host=localhost"),
    (POOL, "R03", "the outputs have 30 s, and the command would run 10 s", "time elapsed"),
    (POOL, "P11", "the load generator runs on the server's machine", "localhost"),
    (POOL, "P16", "throughput falls from the lowest load (10 connections) on", "SQL statistics"),
    (NETWORK, "Q04", "the same picture is shown as 3 results", "a.png"),
    (NETWORK, "P01", "tables is 250, not 10; table-size is 25000, not 10000000", "sysbench"),
    (NETWORK, "P21", "--threads={2~3000} is no number", "sysbench"),
    (NETWORK, "P07", "3000 connections need 273,000 prepared statements (91 each)", "sysbench"),
    (NETWORK, "P07", "at most 399 connections fit", "sysbench"),
    (NETWORK, "P07", "at most 327 connections fit", "sysbench"),
    (NETWORK, "Q03", "20 % at which load? 2 loads", "평균 20%"),
    (NETWORK, "Q05", "a percentile of latency is measured and not shown", "sysbench"),
    (AURORA, "P03", "aurora-mysql-graviton2-8x-1 is measured", "aurora-mysql-graviton2-8x-1"),
    (AURORA, "P07", "switched off instead of raising it", "1461"),
    (AURORA, "R04", "those of the run before", "read=$("),
    (AURORA, "R11", "$filename is appended to", "tee -a"),
    (AURORA, "R06", "the sign changes at 256 connections", "1024"),
    (INSTANCES, "P08", "is evaluated for every row", "RAND()"),
    (INSTANCES, "P17", "no counter shows that innodb_buffer_pool_instances", "Average number"),
    (INSTANCES, "P15", "one run of each variant", "Average number"),
    (INSTANCES, "R05", "with one connection", "249.224"),
    (INSTANCES, "P02", "163,840,000 rows in large_table, and 10,240,000 are counted", "10240000"),
    (INSTANCES, "P04", "no output of the server confirms", "[mysqld]"),
    (INSTANCES, "Q02", "the sentence is certain", "반드시"),
)
EXPECTED = {
    VERSIONS: {"P01", "P05", "P07", "P10", "P15"},
    POOL: {"P01", "P11", "R03", "Q02", "P16"},
    NETWORK: {"P01", "P07", "P21", "Q03", "Q04"},
    AURORA: {"P03", "P07", "P21", "R04", "R11", "R07"},
    INSTANCES: {"P02", "P08", "P15", "R05", "Q02"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_study_has_at_least_its_mistakes(name: str) -> None:
    assert {one.code for one in examine(of_case(name))} >= EXPECTED[name]


@pytest.mark.parametrize(("name", "code", "words", "line"), MISTAKES)
def test_a_mistake_is_found_with_the_line_that_shows_it(name: str, code: str, words: str, line: str) -> None:
    reading = of_case(name)
    found = [one for one in examine(reading) if one.code == code and words in one.text]
    assert found, [one.summary for one in examine(reading) if one.code == code]
    lines = [reading.document.texts[number - 1] for one in found for number in one.evidence["lines"]]
    assert any(line in text for text in lines), lines


def test_the_thread_pool_is_7_to_11_percent_slower() -> None:
    reading = of_case(POOL)
    assert [one.label for one in reading.series] == [
        "thread_handling = pool-of-threads",
        "thread_handling = one-thread-per-connection",
    ]
    by_figure = {one.figure: one for one in reading.contrasts}
    tps = by_figure["tps"]
    assert tps.variant.label == "thread_handling = pool-of-threads"
    assert [round(one, 2) for one in tps.changes] == [-10.95, -8.61, -7.31]
    assert [round(one, 1) for one in by_figure["mean_ms"].changes] == [12.3, 9.4, 7.7]
    assert [round(one, 1) for one in by_figure["p95_ms"].changes] == [26.4, 33.4, 31.0]
    assert tps.is_better is False


def test_both_tables_of_the_instances_are_read() -> None:
    (tps,) = (one for one in of_case(AURORA).contrasts if one.figure == "tps")
    assert [pair.connections for pair in tps.pairs] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert [round(one, 1) for one in tps.changes] == [
        -4.0,
        -3.7,
        -3.1,
        -2.5,
        -3.6,
        -3.5,
        -0.8,
        4.8,
        13.0,
        8.7,
    ]
    assert tps.is_better is None


def changed(name: str, change: Callable[[str], str]) -> tuple[set[str], set[str]]:
    """The codes that a study loses and those that it gains by a change of its text."""
    text = (CASE_STUDIES / name).read_text()
    altered = change(text)
    assert altered != text
    before, after = (codes(read(parse(one.encode(), name))) for one in (text, altered))
    return before - after, after - before


def codes(reading: Reading) -> set[str]:
    return {one.code for one in examine(reading)}


def swap_variants(text: str) -> str:
    """The two values of thread_handling in each other's place."""
    first, second = "pool-of-threads ", "one-thread-per-connection "
    return re.sub(f"{first}|{second}", lambda found: second if found[0] == first else first, text)


@pytest.mark.parametrize(
    ("name", "change", "lost", "gained"),
    [
        (VERSIONS, lambda text: text.replace("--table-size=1000000", "--table-size=100000"), {"P01"}, set()),
        (VERSIONS, lambda text: text.replace("256M", "512M"), set(), set()),
        (VERSIONS, lambda text: text.replace("200, 300, 500", "200, 300"), {"P07"}, set()),
        (VERSIONS, lambda text: text.replace("OL 9.6", "OL 8.10"), {"P10"}, set()),
        (POOL, lambda text: text.replace("더 많은", "더 적은"), {"Q02"}, set()),
        (
            POOL,
            lambda text: text.replace(" --mysql-socket=/engn001/testuser/NEWDB/mysql/mysql.sock", ""),
            {"P01"},
            set(),
        ),
        (POOL, lambda text: text.replace("--threads=10 ", "--threads=10 --time=30 "), {"R03"}, {"P21"}),
        (POOL, lambda text: text.replace("localhost", "db1.example.com"), {"P11", "P03"}, {"P12"}),
        (NETWORK, lambda text: text.replace("a.png", "b.png", 1).replace("a.png", "c.png", 1), set(), set()),
        (
            NETWORK,
            lambda text: (
                text.replace("--threads={2~3000}", "--threads=16")
                .replace("2 – 3000", "")
                .replace("2~3000", "")
            ),
            {"P07", "P13", "Q03", "R02"},
            set(),
        ),
        (AURORA, lambda text: text.replace("tee -a $filename", "tee $filename"), {"R11"}, set()),
        (AURORA, lambda text: text.replace("for THREAD_COUNT", "set -e\nfor THREAD_COUNT"), {"R04"}, set()),
        (INSTANCES, lambda text: text.replace("FLOOR(RAND() * 10000000)", "4711"), {"P08"}, set()),
        (INSTANCES, lambda text: text.replace("count(*): 10240000", "count(*): 163840000"), {"P02"}, set()),
        (
            INSTANCES,
            lambda text: text.replace("반드시 존재한다", "있었다 (95 % 신뢰구간 1.2 ~ 3.1 %)").replace(
                "명확해질", "커질"
            ),
            {"Q02"},
            set(),
        ),
    ],
)
def test_a_corrected_mistake_is_no_longer_found(
    name: str, change: Callable[[str], str], lost: set[str], gained: set[str]
) -> None:
    gone, new = changed(name, change)
    assert gone == lost
    assert new <= gained


def test_swapped_labels_change_the_verdict() -> None:
    reading = read(parse(swap_variants((CASE_STUDIES / POOL).read_text()).encode(), POOL))
    (tps,) = (one for one in reading.contrasts if one.figure == "tps")
    assert tps.variant.label == "thread_handling = pool-of-threads"
    assert [round(one, 1) for one in tps.changes] == [12.3, 9.4, 7.9]


def test_numbers_that_are_swapped_contradict_each_other() -> None:
    def swap(text: str) -> str:
        return (
            text.replace("188.17 per sec", "@")
            .replace("211.31 per sec", "188.17 per sec")
            .replace("@", "211.31 per sec")
        )

    reading = read(parse(swap((CASE_STUDIES / POOL).read_text()).encode(), POOL))
    stops: list[Finding] = [
        one for one in examine(reading) if one.code == "R03" and "transactions" in one.text
    ]
    assert len(stops) >= 2
