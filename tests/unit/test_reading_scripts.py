"""Calls in scripts, jobs and programs, several files, and what `init --from` keeps of a wrapped script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.reading import codes_of, findings_of, reading_of, summary
from tests.unit.test_read_command import run

from dbdyno.commands.init import init
from dbdyno.experiment.reading import read
from dbdyno.problem import Problem

CALL = "sysbench oltp_read_only --mysql-host=db1 --threads={} run"


def loads(text: str) -> list[int | None]:
    return [one.connections for one in reading_of(text, "a.sh").calls]


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ('L=(3 9)\nfor n in "${L[@]}"; do', [3, 9]),
        ("for n in $(seq 4); do", [1, 2, 3, 4]),
        ("for n in `seq 5 5 15`; do", [5, 10, 15]),
        ("for n in {2..4} {10,30}; do", [2, 3, 4, 10, 30]),
        ("for n in {1..9..4}; do", [1, 5, 9]),
        ("for ((n = 1; n < 9; n *= 2)); do", [1, 2, 4, 8]),
        ("M=3\nfor ((n=1;n<=M;n++)); do", [1, 2, 3]),
        ("for ((n=2; n<=8; n=n+3)); do", [2, 5, 8]),
        ("L=$(seq 1 2)\nfor n in $L; do", [1, 2]),
        ("L=( $(seq 6 7) )\nfor n in ${L[*]}; do", [6, 7]),
    ],
)
def test_the_values_of_loops(loop: str, expected: list[int]) -> None:
    assert loads(f"{loop}\n  {CALL.format('$n')}\ndone\n") == expected


def test_the_arguments_of_a_function() -> None:
    text = f"bench() {{\n  local users=$2\n  {CALL.format('$users').replace('db1', '$1')}\n}}\n"
    calls = reading_of(f"{text}for n in 7 11; do bench db9 $n; done\n", "a.sh").calls
    assert [(one.connections, one.options["mysql-host"]) for one in calls] == [(7, "db9"), (11, "db9")]


@pytest.mark.parametrize(
    "text",
    [
        f'bash -c "{CALL.format(12)}"',
        f"ssh -t client '{CALL.format(12)} | tee out'",
        'subprocess.run(["sysbench", "oltp_read_only", "--mysql-host=db1", "--threads=12", "run"])',
        f'os.system("{CALL.format(12)}")',
        f"docker run --rm some/sysbench {CALL.format(12)}",
        'command: ["sysbench"]\nargs: ["oltp_read_only", "--mysql-host=db1", "--threads=12", "run"]',
        "command:\n- sysbench\nargs:\n- oltp_read_only\n- --mysql-host=db1\n- --threads=12\n- run\nname: x",
        f'args: ["/bin/sh", "-c", "{CALL.format(12)}"]',
    ],
)
def test_a_call_in_quotes_in_a_list_and_in_a_job(text: str) -> None:
    (call,) = reading_of(text, "job").calls
    assert (call.test, call.phase, call.options) == (
        "oltp_read_only", "run", {"mysql-host": "db1", "threads": "12"},
    )  # fmt: skip


def prepare(host: str, rows: str, tables: str = "4") -> str:
    return f"sysbench oltp_read_write --mysql-host={host} --tables={tables} --table-size={rows} prepare\n"


def test_the_default_sizes_of_a_run() -> None:
    short = "sysbench oltp_read_write --mysql-host=db1 --threads=4 --time=60 run\n"
    (found,) = (one for one in findings_of(prepare("db1", "50000") + short) if one.code == "P01")
    assert found.level == "stop"
    assert "table-size is 10000 (the default), not 50000" in found.text
    assert "10,000 of 50,000 rows" in found.text
    assert "P01" not in codes_of(prepare("db1", "10000", "1") + short)
    # A call that the document cuts has options that are not shown.
    assert "P01" not in codes_of(prepare("db1", "50000") + short.replace("--threads", "... --threads"))


def test_the_rows_of_two_servers() -> None:
    both = prepare("db1", "1000") + prepare("db2", "{}")
    runs = "".join(prepare(f"db{n}", rows).replace("prepare", "run") for n, rows in ((1, "1000"), (2, "{}")))
    assert "P01" not in codes_of((both + runs).replace("{}", "1000"))
    found = [one for one in findings_of((both + runs).replace("{}", "5000")) if one.code == "P01"]
    assert ["the servers have different data" in one.text for one in found] == [True]


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (f"{CALL.format(8)} > o\necho 1 >> all.csv\n", True),
        (f"{CALL.format(8)} | tee --append all.csv\n", True),
        (f": > all.csv\n{CALL.format(8)} >> all.csv\n", False),
        (f"echo a,b | tee all.csv\n{CALL.format(8)} >> all.csv\n", False),
        (f"D=run-$(date +%s)\n{CALL.format(8)} >> $D/all.csv\n", False),
        (f"{CALL.format(8)} >> /dev/null\n", False),
    ],
)
def test_a_file_that_is_appended_to_and_never_emptied(text: str, *, is_found: bool) -> None:
    assert ("R11" in codes_of(text)) is is_found


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("", True),
        ("ssh -N -L 3399:db1.example.com:3306 bastion\n", False),
        ("listen db\n  bind *:3399\n  server one 10.0.0.7:3306\n", False),
        ("listen db\n  bind *:3399\n  server one 127.0.0.1:3306\n", True),
        ("listen db\n  bind *:4400\n  server one 10.0.0.7:3306\n", True),
    ],
)
def test_a_proxy_on_this_machine_is_no_server(text: str, *, is_found: bool) -> None:
    call = "sysbench oltp_read_only --mysql-host=127.0.0.1 --mysql-port=3399 --threads=8 --time=60 run\n"
    assert ("P11" in codes_of(text + call)) is is_found


@pytest.mark.parametrize(
    "text",
    [
        "Variable_name\tValue\nsync_binlog\t0\nmax_connections\t99\n",
        "Variable_name,Value\nsync_binlog,0\nmax_connections,99\n",
        "Variable_name: sync_binlog\n  Value: 0\n*** 2. row ***\nVariable_name: max_connections\nValue: 99\n",
    ],
)
def test_settings_that_a_client_printed(text: str) -> None:
    (block,) = reading_of(text).settings
    assert {name: value for name, (value, _) in block.values.items()} == {
        "sync_binlog": "0", "max_connections": "99",
    }  # fmt: skip


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("Roses are red.\n")
    with pytest.raises(Problem, match=r"nothing was read from .*poem\.txt") as raised:
        run(tmp_path / "poem.txt")
    assert raised.value.exit_code == 2
    assert "CSV" in raised.value.fix


def test_two_files_are_two_variants(tmp_path: Path) -> None:
    for name, rate in (("before", 1000), ("after", 1200)):
        (tmp_path / f"{name}.txt").write_text(summary(8, rate) + summary(16, 2 * rate))
    answer = run(tmp_path / "before.txt", tmp_path / "after.txt", output="json")
    compared = json.loads(answer.stdout)[2]
    (change,) = (one for one in compared["changes"] if one["figure"] == "tps")
    assert (change["baseline"], change["variant"]) == ("before", "after")
    assert change["change_percent"] == [20, 20]
    assert compared["verdict"].startswith("Exploratory")
    assert [one["code"] for one in compared["findings"]] == ["P15"]
    text = run(tmp_path / "before.txt", tmp_path / "after.txt").stdout
    assert "after against before: transactions/s +20.0 %, +20.0 %" in text


def test_files_with_several_variants_are_compared_variant_by_variant(tmp_path: Path) -> None:
    for name, factor in (("old", 1), ("new", 2)):
        table = f"pool,clients,tps\noff,8,{100 * factor}\non,8,{150 * factor}\n"
        (tmp_path / f"{name}.csv").write_text(table)
    compared = json.loads(run(tmp_path / "old.csv", tmp_path / "new.csv", output="json").stdout)[2]
    assert [(one["variant"], one["change_percent"]) for one in compared["changes"]] == [
        ("new", [100.0]), ("new", [100.0]),
    ]  # fmt: skip


def test_a_wrapped_script_keeps_servers_loads_and_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.sh").write_text(
        "#!/bin/bash\nHOSTS=(db-a db-b)\nbench() {\n"
        "  sysbench $2 --mysql-host=$1 --tables=2 --table-size=5000 --threads=$3 --time=60 run\n}\n"
        'mysql -h db-a -e "SET GLOBAL sync_binlog = 0"\n'
        'for host in "${HOSTS[@]}"; do for n in 4 32; do\n'
        "  bench $host oltp_read_only $n\n  bench $host oltp_write_only $n\n"
        "done; done\npgbench -h db-a -c 8 -T 60 shop\n"
    )
    init(tmp_path / "x.toml", str(tmp_path / "all.sh"), tmp_path / "results")
    experiment = read(tmp_path / "x.toml")
    assert [one.title for one in experiment.workloads] == ["oltp_read_only", "oltp_write_only"]
    assert [point.connections for point in experiment.load.points()] == [4, 32]
    assert [(one.name, one.server.url) for one in experiment.variants] == [
        ("db-a", "mysql://sbtest@db-a:3306/sbtest"), ("db-b", "mysql://sbtest@db-b:3306/sbtest"),
    ]  # fmt: skip
    errors = capsys.readouterr().err
    assert 'line 6 is left out: mysql -h db-a -e "SET GLOBAL sync_binlog = 0"' in errors
    assert "line 11 is left out: the call of pgbench" in errors
