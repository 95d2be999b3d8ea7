"""The report of a stored run: everything is there, nothing is fetched, and no name can do harm."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.judged_run import finding
from tests.unit.pages import Page, joined, page_of, undrawn
from tests.unit.stored_run import Arms, Making, make, verdict_of

from dbdyno import result_text
from dbdyno.commands.report import report as show
from dbdyno.report import formatting, tables
from dbdyno.report import writing as report
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.report.page import facts
from dbdyno.store import Run, StoreProblem
from dbdyno.store.endings import Resumption, add_resumption
from dbdyno.store.preparation import write_warmup_trials
from dbdyno.variables.differences import differences
from dbdyno.verdict import judge

HOSTILE = "<script>alert(1)</script>"
# Attributes by which a page could fetch something.
FETCHING = {"src", "href", "xlink:href", "srcset", "action", "data", "poster"}


def judged(folder: Path, making: Making | None = None) -> Run:
    """A made run with its verdict."""
    run = make(folder, making)
    judge(run)
    return run


def test_a_resumption_is_shown_and_its_blocks_are_marked(tmp_path: Path) -> None:
    run = make(tmp_path)
    add_resumption(run, Resumption(unix_us=1_795_420_800_000_000, trials=9, blocks=[1]))
    judge(run)
    text = joined(page_of(run).text)
    assert "the run was resumed at 2026-11-23 08:00:00 UTC, after 9 trials; block 2 began before that" in text
    assert text.count("2 (resumed)") == sum(trial.meta["block"] == 1 for trial in run.trials()) == 6


def test_the_verdict_comes_first_and_everything_follows(tmp_path: Path) -> None:
    making = Making(
        speed=Arms(a=lambda _t: 1000, b=lambda t: 900 + 2 * t.block),
        findings=[
            finding("P02", "note", "a note"),
            finding("P11", "warn", "CPUs are shared", subject="b"),
        ],
        variables={"b": {"sort_buffer_size": "4194304"}},
    )
    run = judged(tmp_path, making)
    page = page_of(run)
    text = joined(page.text)
    curve = verdict_of(run)["comparisons"][0]["curve"]
    statement, _, caveats = curve["sentence"].partition(" Caveat")
    caveats = curve["caveats"]
    assert caveats
    order = [
        "Is b as fast as a?",
        "slower −9.3 % throughput, 95 % interval [−9.8, −8.8]",
        statement,
        *caveats,
        "Effect of b against a",
        "10 connections 10,000 /s 9,070 /s",
        "Throughput of oltp_read_write",
        "p95 latency of oltp_read_write",
        "Latency distribution of oltp_read_write, 10 connections",
        "Throughput of oltp_read_write over time, 40 connections",
        "CPUs are shared",
        "a note",
        "Declared in the experiment",
        "thread_handling as-0 as-1",
        "sort_buffer_size 2097152 4194304",
        "All trials",
        "laboratory",
        '[experiment] name = "made"',
        "Hodges–Lehmann",
    ]
    places = [text.find(piece) for piece in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)
    # A row for every trial, a picture for the effect (and its narrow drawing), two over the load, and for
    # each of three loads one of the distribution and one over time.
    assert page.tags.count("figure") == page.tags.count("svg") - 1 == 9
    assert len(re.findall(r"oltp_read_write (?:10|20|40) (?:10,000|9,\d{3})", text)) == 48


def test_nothing_is_fetched_and_nothing_runs(tmp_path: Path) -> None:
    page = page_of(judged(tmp_path))
    assert not {"script", "link", "iframe", "object", "embed", "img", "form"} & set(page.tags)
    fetching = [a for a in page.attributes if a[1] in FETCHING and not a[2].startswith("#")]
    assert [*fetching, *(a for a in page.attributes if a[1].startswith("on"))] == []
    # Every link leads to a place in the page.
    ids = {value for _, name, value in page.attributes if name == "id"}
    targets = {value.removeprefix("#") for _, name, value in page.attributes if name == "href"}
    assert {"results", "findings", "glossary"} <= targets <= ids
    html = (tmp_path / "made").rglob("report.html")
    (path,) = html
    content = path.read_text()
    assert "@import" not in content
    assert re.findall(r"url\((?!#)", content) == []
    policy = [value for tag, name, value in page.attributes if (tag, name) == ("meta", "content")]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy


def test_hostile_names_and_texts_are_shown_and_do_nothing(tmp_path: Path) -> None:
    making = Making(
        names=(f'a"{HOSTILE}', f"b'{HOSTILE}"),
        question=HOSTILE,
        speed=lambda t, _tick: 100 if t.variant.startswith("a") else 90,
        findings=[finding("P07", "stop", HOSTILE)],
        override={"P07": HOSTILE},
        variables={f"b'{HOSTILE}": {"init_connect": HOSTILE}},
    )
    run = judged(tmp_path, making)
    page = page_of(run)
    assert "script" not in page.tags
    assert page.text.count(HOSTILE) > 20
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    charts = report.write_charts(run, "svg")
    assert charts
    for path in charts:
        root = ElementTree.parse(path).getroot()
        assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_pictures_say_what_they_show_and_keep_their_ids_apart(tmp_path: Path) -> None:
    page = page_of(judged(tmp_path))
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(labels) == 10
    assert labels[0] == labels[1]
    assert "10 connections: −10.0 % [−10.0, −10.0], slower" in labels[0]
    assert "a at 10: 1,000; a at 20: 1,000" in labels[2]
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = {match for _, _, value in page.attributes for match in re.findall(r"url\(#([^)]+)\)", value)}
    assert used <= set(ids)


def test_charts_are_files_too(tmp_path: Path) -> None:
    run = judged(tmp_path)
    report.write(run)
    names = {
        "effect-oltp_read_write-1",
        "latency-p95-oltp_read_write",
        "throughput-oltp_read_write",
        *(
            f"{kind}-oltp_read_write-{load}"
            for kind in ("distribution", "seconds", "stalls")
            for load in (1, 2, 3)
        ),
        "card",
    }
    assert {path.name for path in (run.path / "charts").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("svg", "png")
    }
    for path in (run.path / "charts").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in (run.path / "charts").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_every_block_is_a_mark(tmp_path: Path) -> None:
    run = judged(tmp_path, Making(speed=Arms(b=lambda t: 80 + t.block)))
    (path, *_) = report.write_charts(run, "svg")
    drawn = next(path.parent.glob("throughput-*.svg")).read_text()
    marks = [
        child
        for group in ElementTree.fromstring(drawn).iter()
        if "mark-symbol" in group.get("class", "") and "role-mark" in group.get("class", "")
        for child in group
    ]
    assert len(marks) == 48


def test_a_run_without_a_verdict_is_refused_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(StoreProblem, match="has not been judged") as caught:
        report.write(make(tmp_path))
    assert "dbdyno report" in caught.value.fix


@pytest.mark.parametrize(
    ("making", "expected"),
    [
        pytest.param(Making(names=("a",)), "One variant only: there is nothing to compare", id="one variant"),
        pytest.param(
            Making(blocks=1, connections=(1,)),
            "Too few blocks for a verdict (1; 6 are needed): b against a, throughput -10.0 %",
            id="one block, one point",
        ),
        pytest.param(
            Making(absent=lambda _t: True), "Not finished (0 of 8 blocks): b against a", id="nothing ran"
        ),
        pytest.param(
            Making(failed=lambda t: "gone" if t.variant == "b" else None),
            "24 of 24 trials of b failed: gone (R04)",
            id="one arm failed",
        ),
        pytest.param(
            Making(connections=(64,), rates=(500.0, 1000.0)),
            "p95 latency of oltp_read_write",
            id="open loop",
        ),
        pytest.param(Making(warmup_s=0.0), "4 s measured, warm-up 0 s", id="no warm-up"),
        pytest.param(
            Making(warmup_s=None),
            "(auto), then the first part of each measurement is discarded (MSER-5)",
            id="automatic warm-up",
        ),
        pytest.param(
            Making(names=tuple("abcdefghij"), blocks=1),
            "j against a on oltp_read_write: throughput, medians of the blocks",
            id="more variants than colours",
        ),
        pytest.param(
            Making(connections=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 3000), blocks=1),
            "How oltp_read_write scales with connections",
            id="wide sweep",
        ),
    ],
)
def test_unusual_runs_have_a_report_too(tmp_path: Path, making: Making, expected: str) -> None:
    run = judged(tmp_path, making)
    text = joined(page_of(run).text)
    assert "charts could not be rendered" not in text
    assert expected in text
    # The table has every trial, with its figures or the reason why it has none.
    failed = [trial for trial in run.trials() if not trial.is_done]
    assert text.count("0 server failed: gone") == len(failed)
    assert text.count("no result: not run") == len(run.schedule()) - len(run.trials())


def test_the_warm_up_that_warmup_trials_chose_is_shown(tmp_path: Path) -> None:
    run = judged(tmp_path, Making(warmup_s=None, blocks=1, connections=(1,)))
    assert "4 s measured, warm-up 5 s (auto), then the first part" in joined(page_of(run).text)
    write_warmup_trials(run, {"schema": 1, "warmup_s": 12.5, "trials": []})
    assert "4 s measured, warm-up 12.5 s (auto), then the first part" in joined(page_of(run).text)


def test_markdown(tmp_path: Path) -> None:
    run = judged(
        tmp_path, Making(speed=Arms(a=lambda _t: 1000, b=lambda t: 900 + 2 * t.block), names=("a", "b|*"))
    )
    text = as_markdown(gather(run))
    assert "| load | a | b\\|\\* | change | 95 % CI | blocks | verdict |" in text
    row = next(line for line in text.splitlines() if line.startswith("| 10 connections"))
    assert row.split(" | ")[1:3] == ["10,000 /s", "9,070 /s"]
    assert row.endswith("| 8 | slower |")
    assert "| all loads combined | | | " in text
    assert "Design:" in text
    assert "\n- one trial: " in text
    assert "\n- server b\\|\\*: " in text


def test_a_run_of_one_variant_has_a_table_of_its_loads(tmp_path: Path) -> None:
    failing = Making(
        blocks=1,
        names=("a",),
        speed=Arms(a=lambda t: 20 * (t.point.connections // 10)),
        failed=lambda t: "server went away" if t.point.connections == 40 else None,
        failed_by="server",
    )
    run = judged(tmp_path, failing)
    lines = [line for line in as_markdown(gather(run)).splitlines() if line.startswith("| a |")]
    assert [line.split(" | ")[1:3] for line in lines] == [
        ["10 connections", "200.0"],
        ["20 connections", "400.0"],
        ["40 connections (server went away)", "0"],
    ]
    assert lines[0].endswith("| 0 |")
    html = joined(page_of(run).text)
    assert "oltp_read_write, every variant at every load" in html


def test_csv_has_a_line_per_trial_and_no_number_without_a_result(tmp_path: Path) -> None:
    run = judged(tmp_path, Making(absent=lambda t: t.index == 3))
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(run))))
    assert [int(row["trial"]) for row in rows] == list(range(1, 49))
    assert (rows[0]["block"], rows[-1]["block"]) == ("1", "8")
    assert (rows[3]["status"], rows[3]["failure"], rows[3]["throughput_per_s"]) == ("not-run", "not run", "")
    done = next(row for row in rows if row["variant"] == "a" and row["status"] == "done")
    assert float(done["throughput_per_s"]) == 1000.0
    assert done["failure"] == ""


def test_json_is_the_verdict(tmp_path: Path) -> None:
    run = judged(tmp_path)
    assert json.loads(tables.as_json(run)) == verdict_of(run)


def test_differences_are_told_apart() -> None:
    def server(name: str, **variables: str) -> Any:
        place = f"/private/{name}/data"
        return {
            "declared": {"Thread-Handling": "x"},
            "identity": {"datadir": place, "port": 33060 if name == "a" else 33061, "pid": 17},
            "variables": {
                "datadir": place,
                "pid_file": f"/private/{name}/server.pid",
                "port": "33060" if name == "a" else "33061",
                "version": "11.4",
                "server_uid": f"uid of {name}",
                **variables,
            },
        }

    servers = {
        "a": server("a", thread_handling="one", sort_buffer_size="2"),
        "b": server("b", thread_handling="pool", sort_buffer_size="4", thread_pool_size="2"),
    }
    assert [(d.name, d.kind) for d in differences(servers, ["a", "b"])] == [
        ("datadir", "location"),
        ("pid_file", "location"),
        ("port", "location"),
        ("server_uid", "location"),
        ("sort_buffer_size", "other"),
        ("thread_handling", "declared"),
        ("thread_pool_size", "other"),
    ]
    assert differences(servers, ["a"]) == []


def test_durability_stands_side_by_side(tmp_path: Path) -> None:
    variables = {
        "a": {"innodb_flush_log_at_trx_commit": "1", "tx_isolation": "REPEATABLE-READ"},
        "b": {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"},
    }
    run = judged(tmp_path, Making(variables=variables))
    assert gather(run).durability == {
        "innodb_flush_log_at_trx_commit": ["1", "2"],
        "sync_binlog": [None, "0"],
        "transaction_isolation": ["REPEATABLE-READ", None],
    }
    text = joined(Page(undrawn(run)).text)
    rows = f"innodb_flush_log_at_trx_commit 1 2 sync_binlog {result_text.MISSING} 0"
    assert f"Durability and isolation variable a b {rows}" in text


def test_facts_are_rows() -> None:
    environment = {"host": {"cpu_model": "X", "memory_bytes": 2**31, "load": [0.5, 1]}, "empty": None}
    assert facts(environment) == [
        ("host: cpu model", "X"),
        ("host: memory", "2.0 GiB"),
        ("host: load", "0.5 1"),
    ]


def test_numbers_as_a_reader_sees_them() -> None:
    assert [result_text.rate(v) for v in (12345.6, 188.17, 9.876, None)] == [
        "12,346",
        "188.2",
        "9.88",
        result_text.MISSING,
    ]
    assert result_text.milliseconds(1234.5) == "1.23"
    assert result_text.percent(-9.24) == f"{result_text.MINUS}9.2"
    assert formatting.interval_text([-10.44, 8.0]) == f"[{result_text.MINUS}10.4, +8.0]"
    assert formatting.load("connections", 1) == "1 connection"
    assert formatting.load("rate", 1_500_000.0) == "1,500,000 transactions/s"


def test_many_findings_alike_are_told_briefly(tmp_path: Path) -> None:
    findings = [finding("P11", "warn", f"busy {letter}") for letter in "abcdefghijk"]
    text = joined(page_of(judged(tmp_path, Making(findings=findings))).text)
    assert [f"busy {letter}." in text for letter in "abcdefghijk"] == [True] * 3 + [False] * 8
    assert "and 8 more of this kind" in text


def test_the_command_judges_a_run_that_was_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make(tmp_path)
    show(run.path, "json")
    assert json.loads(capsys.readouterr().out) == verdict_of(run)
    show(run.path, "html")
    assert Path(capsys.readouterr().out.strip()) == run.path / "report.html"
    assert (run.path / "report.html").is_file()
