"""P07's arithmetic, with the figures of the seeds."""

from __future__ import annotations

from dbdyno.checks.limits import Capacity, Demand, client_capacities, server_capacities


def test_the_largest_point_of_seed_000() -> None:
    capacity = Capacity("max_prepared_stmt_count", 16382, "prepared statements", 46, 0, "SET")
    assert capacity.required(500) == 23_000
    assert not capacity.fits(500)
    # 90 % of 16,382 is 14,743.8, and 46 x 320 is 14,720.
    assert capacity.max_connections() == 320
    assert capacity.fits(320)
    assert not capacity.fits(321)
    # 23,000 are 90 % of 25,555.6.
    assert capacity.sufficient_limit(500) == 25_556
    assert Capacity("", 25_556, "", 46, 0, "").fits(500)
    assert not Capacity("", 25_555, "", 46, 0, "").fits(500)


def test_what_is_in_use_leaves_less_room() -> None:
    assert Capacity("max_connections", 100, "connections", 1, 0, "").max_connections() == 90
    assert Capacity("max_connections", 100, "connections", 1, 30, "").max_connections() == 60
    assert Capacity("max_connections", 100, "connections", 1, 95, "").max_connections() == 0


def test_a_limit_of_zero_or_unknown_is_no_limit() -> None:
    demand = Demand(connections=1000, tables=10, statements_per_connection=92)
    limits = {"max_user_connections": "0", "max_connections": "2000", "table_open_cache": "what"}
    capacities = server_capacities(limits, demand, {"Threads_connected": 7}, started=False)
    assert [(one.limit_name, one.limit, one.fixed) for one in capacities] == [("max_connections", 2000, 7)]
    assert capacities[0].fix_text(9) == "SET GLOBAL max_connections = 9"


def test_a_workload_without_statements_needs_no_room_for_them() -> None:
    demand = Demand(connections=10, tables=1, statements_per_connection=0)
    assert server_capacities({"max_prepared_stmt_count": "1"}, demand, {}, started=True) == []


def test_the_clients_limits() -> None:
    ports = {one.limit_name: one.max_connections() for one in client_capacities((32768, 60999), 1024)}
    # 28,232 ports, and 1,024 files of which 50 are other ones.
    assert ports == {"open files of the client": 871, "net.ipv4.ip_local_port_range": 25_408}
    assert len(client_capacities(None, 1024)) == 1
