"""`dbdyno site`: every run is listed, every judged one has its report, and no name can do harm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.unit.judged_run import Judged
from tests.unit.pages import Page, joined
from tests.unit.stored_run import Making, make, verdict_of

from dbdyno.commands.site import site
from dbdyno.problem import Problem
from dbdyno.report.rendering import RenderedCharts
from dbdyno.report.writing import render_page
from dbdyno.store import VERDICT, Run, files
from dbdyno.verdict import judge

SMALL = Making(blocks=6, connections=(10,))
HOSTILE = "<script>alert(1)</script> & \"quoted\" 'name' #?%2e"


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without charts, which take seconds to draw."""
    monkeypatch.setattr("dbdyno.report.writing._render", lambda *_: ([], RenderedCharts()))


def finished(folder: Path, making: Making = SMALL) -> Run:
    """A run with a verdict, and a stored page with a script, as another person may have written it."""
    run = make(folder, making)
    run.release()
    judge(run)
    files.write(run.path / "report.html", b"<!doctype html><title>stored</title><script>alert(1)</script>")
    assert run.changed_files() == []
    return run


def index_of(results: Path, out: Path) -> Page:
    site(out=out, results=results)
    return Page((out / "index.html").read_text())


def links(page: Page) -> list[str]:
    return [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]


@pytest.mark.usefixtures("no_charts")
def test_runs_are_listed_newest_first_with_question_date_verdict_and_report(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    first, second = finished(results), finished(results)
    unjudged = make(results, SMALL)
    unjudged.release()
    page = index_of(results, out)
    text = joined(page.text)
    sentence = verdict_of(first)["comparisons"][0]["curve"]["sentence"].split(" Caveat")[0]
    assert text.count(sentence) == 2
    assert text.count("Is b as fast as a?") == 3
    assert (
        text.index("run 3") < text.index("unfinished: not judged") < text.index("run 2") < text.index("run 1")
    )
    assert f"{first.path.name[:4]}-{first.path.name[4:6]}-{first.path.name[6:8]} " in text
    assert links(page) == [f"runs/made/{one.path.name}/report.html" for one in (second, first)]
    for link, one in zip(links(page), (second, first), strict=True):
        report = Page((out / link).read_text())
        assert one.path.name in joined(report.text)
        assert "script" not in report.tags
    assert "script" not in page.tags
    assert not [one for one in page.attributes if one[1] in ("src", "srcset") or "http:" in one[2]]


def test_reports_are_rendered_as_dbdyno_report_does(tmp_path: Path) -> None:
    run = Judged().write(tmp_path / "results")
    run.release()
    index_of(tmp_path / "results", tmp_path / "out")
    (page,) = (tmp_path / "out").glob("runs/*/*/report.html")
    content, charts = render_page(run)
    assert page.read_text().split("UTC")[0] == content.split("UTC")[0]
    assert Judged().sentence in page.read_text()
    assert (page.parent / "charts/card.png").read_bytes() == charts.by_name["card"].png
    assert not (run.path / "report.html").exists()


@pytest.mark.usefixtures("no_charts")
def test_a_report_is_rendered_again_after_a_new_verdict_or_in_another_language(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    run = finished(results)
    index_of(results, out)
    (page,) = out.glob("runs/*/*/report.html")
    first = page.stat().st_mtime_ns
    index_of(results, out)
    assert page.stat().st_mtime_ns == first
    later = page.stat().st_mtime + 10
    os.utime(run.path / VERDICT, (later, later))
    index_of(results, out)
    second = page.stat().st_mtime_ns
    assert second > first
    os.utime(run.path / VERDICT, (1, 1))
    site(out=out, results=results, language="ko")
    assert '<html lang="ko">' in page.read_text()


@pytest.mark.usefixtures("no_charts")
def test_again_gives_the_same_bytes_and_removes_nothing(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    run = finished(results)
    finished(results)
    index_of(results, out)
    (out / "CNAME").write_text("benchmarks.example")
    (out / "runs/made/notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    index_of(results, out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    shutil.rmtree(run.path)
    assert len(links(index_of(results, out))) == 1
    assert {path for path in out.rglob("*") if path.is_file()} == set(before)


@pytest.mark.usefixtures("no_charts")
def test_hostile_names_are_text_and_links_lead_to_files(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    run = finished(results, Making(blocks=6, connections=(10,), question=HOSTILE))
    folder = results / HOSTILE.replace("/", "_")
    folder.mkdir()
    run.path.rename(folder / run.path.name)
    page = index_of(results, out)
    assert joined(page.text).count(joined(HOSTILE)) == 1
    assert joined(folder.name) in joined(page.text)
    assert "script" not in page.tags
    (link,) = links(page)
    assert not set(link) & set("<>\"' #?&")
    assert (out / unquote(link)).is_file()


@pytest.mark.usefixtures("no_charts")
def test_what_cannot_be_published_is_listed_with_the_reason(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    changed, damaged = finished(results), finished(results)
    running = make(results, SMALL)
    with (changed.path / "schedule.json").open("a") as file:
        file.write(" ")
    (damaged.path / "experiment.json").write_text("{")
    (results / "made" / "20260101T000000.000Z-r0009").mkdir()
    page = index_of(results, out)
    assert links(page) == []
    text = joined(page.text)
    assert "changed since it was measured: schedule.json" in text
    assert "cannot be read" in text
    assert "running" in text
    assert "is not a run directory" in text
    running.release()


@pytest.mark.usefixtures("no_charts")
def test_a_foreign_index_and_a_folder_of_runs_are_refused(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    finished(results)
    out.mkdir()
    (out / "index.html").write_text("<title>my home page</title>")
    with pytest.raises(Problem, match="dbdyno did not write it"):
        site(out=out, results=results)
    assert (out / "index.html").read_text() == "<title>my home page</title>"
    assert [path.name for path in out.iterdir()] == ["index.html"]
    for inside in (results, results / "site"):
        with pytest.raises(Problem, match="lies within"):
            site(out=inside, results=results)
    assert not (results / "site").exists()
    with pytest.raises(Problem, match="is not a folder"):
        site(out=out, results=tmp_path / "nowhere")
