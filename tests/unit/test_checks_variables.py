"""P05 and P06 on descriptions of servers, and the tables of names and defaults that P05 reads."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.variant import SessionSettings
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.variables import versions
from dbdyno.variables.differences import differences

OLD, NEW = ("mysql", "8.0.41"), ("mysql", "8.4.5")
MARIADB = ("mariadb", "10.11.19-MariaDB")


def server(
    software: tuple[str, str], variables: dict[str, str], origins: dict[str, str] | None = None, **more: Any
) -> Description:
    return Description(*software, {}, {}, {}, variables, origins=origins or {}, **more)


def found(
    code: str,
    base: Description,
    own: Description,
    declared: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
    session: dict[str, Any] | None = None,
) -> list[Finding]:
    variants = [Variant(name=n, server=ServerSpec(variables=v)) for n, v in zip("AB", declared, strict=True)]
    variants[1] = variants[1].model_copy(update={"session": SessionSettings(variables=session or {})})
    experiment = Experiment(
        name="test",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=tuple(variants),
    )
    context = Context(experiment, variant=variants[1], description=own, peers={"A": base})
    return checks.run(Moment.READY, context, [code])


def kinds(base: Description, own: Description) -> dict[str, str]:
    return {one.name: one.kind for one in differences({"A": base.record(), "B": own.record()}, "AB")}


def test_a_value_that_one_server_has_been_given_is_a_warning() -> None:
    base, own = ({"sort_buffer_size": size} for size in ("2097152", "262144"))
    set_by = {"sort_buffer_size": "config"}
    (warning,) = found("P05", server(MARIADB, base, {"port": "config"}), server(MARIADB, own, set_by))
    assert (warning.level, warning.subject) == ("warn", "B")
    assert "1 variable differs between A and B" in warning.text
    assert "sort_buffer_size (2097152 and 262144)" in warning.text
    assert warning.evidence == {"variables": {"sort_buffer_size": {"A": "2097152", "B": "262144"}}}


def test_equal_servers_have_no_finding() -> None:
    same = server(MARIADB, {"sort_buffer_size": "2097152"}, {"port": "config"})
    assert found("P05", same, same) == []
    assert kinds(same, same) == {}


def test_what_the_server_computes_from_declared_settings_is_a_note() -> None:
    base, own = (
        server(MARIADB, {"innodb_buffer_pool_size": size, "innodb_lru_scan_depth": scan}, {"port": "config"})
        for size, scan in (("1", "16"), ("2", "32"))
    )
    (warning,) = found("P05", base, own)
    assert "2 variables differ between A and B, which neither" in warning.text
    origins = {"innodb_buffer_pool_size": "config"}
    declared = Description(*MARIADB, {}, {"innodb-buffer-pool-size": "2"}, {}, own.variables, origins=origins)
    (note,) = found("P05", base, declared)
    assert note.level == "note"
    assert "innodb_lru_scan_depth (16 and 32)" in note.text
    assert note.fix == ""


def test_a_declared_change_of_the_server_explains_what_the_server_computes() -> None:
    """As the number of CPUs, from which MariaDB computes the size of its thread pool."""
    pools = [server(MARIADB, {"thread_pool_size": size}, {"thread_pool_size": "auto"}) for size in "12"]
    records = {"A": pools[0].record(), "B": pools[1].record()}
    assert [one.kind for one in differences(records, "AB")] == ["other"]
    assert [one.kind for one in differences(records, "AB", {"B"})] == ["default"]


def test_another_name_of_a_declared_variable_is_declared_too() -> None:
    base, own = ({"long_query_time": size, "log_slow_query_time": size} for size in ("10", "1"))
    given: tuple[dict[str, Any], dict[str, Any]] = ({}, {"long_query_time": 1})
    servers = [server(MARIADB, v, {"long_query_time": "config"}) for v in (base, own)]
    declared = replace(servers[1], declared={"long-query-time": "1"})
    assert found("P05", servers[0], declared, given) == []


def test_a_version_with_and_without_logs_is_the_same() -> None:
    base, own = ({"version": f"10.11.19-MariaDB{end}"} for end in ("", "-log"))
    assert found("P05", server(MARIADB, base), server(MARIADB, own)) == []


def test_what_dbdyno_sets_for_tls_explains_what_the_server_computes() -> None:
    base, own = ({"have_ssl": have} for have in ("DISABLED", "YES"))
    origins = {"port": "config"}
    certificate = replace(server(MARIADB, own, origins), set_by_dbdyno={"ssl_cert": "/x"})
    (note,) = found("P05", server(MARIADB, base, origins), certificate)
    assert (note.level, note.fix) == ("note", "")
    assert "1 variable differs between A and B because of other settings: have_ssl" in note.text
    assert (
        len(found("P05", server(MARIADB, base, origins), server(MARIADB, own, {"have_ssl": "config"}))) == 1
    )


def test_defaults_of_two_versions_need_no_origins() -> None:
    base = server(OLD, {"innodb_log_buffer_size": "16777216", "innodb_io_capacity": "200"})
    own = server(NEW, {"innodb_log_buffer_size": "67108864", "innodb_io_capacity": "10000"})
    (note,) = found("P05", base, own)
    assert note.level == "note"
    assert "2 variables differ between A and B by the defaults of their versions" in note.text
    assert "declares the old ones" in note.fix
    # The same difference, but the new server has not its default.
    assert kinds(base, server(NEW, {**own.variables, "innodb_io_capacity": "5000"})) == {
        "innodb_io_capacity": "other",
        "innodb_log_buffer_size": "default",
    }


def test_only_one_version_has_a_variable() -> None:
    base, own = server(OLD, {"old_variable": "1"}), server(NEW, {"new_variable": "2"})
    assert kinds(base, own) == {"new_variable": "default", "old_variable": "default"}
    assert kinds(base, server(NEW, {}, {"port": "command_line"})) == {"old_variable": "default"}
    changed = server(NEW, {"new_variable": "2"}, {"new_variable": "command_line"})
    assert kinds(server(OLD, {}), changed) == {"new_variable": "other"}


def test_a_renamed_variable_is_compared_under_both_names() -> None:
    base = server(("mysql", "8.0.20"), {"innodb_log_file_size": "50331648", "innodb_log_files_in_group": "2"})
    assert kinds(base, server(("mysql", "9.7.0"), {"innodb_redo_log_capacity": "100663296"})) == {}
    (row,) = differences(
        {"A": base.record(), "B": server(("mysql", "9.7.0"), {"innodb_redo_log_capacity": "1"}).record()},
        "AB",
    )
    assert (row.name, row.kind) == (
        "innodb_log_file_size x innodb_log_files_in_group / innodb_redo_log_capacity",
        "other",
    )
    assert row.values == {"A": "50331648 x 2", "B": "1"}
    old = server(("postgresql", "12.5"), {"wal_keep_segments": "4"})
    assert kinds(old, server(("postgresql", "18.1"), {"wal_keep_size": "64MB"})) == {}
    assert kinds(server(OLD, {}), server(OLD, {})) == {}


def test_flags_are_compared_one_by_one() -> None:
    base = server(("mariadb", "10.6.20"), {"optimizer_switch": "mrr=off,cset_narrowing=off"})
    own = server(("mariadb", "11.8.2"), {"optimizer_switch": "mrr=on,cset_narrowing=on"})
    assert kinds(base, own) == {
        "optimizer_switch: cset_narrowing": "default",
        "optimizer_switch: mrr": "other",
    }
    declared = Description(
        *MARIADB, {}, {"optimizer_switch": "mrr=on"}, {}, {"optimizer_switch": "mrr=on,x=on"}
    )
    assert kinds(server(MARIADB, {"optimizer_switch": "mrr=off,x=on"}), declared) == {
        "optimizer_switch: mrr": "declared"
    }


def test_a_default_that_depends_on_the_machine_is_unexplained_unless_the_rule_changed() -> None:
    def pools(one: str, other: str) -> dict[str, str]:
        name, origins = "innodb_buffer_pool_instances", {"port": "command_line"}
        return kinds(
            server(("mysql", one), {name: "8"}, origins), server(("mysql", other), {name: "1"}, origins)
        )

    assert pools("8.0.41", "8.4.5") == {"innodb_buffer_pool_instances": "default"}
    assert pools("8.4.5", "9.7.0") == {"innodb_buffer_pool_instances": "other"}


def test_paths_of_programs_and_host_names_are_locations() -> None:
    base, own = (
        server(
            MARIADB,
            {
                "hostname": host,
                "basedir": base,
                "plugin_dir": f"{base}lib",
                "slow_query_log_file": f"{host}-slow.log",
            },
            {"basedir": "command-line"},
        )
        for host, base in (("vm", "/usr/"), ("db2", "/opt/mariadb/"))
    )
    assert set(kinds(base, own).values()) == {"location"}


@pytest.mark.parametrize("table", ["renamed.toml", "defaults.toml"])
def test_the_entries_of_a_table_have_sources(table: str) -> None:
    content = tomllib.loads(resources.files("dbdyno.variables").joinpath(table).read_text())
    entries = [one for key in ("change", "variable", "flag") for one in content.get(key, ())]
    assert len(entries) > 100
    assert all(one["source"] and set(one["source"]) <= content["sources"].keys() for one in entries)
    assert (
        {one["product"] for one in entries} == content["ranges"].keys() == {"mysql", "mariadb", "postgresql"}
    )


@pytest.mark.parametrize(
    ("version", "value", "expected"),
    [("5.7.18", "200", True), ("8.0.41", "10000", False), ("8.4.0", "10000", True), ("5.6.1", "200", None)],
)
def test_a_default_holds_from_its_version_on(version: str, value: str, expected: bool | None) -> None:
    assert versions.is_default("mysql", version, "innodb_io_capacity", value) is expected


DURABLE = {
    "innodb_flush_log_at_trx_commit": "1",
    "sync_binlog": "1",
    "log_bin": "ON",
    "tx_isolation": "REPEATABLE-READ",
}


def test_durability_is_always_listed() -> None:
    (note,) = found("P06", server(OLD, DURABLE), server(OLD, DURABLE))
    assert note.level == "note"
    assert note.evidence["settings"]["transaction_isolation"] == "REPEATABLE-READ"
    assert found("P06", server(OLD, {}), server(OLD, {})) == []


def test_less_durability_than_by_default_is_a_warning() -> None:
    weaker = server(OLD, {**DURABLE, "innodb_flush_log_at_trx_commit": "2", "sync_binlog": "1000"})
    warning, _ = found("P06", weaker, weaker)
    assert warning.level == "warn"
    assert warning.text.startswith("innodb_flush_log_at_trx_commit = 2, sync_binlog = 1000 guarantees less")
    # Without a binary log nothing is synced; MariaDB's default is 0.
    without = server(OLD, {**DURABLE, "sync_binlog": "0", "log_bin": "OFF"})
    assert [one.level for one in found("P06", without, without)] == ["note"]
    mariadb = server(MARIADB, {**DURABLE, "sync_binlog": "0"})
    assert [one.level for one in found("P06", mariadb, mariadb)] == ["note"]


def test_a_difference_is_a_warning_unless_the_experiment_compares_it() -> None:
    base, own = (
        server(("postgresql", "17.5"), {"fsync": "on"}),
        server(("postgresql", "17.5"), {"fsync": "off"}),
    )
    texts = [one.text for one in found("P06", base, own) if one.level == "warn"]
    assert len(texts) == 2
    assert "fsync (on and off)" in texts[1]
    assert [one.level for one in found("P06", base, own, ({}, {"fsync": "off"}))] == ["note"]


def test_what_a_configuration_file_declares_is_compared_too() -> None:
    base, off = (server(("postgresql", "17.5"), {"fsync": value}) for value in ("on", "off"))
    own = Description("postgresql", "17.5", {}, {"fsync": "off"}, {}, off.variables)
    assert [one.level for one in found("P06", base, own)] == ["note"]


def test_isolation_of_the_session_counts() -> None:
    base = server(OLD, DURABLE)
    session = {"transaction_isolation": "READ-COMMITTED"}
    (note,) = found("P06", base, base, session=session)
    assert note.evidence["settings"]["transaction_isolation"] == "READ-COMMITTED"


def test_p05_leaves_durability_to_p06() -> None:
    base, own = server(OLD, DURABLE), server(OLD, {**DURABLE, "sync_binlog": "0"})
    assert found("P05", base, own) == []
