"""The command line as sysbench 1.0.20 has it: grammar, options, values, texts and exit codes; no server.

What needs a connection runs against `--mysql-dry-run`, which answers everything from memory on both sides.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.end_to_end.differential import Case, drop_in, said, same, scripts

DRY = "--mysql-dry-run --table-size=100"
# A run of nearly nothing, for whatever is to be tried on one.
POINT = f"oltp_point_select {DRY}"

TEXTS = [
    "--help",
    "--help=on",
    "--version",
    "--version --help",
    "--version --threads=0",
    "--help nowhere run --bogus",
    "help oltp_read_only",
    "oltp_read_only help --bogus",
    *(f"{name} help" for name in scripts()),
    "oltp_common help",
    "/usr/share/sysbench/oltp_read_write.lua help",
]

GRAMMAR = [
    "-x run",
    "run",
    "prepare",
    "nowhere",
    "nowhere run",
    "nowhere.lua run",
    "./nowhere.lua run",
    "run oltp_read_only",
    f"--events=2 {POINT} --threads=1 run --tables=1",
    f"{POINT} run --events=2 --point_selects=5 --report_interval=7",
    f"--test={POINT} --events=2 run",
    f"--test={POINT} run --events=2 --tables=1",
    f"{POINT} run --num-threads=2 --max-requests=4 --max-time=3",
    *(f"{POINT} run --tx-rate=9 --num-threads=2 --max-requests=4 --verbosity={level}" for level in range(3)),
    f"{POINT} bogus --time=0 --verbosity=0",
    f"{POINT} run --events=2 --events=3",
    f"{POINT} run extra",
    f"{POINT} run extra more",
    f"{POINT} --bogus=1",
    f"{POINT} run --events=1 --thread=1",
    f"{POINT} run --",
    f"{POINT} run --=1",
    "oltp_read_write",
    "bulk_insert",
    "bulk_insert --bogus=1",
    "oltp_read_write bogus",
    f"oltp_read_write run --bogus {DRY}",
    f"oltp_read_write run --point_select=1 {DRY}",
    f"bulk_insert run --events=3 --bogus=1 {DRY}",
    f"oltp_common run {DRY}",
    f"oltp_point_select warmup {DRY}",
    f"select_random_points bogus {DRY}",
]

VALUES = [
    f"{POINT} run --threads=abc",
    f"{POINT} run --threads=",
    f"{POINT} run --threads=0",
    f"{POINT} run --threads=1.5",
    f"{POINT} run --threads=99999999999",
    f"{POINT} run --time=10s",
    f"{POINT} run --time=-1 --events=1",
    f"{POINT} run --rate=x",
    f"{POINT} run --verbosity=6",
    f"{POINT} run --percentile=101",
    f"{POINT} run --percentile=-1",
    f"{POINT} run --percentile=x",
    f"{POINT} run --percentile=0 --histogram --events=1",
    f"{POINT} run --histogram=maybe --events=1",
    f"{POINT} run --histogram=True --events=1",
    f"{POINT} run --debug=2 --events=1",
    f"{POINT} run --rand-type=bogus --events=1",
    f"{POINT} run --report-checkpoints=x --events=1",
    f"{POINT} run --report-checkpoints=-1 --events=1",
    f"{POINT} run --report-checkpoints=9,8 --events=1",
    f"{POINT} run --forced-shutdown=abc --events=1",
    f"{POINT} run --forced-shutdown=5% --events=1",
    f"{POINT} run --forced-shutdown= --events=1",
    f"{POINT} run --forced-shutdown=3 --events=1",
    f"{POINT} run --forced-shutdown=3000000000 --events=1",
    f"{POINT} run --forced-shutdown=5x --events=1",
    f"{POINT} run --time=2147483647 --report-interval=2147483647 --events=1",
    "oltp_read_only run --mysql-host= --events=1",
    "oltp_read_only prepare --mysql-port=",
    "/usr/share/sysbench/oltp_read_only.lua run --mysql-host= --events=1",
    "/usr/share/sysbench/oltp_read_only.lua run --db-driver=bogus --events=1",
    "/usr/share/sysbench/oltp_read_only.lua cleanup --db-ps-mode=bogus",
    f"{POINT} run --thread-stack-size=x --events=1",
    f"oltp_read_only run --db-ps-mode=bogus --events=1 {DRY}",
    f"oltp_read_only run --db-driver=bogus --events=1 {DRY}",
    f"oltp_read_only run --db-driver= --events=1 {DRY}",
    f"oltp_read_only run --skip_trx=maybe --events=1 {DRY}",
    f"select_random_points run --tables=2 --events=1 {DRY}",
]

# By events and not by the clock, one thread: every count is the same on both sides.
RUNS = [
    *(f"{name} run --events=20 --tables=2 {DRY}" for name in scripts() if name.startswith("oltp")),
    f"select_random_points run --events=20 {DRY}",
    f"select_random_ranges run --events=20 {DRY}",
    f"oltp_read_write run --events=20 --skip_trx {DRY}",
    f"oltp_read_write run --events=20 --range_selects=off --point_selects=3 {DRY}",
    f"oltp_read_write run --events=20 --db-ps-mode=disable {DRY}",
    f"oltp_read_write run --events=20 --threads=4 {DRY}",
    f"oltp_write_only run --events=20 --delete_inserts=3 --index_updates=0 {DRY}",
    f"oltp_point_select run --events=20 --percentile=99 {DRY}",
    f"oltp_point_select run --events=20 --percentile=0 {DRY}",
    f"oltp_point_select run --events=20 --percentile=1 --histogram {DRY}",
    f"oltp_point_select run --events=20 --rand-seed=42 --rand-type=pareto {DRY}",
    f"oltp_point_select run --events=20 --rand-type=gaussian --rand-spec-iter=3 {DRY}",
    f"oltp_point_select run --events=20 --report-interval=5 --report-checkpoints=30,20 {DRY}",
    f"oltp_point_select run --events=20 --forced-shutdown=5 --time=7 {DRY}",
    f"oltp_point_select run --events=20 --time=0 {DRY}",
    f"oltp_point_select run --events=20 --validate {DRY}",
    f"oltp_point_select run --events=20 --db-debug {DRY}",
    f"oltp_point_select run --events=6 --threads=1 --debug --verbosity=3 {DRY}",
    *(f"oltp_point_select run --events=20 --verbosity={level} {DRY}" for level in range(5)),
    f"bulk_insert run --events=20 {DRY}",
]

# What is done with tables, which are nobody's here.
ON_TABLES = [
    f"oltp_read_write prepare --tables=3 {DRY} --table-size=7",
    f"oltp_read_write prepare --tables=3 --threads=1 --table-size=0 --create_secondary=off {DRY}",
    f"oltp_read_write prewarm --tables=2 {DRY}",
    f"oltp_read_write cleanup --tables=3 {DRY}",
    f"oltp_insert prepare --auto_inc=off {DRY}",
    f"select_random_ranges cleanup {DRY}",
    f"bulk_insert prepare --threads=2 {DRY}",
    f"bulk_insert cleanup --threads=2 {DRY}",
]
# The script refuses to drop the second table that it has made; natively both are dropped (docs/sysbench.md).
BY_SCRIPT = [f"select_random_ranges cleanup --tables=2 {DRY}"]

CONFIGS = {
    "values": ("threads=2\nevents=4\n", f"{POINT} run --config-file=f"),
    "the last one wins": ("threads=2\n", f"--threads=1 --config-file=f {POINT} run --events=4"),
    "overridden": ("threads=2\n", f"--config-file=f --threads=1 {POINT} run --events=4"),
    "comments and blanks": (
        "# a comment\n\nthreads=  2   # two\nevents=4\njust words\n",
        f"{POINT} run --config-file=f",
    ),
    "quotes": ("rand-type='uniform'\npercentile=\"99\"\n", f"{POINT} run --config-file=f --events=2"),
    "underscores": ("report_interval=7\n", f"{POINT} run --config-file=f --events=2"),
    "a bad number": ("threads=two\n", f"{POINT} run --config-file=f --events=2"),
    "a list": ("report-checkpoints=8,9\n", f"{POINT} run --config-file=f --events=2"),
    "the first of several": (
        "threads=2 4\nrand-type=uniform,pareto\n",
        f"{POINT} run --config-file=f --events=2",
    ),
    "on by any word": ("histogram=yes\n", f"{POINT} run --config-file=f --events=2"),
    "missing": ("", f"{POINT} run --config-file=nowhere.cfg --events=2"),
    "twice": ("threads=2\n", f"{POINT} run --config-file=f --config-file=f --events=2"),
    "version after it": ("threads=2\n", "--config-file=f --version"),
    "long lines": (f"rand-type=uniform{' ' * 300}\nevents=3\n", f"{POINT} run --config-file=f"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shims")


@pytest.mark.parametrize("arguments", TEXTS)
def test_texts(folder: Path, arguments: str) -> None:
    same(folder, Case("text", f"sysbench {arguments}", explained=True))


@pytest.mark.parametrize("arguments", GRAMMAR)
def test_grammar(folder: Path, arguments: str) -> None:
    same(folder, Case("grammar", f"sysbench {arguments}"))


@pytest.mark.parametrize("arguments", VALUES)
def test_values(folder: Path, arguments: str) -> None:
    same(folder, Case("value", f"sysbench {arguments}"))


@pytest.mark.parametrize("arguments", RUNS)
@pytest.mark.parametrize("way", ["native", "lua"])
def test_dry_runs(folder: Path, arguments: str, way: str) -> None:
    options = ("--lua",) if way == "lua" else ()
    same(folder, Case(way, f"sysbench {arguments} {{only}}", timed="bulk_insert run" in arguments), *options)


@pytest.mark.parametrize(
    ("arguments", "only"),
    [*((given, "") for given in ON_TABLES), *((given, "--lua") for given in [*ON_TABLES, *BY_SCRIPT])],
)
def test_dry_runs_on_tables(folder: Path, arguments: str, only: str) -> None:
    options = [only] if only else []
    same(folder, Case("tables", f"sysbench {arguments} {{only}}"), *options)


@pytest.mark.parametrize("name", CONFIGS)
def test_config_files(folder: Path, name: str) -> None:
    text, arguments = CONFIGS[name]
    same(folder, Case(name, f"sysbench {arguments}", files={"f": text}))


# What a script finds of a file's words.
WORDS = [
    'mysql-host="a,b",c\n',
    'mysql-host="a b" c d,,e\n',
    "mysql-host=,a,b,\n",
    "mysql-host='a'b\"c\"d\n",
    "mysql-user=it's#one\n",
    "mysql-user=a #b\nmysql-db=c,#d\n",
    'mysql-user="a b"#c\nmysql-db=,c\n',
    "mysql-user=\nmysql-host=\n",
    "validate=yes\nhistogram=\n",
]


@pytest.mark.parametrize("text", WORDS)
def test_words_of_config_files(folder: Path, text: str) -> None:
    script = """
        function init()
          local opt = sysbench.opt
          print(table.concat(opt.mysql_host, "|"), opt.mysql_user, opt.mysql_db, opt.validate, opt.histogram)
        end
        function event() return 1 end
    """
    files = {"f": text, "told.lua": script}
    same(folder, Case("words", "sysbench told.lua run --config-file=f --events=1", files=files))


def test_what_a_file_means_where_the_original_errs(folder: Path) -> None:
    """Each word but these is on; several percentiles are ours."""
    text = "histogram=off\nvalidate=no\npercentile=50,99\nevents=1k\ntable-size=1MB\n"
    case = Case("ours", "sysbench oltp_point_select --mysql-dry-run run --config-file=f", files={"f": text})
    done = said(drop_in(folder), case)
    assert done.exit_code == 0
    assert "Validation" not in done.raw
    assert "distribution" not in done.raw
    assert [word in done.raw for word in (" 50th percentile:", " 99th percentile:")] == [True, True]
    assert re.search(r"total number of events: +1024\n", done.raw)


def test_counts_take_a_suffix_and_seconds_none(folder: Path) -> None:
    """Where the original takes `1M` rows for one, and `1k` events for none."""
    loaded = "sysbench oltp_read_write prepare --mysql-dry-run --create_secondary=off --table-size="
    for size in ("1k", "1K", "1kb", "1KiB"):
        done = said(drop_in(folder), Case(size, loaded + size))
        assert "Inserting 1024 records into 'sbtest1'" in done.raw
    for time in ("10m", "1k"):
        done = said(drop_in(folder), Case(time, f"sysbench {POINT} run --time={time}"))
        assert f"Invalid value for the 'time' option: '{time}'" in done.raw
        assert done.exit_code == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--rand-spec-iter=5000", "--rand-spec-iter is 5000; it must be between 1 and 1000"),
        ("--rand-spec-res=101", "--rand-spec-pct is 1 and --rand-spec-res 101; the maximum is 100"),
        ("--threads=100000", "--threads is 100000; it must be between 1 and 65535"),
        (
            "--compat=1.1 --mysql-dry-run=off --mysql-ssl=verify_ca --mysql-ssl-ca=/nowhere",
            "--mysql-ssl-ca: /nowhere: No such file or directory",
        ),
    ],
)
def test_limits_are_told_by_the_options_name(folder: Path, options: str, told: str) -> None:
    done = said(drop_in(folder), Case("limit", f"sysbench {POINT} {options} --events=1 run"))
    assert done.exit_code == 1
    assert told in done.raw


def test_what_1_1_adds_is_listed_with_it(folder: Path) -> None:
    listed = said(drop_in(folder), Case("help", "sysbench --compat=1.1 oltp_read_write help")).raw
    assert re.search(r"^  --create_table_options=STRING .*\[\]$", listed, re.M)
    assert re.search(r"^  --reconnect=N .*\[0\]$", listed, re.M)
    general = said(drop_in(folder), Case("help", "sysbench --compat=1.1 --help")).raw
    assert re.search(r"^  --mysql-compression-algorithms=STRING .*\[zlib\]$", general, re.M)
    run = f"sysbench {{}} {POINT} run --events=20 --reconnect=5"
    assert said(drop_in(folder), Case("1.0", run.format(""))).exit_code == 1
    newer = said(drop_in(folder), Case("1.1", run.format("--compat=1.1")))
    assert re.search(r"reconnects: +4 ", newer.raw), newer.raw


def test_several_words_of_a_shell(folder: Path) -> None:
    by_xargs = f"echo oltp_read_only | xargs -I% sysbench % {DRY} run --events=1"
    run = f"sysbench --version | head -n 1; {by_xargs}; ! sysbench bogus"
    same(folder, Case("shell", run))


def test_a_reader_that_has_had_enough(folder: Path) -> None:
    same(folder, Case("pipe", f"sysbench --help | head -n 3; sysbench {POINT} run --events=2 | head -n 1"))
