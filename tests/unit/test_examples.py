"""The examples as files: three profiles each, and a smoke profile that only shows that it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.experiment.model import OltpWorkload
from dbdyno.experiment.reading import read

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.toml"))
# Examples with many tests.
SUITES = ("mariadb-releases", "postgres-releases")
RECIPES = sorted(FOLDER.glob("recipes/*.toml"))


def test_there_are_some() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_smoke_profile_is_one_block_of_one_point_and_two_seconds(examples: Path, path: Path) -> None:
    """Half a second for each of several tests."""
    smoke = read(examples / path.name, "smoke")
    assert smoke.design.blocks == 1
    assert len(smoke.load.points()) == 1
    assert smoke.load.duration_s == (0.5 if path.stem in SUITES else 2.0)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_profile_is_shorter_than_the_one_before(examples: Path, path: Path) -> None:
    """And asks the same question: variants, workloads and state are those of the full profile."""
    full, quick, smoke = (read(examples / path.name, profile) for profile in (None, "quick", "smoke"))
    for longer, shorter in ((full, quick), (quick, smoke)):
        assert shorter.load.duration_s < longer.load.duration_s
        assert set(shorter.load.points()) <= set(longer.load.points()) or shorter is smoke
        assert shorter.design.stop or shorter.design.blocks <= longer.design.blocks
        assert [one.name for one in shorter.variants] == [one.name for one in longer.variants]
        rows = {one.title: one.rows for one in longer.workloads}
        # The smoke profile of a suite has some of its tests.
        assert [one.title for one in shorter.workloads] == list(rows) or path.stem in SUITES
        assert shorter.design.state == longer.design.state
        assert all(one.rows < rows[one.title] for one in shorter.workloads)
    # A verdict that is more than exploratory, on two cores and in minutes.
    assert quick.design.blocks >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_its_comment_tells_how_each_profile_is_called(path: Path) -> None:
    comment = path.read_text().partition("\n[experiment]")[0]
    assert f"dbdyno compare examples/{path.name}" in comment
    for profile in ("quick", "smoke"):
        assert f"--profile {profile}" in comment


def test_the_endpoints_reach_from_two_connections_to_three_thousand() -> None:
    (path,) = (path for path in EXAMPLES if path.stem == "endpoints")
    experiment = read(path)
    connections = [point.connections for point in experiment.load.points()]
    assert (min(connections), max(connections)) == (2, 3000)
    assert [one.name for one in experiment.workloads if isinstance(one, OltpWorkload)] == [
        "oltp_write_only",
        "oltp_read_only",
        "oltp_read_write",
    ]


def test_a_recipe_is_short_and_is_in_the_document() -> None:
    """tests/end_to_end/test_documents.py runs what is in the document."""
    page = (FOLDER.parent / "docs/recipes.md").read_text()
    assert {path.stem for path in RECIPES} == {"flush-log", "lookup", "memory", "noise", "two-rates"}
    for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        assert len(text.splitlines()) <= 25, text
    for path in RECIPES:
        assert f"```toml\n{path.read_text()}```" in page, path
        assert len(read(path).variants) == 2
