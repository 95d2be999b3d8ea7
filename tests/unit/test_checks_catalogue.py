"""Properties of every registered check, and its page in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.checks import ALL, Check
from dbdyno.codes import form
from dbdyno.rules import RULES, Records
from dbdyno.rules.codes import PATH, content
from dbdyno.rules.register import Decided

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


def test_the_stored_codes_are_those_of_the_registers() -> None:
    assert PATH.read_text() == content(), "run make docs"


def test_a_rule_needs_what_a_run_has() -> None:
    assert {each.reads for each in RULES} == {Records, Decided}
    missing = [
        (each.find.__name__, name) for each in RULES for name in each.needs if not each.reads.has(name)
    ]
    assert missing == []


def test_the_short_form_of_a_check_has_the_values_of_its_evidence() -> None:
    shared = next(check for check in ALL if check.code == "P11").caveat
    assert form(shared, {"cpus": "0-1"}) == (
        "client and server share CPU 0-1: the result holds for this arrangement"
    )
    assert form(shared, {"server": "mariadbd"}) == "another database server was busy on this machine"
    assert (form("", {}), form(None, {})) == ("", None)
