"""Every figure of a measurement in README.md and docs/ names what makes it, and is what that has written."""

from __future__ import annotations

import re

import pytest
from tests.unit.figures import MARK, RATIO, RESULTS, ROOT, Row, tables, without_source, wrong_marks

PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}


@pytest.fixture(scope="module")
def sources() -> dict[str, list[Row]]:
    return {name: tables((ROOT / page).read_text(encoding="utf-8")) for name, page in RESULTS.items()}


def test_every_marked_figure_is_that_of_its_source(sources: dict[str, list[Row]]) -> None:
    wrong = {page: list(wrong_marks(text, sources)) for page, text in TEXTS.items()}
    assert not {page: found for page, found in wrong.items() if found}


def test_every_figure_of_a_measurement_names_its_source() -> None:
    bare = {page: list(without_source(page, text)) for page, text in TEXTS.items()}
    assert not {page: found for page, found in bare.items() if found}


@pytest.mark.parametrize("page", RESULTS.values())
def test_the_pages_of_results_name_the_commands_that_write_them(page: str) -> None:
    assert re.search(r"`make bench[a-z-]*`", (ROOT / page).read_text(encoding="utf-8")[:4000])


def test_the_readme_has_the_range_of_every_comparison_with_sysbench(sources: dict[str, list[Row]]) -> None:
    columns = {name for row in sources["results.md"] for name in row.cells if name.startswith(RATIO)}
    assert columns
    marks = [conditions for *_, conditions in MARK.findall(TEXTS["README.md"])]
    for column in columns:
        named = "" if column == RATIO else f"; column {column}"
        for figure in ("client CPU", "throughput"):
            assert f"{figure}{named}" in marks, f"README.md lacks <!-- from results.md: {figure}{named} -->"


# A page of results as `make bench` writes it.
RESULT = """
<!-- begin reads shared -->
| connections | | dbdyno | sysbench | dbdyno / sysbench | interval |
|---|---|---|---|---|---|
| 1 | throughput, tx/s | 8,413 | 8241 | 0.980 | 0.895 to 1.144 |
| 16 | throughput, tx/s | 58010 | 59349 | 0.735 | 0.923 to 1.061 |
| 16 | p95, ms | 0.54 | 0.47 | 1.103 | 0.955 to 1.287 |
<!-- end reads shared -->
<!-- begin writes apart -->
| connections | | dbdyno | sysbench | dbdyno / sysbench | interval |
|---|---|---|---|---|---|
| 16 | throughput, tx/s | 1000 | 500 | 2.004 | 1.9 to 2.1 |
<!-- end writes apart -->
<!-- begin precision -->
| design | half width, 10 min | half width, 20 min |
|---|---:|---:|
| trials | 4.88 % | 4.00 % |
| slices | 2.44 % | 1.00 % |
<!-- end precision -->
"""


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("0.74 to 2.0 times<!-- from results.md: throughput -->", True),
        ("0.735 to 2.004<!-- from results.md: throughput -->", True),
        ("0.98 to 2.0 times<!-- from results.md: throughput -->", False),
        ("0.74 to 1.9 times<!-- from results.md: throughput -->", False),
        ("2.0 times<!-- from results.md: throughput; section apart -->", True),
        ("2.0 times<!-- from results.md: throughput; section shared -->", False),
        ("0.98 times<!-- from results.md: throughput; connections 1 -->", True),
        ("0.74 to 0.98<!-- from results.md: throughput; section shared; connections 1 to 16 -->", True),
        ("0.74<!-- from results.md: throughput; least -->", True),
        ("0.98<!-- from results.md: throughput; least -->", False),
        ("2.0<!-- from results.md: throughput; greatest -->", True),
        ("0.7<!-- from results.md: throughput; at least -->", True),
        ("0.8<!-- from results.md: throughput; at least -->", False),
        ("2.1<!-- from results.md: throughput; at most -->", True),
        ("1.9<!-- from results.md: throughput; at most -->", False),
        ("8,413<!-- from results.md: throughput; connections 1; column dbdyno -->", True),
        ("0.25 to 0.50 times<!-- from results.md: slices / trials; column half width -->", True),
        ("0.25 to 0.40 times<!-- from results.md: slices / trials; column half width -->", False),
        ("4.9 %<!-- from results.md: trials; column half width, 10; section precision -->", True),
        ("1.10<!-- from results.md: p95 -->", True),
        ("1.10<!-- from results.md: p99 -->", False),
        ("about a tenth<!-- from results.md: p95 -->", False),
    ],
)
def test_a_mark_is_computed_from_the_tables(text: str, is_right: bool) -> None:
    assert (not list(wrong_marks(f"It has {text} that.", {"results.md": tables(RESULT)}))) == is_right


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("It has 1.9 times the throughput of the other.", False),
        ("It has 1.9 times the throughput of the other (`make bench`).", True),
        ("In simulations 12 % of the experiments end so.", False),
        ("In simulations (`python -m benchmarks.truth.order`) 12 % of the experiments end so.", True),
        ("In simulations 12 % of the experiments end so ([table](why-believe-it.md)).", True),
        ("In simulations 12 % of the experiments end so ([design](experiment.md)).", False),
        ("It has 1.9 times the throughput ([results](../benchmarks/results.md)).", False),
        ("It has 1.9 times<!-- from results.md: x --> the throughput ([r](../benchmarks/results.md)).", True),
        (
            "It has 2 times<!-- from results.md: x --> the CPU and 17 MiB ([r](../benchmarks/results.md)).",
            False,
        ),
        ("A replica has 2 times the throughput of an experiment in `results`.", False),
        ("A block has at most 10 % of its trials twice.", True),
        ("```\nIn simulations 12 % of the runs\n```", True),
    ],
)
def test_a_figure_of_a_measurement_has_a_source(text: str, is_right: bool) -> None:
    assert (not list(without_source("docs/faq.md", text))) == is_right
