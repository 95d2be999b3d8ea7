"""A script in the style of large ones for sysbench: both sides print the same, and leave the same behind."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from tests.end_to_end.differential import Case, Database, difference, drop_in, original, said

SHOP = (Path(__file__).resolve().parents[1] / "fixtures" / "shop.lua").read_text()
# Every shop has what it began with: on its shelves, or sold.
WHOLE = tuple(
    f"SELECT (SELECT SUM(stock) FROM sbtest.good{shop}) + "
    f"(SELECT COALESCE(SUM(amount), 0) FROM sbtest.sale{shop})"
    for shop in (1, 2)
)


@pytest.mark.parametrize("options", ["", "--level=SER --report_csv=yes", "--lua-threads=off"])
def test_a_shop(sbtest: Database, options: str) -> None:
    ours_alone = tuple(word for word in options.split() if word.startswith("--lua"))
    given = " ".join(word for word in options.split() if word not in ours_alone)
    run = (
        f"./shop.lua {{db}} {{only}} {given} --threads=2 prepare | sort;"
        f"./shop.lua {{db}} {{only}} {given} --threads=4 --time=2 --report-interval=1 run;"
        "./shop.lua {db} check;"
        "! ./shop.lua {db} --level=RC --shops=3 check 2>&1 | grep -c errno; ./shop.lua help"
    )
    case = Case("shop", run, files={"shop.lua": SHOP}, sql=("SELECT 1",), timed=True, asked=WHOLE)
    # sysbench itself may end in a deadlock that it does not repeat, or print its last interval into the first
    # line of the final report, because two threads print.
    for _ in range(3):
        theirs = said(original(sbtest.folder), case, sbtest)
        if theirs.exit_code == 0 and "\nSQL statistics:" in theirs.raw:
            break
    assert theirs.exit_code == 0, theirs.raw
    ours = said(drop_in(sbtest.folder, *ours_alone), case, sbtest)
    assert "Shop 2 is right" in theirs.output
    differing = "\n".join(difflib.unified_diff(theirs.lines(), ours.lines(), lineterm=""))
    assert not differing, f"{differing}\n{ours.raw}"


def test_a_shop_is_closed(sbtest: Database) -> None:
    run = "./shop.lua {db} prepare >prepared; ./shop.lua {db} cleanup"
    case = Case(
        "cleanup", run, files={"shop.lua": SHOP}, sql=("SELECT 1",), asked=("SHOW TABLES FROM sbtest",)
    )
    found = difference(case, original(sbtest.folder), drop_in(sbtest.folder), sbtest)
    assert not found, found
