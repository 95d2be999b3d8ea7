"""What `dbdyno read` takes for a run, a variant, a workload and a condition."""

from __future__ import annotations

import pytest
from tests.unit.reading import codes_of, reading_of, summary

from dbdyno.reading.checks import examine
from dbdyno.reading.formats import table_headings


def names(text: str, name: str = "document.txt") -> list[tuple[str, str, int]]:
    """Variant, workload and number of results of each series."""
    return [(one.label, one.workload, len(one.results)) for one in reading_of(text, name).series]


def checkpoint(second: int, tps: float) -> str:
    """A part of a run; its time is counted from the start of the run."""
    part = summary(4, tps, seconds=10).partition("SQL statistics")[2]
    part = part.replace("10.0000s", f"{second}.0000s").partition("Threads fairness")[0]
    return f"[ {second}s ] Checkpoint report:\nSQL statistics{part}"


def run_with_checkpoints(*rates: float) -> str:
    *parts, last = (checkpoint(10 * at, rate) for at, rate in enumerate(rates, start=1))
    head = summary(4, 1).partition("SQL statistics")[0]
    return head + "".join(parts) + last.partition("\n")[2]


def test_the_checkpoints_of_a_run_are_parts_of_one_result() -> None:
    runs = (run_with_checkpoints(*(base + at for at in range(8))) for base in (300.0, 400.0))
    text = "# small\n{}\n# large\n{}".format(*runs)
    assert names(text) == [("small", "", 1), ("large", "", 1)]
    small = reading_of(text).series[0].results[0]
    assert small.value("tps") == pytest.approx(303.5)
    assert (small.value("elapsed_s"), small.value("transactions")) == (80, 24_280)
    assert list(small.intervals) == [300.0 + at for at in range(8)]
    assert not codes_of(text) & {"R03"}


def test_a_run_that_was_killed_has_the_checkpoints_before() -> None:
    text = summary(4, 1).partition("SQL statistics")[0] + checkpoint(10, 100) + checkpoint(20, 200)
    (killed, whole) = reading_of(f"{text}\n{summary(4, 500)}").results
    assert (killed.value("tps"), whole.value("tps")) == (150, 500)


def test_the_scripts_of_one_run_of_pgbench_are_no_runs() -> None:
    script = " - weight: 1 (targets 50.0% of total)\n - 500 transactions (50.0% of total, tps = {})\n"
    text = (
        "transaction type: multiple scripts\nscaling factor: 1\nnumber of clients: 4\n"
        "number of transactions actually processed: 1000\nlatency average = 4.000 ms\ntps = 1000.0\n"
        f"SQL script 1: a.sql\n{script.format(510)} - latency average = 3.9 ms\n"
        f"SQL script 2: b.sql\n{script.format(490)} - latency average = 4.1 ms\n"
    )
    assert [one.value("tps") for one in reading_of(text).results] == [1000]


@pytest.mark.parametrize("product", ["SQL Server", "Oracle", "MariaDB", "Db2"])
def test_hammerdb_names_its_product_in_any_number_of_words(product: str) -> None:
    users = "Vuser 1:8 Active Virtual Users configured\n"
    text = f"{users}Vuser 1:TEST RESULT : System achieved 70 NOPM from 160 {product} TPM"
    (result,) = reading_of(text).results
    assert (result.connections, result.value("nopm"), result.value("tpm")) == (8, 70, 160)


@pytest.mark.parametrize(
    "line",
    [
        "grep 'tps = 100' out.txt",
        "awk '/Average number of seconds to run all queries: 5 seconds/ {print $9}' out.txt",
        'echo "number of clients: 8"; echo "tps = 100"',
        "#!/bin/bash\n# number of clients: 8\n# tps = 2000.1 (without initial connection time)",
    ],
)
def test_a_pattern_a_printed_text_and_a_comment_of_a_script_are_no_results(line: str) -> None:
    assert not reading_of(f"{line}\npgbench -c 8 -T 60 shop > out.txt\n").results


def test_a_table_of_workloads_is_compared_workload_by_workload() -> None:
    table = "| Test | Clients | TPS |\n|--|--|--|\n| point select | 4 | {} |\n| read write | 4 | {} |\n"
    text = f"# Disk\n{table.format(900, 90)}\n# Memory\n{table.format(990, 99)}"
    assert names(text) == [
        ("Disk", "point select", 1), ("Disk", "read write", 1),
        ("Memory", "point select", 1), ("Memory", "read write", 1),
    ]  # fmt: skip
    changes = {one.workload: one.changes for one in reading_of(text).contrasts}
    assert changes == {"point select": [pytest.approx(10)], "read write": [pytest.approx(10)]}


def environments(count: int) -> str:
    rows = "| off | 8 | {off} |\n| on | 8 | {on} |\n"
    tables = (
        f"## Machine {at}\n| server | clients | TPS |\n|--|--|--|\n" + rows.format(off=100 * at, on=103 * at)
        for at in range(1, count + 1)
    )
    return "\n".join(tables)


def test_several_machines_are_no_repetitions() -> None:
    reading = reading_of(environments(8))
    assert len(reading.contrasts) == 8
    assert all(one.interval_percent is None for one in reading.contrasts)
    assert {len(one.results) for one in reading.series} == {1}


def test_a_column_of_machines_is_a_condition() -> None:
    text = "machine,pool,clients,tps\nm5,off,8,100\nm5,on,8,110\nm6,off,8,900\nm6,on,8,990\n"
    assert names(text) == [("off", "m5", 1), ("on", "m5", 1), ("off", "m6", 1), ("on", "m6", 1)]


def test_a_column_of_sizes_names_the_variant() -> None:
    text = "| pages (KB) | clients | TPS |\n|--|--|--|\n| 4 | 8 | 100 |\n| 16 | 8 | 90 |\n"
    assert [name for name, _, _ in names(text)] == ["pages (KB) = 4", "pages (KB) = 16"]


def test_columns_that_nobody_names_give_a_doubt_and_no_interval() -> None:
    rows = "".join(f"| red | {kind} | 8 | {100 + at} |\n" for at in range(8) for kind in ("round", "square"))
    rows += rows.replace("red", "blue")
    reading = reading_of(f"| colour | shape | clients | TPS |\n|--|--|--|--|\n{rows}")
    assert {one.doubt for one in reading.series} == {
        "shape is taken for the variant, and colour for the workload"
    }
    assert reading.contrasts
    assert all(one.interval_percent is None for one in reading.contrasts)
    assert "P15" in {one.code for one in examine(reading)}


def test_tables_under_one_heading_give_a_doubt() -> None:
    table = "| clients | TPS |\n|--|--|\n| 8 | {} |\n| 16 | {} |\n"
    text = "\n\n".join(table.format(100 + at, 200 + at) for at in range(6))
    assert [bool(one.doubt) for one in reading_of(text).series] == [True]


def test_a_long_line_with_a_colon_is_a_heading() -> None:
    step = (
        "and all of the keys that the list of queries has were read {} before the list was started by hand:"
    )
    text = "\n".join(f"- **{name}: {step.format(name)}**\n{summary(8, 9)}" for name in ("once", "never"))
    assert [name.partition(":")[0] for name, _, _ in names(text)] == ["once", "never"]


def test_a_comment_that_comes_again_does_not_hide_the_heading() -> None:
    text = "".join(
        f"## {name}\n```\n# warm the cache first\n{summary(8, 100)}```\n" for name in ("1G", "2GB")
    )
    assert [name for name, _, _ in names(text)] == ["1G", "2GB"]


def test_a_load_in_a_heading_is_no_part_of_the_name() -> None:
    text = "".join(
        f"## {name}, {load} threads\n{summary(load, 100 * load)}\n"
        for load in (8, 16)
        for name in ("old", "new")
    )
    assert names(text) == [("old", "", 2), ("new", "", 2)]


def test_a_table_with_one_more_load_does_not_join_the_variant_before() -> None:
    text = sum_of_tables({"old": (8, 16), "new": (4, 8, 16)})
    assert names(text) == [("old", "", 2), ("new", "", 3)]


def sum_of_tables(loads: dict[str, tuple[int, ...]]) -> str:
    return "\n".join(
        f"## {name}\n| clients | TPS |\n|--|--|\n" + "".join(f"| {load} | {10 * load} |\n" for load in of)
        for name, of in loads.items()
    )


@pytest.mark.parametrize(
    ("text", "separator"),
    [("version,clients,qps,P99\n{},8,10.5,2\n", ","), ("Version;Clients;QPS;99%\n{};8;10,5;2\n", ";")],
)
def test_csv_with_headings_is_read(text: str, separator: str) -> None:
    (result,) = reading_of(text.format(f'"MySQL{separator} 8.4"'), "a.csv").results
    assert (result.label, result.connections) == (f"MySQL{separator} 8.4", 8)
    assert (result.value("qps"), result.value("p99_ms")) == (10.5, 2)


@pytest.mark.parametrize(
    "text", ["Throughput, latency, errors\nwere measured, of course, twice\n", "a,b\n1,2\n"]
)
def test_prose_and_lists_are_no_csv(text: str) -> None:
    assert not reading_of(text).results


FIGURES = {
    "p95_ms": ("P95 Latency", "95th pctl", "latency_p95_ms", "lat 95%", "95% 지연", "95パーセンタイル"),
    "p99_ms": ("99%响应时间", "p99_latency_us", "99-й перцентиль", "latency 99th percentile (ms)"),
    "mean_ms": ("평균 응답시간(ms)", "平均延迟(毫秒)", "средняя задержка", "avgLatencyMs", "Antwortzeit"),
    "tps": ("吞吐量(TPS)", "Transactions / sec", "avg tps", "トランザクション/秒"),
    "": ("p99.9 latency", "stddev latency", "max tps", "CPU avg", "MySQL 8.0", "p75"),
}


@pytest.mark.parametrize(("figure", "text"), [(name, one) for name, of in FIGURES.items() for one in of])
def test_the_figures_of_headings(figure: str, text: str) -> None:
    assert table_headings.figure(text) == figure


@pytest.mark.parametrize(
    ("text", "figure", "label"),
    [("old p95 latency (ms)", "p95_ms", "old"), ("my_pool TPS", "tps", "my_pool"), ("95 % reads", "", "")],
)
def test_a_heading_with_a_figure_and_a_name(text: str, figure: str, label: str) -> None:
    assert table_headings.figure_within(text) == (figure, label)


def test_figures_that_are_rounded_or_limited_by_a_rate_agree() -> None:
    assert "R03" not in codes_of(summary(1, 37_851.6, mean_ms=0.03))
    assert "R03" in codes_of(summary(1, 37_851.6, mean_ms=0.05))
    limited = summary(16, 30, mean_ms=1.65).replace(
        "threads: 16\n", "threads: 16\nTarget transaction rate: 30/sec\n"
    )
    assert "R03" not in codes_of(limited)
    assert "R03" in codes_of(limited.replace("Target transaction rate: 30/sec\n", ""))


def test_six_intervals_show_a_trend() -> None:
    rates = (402, 480, 520, 610, 700, 740)
    lines = "\n".join(f"[ {at}s ] thds: 8 tps: {rate:.2f} qps: 1" for at, rate in enumerate(rates, start=1))
    assert "R01" in codes_of(summary(8, 575, intervals=lines))
