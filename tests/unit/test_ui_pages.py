"""The pages of `dbdyno ui` as texts, without a browser."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from tests.unit.stored_run import make

from dbdyno.ui.pages import Pages
from dbdyno.verdict import judge


@pytest.mark.parametrize("language", ["en", "ko"])
def test_pages_have_the_verdict_of_a_run(tmp_path: Path, language: str) -> None:
    run = make(tmp_path)
    judge(run)
    judged = run.judge_files()
    assert judged is not None
    ((shown, _), *_) = judged[0].sentences
    statement = html.escape(shown.statement)
    run.release()
    pages = Pages(tmp_path, language)
    page, _ = pages.run(run)
    for text in (page, pages.compare([run, run], "no difference")):
        assert (statement in text) == (language == "en")
        assert 'class="interval"' in text
    assert run.experiment().name in pages.runs()
