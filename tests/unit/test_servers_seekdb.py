"""The parts of the product seekdb that need no server."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.experiment import server
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.products.product import Access
from dbdyno.servers.products.seekdb import SeekDB
from dbdyno.servers.server import ServerProblem

# Of seekdb 1.4.0.
EXPLAINED = """
===============================================================
|ID|OPERATOR                      |NAME |EST.ROWS|EST.TIME(us)|
---------------------------------------------------------------
|0 |NESTED-LOOP JOIN              |     |18216   |858         |
|1 |├─TABLE GET                   |t    |1       |5           |
|2 |├─DISTRIBUTED TABLE RANGE SCAN|u(k1)|16749   |435         |
|3 |└─TABLE FULL SCAN             |w    |3       |435         |
===============================================================
Outputs & filters:
-------------------------------------
  0 - output([t.c]), filter(nil), rowset=256
      conds(nil), nl_params_([t.k(:0)]), use_batch=true
  1 - output([t.k], [t.c]), filter(nil), rowset=256
      is_index_back=false, is_global_index=false,
      range_key([t.id]), range[3 ; 3],
  2 - output(nil), filter(nil), rowset=256
      is_index_back=true, is_global_index=false,
  3 - output(nil), filter(nil), rowset=256
      is_index_back=false, is_global_index=false,
"""


class Answering:
    """An administrative connection that explains statements, and knows how many rows each table has."""

    def __init__(self, explained: str) -> None:
        self.explained = explained

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        if sql.startswith("EXPLAIN"):
            return [(line,) for line in self.explained.splitlines()]
        return [(5000,)] if "'item'" in sql else []


def test_each_product_is_in_the_module_of_its_name() -> None:
    assert {name: one.protocol for name, one in PRODUCTS.items()} == server.PRODUCTS
    assert [type(one).__module__.rpartition(".")[2] for one in PRODUCTS.values()] == list(PRODUCTS)


def test_a_plan_has_the_operators_that_read_tables() -> None:
    admin: Any = Answering(EXPLAINED)
    plan = SeekDB().read_plan(admin, "SELECT t.c FROM t, t AS u, item AS w WHERE t.id = 3 AND u.k = t.k")
    assert plan.accesses == (
        Access("t", "TABLE GET", "PRIMARY", 1, is_full_scan=False, is_covering=True),
        Access("t", "DISTRIBUTED TABLE RANGE SCAN", "k1", 16749, is_full_scan=False, is_covering=False),
        # The plan shows the rows after the filter.
        Access("item", "TABLE FULL SCAN", None, 5000, is_full_scan=True, is_covering=True),
    )


def test_a_plan_of_another_form_is_a_problem() -> None:
    admin: Any = Answering("Query Plan")
    with pytest.raises(ServerProblem, match="another form"):
        SeekDB().read_plan(admin, "SELECT 1")


def test_the_version_is_its_own_and_not_that_of_the_protocol() -> None:
    assert SeekDB().server_version({"version": "5.7.25-OceanBase seekdb-v1.4.0.0"}) == "1.4.0.0"


def test_a_file_has_one_parameter_in_each_line() -> None:
    text = "# a comment\nkvcache_memory_limit = 64M\n\ncpu_count=2\n"
    assert SeekDB().file_options(text) == {"kvcache_memory_limit": "64M", "cpu_count": "2"}
