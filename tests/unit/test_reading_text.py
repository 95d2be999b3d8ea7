"""Documents as people publish them: old versions, pages, wrapped and broken lines, and pages that mean
harm.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.reading import codes_of, reading_of, summary

from dbdyno.problem import Problem
from dbdyno.reading.document import load, parse
from dbdyno.reading.limits import DOCUMENT_BYTES_MAX
from dbdyno.reading.reading import read

OLD = """\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Number of threads: 16

OLTP test statistics:
    queries performed:
        read:                            140000
        write:                           50000
        other:                           20000
        total:                           210000
    transactions:                        10000  (1234.56 per sec.)
    deadlocks:                           3      (0.37 per sec.)
    read/write requests:                 190000 (23456.64 per sec.)
    other operations:                    20000  (2469.12 per sec.)

Test execution summary:
    total time:                          8.1001s
    total number of events:              10000
    per-request statistics:
         min:                                  2.51ms
         avg:                                 12.95ms
         max:                                110.20ms
         approx.  95 percentile:              25.31ms

Threads fairness:
    events (avg/stddev):           625.0000/4.20
    execution time (avg/stddev):   8.0938/0.00
"""
HAMMERDB = """\
Vuser 1:16 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 456789 NOPM from 1051234 PostgreSQL TPM
"""
PGBENCH = """\
pgbench (9.5.3)
starting vacuum...end.
transaction type: TPC-B (sort of)
scaling factor: 10
number of clients: 4
duration: 60 s
number of transactions actually processed: 60000
latency average: 4.000 ms
tps = 1000.000000 (including connections establishing)
tps = 1001.000000 (excluding connections establishing)
"""


def values(text: str, name: str = "a.txt") -> list[dict[str, float]]:
    found = reading_of(text, name).results
    return [
        {key: one.value for key, one in result.figures.items()} | {"at": result.connections or 0}
        for result in found
    ]


def test_sysbench_0_4() -> None:
    (found,) = values(OLD)
    assert found["at"] == 16
    assert {name: found[name] for name in ("tps", "qps", "errors", "elapsed_s", "mean_ms", "p95_ms")} == {
        "tps": 1234.56, "qps": 23456.64, "errors": 3, "elapsed_s": 8.1001, "mean_ms": 12.95, "p95_ms": 25.31,
    }  # fmt: skip


def test_hammerdb_and_pgbench() -> None:
    assert values(HAMMERDB) == [{"nopm": 456789, "tpm": 1051234, "at": 16}]
    (found,) = values(PGBENCH)
    assert (found["tps"], found["mean_ms"], found["at"]) == (1000, 4, 4)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_lines_are_those_of_the_file(end: str) -> None:
    text = "\n\n" + summary(8, 1000)
    found = read(parse(text.replace("\n", end).encode(), "a.txt")).results
    assert len(found) == 1
    assert text.split("\n")[found[0].figures["tps"].index].strip().startswith("transactions:")


def test_a_page_with_entities_and_a_table() -> None:
    page = f"""<!DOCTYPE html><html><head><style>td {{ x: 1 }}</style><script>tps = 5</script></head><body>
    <h2>Before</h2><pre>{summary(8, 1000).replace(" ", "&nbsp;")}</pre>
    <h2>After</h2><pre>{summary(8, 1100).replace(":", "&#58;")}</pre>
    <table><tr><th rowspan="2">threads</th><th colspan="2">tps</th></tr>
    <tr><th>old (tps)</th><th>new (tps)</th></tr>
    <tr><td>16</td><td>1,200</td><td>1,300</td></tr></table></body></html>"""
    found = read(parse(page.encode(), "page.html"))
    assert [(one.label, one.results[0].value("tps")) for one in found.series] == [
        ("Before", 1000.0), ("After", 1100.0), ("old", 1200.0), ("new", 1300.0),
    ]  # fmt: skip
    # The line of the page, not of its text.
    line = found.document.numbers[found.results[0].figures["tps"].index]
    assert "transactions:" in page.splitlines()[line - 1]


def test_wrapped_commands_are_one() -> None:
    text = (
        "sysbench oltp_read_only \\\n  --threads=8 \\\n  --time=60 run\n\n"
        "sysbench oltp_read_write --mysql-host=x\n--threads=4 --time=9\nrun\n"
    )
    calls = reading_of(text).calls
    assert [(one.test, one.phase, one.connections, one.number("time")) for one in calls] == [
        ("oltp_read_only", "run", 8, 60),
        ("oltp_read_write", "run", 4, 9),
    ]


def test_half_an_output_is_read_as_far_as_it_goes() -> None:
    whole = summary(8, 1000)
    (found,) = values(whole[: whole.index("General statistics")])
    assert found["tps"] == 1000
    assert "mean_ms" not in found
    assert values(whole[: whole.index("    transactions:")]) == []


@pytest.mark.parametrize(
    "text",
    [
        "<table>" * 20_000,
        "<td rowspan=999999 colspan=999999>1" * 2_000,
        "<pre>" + "&amp;" * 100_000,
        "<!--" * 50_000,
        "<a " * 50_000,
        "|" * 200_000,
        "| threads | tps |\n" + "|" * 100 + "\n" * 1000,
        "sysbench " + "--threads=" * 10_000,
        "for a in 1 2 3 4 5 6 7 8 9; do for b in $a $a $a $a; do sysbench oltp_read_only --threads=$a$b "
        "run; done; done\n" * 10,
        "[ 1s ] thds: 1 tps: " * 20_000,
        "tps = " * 50_000,
        "INSERT INTO t SELECT * FROM t;\n" * 2_000,
        "(" * 100_000 + "sysbench run",
        "\\\n" * 50_000 + "sysbench run",
        "1 2 3 4\n" * 5_000,
        "x" * 1_000_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_document_that_means_harm_is_read(text: str) -> None:
    for name in ("a.txt", "a.html"):
        codes_of(text) if name == "a.txt" else reading_of(text, name)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(Problem, match="is no text"):
        load(tmp_path / "a.bin")
    with pytest.raises(Problem, match="No such file"):
        load(tmp_path / "missing.txt")
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(DOCUMENT_BYTES_MAX + 1)
    with pytest.raises(Problem, match="reads at most 256 MiB"):
        load(tmp_path / "big.txt")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp949"])
def test_encodings_of_korean_pages(encoding: str) -> None:
    text = "## 변경 전\n" + summary(8, 1000)
    (found,) = read(parse(text.encode(encoding), "a.txt")).series
    assert found.label == "변경 전"
