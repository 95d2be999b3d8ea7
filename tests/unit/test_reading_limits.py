"""Documents beyond the limits of `dbdyno read`: the rest is read, the message names line, value and limit."""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from benchmarks.mutations.documents import NUMBERS, PLACES, UNITS, document, read_all
from tests.unit.reading import reading_of, summary

from dbdyno.commands.init import init
from dbdyno.problem import Problem
from dbdyno.reading import limits
from dbdyno.reading.checks import examine
from dbdyno.reading.document import load, parse
from dbdyno.reading.limits import sentence
from dbdyno.reading.reading import read

MIB = 1 << 20
LOOPS = "".join(f"for a{number} in 1 2 3 4 5 6 7 8 9; do\n" for number in range(20))
# A document -> what the message says that was left out.
BEYOND = {
    "x" * 20_000: "line 1: the line has 20,000 characters; the first 10,000 are read",
    f"{LOOPS}sysbench a --threads=" + "".join(f"$a{number}" for number in range(20)) + " run": (
        "line 21: the loops around the command have more than 500 passes"
    ),
    "for a in " + "1 " * 600 + "; do\n": "line 1: a has more than 500 values; the first 500 are read",
    'a="' + "x" * 5_000 + '"\nb=$a$a$a\n': "has a value of more than 1,000 characters",
    "a=" + "x" * 900 + "\nsysbench " + "$a" * 100 + " run\n": "the line has more than 10,000 characters",
    "<html><table><tr>" + "<td rowspan=100 colspan=100>a" * 20: "stand for more than 100,000 cells",
    "<html><table><tr>" + "<td>1" * 2_000 + "</table>": "the row has 2,000 cells; the first 1,000 are read",
    "| threads | tps |\n|--|--|\n" + "".join(f"| {n % 9 + 1} | {n} |\n" for n in range(20_100)): (
        "only the first 20,000 rows of the table are read"
    ),
    "| v | TPS |\n|--|--|\n"
    + "".join(f"| server{n} | 5 |\n" for n in range(1_100)): "only the first 1,000 variants",
    "A is 20 % faster than B.\n" * 2_100: "only the first 2,000 sentences that compare are read",
    "INSERT INTO t VALUES "
    + "(1),\n" * 50
    + "("
    + "1" * 9_000
    + ",\n"
    + "2" * 9_000
    + ",\n"
    + "3" * 9_000
    + ");": ("at most 20,000 of one"),
    "threads: " + "\nthreads 1,2,3" + "".join(f"\nthreads {n}, {n + 1}" for n in range(5, 3_000, 2)): (
        "only the first 1,000 planned loads are read"
    ),
}


def omissions(text: str) -> list[str]:
    reading = read(parse(text.encode(), "document"))
    examine(reading)
    return [f"line {one.line}: {sentence(one)}" for one in reading.document.left_out]


@pytest.mark.parametrize("text", BEYOND, ids=[f"{text[:40]!r}" for text in BEYOND])
def test_what_exceeds_a_limit_is_named(text: str) -> None:
    assert any(BEYOND[text] in one for one in omissions(text)), omissions(text)


def test_the_rest_of_the_document_is_read() -> None:
    reading = reading_of("x" * 20_000 + "\n" + summary(16, 1000.0))
    assert [one.connections for one in reading.results] == [16]
    assert reading.results[0].first == 7
    assert not omissions(summary(16, 1000.0))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_number_that_is_none_is_no_error(place: str, number: str) -> None:
    read_all(place.replace("{}", number).encode())
    read_all(b"<html>" + place.replace("{}", number).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfea\0b",
        b"\xff\xfe\x00\xd8\x00\xd8",
        b"\xef\xbb\xbf# a\r# b\r",
        b"a" * 5_000 + b"\0" * 5_000,
        bytes(range(1, 256)) * 20,
        b"\xed\xa0\x80",
        b"<html>" + b"<table><tr><td>" * 3_000,
        b"mysqlslap -c 1 --query='SELECT * FROM t WHERE "
        + b"(" * 4_000
        + b"RAND()"
        + b")" * 4_000
        + b" = 1'",
        b"mysqlslap -c 1 --query='SELECT * FROM t WHERE id = RAND() + " + b"1 + " * 4_000 + b"1'",
        b"INSERT INTO t VALUES " + b"(" * 9_000,
        b"INSERT INTO t SELECT * FROM " + b"(SELECT 1 UNION " * 900 + b";",
    ],
)
def test_other_bytes_are_no_error(content: bytes) -> None:
    read_all(content)


@pytest.mark.parametrize("number", range(40))
def test_a_document_of_mixed_parts_is_no_error(number: int) -> None:
    read_all(document(random.Random(f"test {number}"), 4_000))


def test_lines_end_by_carriage_returns_too() -> None:
    assert list(parse(b"a\rb\r\nc\nd", "a").texts) == ["a", "b", "c", "d"]


def test_many_equal_outputs_take_a_time_in_proportion() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    reading = reading_of(summary(64, 1000.0) * 1_000)
    examine(reading)
    assert len(reading.results) == 1_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 10


@pytest.mark.parametrize("place", ["/dev/zero", "/dev", "/missing", "a\0b", "x" * 5_000])
def test_what_is_no_document_is_refused(place: str) -> None:
    with pytest.raises(Problem):
        load(Path(place))


def test_a_pipe_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(summary(8, 100.0)))
    writer.start()
    assert len(read(load(pipe)).results) == 1
    writer.join(10)
    monkeypatch.setattr("dbdyno.reading.document._WRITER_TIMEOUT_S", 0.05)
    with pytest.raises(Problem, match="nobody writes"):
        load(pipe)


def test_init_has_the_same_limits(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="NUL"):
        init(tmp_path / "a.toml", "/dev/zero", tmp_path)
    with pytest.raises(Problem):
        init(tmp_path / "a.toml", "x" * 5_000, tmp_path)
    script = tmp_path / "a.sh"
    script.write_text(
        f"{LOOPS}sysbench oltp_read_only --threads=" + "".join(f"$a{n}" for n in range(4)) + " run\n"
    )
    init(tmp_path / "b.toml", str(script), tmp_path)
    assert "more than 500 passes" in " ".join((tmp_path / "b.toml").read_text().split())


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (500 * MIB, 500 * MIB))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("unit", UNITS)
def test_a_megabyte_takes_at_most_5_s_and_500_mb(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes((unit.encode() * MIB)[:1_000_000])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = subprocess.run(
        [sys.executable, "-m", "dbdyno", "read", str(path)],
        preexec_fn=_limit,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of most units nothing can be read.
    is_read = "nothing was read" not in answer.stderr
    is_stopped = re.search(r"\b[A-Z]\d\d stop ", answer.stdout) is not None
    assert answer.returncode == (2 if not is_read else 4 if is_stopped else 0), answer.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5


def test_limits_are_stated() -> None:
    page = (Path(__file__).parents[2] / "docs/reading.md").read_text()
    names = (
        "LINE_MAX",
        "PASSES_MAX",
        "COLUMNS_MAX",
        "ROWS_MAX",
        "VARIANTS_MAX",
        "CLAIMS_MAX",
        "RESULTS_MAX",
        "SQL_MAX",
    )
    assert not [name for name in names if f"{getattr(limits, name):,}" not in page]
    assert f"{limits.DOCUMENT_BYTES_MAX >> 20} MiB" in page
