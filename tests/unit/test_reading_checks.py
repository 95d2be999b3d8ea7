"""Every check of documents: a document in which it finds a mistake, and a similar one in which it finds
none.
"""

from __future__ import annotations

import pytest
from tests.unit.reading import codes_of, findings_of, summary

from dbdyno.reading.checks import all_checks
from dbdyno.reading.reading import Reading

PREPARE = "sysbench oltp_read_write --mysql-host=db1 --tables=4 --table-size=100000 --threads=4 prepare\n"
RUN = "sysbench oltp_read_write --mysql-host=db1 --tables=4 --table-size=100000 --threads=8 --time=60 run\n"
READ = "sysbench oltp_read_only --mysql-host=db1 --tables=4 --table-size=100000 --threads=8 --time=60 run\n"
TWO = f"## before\n{summary(8, 1000)}\n## after\n{summary(8, 1100)}\n"
MYCNF = "[mysqld]\ninnodb_buffer_pool_size = 8G\ninnodb_io_capacity = {io}\nmax_connections = {connections}\n"
LOOP = """#!/bin/bash
{first}
for T in 2 4 8; do
  sysbench oltp_read_only --mysql-host=db1 --threads=$T --time=60 run | tee out.$T
  tps=$(grep transactions: out.$T | awk '{{print $3}}')
  echo $T $tps
done
"""
SLAP = """
mysqlslap --concurrency={clients} --iterations=1 --query="{query}"
Benchmark
	Average number of seconds to run all queries: {seconds} seconds
	Minimum number of seconds to run all queries: {seconds} seconds
	Maximum number of seconds to run all queries: {seconds} seconds
	Number of clients running queries: {clients}
	Average number of queries per client: 100
"""


def instances(number: int, *seconds: float) -> str:
    runs = (
        SLAP.format(clients=n, seconds=one, query="SELECT 1") for n, one in zip((1, 8), seconds, strict=True)
    )
    return f"[mysqld]\ninnodb_buffer_pool_instances = {number}\n\n" + "\n".join(runs)


def sweep(*rates: float) -> str:
    rows = "\n".join(f"| {2**at} | {rate} |" for at, rate in enumerate(rates))
    return f"| threads | tps |\n|---|---|\n{rows}\n"


def intervals(*rates: float) -> str:
    lines = "\n".join(
        f"[ {10 * at}s ] thds: 8 tps: {rate:.2f} qps: 1.00" for at, rate in enumerate(rates, start=1)
    )
    return summary(8, 1000, intervals=lines)


INSERTS = (
    "CREATE TABLE t (a INT);\nINSERT INTO t (a) VALUES (1), (2);\nINSERT INTO t (a) SELECT a FROM t;\n"
    "mysql> select count(*) from t;\n+----------+\n| count(*) |\n+----------+\n|        {rows} "
    "|\n+----------+\n"
)
CREATE = "aws rds create-db-instance --db-instance-identifier bench-a --db-instance-class db.r6g.large\n"
CLAIM = "\n## Result\n\nThe second variant has 16 % more transactions.\n"
CASES = {
    "P01": (PREPARE + RUN.replace("100000", "500000"), PREPARE + RUN),
    "P02": (INSERTS.format(rows=8), INSERTS.format(rows=4)),
    "P03": (
        CREATE
        + "sysbench oltp_read_only --mysql-host=bench-b.x.eu.rds.amazonaws.com --time=60 --threads=8 run\n",
        CREATE
        + "sysbench oltp_read_only --mysql-host=bench-a.x.eu.rds.amazonaws.com --time=60 --threads=8 run\n",
    ),
    "P04": (
        MYCNF.format(io=200, connections=9) + TWO,
        "| Variable_name | Value |\n| innodb_io_capacity | 200 |\n" + TWO,
    ),
    "P05": (
        f"## A\n{MYCNF.format(io=200, connections=9)}\n## B\n{MYCNF.format(io=900, connections=99)}",
        f"## A\n{MYCNF.format(io=200, connections=9)}\n## B\n{MYCNF.format(io=900, connections=9)}",
    ),
    "P06": (
        "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n",
        "[mysqld]\ninnodb_flush_log_at_trx_commit = 1\n",
    ),
    "P07": (RUN.replace("--threads=8", "--threads=2000"), RUN),
    "P08": (
        SLAP.format(clients=1, seconds=9, query="SELECT * FROM t WHERE id = FLOOR(RAND() * 100)"),
        SLAP.format(clients=1, seconds=9, query="SELECT * FROM t WHERE id = 17"),
    ),
    "P10": (
        f"## A\nOS: Debian 12\n## B\nOS: Debian 13\n{TWO}",
        f"## A\nOS: Debian 12\n## B\nOS: Debian 12\n{TWO}",
    ),
    "P11": (READ.replace("db1", "localhost"), READ),
    "P12": (READ.replace("=8", "=2") + summary(2, 50), READ.replace("=8", "=2") + summary(2, 500)),
    "P14": (PREPARE.replace("100000", "9000000") + MYCNF.format(io=200, connections=9), PREPARE),
    "P15": (
        TWO,
        "\n".join(f"## {name}, run {n}\n{summary(8, 1000 + n)}" for n in range(6) for name in ("old", "new")),
    ),
    "P16": (sweep(900, 800, 700), sweep(700, 800, 900)),
    "P17": (
        instances(1, 9.0, 9.0) + instances(8, 9.0, 8.0),
        instances(1, 9.0, 9.0) + instances(8, 9.0, 8.0) + "SHOW STATUS",
    ),
    "P18": (RUN.replace("60", "10") + summary(8, 1000, seconds=10), RUN + summary(8, 1000)),
    "P20": (
        RUN.replace("--tables", "--mysql-password=hunter2 --tables"),
        RUN.replace("--tables", "--mysql-password=xxxx --tables"),
    ),
    "P21": (RUN.replace("--threads=8", "--threads={2~3000}"), RUN),
    "D03": (
        summary(8, 1000).replace("errors:                      0 ", "errors:                      900 "),
        summary(8, 1000),
    ),
    "R01": (intervals(*[1000.0] * 6, *[500.0] * 6), intervals(*[1000.0] * 12)),
    "R02": (PREPARE + RUN + RUN.replace("=8", "=16"), PREPARE + READ + READ.replace("=8", "=16")),
    "R03": (READ.replace("=60", "=10") + summary(8, 1000), READ + summary(8, 1000)),
    "R04": (LOOP.format(first=""), LOOP.format(first="set -euo pipefail")),
    "R05": (instances(1, 9.0, 9.0) + instances(8, 8.0, 8.0), instances(1, 9.0, 9.0) + instances(8, 9.0, 8.0)),
    "R06": (
        "| threads | tps old | tps new |\n|---|---|---|\n| 1 | 100 | 90 |\n| 8 | 300 | 400 |\n",
        "| threads | tps old | tps new |\n|---|---|---|\n| 1 | 100 | 110 |\n| 8 | 300 | 400 |\n",
    ),
    "R07": (sweep(100, 200, 400, 800), sweep(100, 200, 300, 290)),
    "R11": (LOOP.format(first="").replace("tee", "tee -a"), LOOP.format(first="")),
    "Q02": (
        TWO + "\nThe throughput before is higher than after.\n",
        TWO + "\nThe throughput after is higher than before.\n",
    ),
    "Q03": ("threads: 2, 4, 8" + CLAIM, TWO + CLAIM),
    "Q04": ("![](a.png)\n\n![](a.png)" + CLAIM, "![](a.png)\n\n![](b.png)\n" + TWO + CLAIM),
    "Q05": (READ.replace("--time", "--skip-trx=1 --time") + READ, READ + READ.replace("=8", "=16")),
    "Q07": (TWO + "\nIn production the improvement would be even more.\n", TWO + CLAIM),
    "Q09": (
        "db.r5.large and db.r6g.large\n" + TWO,
        "db.r5.large ($0.30 per hour) and db.r6g.large ($0.27 per hour)\n" + TWO,
    ),
    "P13": (
        sweep(*range(100, 1100, 100)),
        sweep(*range(100, 1100, 100)) + "\nThe client host had 40 % idle CPU at 512 threads.\n",
    ),
    "P19": (
        "docker run --memory=8g mysql:8.4\n" + MYCNF.format(io=200, connections=100),
        "docker run --memory=16g mysql:8.4\n" + MYCNF.format(io=200, connections=100),
    ),
    "Q08": (TWO, "| threads | tps old | tps new |\n|---|---|---|\n| 1 | 100 | 110 |\n"),
}


@pytest.mark.parametrize("code", CASES)
def test_it_finds_the_mistake_and_nothing_in_a_similar_document(code: str) -> None:
    wrong, right = CASES[code]
    assert code in codes_of(wrong)
    assert code not in codes_of(right)


def test_every_check_has_its_two_documents() -> None:
    assert {check.code for check in all_checks()} == set(CASES)


def test_a_check_needs_what_a_reading_has() -> None:
    known = {*Reading.__dataclass_fields__, *vars(Reading)}
    assert not [(check.code, name) for check in all_checks() for name in check.needs if name not in known]


def test_the_order_of_the_runs_counts() -> None:
    blocks = [f"## {name}, run {n}\n{summary(8, 1000 + n)}" for name in ("old", "new") for n in range(6)]
    (order,) = (one for one in findings_of("\n".join(blocks)) if one.code == "P15")
    assert "all of one variant before all of the next: what changed on the machine" in order.text


def test_a_clean_document_raises_no_stop() -> None:
    runs = "\n".join(
        f"## {name}\n{summary(8, 1000 + 3 * n + 50 * (name == 'new'))}"
        for n in range(8)
        for name in ("old", "new")
    )
    found = findings_of(
        f"{READ}\n{runs}\n\nThe throughput of new is higher, by 4.2 % (95 % CI 3.9 to 4.6 %).\n"
    )
    assert not [one for one in found if one.level in ("stop", "warn")], [one.summary for one in found]


def test_an_image_for_another_processor_may_be_emulated() -> None:
    (found,) = (one for one in findings_of("docker run --platform linux/amd64 mysql\n") if one.code == "P19")
    assert (found.level, found.evidence["lines"]) == ("warn", [1])
    assert "linux/amd64" in found.text


def test_a_finding_names_its_lines() -> None:
    (found,) = (
        one for one in findings_of(f"\n\n{PREPARE}\n{RUN.replace('100000', '500000')}") if one.code == "P01"
    )
    assert found.evidence["lines"] == [3, 5]
    assert found.text.endswith("Of uniform keys 80 % name no row")


def test_no_password_is_in_a_finding() -> None:
    text = PREPARE.replace("--tables", "--mysql-password=hunter2 --tables") + RUN
    assert not [one for one in findings_of(text) if "hunter2" in one.message]


@pytest.mark.parametrize(
    ("sentence", "is_stop"),
    [
        ("After the change throughput was lower.", True),
        ("After the change throughput was higher.", False),
        ("The latency after the change is lower.", False),
        ("The latency after the change is higher.", True),
        ("Before was faster.", True),
        ("After was not faster.", False),
        ("We test whether after is slower.", False),
        ("after 가 before 보다 더 많은 트랜잭션을 처리했다.", False),
        ("after 가 before 보다 성능이 저하되었다.", True),
        ("before 의 응답속도가 더 빠르다.", True),
    ],
)
def test_the_sign_of_a_sentence(sentence: str, *, is_stop: bool) -> None:
    stops = [one for one in findings_of(f"{TWO}\n{sentence}\n") if one.code == "Q02" and one.level == "stop"]
    assert bool(stops) is is_stop


@pytest.mark.parametrize(
    "sentence", ["after is definitely faster by 10 %", "after 의 성능이 반드시 빠르다 확실히"]
)
def test_a_certain_sentence_needs_an_interval(sentence: str) -> None:
    assert "Q02" in codes_of(f"{TWO}\n{sentence}.\n")
    assert "Q02" not in codes_of(f"{TWO}\n{sentence} (95 % CI 9 to 11 %).\n")


@pytest.mark.parametrize(
    ("percent", "level"), [("10 %", None), ("11 %", None), ("40 %", "stop"), ("2 %", "stop")]
)
def test_the_size_of_a_sentence(percent: str, level: str | None) -> None:
    found = [
        one for one in findings_of(f"{TWO}\nThe throughput after is {percent} higher.\n") if one.code == "Q02"
    ]
    assert [one.level for one in found] == ([level] if level else [])


@pytest.mark.parametrize(
    ("settings", "is_weak"),
    [
        ("sync_binlog = 500", True),
        ("sync_binlog = 1", False),
        ("sync_binlog = 500\nlog_bin = OFF", False),
        ("innodb_flush_method = NOSYNC", True),
        ("innodb_flush_method = O_DIRECT", False),
        ("innodb_doublewrite = 0", True),
        ("transaction_isolation = READ-COMMITTED", False),
    ],
)
def test_settings_that_lose_transactions(settings: str, *, is_weak: bool) -> None:
    assert ("P06" in codes_of(f"[mysqld]\n{settings}\n")) is is_weak
