"""Forms of other people's documents that were read wrongly: each test has an invented document of a kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.reading import codes_of, findings_of, reading_of, summary

from dbdyno.commands.init import init
from dbdyno.experiment.reading import read
from dbdyno.reading.result import Result


def results_of(text: str) -> list[Result]:
    return [one for series in reading_of(text).series for one in series.results]


def rates(text: str, figure: str = "tps") -> dict[str, list[float | None]]:
    """The figures of each variant, with its workload if it has one."""
    return {
        f"{one.label}: {one.workload}".rstrip(": "): [result.value(figure) for result in one.results]
        for one in reading_of(text).series
    }


def stops_of(text: str) -> list[str]:
    return [one.code for one in findings_of(text) if one.level == "stop"]


def calls_of(text: str, name: str = "a.sh") -> list[tuple[str, str | None]]:
    return [(one.test, one.options.get("threads")) for one in reading_of(text, name).calls]


# Tables.


def test_several_numbers_in_a_cell_are_several_columns() -> None:
    assert rates("|threads|new/old (TPS)|gain|\n|--|--|--|\n|4|310.5/290.1|7%|\n|8|601/555|8%|\n") == {
        "new": [310.5, 601],
        "old": [290.1, 555],
    }
    (one, two) = results_of(
        "|clients|tps|Latency p50 / p99|\n|-|-|-|\n|4|310|1.5 ms / 9 ms|\n|8|600|2 / 11|\n"
    )
    assert (one.value("p50_ms"), one.value("p99_ms"), two.value("p99_ms")) == (1.5, 9, 11)
    (one, _) = results_of("|clients|latency(avg / .95)|tps|\n|-|-|-|\n|4|3.5/7|310|\n|8|4/8|600|\n")
    assert (one.value("mean_ms"), one.value("p95_ms")) == (3.5, 7)


def test_a_figure_that_is_not_understood_names_no_variant() -> None:
    text = "|-|size|threads|tps|latency|\n|-|-|-|-|-|\n|one|1 GB|4|310|3 to 7|\n|one|9 GB|4|290|4 to 9|\n"
    assert not any("to" in label for label in rates(text))


def test_a_load_that_is_no_number_is_a_condition() -> None:
    text = "|version|threads|tps|\n|-|-|-|\n|a1|64 * 2|310|\n|a1|96 * 2|330|\n|v1.4|64 * 2|290|\n"
    assert rates(text) == {"a1: 64 * 2": [310], "a1: 96 * 2": [330], "v1.4: 64 * 2": [290]}


def test_two_rows_of_headings() -> None:
    text = "| | 5.6 | | 8.4 | |\n|clients|TPS|p95 (ms)|TPS|p95 (ms)|\n|-|-|-|-|-|\n|4|310|2|290|3|\n"
    assert rates(text) == {"5.6": [310], "8.4": [290]}
    assert rates(text, "p95_ms") == {"5.6": [2], "8.4": [3]}


def test_names_and_values_without_a_heading() -> None:
    text = "Before the patch:\n\nTPM-C | 33001.5\nLatency avg (ms) | 12.5\n\nAfter the patch:\n\n"
    assert rates(f"{text}TPM-C | 35001.5\nLatency avg (ms) | 11.5\n", "nopm") == {
        "Before the patch": [33001.5],
        "After the patch": [35001.5],
    }


@pytest.mark.parametrize("heading", ["100231 (1603.1 per sec.)", "4012.88", "+4.5 %", "12.1 ± 0.3"])
def test_a_row_of_numbers_is_no_heading(heading: str) -> None:
    text = f"--max-time=60\n16 runs  {heading}\n32 runs  110000 (1700.5 per sec.)\n64 runs  1900.25\n"
    assert not results_of(text)
    assert not results_of(text.replace("  ", " | "))


def test_rows_for_several_workloads() -> None:
    text = "| |5.6|8.4|\n|-|-|-|\n|small: transactions/s|310|290|\n|large: transactions/s|31|33|\n"
    assert rates(text) == {"5.6: small": [310], "5.6: large": [31], "8.4: small": [290], "8.4: large": [33]}


def test_a_cell_with_a_unit_of_its_own() -> None:
    text = "| | one | two |\n|-|-|-|\n| p50 | 850µs | 0.9 ms |\n| p99 | 1.5s | 940ms |\n"
    assert rates(text, "p50_ms") == {"one": [0.85], "two": [0.9]}
    assert rates(text, "p99_ms") == {"one": [1500], "two": [940]}


def test_repetitions_have_columns() -> None:
    head = "|server|threads|TPS (run 1)|TPS (run 2)|mean TPS|\n|-|-|-|-|-|\n"
    text = f"{head}|one|8|100|104|102|\n|two|8|90|96|93|\n"
    assert rates(text) == {"one": [100, 104], "two": [90, 96]}
    assert rates(text.replace("run 1", "1회").replace("run 2", "2회")) == rates(text)


def test_a_size_besides_variants_in_headings_is_a_condition() -> None:
    text = (
        "clients | scale | head tps | patched tps\n---+---+---+---\n1 | 10 | 800 | 810\n1 | 50 | 600 | 612\n"
    )
    assert rates(text) == {
        "head: scale = 10": [800],
        "patched: scale = 10": [810],
        "head: scale = 50": [600],
        "patched: scale = 50": [612],
    }


@pytest.mark.parametrize(
    "text",
    [
        "TPS\n||threads||old||new||\n|8|100|110|\n|16|180|199|\n",
        '{| class="x"\n! threads !! old TPS !! new TPS\n|-\n| 8 || 100 || 110\n|-\n| 16 || 180 || 199\n|}\n',
        "+| threads | old tps | new tps |\n+|---|---|---|\n-| 8 | 1 | 2 |\n+| 8 | 100 | 110 |\n"
        "+| 16 | 180 | 199 |\n",
    ],
    ids=["jira", "mediawiki", "diff"],
)
def test_tables_of_wikis_and_differences(text: str) -> None:
    assert rates(text) == {"old": [100, 180], "new": [110, 199]}


def test_figures_of_two_words_in_an_aligned_table() -> None:
    head = "Threads   TPS      Latency avg  Latency 95%\n"
    (one, _) = results_of(f"{head}8         1204.1   6.64 ms      9.22 ms\n16        2100     7 ms  9 ms\n")
    assert (one.connections, one.value("mean_ms"), one.value("p95_ms")) == (8, 6.64, 9.22)


def test_a_load_above_a_table_is_that_of_the_nearest_line() -> None:
    table = "| server | TPS |\n|-|-|\n| one | {} |\n| two | {} |\n\n"
    first = f"Results (1,000 concurrent connections):\n\n{table.format(100, 110)}"
    text = f"{first}Results (500 concurrent connections):\n\n{table.format(50, 60)}"
    assert [one.connections for one in results_of(text)] == [1000, 500, 1000, 500]


def test_what_a_tool_says_of_its_options_is_no_variant() -> None:
    text = "Scale option ignored, using pgbench_branches table count = 8\nnumber of clients: 4\ntps = 100.5\n"
    assert list(rates(text)) == [""]


def test_results_before_and_after_under_one_title_are_two_variants() -> None:
    result = "tps = {} (without initial connection time)\n"
    text = f"# The new planner\n\n## Before\n\n{result.format(10.5)}\n## After\n\n{result.format(12.5)}"
    assert rates(text) == {"Before": [10.5], "After": [12.5]}


def test_settings_in_a_list_name_the_variants() -> None:
    text = "The first server:\n- innodb_flush_log_at_trx_commit = {}\n- sync_binlog={}\n\n"
    text = (
        text.format(1, 1) + summary(8, 100) + text.format(0, 0).replace("first", "second") + summary(8, 300)
    )
    label = "innodb_flush_log_at_trx_commit = {0}, sync_binlog = {0}"
    assert rates(text) == {label.format(1): [100], label.format(0): [300]}


@pytest.mark.parametrize(
    "times",
    [
        [str(10 * number) for number in range(1, 9)],
        [f"{number} s" for number in range(1, 9)],
        [f"2025-01-01 10:0{number}:00" for number in range(1, 9)],
        [str(1700000000 + 7 * number * number) for number in range(1, 9)],
    ],
)
def test_the_intervals_of_a_run_are_no_repetitions(times: list[str]) -> None:
    rows = [f"{one},8,{100 + n % 3},{110 + n % 3}" for n, one in enumerate(times)]
    found = reading_of("\n".join(["time,threads,old tps,new tps", *rows]) + "\n")
    assert [one.label for one in found.series] == ["old", "new"]
    assert all("intervals or samples of one run" in one.doubt for one in found.series)
    assert [one.interval_percent for one in found.contrasts] == [None]


def test_requests_of_jmeter_are_no_results() -> None:
    rows = [f"{1700000000000 + n},{n % 9},select,Users 1-{n % 3},{n % 7}" for n in range(30)]
    assert not results_of("\n".join(["timeStamp,elapsed,label,threadName,Latency", *rows]) + "\n")


def test_numbers_with_points_and_a_comma() -> None:
    assert rates("Threads;TPS alt;TPS neu\n8;1.203,5;1.311\n16;2.303,5;12.411,25\n") == {
        "alt": [1203.5, 2303.5],
        "neu": [1311, 12411.25],
    }


# Other programs.


@pytest.mark.parametrize(
    ("output", "figures"),
    [
        (
            "[Summary] PAYMENT - Takes(s): 60.0, Count: 5, TPM: 5\ntpmC: {0}, tpmTotal: {1}, efficiency: 9%",
            {"nopm": 1200.5, "tpm": 2600.5},
        ),
        (
            "1 [main] INFO jTPCC : Term-00, Measured tpmC (NewOrders) = {0}\n"
            "1 [main] INFO jTPCC : Term-00, Measured tpmTOTAL = {1}",
            {"nopm": 1200.5, "tpm": 2600.5},
        ),
        ("MEASURING START.\n\n  10, trx: 38, 95%: 1.5\n\n<TpmC>\n          {0} TpmC", {"nopm": 1200.5}),
        (
            "[OVERALL], RunTime(ms), 60000\n[OVERALL], Throughput(ops/sec), {0}\n[READ], Operations, 7",
            {"qps": 1200.5},
        ),
    ],
    ids=["go-tpc", "BenchmarkSQL", "tpcc-mysql", "YCSB"],
)
def test_programs_that_print_one_figure(output: str, figures: dict[str, float]) -> None:
    text = f"## Before\n\n{output.format(1200.5, 2600.5)}\n\n## After\n\n{output.format(1300.5, 2700.5)}\n"
    first, second = reading_of(text).series
    assert (first.label, second.label) == ("Before", "After")
    assert {name: one.value for name, one in first.results[0].figures.items()} == figures


# Findings that accused falsely.


def run_of(command: str, result: str) -> str:
    return f"$ sysbench {command} oltp_read_write --mysql-host=db1 --threads=8 run\n\n{result}"


def test_a_limit_of_events_ends_a_run_early() -> None:
    result = summary(8, 1000, seconds=100)
    assert "R03" in stops_of(run_of("--time=600 --events=0", result))
    assert "R03" not in stops_of(run_of("--time=600 --events=100000", result))
    assert "R03" not in stops_of(run_of("--max-time=600 --max-requests=100000", result))
    # It ends no run late.
    assert "R03" in stops_of(run_of("--time=30 --events=100000", result))


def test_the_last_transactions_end_late() -> None:
    result = summary(8, 8, seconds=40, mean_ms=990).replace("100.00", "{}")
    assert "R03" in stops_of(run_of("--time=30", result.format("1000.00")))
    assert "R03" not in stops_of(run_of("--time=30", result.format("11000.00")))


def test_runs_of_few_slow_transactions_do_not_follow_littles_law() -> None:
    assert "R03" in codes_of(run_of("--time=60", summary(8, 4, mean_ms=1000)))
    assert "R03" not in codes_of(run_of("--time=60", summary(8, 0.5, mean_ms=9000)))


def test_a_load_that_ran_fitted_into_the_limits() -> None:
    text = "$ sysbench oltp_read_write --mysql-host=db1 --tables=9 --threads=900 --time=60 run\n\n"
    assert "P07" in stops_of(text)
    assert "P07" not in stops_of(text + summary(900, 4000))


def test_an_output_of_which_a_part_is_shown_ended() -> None:
    interval = "[ 10s ] thds: 8 tps: 100.00 qps: 2000.00 (r/w/o: 1/1/1) lat (ms,95%): 9.1 err/s: 0.00\n"
    assert "R04" in codes_of(interval)
    assert "R04" not in codes_of(f"{interval}    transactions:      1000 (100.00 per sec.)\n")


def test_a_variable_of_a_template_is_no_mistake() -> None:
    assert "P21" in codes_of("sysbench oltp_x --mysql-host=db1 --threads=xx run\n")
    assert "P21" not in codes_of("sysbench oltp_x --mysql-host=db1 --threads={{ threads }} run\n")


def test_the_network_is_not_blamed_for_a_rate_that_was_not_reached() -> None:
    text = summary(1, 30, mean_ms=7000)
    assert "P12" in codes_of(text)
    assert "P12" not in codes_of(
        text.replace("threads: 1\n", "threads: 1\nTarget transaction rate: 90/sec\n")
    )


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("pgbench -c 8 -T 60 bench\n", True),
        ("$ sudo -u postgres pgbench -c 8 -T 60\n", True),
        ("export PGHOST=db1\npgbench -c 8 -T 60 bench\n", False),
        ('pgbench -c 8 -T 60 "host=db1 dbname=bench"\n', False),
        ("pgbench -c 8 -T 60 postgresql://db1/bench\n", False),
        ("kubectl pg pgbench cluster -- --client 8 --time 60\n", False),
        ("Every run: pgbench -c 8 -T 60, one each.\n", False),
    ],
)
def test_a_call_without_a_host_may_go_elsewhere(text: str, *, is_found: bool) -> None:
    assert ("P11" in codes_of(text)) is is_found


TWO = "| server | tps |\n|-|-|\n| before | 100 |\n| after | 80 |\n\n"


@pytest.mark.parametrize(
    ("sentence", "level"),
    [
        ("After the change throughput is higher.", "stop"),
        # It is not certain what a sentence is about that names no variant.
        ("The throughput is higher.", "warn"),
        ("For Oracle there was an improvement in throughput.", ""),
        ("I would have expected after to be faster.", ""),
        ("We expected the throughput to be higher.", ""),
        ("| threads | higher throughput (%) | more |", ""),
    ],
)
def test_what_a_sentence_is_about(sentence: str, level: str) -> None:
    levels = [one.level for one in findings_of(f"{TWO}{sentence}\n") if one.code == "Q02"]
    assert levels == [level] * bool(level)


# Scripts.


def test_the_calls_of_a_function_keep_their_arguments_together() -> None:
    go = "go() {\n  local name=$1 users=$2\n  sysbench $name --threads=$users run\n}\n"
    assert calls_of(f"{go}go oltp_a 4\ngo oltp_b 64\n") == [("oltp_a", "4"), ("oltp_b", "64")]


def test_all_arguments_of_a_function() -> None:
    go = 'O="--test=oltp --mysql-host=$1"\ngo() {\n  sysbench $O "$@"\n}\n'
    text = f"{go}go prepare\nfor n in 2 8; do\n  go --threads=$n run\ndone\n"
    calls = reading_of(text, "a.sh").calls
    assert [(one.phase, one.connections) for one in calls] == [("prepare", None), ("run", 2), ("run", 8)]
    assert {one.test for one in calls} == {"oltp"}


def test_a_variable_that_follows_the_variable_of_a_loop() -> None:
    text = (
        'for n in 2 8; do\n  options="--threads=$n --tag=run_$n"\n  log=out_$n.log\n'
        "  sysbench oltp_x $options run > $log\ndone\n"
    )
    calls = reading_of(text, "a.sh").calls
    assert [(one.options["threads"], one.options["tag"], one.passes) for one in calls] == [
        ("2", "run_2", 1), ("8", "run_8", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "branch",
    [
        'if [ "$1" = small ]; then\n  ROWS=100\n  N=2\nelse\n  ROWS=90000\n  N=64\nfi\n',
        "case $1 in\n  small) ROWS=100; N=2 ;;\n  *)\n    ROWS=90000\n    N=64\n    ;;\nesac\n",
    ],
)
def test_a_branch_decides_the_values(branch: str) -> None:
    call = "sysbench oltp_read_write --mysql-host=db1 --table-size=$ROWS {}\n"
    text = branch + call.format("prepare") + call.format("--threads=$N --time=60 run")
    found = reading_of(text, "a.sh")
    assert [one.options["table-size"] for one in found.calls] == ["100", "90000"] * 2
    assert [one.options.get("threads") for one in found.calls] == [None, None, "2", "64"]
    # One execution has one of them: the run uses the rows of prepare, and there is no sweep.
    assert not {"P01", "R02"} & codes_of(text)


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("N=1\nwhile [ $N -le 8 ]; do\n{}  N=$((N*2))\ndone\n", ["1", "2", "4", "8"]),
        ("N=2\nwhile (( N < 8 )); do\n{}  ((N+=3))\ndone\n", ["2", "5"]),
        ("for N in $(cat loads.txt); do\n{}done\n", ["$N"]),
        # Not known is better than the first value alone.
        ("N=64\nwhile [ $N -gt 1 ]; do\n{}  N=$((N*2))\ndone\n", ["$N"]),
    ],
)
def test_a_loop_that_counts_or_whose_values_are_not_known(loop: str, expected: list[str]) -> None:
    text = loop.format("  sysbench oltp_x --threads=$N run\n")
    assert calls_of(text) == [("oltp_x", one) for one in expected]


def test_a_default_in_quotes_and_a_program_in_a_variable() -> None:
    names = 'L=${LOADS:-"2 8"}\nBENCH=${B:-sysbench}\n'
    text = f"{names}for n in $L; do\n  LC_ALL=C $BENCH oltp_x --threads=$n run\ndone\n"
    assert calls_of(text) == [("oltp_x", "2"), ("oltp_x", "8")]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ('echo "sysbench oltp_x --threads=4 run"', 0),
        ("cd /tmp && echo sysbench oltp_x --threads=4 run", 0),
        ('echo "starting"; sysbench oltp_x --threads=4 run', 1),
        ("echo 4 | xargs -I N sysbench oltp_x --threads=4 run", 1),
    ],
)
def test_a_printed_command_is_no_call(line: str, number: int) -> None:
    assert len(calls_of(f"{line}\n")) == number


@pytest.mark.parametrize(
    ("line", "threads"),
    [
        ("out=$(sysbench oltp_x --threads=4 run)", "4"),
        ("tps=`sysbench oltp_x --threads=4 run | grep tps`", "4"),
        ('local out="$(sysbench oltp_x --threads=4 run 2>&1)"', "4"),
        ("echo $(sysbench oltp_x --threads=$(echo 4) run) > out", "$(echo"),
        ("`sysbench oltp_x --threads=4 run`", "4"),
    ],
)
def test_a_call_whose_output_is_taken(line: str, threads: str) -> None:
    assert list(calls_of(f"{line}\n", "a.md")) == [("oltp_x", threads)]


def test_two_hyphens_that_a_page_prints_as_a_dash() -> None:
    text = "sysbench –test=oltp –num-threads=8 –max-time=60 run\n"
    (call,) = reading_of(text).calls
    assert (call.test, call.connections) == ("oltp", 8)
    assert "P21" in codes_of(text)


def test_the_experiment_of_a_read_only_script_of_sysbench_0_5(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(
        "sysbench --test=oltp --oltp-read-only=on --num-threads=4 --max-time=9 run\n"
    )
    init(tmp_path / "x.toml", str(tmp_path / "a.sh"), tmp_path)
    assert [one.title for one in read(tmp_path / "x.toml").workloads] == ["oltp_read_only"]


def test_the_experiment_of_a_script_of_pgbench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.sh").write_text("for n in 2 8; do\n  pgbench -h db1 -s 50 -c $n -T 20 -S shop\ndone\n")
    init(tmp_path / "x.toml", str(tmp_path / "a.sh"), tmp_path)
    experiment = read(tmp_path / "x.toml")
    assert [point.connections for point in experiment.load.points()] == [2, 8]
    errors = capsys.readouterr().err
    assert "these options have no counterpart: --host=db1, --scale=50" in errors
    assert "private" in errors


def test_the_example_of_a_second_variant_speaks_the_protocol_of_the_first(tmp_path: Path) -> None:
    init(tmp_path / "x.toml", "sysbench oltp_read_only --db-driver=pgsql --threads=4 run", tmp_path)
    assert '# url = "postgresql://user@other-host:5432/sbtest"' in (tmp_path / "x.toml").read_text()
