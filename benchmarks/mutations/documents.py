"""Hostile and mutated documents, through everything that `dbdyno read` does with one."""

from __future__ import annotations

import random
from pathlib import Path

from dbdyno.problem import Problem
from dbdyno.reading.checks import examine
from dbdyno.reading.document import parse
from dbdyno.reading.reading import read
from dbdyno.reading.record import record
from dbdyno.reading.translation import translate_reading

from .mutate import mutate_text
from .trial import Tally

FIXTURES = Path(__file__).resolve().parents[2] / "tests/fixtures"
# What readers repeat, search an end for, or multiply; each is repeated to fill a document.
UNITS = (
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "7",
        "a",
        "가",
        "|",
        ",",
        ".",
        "-",
        "=",
        "<",
        ">",
        "'",
        '"',
        "`",
        "$",
        "(",
        "[",
        "*",
    ),
    *(
        "1 ",
        "1 2\n",
        "| 1 | 2 |\n",
        "|-|-|\n",
        "a  b\n",
        "# a\n",
        "a\\\n",
        "1,",
        "--a=",
        "a=$a\n",
        "x@",
        "a:b@",
    ),
    *(
        "<td>",
        "<tr>",
        "<td rowspan=100 colspan=100>",
        "<![CDATA[",
        "<!--",
        "<script>",
        "<pre>",
        "<svg>",
        '<a "',
    ),
    *("&#1", "&#99999999999;", "&lt;", "<html><p>", "<div>", "</td>", "<tr><td>1</td><td>2</td></tr>"),
    *("sysbench x --threads=1 run\n", "sysbench $a run ", "for a in 1 2 3; do\n", "for a in $a $a; do\n"),
    *('a="$a$a"\n', "--mysql-host=a ", "mysql -p1 ", "password: ", "'a'@'b' ", "rm a\n", ">> a\n"),
    *("INSERT INTO t VALUES (1);\n", "INSERT INTO t SELECT * FROM t;\n", "CREATE TABLE t\n", "((1,", "NOT "),
    *("mysqlslap --query='SELECT * FROM t WHERE id = RAND()' -c 1\n", "jit\n---\non\n", "[mysqld]\na_b=1\n"),
    *("Variable_name | Value |\n", "A is 20 % faster than B with 10 threads.\n", "queries performed:\n"),
    *("SQL statistics:\n transactions: 5 (3.0 per sec.)\n", "[ 1s ] thds: 4 tps: 3 \n", "tps = 5.0\n"),
    *("Average number of seconds to run all queries: 1.0\n", "System achieved 5 NOPM from 3 MySQL TPM\n"),
    *("| threads | a | b |\n| 1 | 2 | 3 |\n\n", "| x | TPS |\n| a | 5 |\n", "min lat", "avglat", "![a](b)"),
    *("a.rds.amazonaws.com ", "create-db-instance --db-instance-identifier a\n", "OS: a\n", "FATAL: x\n"),
)
# Numbers and bytes that stand where a number is expected.
NUMBERS = ("9" * 5_000, "1e999999", "-1", "nan", "inf", "1.2.3", "...", "0", "1e-300", "٣", "9" * 17, "1,,2")
PLACES = (
    "Number of threads: {}\nSQL statistics:\n transactions: {} ({} per sec.)\n",
    "| threads | tps |\n|-|-|\n| {} | {} |\n| 2 | {} |\n",
    "sysbench oltp_read_write --threads={} --tables={} --table-size={} --time={} run\n",
    "number of clients: {}\ntps = {} (including connections establishing)\nlatency average = {} ms\n",
    "Average number of seconds to run all queries: {} seconds\nNumber of clients running queries: {}\n",
    "System achieved {} NOPM from {} MySQL TPM\n",
    "[mysqld]\nmax_connections={}\ninnodb_buffer_pool_size={}G\ninnodb_redo_log_capacity={}\n",
    "with {} threads A is {} % faster, {}x\n&#{};\ncount(*) = {}\n",
    "for t in {} {}; do\nsysbench oltp_read_only --threads=$t run\ndone\n",
    "<table><tr><td rowspan={} colspan={}>{}</td></tr></table>\n",
)


def document(generator: random.Random, size: int = 20_000) -> bytes:
    """A document of real, hostile and mutated parts."""
    sources = sorted([*(FIXTURES / "documents").glob("*.*"), *(FIXTURES / "case_studies").glob("*.*")])
    parts: list[bytes] = [b"<html>\n"] if generator.random() < 0.15 else []
    while sum(map(len, parts)) < size and len(parts) < 12:
        kind = generator.randrange(4)
        if kind == 0:
            lines = generator.choice(sources).read_bytes().splitlines(keepends=True)
            start = generator.randrange(len(lines))
            parts += lines[start : start + generator.randrange(1, 80)]
        elif kind == 1:
            unit = generator.choice(UNITS)
            parts.append((unit * generator.choice((1, 3, 50, 2_000))).encode()[:size])
        elif kind == 2:
            place = generator.choice(PLACES)
            numbers = (generator.choice((*NUMBERS, "4", "16", "100.5")) for _ in range(place.count("{}")))
            parts.append(place.format(*numbers).encode())
        else:
            depth = generator.choice((10, 300, 3_000))
            parts.append(b"INSERT INTO t VALUES " + b"(" * depth + b"1" + b")" * depth + b";\n")
    content = b"".join(parts)
    return mutate_text(content, generator) if generator.random() < 0.5 else content


def read_all(content: bytes, name: str = "document") -> None:
    """Reads a document, judges it, and makes the experiment of it."""
    reading = read(parse(content, name))
    record(reading, examine(reading)).model_dump_json()
    try:
        translate_reading(reading)
    except Problem:
        return


def measure(count: int, seed: int) -> Tally:
    """Read `count` documents."""
    tally = Tally("documents")
    for number in range(count):
        content = document(random.Random(f"{seed} {number}"))
        tally.add(content, lambda: read_all(content))  # noqa: B023 — called at once.
    return tally
