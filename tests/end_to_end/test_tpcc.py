"""The bundled workload tpcc on the three products: its rows, its mix, its conditions of consistency."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.comparing import TWO_EQUAL, Comparing
from tests.end_to_end.mysql_server import ROOT

EXPERIMENT = """
[experiment]
name = "tpcc"
[[workload]]
name = "tpcc"
warehouses = {warehouses}
items = {items}
customers = {customers}
[load]
connections = [4]
duration = "{duration}"
warmup = "200ms"
[design]
repeat_disturbed = false
blocks = 1
"""
SMALL = EXPERIMENT.format(warehouses=1, items=1_000, customers=1_000, duration="3s")
FULL = EXPERIMENT.format(warehouses=2, items=100_000, customers=3_000, duration="20s")
DAMAGED = """
[[variant]]
name = "whole"
server.product = "mariadb"
[[variant]]
name = "damaged"
server.product = "mariadb"
data.after = ["UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1"]
"""
PRODUCTS = ("mariadb", "mysql", "postgresql")


def check_product(results: Path, experiment: str, product: str) -> None:
    variants = TWO_EQUAL.replace("PRODUCT", product)
    if product == "mysql":
        line = 'server.product = "mysql"'
        variants = variants.replace(line, f'{line}\nserver.basedir = "{ROOT}"')
    comparing = Comparing(results, experiment + variants)
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    findings = [one for one in run.findings() if one.code == "P24"]
    assert [(one.level, one.evidence["conditions"]) for one in findings] == [("note", 12)] * 2
    trials = run.trials()
    assert len(trials) == 2
    for trial in trials:
        assert trial.is_done
        (end,) = [one["data"] for one in trial.records() if one["type"] == "end"]
        assert end["phases"]["measure"]["events"] > 0
        assert end["phases"]["measure"]["row_count_mismatches"] == 0


# That the checks of consistency run is tested below, by a change that is lost.
@pytest.mark.long
@pytest.mark.parametrize("product", PRODUCTS)
def test_small_data_stay_consistent(results: Path, product: str) -> None:
    check_product(results, SMALL, product)


@pytest.mark.long
@pytest.mark.parametrize("product", PRODUCTS)
def test_full_data_stay_consistent(results: Path, product: str) -> None:
    check_product(results, FULL, product)


@pytest.mark.long
def test_a_lost_change_ends_the_comparison(results: Path) -> None:
    comparing = Comparing(results, SMALL + DAMAGED)
    answer = comparing.run("--no-report")
    assert answer.returncode == 4, answer.stderr
    stops = [one for one in comparing.newest().findings() if one.code == "P24" and one.level == "stop"]
    assert {one.subject for one in stops} == {"damaged"}
    assert [one.evidence["condition"][:2] for one in stops] == ["1:", "8:"]
