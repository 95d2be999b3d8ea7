"""Every form that a verdict can take is shown: open intervals, failures, factors, runs without results."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
from rich.console import Console
from tests.unit.judged_run import Effect, Judged, Outcome, factor, finding
from tests.unit.pages import Page, joined, table_rows, text_of, undrawn
from tests.unit.stored_run import Making, experiment, make, verdict_of

from dbdyno import result_text
from dbdyno.experiment.model import Factor
from dbdyno.finding import Finding
from dbdyno.report import charts, formatting, tables
from dbdyno.report import writing as report
from dbdyno.report.chart import CONFIG, PAPER, styled
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.say.wording import effect_text
from dbdyno.stats.paired import Effect as Estimate
from dbdyno.store import Run
from dbdyno.store.verdict import Change, CombinedEffect, Scaling
from dbdyno.terminal import result
from dbdyno.verdict import judge

MINUS = result_text.MINUS
UNKNOWN = Effect(None, (None, None), "undecided", each=(None,) * 8)
EMPTY = Effect(None, None, "unfinished", blocks=0, each=())


def failing(place: Mapping[str, Any]) -> Outcome:
    """b fails at 40 connections always, at 20 in two blocks."""
    level = place["at"]["connections"]
    if place["variant"] == "b" and (level == 40 or (level == 20 and place["block"] in {1, 3})):
        return "server"
    return 1000.0 if place["variant"] == "a" else 900.0


def law(variant: str, **more: Any) -> dict[str, Any]:
    """An entry of `scaling`."""
    return {
        "workload": "oltp_read_write",
        "variant": variant,
        "levels": [1, 128],
        "highest": {"connections": 32, "throughput": 3000.0},
        "plateau": [32, 64],
        "blocks": 8,
        "fit_error_percent": 1.2,
        **dict.fromkeys(("knee", "knee_connections", "knee_interval", "knee_throughput")),
        **more,
    }


FACTORS = (
    Factor(name="version", levels=("8.0", "8.4")),
    Factor(name="threads", levels=("one", "pool")),
)
FINISHED = Judged()
MIXED = Judged(
    points=(
        Effect(25.0, (22.0, 28.0), "faster", each=(25.0, 24.0, 26.0, 23.0, 27.0, 25.0, 25.0, 24.0)),
        Effect(1.0, (-2.0, 4.0), "undecided"),
        Effect(-19.0, (-22.0, -16.0), "slower"),
    ),
    curve=Effect(1.4, (-1.0, 3.0), "mixed"),
    sentence="It depends on the load: b is faster at 10 connections (+25.0 %), slower at 40 (-19.0 %).",
)
OVERLOADED = Judged(
    making=Making(connections=(64,), rates=(500.0, 1000.0, 2000.0)),
    points=(
        Effect(3.0, (-1.0, 7.0), "undecided", each=(3.0, 1.0, 2.0, 4.0, 6.0, -1.0, 0.0, 3.0)),
        Effect(
            697.6,
            (120.0, None),
            "slower",
            "at-least",
            each=(700.0, None, 650.0, None, 800.0, 720.0, None, 690.0),
        ),
        UNKNOWN,
    ),
    curve=Effect(697.6, (110.0, None), "slower", "at-least", each=(None,) * 8),
    sentence="b is slower than a on average: p95 latency at least 8.0 times.",
)
FAILED = Judged(
    points=(
        Effect(),
        Effect(
            -30.0, (None, -8.0), "slower", "at-most", each=(-11.0, None, -10.0, None, -9.0, -10.0, -9.0, -9.0)
        ),
        UNKNOWN,
    ),
    curve=Effect(-40.0, (-100.0, -9.0), "slower", "at-most", each=(None,) * 8),
    outcome=failing,
    checks=[finding("R04", "warn", "10 of 24 trials of b failed (server went away)", subject="b")],
)
UNFINISHED = Judged(
    points=(EMPTY,),
    curve=EMPTY,
    outcome=lambda _place: "not-run",
    sentence="Not finished (0 of 8 blocks): b against a has no verdict.",
)
STOPPED = Judged(
    points=(Effect(verdict="not-comparable"),),
    curve=Effect(verdict="not-comparable"),
    sentence="b and a are not comparable: 3 of 48 trials contradict themselves (R03).",
    checks=[finding("R03", "stop", "3 of 48 trials contradict themselves")],
)
FACTORIAL = Judged(
    making=Making(factors=FACTORS),
    points=(Effect(verdict=None),),
    curve=Effect(verdict=None, confidence=0.983333),
    sentence="8.4+pool against 8.0+one: throughput -10.0 % (-12.0 to -8.0).",
    sentences=3,
    factors=[
        factor(
            ["version"], ["8.4", "8.0"], Effect(3.0, (1.0, 5.0), "faster"), "version 8.4 is faster than 8.0."
        ),
        factor(
            ["threads"], ["pool", "one"], Effect(2.0, (-1.0, 5.0), "mixed"), "threads: depends on version."
        ),
        factor(
            ["version", "threads"],
            ["8.4", "8.0", "pool", "one"],
            Effect(29.9, (29.8, 30.0), "faster"),
            "The effect of threads depends on version.",
        ),
    ],
)
SCALING = Judged(
    making=Making(connections=(1, 8, 32, 64, 128)),
    outcome=lambda place: min(3000.0, 400.0 * place["at"]["connections"]),
    scaling=[
        law(
            "a", model="usl", sigma=0.03, kappa=0.001, knee="inside", knee_connections=31.0,
            knee_interval=[28.0, None], knee_throughput=2900.0,
            curve=[[1, 400.0], [8, 2500.0], [31, 2900.0], [128, 2000.0]], **{"lambda": 400.0},
        ),
        law("b", model=None, plateau=[8, 128], fit_error_percent=36.0),
    ],
)  # fmt: skip
TWINS = Judged(
    points=(Effect(0.3, (-0.9, 1.4), "undecided"),),
    curve=Effect(0.3, (-0.9, 1.4), "undecided"),
    sentence="a and b are identical: they differ by +0.3 % (-0.9 to +1.4) here.",
    more={"identical": True},
)
FORMS = {
    "finished": FINISHED,
    "mixed": MIXED,
    "overloaded": OVERLOADED,
    "failed": FAILED,
    "unfinished": UNFINISHED,
    "stopped": STOPPED,
    "factorial": FACTORIAL,
    "scaling": SCALING,
    "identical": TWINS,
    "one block": Judged(
        making=Making(blocks=1, connections=(1,)),
        points=(Effect(-10.0, None, "too-few-blocks", blocks=1),),
        curve=Effect(-10.0, None, "too-few-blocks", blocks=1),
    ),
    "everything failed": replace(FAILED, points=(UNKNOWN,), curve=UNKNOWN, outcome=lambda _place: "server"),
    "one variant": Judged(making=Making(names=("a",))),
}


def caption(run: Run, name: str) -> str:
    """The words below a chart."""
    (found,) = [figure.caption for figure in charts.all_charts(gather(run)) if figure.name.startswith(name)]
    return found


def drawn(run: Run, name: str) -> ElementTree.Element:
    """A chart as it is drawn."""
    report.write_charts(run, "svg")
    (path,) = (run.path / "charts").glob(f"{name}*.svg")
    return ElementTree.parse(path).getroot()


def layers(chart: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Kind of mark and rows of each layer of a chart."""
    specification = styled(chart)
    return [
        (layer["mark"]["type"], specification["datasets"][layer["data"]["name"]])
        for layer in specification["layer"]
    ]


def values(chart: Any, field: str) -> list[Any]:
    """The values of one field of all rows of a chart."""
    return [row[field] for _, rows in layers(chart) for row in rows if field in row]


def shown(run: Run, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the result on standard output."""
    result.show(run, run.experiment())
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_shown_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    judged = FORMS[name]
    run = judged.write(tmp_path)
    lines = shown(run, capsys)
    failures: list[str] = []
    page = report.write(run, failures.append).read_text()
    assert failures == []
    markdown = as_markdown(gather(run))
    assert len(tables.as_csv(run).splitlines()) == len(run.schedule()) + 1
    for text in ("\n".join(lines), joined(Page(page).text), markdown):
        assert not re.search(r"\bNone\b|\bnan\b|Undefined|not-comparable|too-few", text)
    if judged.making.names == ("a", "b"):
        sentence = judged.factors[-1]["sentence"] if judged.factors else judged.sentence
        if judged.factors:
            assert lines[-1].startswith("version 8.4 +3.0 % [+1.0, +5.0]; threads pool depends on ")
        else:
            assert lines[-1] == sentence
        assert sentence in page
    figures = charts.all_charts(gather(run))
    assert {path.stem for path in (run.path / "charts").glob("*.svg")} == {figure.name for figure in figures}
    assert bool(figures) == (name != "unfinished")


def test_blocks_without_a_ratio_have_no_tick_and_are_counted(tmp_path: Path) -> None:
    run = OVERLOADED.write(tmp_path)
    assert "11 of 24 blocks have no tick: their ratio is unknown or infinite." in caption(run, "effect")
    ticks = [
        child
        for group in drawn(run, "effect").iter()
        # Vega draws ticks as rectangles, and bars and axes as rules.
        if "mark-rect role-mark" in group.get("class", "")
        for child in group
    ]
    assert len(ticks) == 13
    assert "no tick" not in caption(FINISHED.write(tmp_path / "finished"), "effect")


def test_open_ends_of_intervals_reach_the_edge_and_have_an_arrow(tmp_path: Path) -> None:
    run = OVERLOADED.write(tmp_path)
    (figure,) = [figure for figure in charts.all_charts(gather(run)) if figure.name.startswith("effect")]
    rows = {row["label"]: row for _, rows in layers(figure.specification) for row in rows if "low" in row}
    left, right = (rows["2,000 transactions/s"][end] for end in ("low", "high"))
    assert rows["1,000 transactions/s"]["right"] == rows["all loads combined"]["right"] == right
    assert rows["1,000 transactions/s"]["left"] is None
    assert rows["1,000 transactions/s"]["low"] == pytest.approx(2.2)
    assert rows["500 transactions/s"]["right"] is None
    assert left < 0.99
    assert right > 9.0
    assert "arrows: the interval extends beyond the axis" in figure.caption
    # A bound of an estimate is a hollow mark, no estimate is none.
    assert rows["500 transactions/s"]["fill"] != rows["1,000 transactions/s"]["fill"] == PAPER
    assert "hollow: only a bound of the estimate is known" in figure.caption
    assert rows["2,000 transactions/s"]["x"] is None
    assert "2,000 transactions/s: unknown, undecided" in figure.description


@pytest.mark.parametrize("judged", [FINISHED, MIXED, OVERLOADED])
def test_charts_and_their_style_obey_the_schema_of_the_library(judged: Judged, tmp_path: Path) -> None:
    figures = charts.all_charts(gather(judged.write(tmp_path)))
    assert figures
    for figure in figures:
        for drawing in filter(None, (figure.specification, figure.narrow)):
            drawing.to_dict()
    alt.Config.from_dict(CONFIG)


def test_changes_beyond_half_and_twice_stand_on_a_scale_of_ratios(tmp_path: Path) -> None:
    def scales(judged: Judged, name: str) -> set[str]:
        (figure, *_) = charts.all_charts(gather(judged.write(tmp_path / name)))
        text = str(styled(figure.specification))
        return set(re.findall(r"'type': '(log|linear)'", text))

    assert scales(OVERLOADED, "far") == {"log"}
    assert scales(MIXED, "near") == {"linear"}


def test_the_grey_zone_is_there_only_where_a_delta_was_declared(tmp_path: Path) -> None:
    declared = Judged(making=Making(delta_percent=2.0))
    for name, judged, zone in (("declared", declared, 2.0), ("default", FINISHED, None)):
        run = judged.write(tmp_path / name)
        (figure, *_) = charts.all_charts(gather(run))
        assert values(figure.specification, "to") == ([] if zone is None else [zone])
        assert ("grey zone: ±2 %, declared as equivalent" in figure.caption) == (zone is not None)


def test_the_confidence_is_that_of_the_entry(tmp_path: Path) -> None:
    run = Judged(curve=Effect(confidence=0.983333), sentences=3).write(tmp_path)
    words_below = caption(run, "effect")
    assert "bars: simultaneous 95 % CI; ticks: individual blocks" in words_below
    assert "diamond: all loads combined (98.3 % CI)" in words_below
    text = text_of(run)
    assert f"all loads combined {MINUS}10.0 % [{MINUS}12.0, {MINUS}8.0] (98.3 %) 8 slower" in text
    assert f"10 connections 1,000 /s 900.0 /s {MINUS}10.0 % [{MINUS}12.0, {MINUS}8.0] 8 slower" in text


def test_an_estimate_without_an_interval_has_no_bar_and_no_second_decimal(tmp_path: Path) -> None:
    unfinished = Effect(-0.004, None, "unfinished", blocks=4)
    run = Judged(points=(unfinished,), curve=unfinished).write(tmp_path / "unfinished")
    assert "bars" not in caption(run, "effect")
    assert "10 connections 1,000 /s 900.0 /s 0.0 %" in text_of(run)


def test_a_trial_that_failed_by_its_server_is_a_throughput_of_0(tmp_path: Path) -> None:
    run = FAILED.write(tmp_path)
    figures = {figure.name: figure for figure in charts.all_charts(gather(run))}
    throughput = figures["throughput-oltp_read_write"]
    # Ten trials, and the median of eight of them.
    assert values(throughput.specification, "value").count(0.0) == 11
    assert "10 of 48 trials failed because of their server and are shown as 0." in throughput.caption
    latency = figures["latency-p95-oltp_read_write"]
    assert 0.0 not in values(latency.specification, "value")
    assert "10 of 48 trials failed because of their server and have no latency." in latency.caption
    text = text_of(run)
    assert text.count("0 server failed: server went away") == 10
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(run))))
    failed = [row for row in rows if row["status"] == "failed"]
    assert len(failed) == 10
    assert {(row["failed_by"], float(row["throughput_per_s"]), row["latency_p95_us"]) for row in failed} == {
        ("server", 0.0, "")
    }


def test_the_table_of_the_command_counts_failures_as_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(FAILED.write(tmp_path), capsys)
    cells = table_rows(lines)
    assert cells["b", "20"][:2] == ["900.0", "10.00"]
    assert cells["b", "40"][:2] == ["0", result_text.MISSING]
    # Hyphens as minus signs: a script reads them.
    assert cells["b", "20"][2:] == ["≤", "-30.0", "%", "≤", "-8.0", "slower"]


@pytest.mark.parametrize(
    ("name", "tones", "heads"),
    [
        ("finished", ["slower"], ["slower"]),
        ("mixed", ["neutral"], ["mixed"]),
        ("unfinished", ["neutral"], ["unfinished"]),
        ("stopped", ["not-comparable"], ["not comparable"]),
        ("factorial", ["faster", "neutral", "neutral"], ["faster", "mixed", "interact"]),
        ("identical", ["neutral"], ["identical variants"]),
        ("one block", ["neutral"], ["too few blocks"]),
    ],
)
def test_the_colour_of_a_box_follows_its_verdict(
    tmp_path: Path, name: str, tones: list[str], heads: list[str]
) -> None:
    page = undrawn(FORMS[name].write(tmp_path))
    assert re.findall(r'<div class="verdict ([^"]*)">', page) == tones
    assert re.findall(r'<p class="word">([^<]*)</p>', page) == heads
    style = page[page.index("<style>") : page.index("</style>")]
    assert ".neutral { --tone: var(--open)" in style
    # Green and blue are for words that favour a variant or equal them.
    assert re.findall(r"\.(\w+) \{ --tone: var\(--(?:good|even)\)", style) == ["faster", "equivalent"]


@pytest.mark.parametrize(
    ("disturbed", "word"),
    [
        (Finding("D06", "warn", "x"), "undecided (D06)"),
        (Finding("D06", "note", "x"), "undecided"),
    ],
)
def test_an_undecided_cell_names_the_disturbance(disturbed: Finding, word: str) -> None:
    assert formatting.verdict("undecided", [disturbed]) == word
    assert formatting.verdict("faster", [disturbed]) == "faster"


def test_a_factorial_run_ends_with_a_line_that_ranks_its_factors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = FACTORIAL.write(tmp_path)
    lines = shown(run, capsys)
    verdict = verdict_of(run)
    sentences = [row["sentence"] for row in verdict["factors"]]
    assert lines[-2] == verdict["family"]["text"]
    assert lines[-1].endswith("version and threads interact (95 % intervals).")
    assert not set(sentences) & set(lines)
    assert FACTORIAL.sentence not in "\n".join(lines)
    table = [words for (variant, _), words in table_rows(lines).items() if variant == "8.4+pool"]
    assert len(table) == 4
    assert all(words[-1] == result_text.MISSING for words in table)
    page = text_of(run)
    assert FACTORIAL.sentence not in page
    assert "version × threads 8.4, pool 8.0, one" in page
    markdown = as_markdown(gather(run))
    assert all(f"**{sentence}**" in markdown for sentence in sentences)
    assert "any of these 3 verdicts is wrong" in markdown


def test_no_law_is_drawn_or_tabulated_where_it_does_not_fit(tmp_path: Path) -> None:
    run = SCALING.write(tmp_path)
    (figure,) = [figure for figure in charts.all_charts(gather(run)) if figure.name.startswith("scaling")]
    (line,) = [rows for mark, rows in layers(figure.specification) if mark == "line"]
    assert {row["variant"] for row in line} == {"a"}
    (bars,) = [rows for mark, rows in layers(figure.specification) if mark == "rule"]
    assert {"variant": "b", "low": 8, "high": 128, "value": 3000.0} in bars
    assert "The law does not fit b: no line and no peak" in figure.caption
    text = text_of(run)
    dash = result_text.MISSING
    assert f"b 3,000 /s at 32 from 8 to 128 {dash} {dash} {dash} {dash} 36.0 %" in text
    assert "a 3,000 /s at 32 from 32 to 64 400.0 /s 0.03 0.001 31 [28, > 128] 1.2 %" in text


@pytest.mark.parametrize(
    ("knee", "shown"), [(None, result_text.MISSING), ("below", "below 1"), ("above", "not reached at 128")]
)
def test_a_knee_that_no_load_shows_has_no_figure(knee: str | None, shown: str) -> None:
    assert formatting.peak(Scaling.model_validate(law("a", model="usl", knee=knee))) == shown


def test_a_sweep_without_any_law_has_its_marks(tmp_path: Path) -> None:
    run = replace(SCALING, scaling=[law("a", model=None), law("b", model=None, plateau=None)]).write(tmp_path)
    assert "lines:" not in caption(run, "scaling")
    assert len(list(drawn(run, "scaling").iter())) > 20


ORDER = {
    "effect_percent": 1.2,
    "interval_percent": [0.3, 2.7],
    "blocks": [4, 4],
    "crossover_percent": -9.8,
    "crossover_interval_percent": [-12.1, -7.2],
}


def test_an_order_effect_has_a_row_below_the_results(tmp_path: Path) -> None:
    run = Judged(more={"order": ORDER}).write(tmp_path)
    row = (
        "Order effect on throughput: +1.2 % (+0.3 to +2.7) for the variant that ran later in a block "
        "(blocks with a first: 4, with b first: 4). Effect of b without the order effect: "
        f"{MINUS}9.8 % ({MINUS}12.1 to {MINUS}7.2)."
    )
    assert row in text_of(run)
    assert row in as_markdown(gather(run)).replace("\\", "")


def test_the_plan_says_blocks_order_and_unit() -> None:
    console = Console(record=True, width=200)
    result.describe(console, experiment(Making(connections=(64,), rates=(500.0,))), None)
    text = console.export_text()
    assert "8 blocks, balanced random order (order seed 1); data restored before each group of trials" in text
    assert "load      500 transactions/s over" in text


def test_numbers_have_the_decimals_that_their_word_needs() -> None:
    def entry(percent: float, low: float | None, high: float | None, **more: Any) -> CombinedEffect:
        return CombinedEffect(
            effect_percent=percent,
            interval_percent=(low, high),
            **{
                "metric": "throughput",
                "confidence": 0.95,
                "blocks": 8,
                "verdict": None,
                "noise_floor_percent": None,
                "delta_percent": None,
                "p_value": None,
                "sentence": "",
                **more,
            },
        )

    assert (
        formatting.estimate_and_interval(entry(-10.0, -12.0, -8.0))
        == f"{MINUS}10.0 % [{MINUS}12.0, {MINUS}8.0]"
    )
    assert formatting.estimate_and_interval(entry(0.04, 0.02, 0.06)) == "+0.04 % [+0.02, +0.06]"
    # Never more than two, and a zero has no sign.
    assert formatting.estimate_and_interval(entry(0.001, -0.001, 0.002)) == "0.00 % [0.00, 0.00]"
    assert formatting.estimate_and_interval(entry(-0.004, -3.59, 3.61)) == f"0.0 % [{MINUS}3.6, +3.6]"
    # No transaction ended in any block: that is known, and no bound.
    assert (
        formatting.estimate_and_interval(entry(-100.0, -100.0, -100.0))
        == f"{MINUS}100.0 % [{MINUS}100.0, {MINUS}100.0]"
    )
    assert (
        formatting.estimate_and_interval(entry(1.5, 1.0, 2.04, delta_percent=2.0)) == "+1.50 % [+1.00, +2.04]"
    )
    assert formatting.estimate_and_interval(entry(100.0, 50.0, 1250.0)) == "+100.0 % [+50.0, +1,250.0]"
    assert (
        formatting.estimate_and_interval(entry(697.6, 120.0, None, bound="at-least"))
        == "≥ 8.0 times (CI ≥ 2.2 times)"
    )
    assert formatting.estimate_and_interval(entry(-100.0, -100.0, None, bound="at-least")) == "unknown"
    assert (
        formatting.estimate_and_interval(entry(-94.4, -100.0, -90.0, bound="at-most"))
        == "≤ 0.056 times (CI ≤ 0.1 times)"
    )


def test_tables_and_sentences_give_the_same_ratio() -> None:
    for percent, ends, shown in (
        (406.0, (358.0, 471.2), "5.1 times [4.6, 5.7]"),
        (-62.1, (-66.0, -58.4), "0.38 times [0.34, 0.42]"),
        (699.0, (697.0, 701.0), "8.0 times [7.97, 8.01]"),
    ):
        sentence = effect_text("throughput", Estimate(percent, ends, alpha=0.05, p_value=0.01, blocks=8))
        cells = Change(effect_percent=percent, interval_percent=ends)
        assert formatting.estimate_and_interval(cells) == shown
        assert sentence.startswith(f"{formatting.estimate(cells)} the throughput")
        low, high = formatting.interval(cells).strip("[] times").split(", ")
        assert sentence.endswith(f"{low} to {high} times)")


def test_secondary_metrics_have_a_table_and_the_sentence_about_closed_loops_stands_once(
    tmp_path: Path,
) -> None:
    line = {
        "at": {"connections": 16},
        "metric": "latency_p99_us",
        "baseline": 4000.0,
        "variant": 5520.0,
        "effect_percent": 38.0,
        "interval_percent": [30.1, 46.2],
        "confidence": 0.95,
        "blocks": 8,
        "direction": "worse",
    }
    errors = line | {"metric": "errors_per_1000", "baseline": 4.0, "variant": 4.1, "direction": None}
    run = Judged(more={"secondary_metrics": [line, errors]}).write(tmp_path)
    page = text_of(run)
    assert "Latency, errors and stability: b against a" in page
    assert "16 connections p99 latency 4.00 ms 5.52 ms +38.0 % [+30.1, +46.2] worse" in page
    markdown = as_markdown(gather(run)).replace("\\", "")
    assert (
        "| 16 connections | p99 latency | 4.00 ms | 5.52 ms | +38.0 % | [+30.1, +46.2] | worse |" in markdown
    )
    assert "| errors per 1,000 transactions | 4.0 | 4.1 |" in markdown
    assert (page.count("In a closed loop"), markdown.count("In a closed loop")) == (1, 1)


def test_a_variant_named_as_a_column_says_that_it_is_a_variant(tmp_path: Path) -> None:
    run = make(tmp_path, Making(names=("change", "blocks"), connections=(10,)))
    judge(run)
    headings = next(line for line in as_markdown(gather(run)).splitlines() if line.startswith("| load"))
    assert headings.split("|")[1:5] == [" load ", " variant change ", " variant blocks ", " change "]
    page = report.write(run).read_text()
    assert ">variant change</th>" in page
    assert ">variant blocks</th>" in page
