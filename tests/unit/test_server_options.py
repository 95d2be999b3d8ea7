"""The spellings of options, the files that a configuration file includes, and options that may be unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno.experiment.file_reading import INCLUDE_DEPTH_MAX, read_server_config
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.experiment.quantities import Setting
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.mysql import MySQL
from dbdyno.servers.products.mysql_family import _is_known
from dbdyno.servers.products.postgresql import PostgreSQL
from dbdyno.servers.server import ServerProblem
from dbdyno.store.run import experiment_hash
from dbdyno.variables.versions import is_effective, variable_of

VARIABLES = {
    "concurrent_insert": "ALWAYS",
    "datadir": "/data/b/",
    "innodb_adaptive_hash_index": "OFF",
    "innodb_flush_method": "O_DIRECT",
    "key_buffer_size": "16777216",
    "key_cache_age_threshold": "300",
    "key_cache_block_size": "1024",
    "log_bin": "ON",
    "low_priority_updates": "ON",
    "relay_log_index": "/data/b/relay/x.index",
    "skip_name_resolve": "ON",
    "tx_isolation": "READ-COMMITTED",
    "wal_compression": "pglz",
}


@pytest.mark.parametrize(
    ("option", "value", "variable"),
    [
        ("skip-name-resolve", "", "skip_name_resolve"),
        ("log-bin", "", "log_bin"),
        ("log_bin", "binlogs/shop", "log_bin"),
        ("skip-innodb-adaptive-hash-index", "", "innodb_adaptive_hash_index"),
        ("disable_innodb_adaptive_hash_index", "1", "innodb_adaptive_hash_index"),
        ("enable-low-priority-updates", "", "low_priority_updates"),
        ("skip_low_priority_updates", "0", "low_priority_updates"),
        ("transaction-isolation", "READ-COMMITTED", "tx_isolation"),
        ("tx_isolation", "1", "tx_isolation"),
        ("key_buffer", "16M", "key_buffer_size"),
        ("concurrent_insert", "2", "concurrent_insert"),
        ("relay_log_index", "./relay/x.index", "relay_log_index"),
        ("loose-key-buffer-size", "16M", "key_buffer_size"),
        ("wal_compression", "true", "wal_compression"),
    ],
)
def test_an_option_sets_its_variable_in_any_spelling(option: str, value: str, variable: str) -> None:
    resolved = variable_of(option, value, VARIABLES, "mariadb")
    assert resolved is not None
    assert resolved[0] == variable
    assert is_effective(*resolved, VARIABLES)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("log_bin", "OFF"),
        ("skip_log_bin", ""),
        ("skip-innodb-adaptive-hash-index", "0"),
        ("enable_innodb_adaptive_hash_index", ""),
        ("transaction-isolation", "SERIALIZABLE"),
        ("tx_isolation", "2"),
        ("concurrent_insert", "1"),
        ("relay_log_index", "y.index"),
        ("key_buffer", "8M"),
        ("wal_compression", "lz4"),
        # Only `log_bin` takes a name of files.
        ("low_priority_updates", "shop"),
    ],
)
def test_an_option_without_its_effect_is_seen(option: str, value: Setting) -> None:
    resolved = variable_of(option, value, VARIABLES, "mariadb")
    assert resolved is not None
    assert not is_effective(*resolved, VARIABLES)


def test_only_mariadb_accepts_the_unique_beginning_of_a_name() -> None:
    assert variable_of("key_buffer", "16M", VARIABLES, "mysql") is None
    assert variable_of("key_cache", "1", VARIABLES, "mariadb") is None
    assert variable_of("skip_innodb_flush_method", "", VARIABLES, "mariadb") is None


def test_an_option_that_is_switched_or_limited_is_known() -> None:
    known = frozenset({"log_bin", "sort_buffer_size", "skip_external_locking"})
    names = ("skip_log_bin", "disable_log_bin", "maximum_sort_buffer_size", "external_locking")
    assert all(_is_known(name, known) for name in names)
    assert not _is_known("skip_federated", known)


@pytest.mark.parametrize("product", [MariaDB(), MySQL()])
def test_the_suffix_for_logs_is_no_part_of_the_version(product: MariaDB | MySQL) -> None:
    assert product.server_version({"version": "11.4.2-MariaDB-log"}) == "11.4.2-MariaDB"
    assert product.server_version({"version": "8.0.41-debug"}) == "8.0.41-debug"
    assert PostgreSQL().server_version({"server_version": "17.1-log"}) == "17.1-log"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


def declare(product: Any, config: Path, **spec: Any) -> Variant:
    return Variant(name="v", server=ServerSpec(product=product, config=config, **spec))


def test_mariadbs_included_files_are_read_relative_to_the_file(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        {
            "my.cnf": "[mysqld]\na=1\n!includedir more\n!include sub/one.cnf\nz=2\n[client]\nport=9\n",
            "more/b.cnf": "[mariadb]\nb=1\n",
            "more/a.cnf": "[client]\nb=0\n[mysqld]\nb=0\n",
            "more/c.txt": "[mysqld]\nc=1\n",
            "sub/one.cnf": "[mysqld]\n!include two.cnf\n",
            "sub/two.cnf": "[mysqldump]\nx=1\n[server]\nd=1\n",
        },
    )
    declared = read_declaration(declare("mariadb", config))
    assert declared.options() == {"a": "1", "b": "1", "d": "1", "z": "2"}
    assert [file.name for file in declared.included] == ["a.cnf", "b.cnf", "one.cnf", "two.cnf"]


def test_postgresqls_included_files_are_read_relative_to_the_file(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        {
            "pg.conf": "include_dir 'conf.d'\nwork_mem=1MB\ninclude = 'it''s.inc' # why\n"
            "include_if_exists 'absent.conf'\nincluded.custom = 1\n",
            "conf.d/2.conf": "work_mem = 2MB\nseq_page_cost = 2\n",
            "conf.d/.hidden.conf": "work_mem = 9MB\n",
            "it's.inc": "jit = off\n",
        },
    )
    assert read_declaration(declare("postgresql", config)).options() == {
        "work_mem": "1MB",
        "seq_page_cost": "2",
        "jit": "off",
        "included.custom": "1",
    }


def test_an_included_file_that_is_absent_is_named_unless_an_image_may_have_it(tmp_path: Path) -> None:
    config = write(tmp_path, {"a.cnf": "[mysqld]\n!include sub/b.cnf\n"})
    with pytest.raises(ServerProblem, match=r"a\.cnf'; it includes '.*sub/b\.cnf', which cannot be read: No"):
        read_declaration(declare("mysql", config))
    config.write_text("[mysqld]\n!includedir /nowhere/conf.d\n")
    assert "\n!includedir /nowhere/conf.d" in read_server_config(config).text


def test_files_that_include_each_other_are_an_error(tmp_path: Path) -> None:
    config = write(tmp_path, {"a.conf": "include 'b.conf'\n", "b.conf": "include 'a.conf'\n"})
    with pytest.raises(ServerProblem, match=f"more than {INCLUDE_DEPTH_MAX} files include each other"):
        read_declaration(declare("postgresql", config))


def test_a_run_knows_when_an_included_file_has_changed(tmp_path: Path) -> None:
    config = write(tmp_path, {"a.conf": "include 'b.conf'\n", "b.conf": "jit = on\n"})

    class OneVariant:
        variants = (declare("postgresql", config),)

    before = experiment_hash({}, OneVariant())  # type: ignore[arg-type]
    (tmp_path / "b.conf").write_text("jit = off\n")
    assert experiment_hash({}, OneVariant()) != before  # type: ignore[arg-type]


def test_an_option_that_may_be_unknown_stays_so(tmp_path: Path) -> None:
    config = write(tmp_path, {"my.cnf": "[mysqld]\nloose-thread_pool_idle = 5\nloose_x\n"})
    declared = read_declaration(
        declare(
            "mysql",
            config,
            variables={"loose-clone-buffer": "4M", "max_connections": 9},
            arguments=("--loose-y=1",),
        )
    )
    assert declared.loose == {"thread_pool_idle", "x", "clone_buffer", "y"}
    assert declared.file_variables() == {"loose_clone_buffer": "4M", "max_connections": "9"}
