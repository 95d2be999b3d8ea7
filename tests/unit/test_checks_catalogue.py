"""Properties of every registered check, and its page in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.checks import ALL, Check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checks.md"
CODES = [check.code for check in ALL]


def test_codes_are_unique_and_in_order() -> None:
    assert sorted(set(CODES)) == CODES


def test_every_check_has_its_section_and_every_section_its_check() -> None:
    sections = re.findall(r"^## (P\d\d) (.+)\n\n\*(.+) ·", PAGE.read_text(), re.MULTILINE)
    # The others are the judge's.
    headings = [(code, title) for code, title, moments in sections if moments != "after the run"]
    assert headings == [(check.code, check.title) for check in ALL]


@pytest.mark.parametrize("check", ALL, ids=CODES)
def test_a_section_names_the_moments(check: Check) -> None:
    section = PAGE.read_text().split(f"## {check.code} ")[1].split("\n## ")[0]
    named = section.split("·")[0]
    assert {moment for moment in ("design", "ready", "after-group") if moment in named} == {
        moment.value for moment in check.moments
    }


@pytest.mark.parametrize("check", ALL, ids=CODES)
def test_a_check_says_what_mistake_it_catches_and_its_rule(check: Check) -> None:
    words = check.find.__doc__ or ""
    assert re.search(r"^\s*Catches ", words, re.MULTILINE)
    assert re.search(r"^\s*Rule: ", words, re.MULTILINE)


@pytest.mark.parametrize("check", ALL, ids=CODES)
def test_a_check_lies_in_a_file_of_its_code(check: Check) -> None:
    assert check.find.__module__.rsplit(".", 1)[1].startswith(check.code.lower())
