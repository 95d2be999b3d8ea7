"""Public documents: what the program reads is what was read by hand, and it accuses nobody falsely."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.unit.reading import DOCUMENTS

from dbdyno.reading.checks import examine
from dbdyno.reading.document import load
from dbdyno.reading.reading import Reading, read

BY_HAND = sorted(DOCUMENTS.glob("*.toml"))
NAMES = {"seconds": "mean_s"}


def by_hand(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def reading(path: Path) -> Reading:
    return read(load(path.parent / by_hand(path)["file"]))


def is_read(result: dict[str, Any], found: Reading) -> bool:
    """Whether the program has read a result: its connections and each of its figures."""
    wanted = {NAMES.get(name, name): value for name, value in result["metrics"].items()}
    return any(
        result.get("connections") in (None, one.connections)
        and all(one.value(name) == pytest.approx(value) for name, value in wanted.items())
        for series in found.series
        for one in series.results
    )


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.stem)
def test_the_results_are_those_read_by_hand(path: Path) -> None:
    found = reading(path)
    results = by_hand(path).get("result", [])
    missed = [one for one in results if not is_read(one, found)]
    assert not missed
    if not results:
        # Progress lines, commands and settings are no results.
        assert not found.results


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.stem)
def test_no_mistake_is_invented(path: Path) -> None:
    """Every finding that forbids a comparison is one that the hand found too."""
    known = {one["code"] for one in by_hand(path).get("pitfall", [])}
    stops = [one for one in examine(reading(path)) if one.level == "stop"]
    assert {one.code for one in stops} <= known, [one.summary for one in stops]
    if by_hand(path)["clean"]:
        assert not stops


def test_most_mistakes_are_found() -> None:
    """Those that are not arguable, and that the excerpt shows to a program: a masked password is none."""
    found = missed = 0
    for path in BY_HAND:
        codes = {one.code for one in examine(reading(path))}
        for one in by_hand(path).get("pitfall", []):
            if not one.get("soft") and one["code"] != "P20":
                found += one["code"] in codes
                missed += one["code"] not in codes
    assert found / (found + missed) > 0.7, (found, missed)


def test_the_documents_are_in_at_least_four_languages_and_have_an_address() -> None:
    documents = [by_hand(path) for path in BY_HAND]
    assert len(documents) >= 12
    assert len({one["language"] for one in documents}) >= 4
    assert all("://" in one["address"] for one in documents)
