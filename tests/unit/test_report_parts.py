"""Parts of the report that have rules of their own: distribution, statements, explanations, card, size."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.judged_run import Judged
from tests.unit.pages import Page, joined, page_of, undrawn
from tests.unit.stored_run import Making, make, make_large, verdict_of

from dbdyno.experiment.model import OltpWorkload
from dbdyno.report import charts
from dbdyno.report.model import gather
from dbdyno.report.page import check_texts
from dbdyno.report.tables import load_rows
from dbdyno.store import Run
from dbdyno.store.measured import DISTRIBUTION_PERCENTS
from dbdyno.verdict import judge

PAGE_BYTES_MAX = 2_000_000


def test_the_distribution_has_the_percentiles_of_the_figures(tmp_path: Path) -> None:
    run = make(tmp_path, Making(blocks=1))
    judge(run)
    trials = [one for one in gather(run).trials if one.figures]
    assert trials
    for trial in trials:
        assert trial.figures is not None
        known = dict(zip(DISTRIBUTION_PERCENTS, trial.distribution_us, strict=False))
        for percent, name in ((50.0, "p50"), (90.0, "p90"), (95.0, "p95"), (99.0, "p99")):
            # Figures are limited to the exact extremes, the distribution to the edges of buckets.
            assert known[percent] == pytest.approx(trial.figures.metric(f"latency_{name}_us"), rel=0.002)
        assert list(trial.distribution_us) == sorted(trial.distribution_us)
        beyond = trial.figures.events * (1 - DISTRIBUTION_PERCENTS[len(trial.distribution_us) - 1] / 100)
        assert beyond >= 10


@pytest.mark.parametrize("code", ["P07", "D01", "R01"])
def test_a_code_leads_to_its_explanation(tmp_path: Path, code: str) -> None:
    (text,) = check_texts([code])
    assert text.title
    assert not any(mark in "".join(text.paragraphs) for mark in ("`", "](", "<a id"))
    check: dict[str, object] = {
        "code": code, "level": "warn", "text": "something.", "evidence": {}, "subject": "", "override": None,
        "fix": "",
    }  # fmt: skip
    page = Page(undrawn(Judged(checks=[check]).write(tmp_path)))
    assert ("a", "href", f"#check-{code}") in page.attributes
    assert joined(text.paragraphs[0].striptags()) in joined(page.text)


def test_loads_are_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    run = make(tmp_path, Making(connections=(40, 10, 20), blocks=1))
    judge(run)
    rows = [row.load for row in load_rows(gather(run), "oltp_read_write") if row.variant == "a"]
    assert rows == ["40 connections", "10 connections", "20 connections"]


def card_texts(run: Run) -> list[str]:
    """The texts of the card; one with several lines is one text."""
    (card,) = [one for one in charts.all_charts(gather(run)) if one.name == "card"]
    specification = card.specification.to_dict()
    assert specification["width"] == 600
    marks = [layer["mark"] for layer in specification["layer"] if layer["mark"]["type"] == "text"]
    texts = [mark["text"] for mark in marks]
    return [" ".join(text) if isinstance(text, list) else text for text in texts]


def test_the_card_has_word_change_and_sentence(tmp_path: Path) -> None:
    run = Judged().write(tmp_path)
    texts = card_texts(run)
    assert "SLOWER" in texts
    sentence = verdict_of(run)["comparisons"][0]["curve"]["sentence"]
    assert sentence.split(" Caveat")[0][:60] in " ".join(texts)


def test_the_card_of_a_suite_has_its_sentence_and_not_the_verdict_of_its_first_test(tmp_path: Path) -> None:
    tests = tuple(OltpWorkload(name="oltp_point_select", label=f"test-{number}") for number in range(4))
    run = make(tmp_path, Making(blocks=8, connections=(10,), names=("a", "b", "c"), workloads=tests))
    judge(run)
    texts = card_texts(run)
    assert any("b against a over 4 tests: 4 slower" in text and "1 more verdict)" in text for text in texts)
    assert "SLOWER" not in texts


@pytest.mark.long
def test_a_large_report_stays_small(tmp_path: Path) -> None:
    """10 loads, 3 workloads, 20 blocks: no more than 2 MB, and charts of single loads for 4 of them."""
    run = make_large(tmp_path)
    page = page_of(run)
    assert (run.path / "report.html").stat().st_size < PAGE_BYTES_MAX
    figures = [value for tag, name, value in page.attributes if (tag, name) == ("figure", "id")]
    assert sum(name.startswith("distribution-oltp_read_only-") for name in figures) == 4
    assert "The charts of single loads show 4 of the loads" in joined(page.text)
