"""P04's pure parts: when two spellings are one value, and what is rounding."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dbdyno.checks.settings import allowed_values, rounding
from dbdyno.experiment.quantities import Setting, is_equal, number, parse_boolean, variable_name, with_unit


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8G", 8 * 1024**3),
        ("512m", 512 * 1024**2),
        ("1.5K", 1536),
        ("-1", -1),
        ("2T", 2 * 1024**4),
        ("1e3", 1000),
        ("0.000000", 0),
        # PostgreSQL's sizes in bytes, its times in milliseconds.
        ("128MB", 128 * 1024**2),
        ("131072kB", 128 * 1024**2),
        ("5min", 300_000),
        ("1.5 s", 1500),
        ("500us", Decimal("0.5")),
    ],
)
def test_numbers_with_units(text: str, value: int | Decimal) -> None:
    assert number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "ON", "8Gb", "K", "1 G", "0x10", "utf8"])
def test_what_is_no_number(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "value"), [("on", True), ("1", True), ("Yes", True), ("OFF", False), ("2", None)]
)
def test_truth(text: str, value: bool | None) -> None:
    assert parse_boolean(text) is value


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("innodb-buffer-pool-size", "innodb_buffer_pool_size"),
        ("loose-Max_Connections", "max_connections"),
        (" skip-name-resolve ", "skip_name_resolve"),
    ],
)
def test_variable_names(option: str, name: str) -> None:
    assert variable_name(option) == name


@pytest.mark.parametrize(
    ("name", "declared", "effective"),
    [
        ("innodb_buffer_pool_size", "8G", "8589934592"),
        ("innodb_buffer_pool_size", 134217728, "134217728"),
        ("slow_query_log", True, "ON"),
        ("slow_query_log", 1, "ON"),
        ("slow_query_log", "false", "OFF"),
        ("innodb_flush_method", "o_direct", "O_DIRECT"),
        ("long_query_time", 1.5, "1.500000"),
        ("sql_mode", "NO_ZERO_DATE,STRICT_ALL_TABLES", "STRICT_ALL_TABLES,NO_ZERO_DATE"),
        ("sql_mode", "ANSI", "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI"),
        ("sql_mode", "", ""),
        ("optimizer_switch", "index_merge=off", "index_merge=off,mrr=off"),
        ("character_set_server", "utf8", "utf8mb3"),
        ("collation_server", "utf8_general_ci", "utf8mb3_general_ci"),
        ("lc_messages_dir", "/usr/share/mysql", "/usr/share/mysql/"),
    ],
)
def test_the_same_value(name: str, declared: Setting, effective: str) -> None:
    assert is_equal(name, declared, effective)


@pytest.mark.parametrize(
    ("name", "declared", "effective"),
    [
        ("innodb_buffer_pool_size", "8G", "8000000000"),
        ("slow_query_log", True, "OFF"),
        # A word that is neither on nor off is not the same as "no".
        ("slow_query_log", "maybe", "OFF"),
        ("sql_mode", "", "STRICT_TRANS_TABLES"),
        ("sql_mode", "NO_ZERO_DATE", "NO_ZERO_DATE,STRICT_TRANS_TABLES"),
        ("optimizer_switch", "index_merge=on", "index_merge=off,mrr=off"),
        ("character_set_server", "utf8", "utf8mb4"),
        ("thread_handling", "pool-of-threads", "one-thread-per-connection"),
        ("long_query_time", 1.5, "1.400000"),
    ],
)
def test_another_value(name: str, declared: Setting, effective: str) -> None:
    assert not is_equal(name, declared, effective)


@pytest.mark.parametrize(
    ("name", "declared", "effective", "step"),
    [
        ("key_buffer_size", "1000001", "999424", 4096),
        ("join_buffer_size", "262145", "262144", 128),
        ("innodb_buffer_pool_size", "512000001", "511705088", 1024**2),
    ],
)
def test_a_size_cut_to_its_step_is_rounded(name: str, declared: str, effective: str, step: int) -> None:
    assert rounding(name, declared, {name: effective}) == f"rounded to a multiple of {step}"


def test_a_pool_is_rounded_to_chunks_times_instances() -> None:
    mib = 1024**2
    variables = {
        "innodb_buffer_pool_size": str(10240 * mib),
        "innodb_buffer_pool_chunk_size": str(16 * mib),
        "innodb_buffer_pool_instances": "4",
    }
    assert (
        rounding("innodb_buffer_pool_size", f"{10200 * mib}", variables)
        == f"rounded to a multiple of {64 * mib}"
    )


@pytest.mark.parametrize(
    ("name", "declared", "effective"),
    [
        # Clipped, not rounded.
        ("thread_stack", "100000", "131072"),
        # Less than a step, and more than 1 %: seven eighths of a small buffer are gone.
        ("key_buffer_size", "9000", "8192"),
        ("tmp_table_size", "1500", "0"),
        # No variable with a step.
        ("max_connections", "1001", "1000"),
        ("thread_handling", "pool-of-threads", "one-thread-per-connection"),
    ],
)
def test_what_is_no_rounding(name: str, declared: str, effective: str) -> None:
    assert rounding(name, declared, {name: effective}) is None


def test_the_servers_rules_are_told_where_known() -> None:
    assert allowed_values("max_connections") == "10 to 100000, and lower if open_files_limit is too small"
    assert allowed_values("a_variable_of_tomorrow") is None


@pytest.mark.parametrize(
    ("setting", "unit", "expected"),
    [
        (16384, "8kB", "131072kB"),
        ("300", "s", "300s"),
        ("128MB", "8kB", "128MB"),
        # Their own meanings.
        (-1, "ms", -1),
        (0, "kB", 0),
        (True, "kB", True),
        ("on", "kB", "on"),
        (7, None, 7),
    ],
)
def test_numbers_in_the_variables_own_unit(setting: Setting, unit: str | None, expected: Setting) -> None:
    assert with_unit(setting, unit) == expected
