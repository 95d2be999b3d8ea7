"""Properties of every registered check, and its page in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.checks import CHECKS, Check, Context, Moment
from dbdyno.finding import form
from dbdyno.generate import CODES_FILE, codes_text
from dbdyno.rules import RULES, Records
from dbdyno.rules.register import Decided

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checks.md"
CODES = [check.code for check in CHECKS]


def test_codes_are_unique_and_in_order() -> None:
    assert sorted(set(CODES)) == CODES


def test_every_check_has_its_section_and_every_section_its_check() -> None:
    sections = re.findall(r"^## (P\d\d) (.+)\n\n\*(.+) ·", PAGE.read_text(), re.MULTILINE)
    # The others are the judge's.
    headings = [(code, title) for code, title, moments in sections if moments != "after the run"]
    assert headings == [(check.code, check.title) for check in CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=CODES)
def test_a_section_names_the_moments(check: Check) -> None:
    section = PAGE.read_text().split(f"## {check.code} ")[1].split("\n## ")[0]
    named = section.split("·")[0]
    assert {moment for moment in ("design", "ready", "after-group") if moment in named} == {
        moment.value for moment in check.moments
    }


@pytest.mark.parametrize("check", CHECKS, ids=CODES)
def test_a_check_says_what_mistake_it_catches_and_its_rule(check: Check) -> None:
    words = check.find.__doc__ or ""
    assert re.search(r"^\s*Catches ", words, re.MULTILINE)
    assert re.search(r"^\s*Rule: ", words, re.MULTILINE)


@pytest.mark.parametrize("check", CHECKS, ids=CODES)
def test_a_check_needs_what_is_known_at_its_moments(check: Check) -> None:
    known = {"moment", "context", *Context.__dataclass_fields__, *dir(Context)}
    assert set(check.needs) <= known
    if Moment.DESIGN in check.moments:
        assert set(check.needs) <= {"moment", "context", "experiment"}
    assert check.in_sweep <= check.moments


def test_the_stored_codes_are_those_of_the_registers() -> None:
    assert CODES_FILE.read_text() == codes_text(), "run make texts"


def test_a_rule_needs_what_a_run_has() -> None:
    assert {each.reads for each in RULES} == {Records, Decided}
    missing = [
        (each.find.__name__, name) for each in RULES for name in each.needs if not each.reads.has(name)
    ]
    assert missing == []


def test_the_short_form_of_a_check_has_the_values_of_its_evidence() -> None:
    shared = next(check for check in CHECKS if check.code == "P11").caveat
    assert form(shared, {"cpus": "0-1"}) == ("client and server share CPU 0-1")
    assert form(shared, {"server": "mariadbd"}) == "another database server was busy"
    assert (form("", {}), form(None, {})) == ("", None)


def test_a_report_reads_the_catalogue_and_no_copy_of_it() -> None:
    of_report = PAGE.parents[1] / "lab" / "dbdyno" / "report" / "templates" / "checks.md"
    assert of_report.is_symlink()
    assert of_report.samefile(PAGE)
