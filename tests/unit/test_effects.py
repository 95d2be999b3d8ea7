"""Each key of an experiment is marked: it executes, reads a file, or does neither; the marks are shown."""

from __future__ import annotations

import io
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from dbdyno.commands.comparison import agree
from dbdyno.experiment.effects import MARKS, Effect, marks_of, setting_effect, uses
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read, read_bytes
from dbdyno.problem import Problem
from dbdyno.servers.disclosure import disclosure
from dbdyno.ui.app import read_text


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models_in(argument)


def reachable(model: type[BaseModel], known: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """The models of an experiment file."""
    if model not in known:
        known.add(model)
        for field in model.model_fields.values():
            for one in models_in(field.annotation):
                reachable(one, known)
    return known


MODELS = reachable(Experiment, set())


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (model, name)
        for model in sorted(MODELS, key=lambda one: one.__name__)
        for name, field in model.model_fields.items()
        if not list(models_in(field.annotation))
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_every_key_has_one_mark(model: type[BaseModel], field: str) -> None:
    assert len(marks_of(model, field)) == 1, (
        "add it to MARKS in experiment/effects.py, with what it executes or reads, if anything"
    )


def test_marks_are_of_fields() -> None:
    known = {base.__name__: base for model in MODELS for base in model.__mro__ if issubclass(base, BaseModel)}
    for name, marks in MARKS.items():
        for fields in marks.values():
            assert set(fields.split()) <= set(known[name].model_fields), name


# By the manuals of MariaDB 11.4, MySQL 9.7, PostgreSQL 18, PgBouncer, Pgpool-II and HAProxy.
EXECUTING = """
init_file=/x.sql init-file=x.sql INIT_CONNECT=CALL(x) init_replica=x init_slave=x plugin_load=a.so
plugin-load-add=a.so loose-plugin-load-add=a early-plugin-load=a plugin_dir=/x skip_grant_tables=ON
--skip-grant-tables= loose_skip_grant_tables=1 wsrep_provider=/lib/g.so wsrep_sst_method=x
wsrep_notify_cmd=x allow_suspicious_udfs=ON archive_command=x archive_cleanup_command=x
restore_command=x recovery_end_command=x archive_library=x ssl_passphrase_command=x
shared_preload_libraries=x session_preload_libraries=x local_preload_libraries=x dynamic_library_path=/x
jit_provider=x extension_control_path=/x oauth_validator_libraries=x plperl.on_init=x failover_command=x
recovery_1st_stage_command=x lua-load=/x.lua external-check_command=x ldap_library=x
daemon_memcached_engine_lib_name=x.so Archive_Command=x
"""
READING = """
general_log_file=/x general-log-file=x.php slow_query_log_file=x log_error=/x log-bin=/x log_bin_index=x
relay_log=x tmpdir=/x slave_load_tmpdir=/x datadir=/x innodb_data_home_dir=/x
innodb_log_group_home_dir=x innodb_undo_directory=x aria_log_dir_path=x secure_file_priv=
secure_file_priv=/ local_infile=ON lc_messages_dir=/x character_sets_dir=x ssl_ca=x ssl_cert=x ssl_key=x
ssl_capath=x ssl_crl=x ft_stopword_file=x des_key_file=x pid_file=x socket=x
file_key_management_filename=x server_audit_file_path=x keyring_file_data=x bind_address=0.0.0.0
feedback_url=x wsrep_cluster_address=gcomm://x log_directory=x log_filename=x data_directory=x
hba_file=x ident_file=x config_file=x external_pid_file=x stats_temp_directory=x
unix_socket_directories=x ssl_cert_file=x ssl_dh_params_file=x krb_server_keyfile=x primary_conninfo=x
listen_addresses=* include=x include_dir=x include_if_exists=x temp_tablespaces=x auth_file=x
auth_hba_file=x log_basename=x debug=o,x logfile=x pidfile=x unknown_setting=/etc/passwd
other=../../x another=x.php
"""
HARMLESS = """
innodb_buffer_pool_size=8G innodb_log_file_size=1G innodb_file_per_table=ON table_open_cache=4000
max_connections=500 innodb_flush_log_at_trx_commit=2 sync_binlog=0 sql_mode=ANSI,TRADITIONAL
character_set_server=utf8mb4 log_output=FILE optimizer_switch=index_merge=on tls_version=TLSv1.2
innodb_flush_method=O_DIRECT jit=off shared_buffers=1GB wal_level=minimal synchronous_commit=off
random_page_cost=1.1 search_path=app max_wal_size=2GB checkpoint_timeout=5min pool_mode=transaction
thread_handling=pool-of-threads transaction_isolation=READ-COMMITTED event_scheduler=ON
log_temp_files=-1 max_files_per_process=1000 binlog_format=ROW io_method=worker max_connect_errors=10
"""


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        *((one, Effect.EXECUTES) for one in EXECUTING.split()),
        *((one, Effect.READS) for one in READING.split()),
        *((one, Effect.HARMLESS) for one in HARMLESS.split()),
    ],
)
def test_settings_by_their_names(text: str, effect: Effect) -> None:
    name, _, value = text.partition("=")
    assert setting_effect(name, value) is effect


FILE = """
[experiment]
name = "made"
[[workload]]
name = "sql"
transactions = ["SELECT :x"]
parameters = { x = "csv('values.csv', 'x')" }
setup = ["CREATE TABLE t (id INT)"]
[load]
connections = [2]
duration = "1s"
[design]
state = "reset"
[[variant]]
name = "a"
[variant.server]
hook_environment = ["AWS_SECRET"]
during_trial = ["perf", "record"]
arguments = ["--anything"]
init_sql = ["INSTALL SONAME 'x'"]
variables = { plugin_load_add = "evil.so", "loose-general-log-file" = "x.php", sort_buffer_size = "1M" }
[variant.proxy]
program = "haproxy"
basedir = "/usr"
settings = { "lua-load" = "x.lua" }
[[variant]]
name = "b"
[variant.server]
kind = "remote"
url = "mysql://me@db.example:3306/x"
[variant.session]
allow_public_key_retrieval = true
variables = { local_preload_libraries = "x" }
sql = ["SET @a = 1"]
"""
SHOWN = [
    "a: server.during_trial = perf record",
    "a: server.hook_environment = AWS_SECRET",
    "a: server.arguments = --anything",
    "a: server.init_sql = INSTALL SONAME 'x'",
    "a: server.variables.plugin_load_add = evil.so",
    "a: server.variables.loose-general-log-file = x.php",
    "a: server.product = mariadb",
    "a: proxy.program = haproxy",
    "a: proxy.basedir = /usr",
    "a: proxy.settings.lua-load = x.lua",
    "b: server.url = mysql://me@db.example:3306/x",
    "b: the password in DBDYNO_PASSWORD, for mysql://me@db.example:3306/x",
    "b: session.allow_public_key_retrieval = true",
    "b: session.variables.local_preload_libraries = x",
    "b: session.sql: 1 statement",
    "workload[sql]: 2 statements",
]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    (tmp_path / "values.csv").write_text("x\n1\n")
    (tmp_path / "made.toml").write_text(FILE)
    return read(tmp_path / "made.toml")


def test_everything_is_shown(experiment: Experiment, tmp_path: Path) -> None:
    lines = [line.strip() for line in disclosure(experiment)]
    for text in SHOWN:
        assert text in lines, text
    assert any(str(tmp_path / "values.csv") in line for line in lines)
    assert not any("sort_buffer_size" in line for line in lines)


def test_lines_of_several_variants_are_one() -> None:
    plain = FILE.split("[variant.server]", maxsplit=1)[0].replace(
        "parameters = { x = \"csv('values.csv', 'x')\" }\n", ""
    )
    text = plain.replace("SELECT :x", "SELECT 1") + '[[variant]]\nname = "b"\nserver.cpus = "0"\n'
    found = disclosure(read_bytes(text.encode(), Path("x.toml")))
    assert "  a, b: server.product = mariadb" in found


def test_a_configuration_file_is_shown_by_its_settings(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text(
        "[mysqld]\nplugin-load-add = evil.so\nsort_buffer_size = 1M\n!includedir /etc/evil\n"
    )
    text = FILE.split("[variant.server]", maxsplit=1)[0] + '[variant.server]\nconfig = "my.cnf"\n'
    (tmp_path / "values.csv").write_text("x\n1\n")
    lines = "\n".join(disclosure(read_bytes(text.encode(), tmp_path / "x.toml")))
    assert "my.cnf: plugin_load_add = evil.so" in lines
    assert "my.cnf = !includedir /etc/evil" in lines
    assert "sort_buffer_size" not in lines


def test_it_runs_only_after_a_yes(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(Problem, match="runs only if you agree"):
        agree(experiment, "made.toml", yes=False)
    printed = capsys.readouterr().err
    assert all(text in printed for text in SHOWN)
    agree(experiment, "made.toml", yes=True)
    assert capsys.readouterr().err == ""


def test_uses_name_no_default(experiment: Experiment) -> None:
    keys = {use.key for use in uses(experiment)}
    assert "server.start" not in keys
    assert "server.password_file" not in keys


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ('transactions = ["SELECT :x"]', 'file = "{outside}/secret.sql"'),
        ("csv('values.csv'", "csv('{outside}/secret.csv'"),
        ("during_trial", 'config = "{outside}/my.cnf"\nduring_trial'),
        ("allow_public_key_retrieval", 'server_public_key = "{outside}/key.pem"\nallow_public_key_retrieval'),
        ("[variant.session]", 'password_file = "../outside/password"\n[variant.session]'),
    ],
)
def test_pages_read_files_of_their_folder_only(tmp_path: Path, change: str, key: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    for name in ("secret.sql", "secret.csv", "my.cnf", "key.pem", "password"):
        (outside / name).write_text("x\ncanary-4711\n")
    (folder / "values.csv").write_text("x\n1\n")
    text = FILE.replace(change, key.format(outside=outside))
    with pytest.raises(Problem, match="is not below the current folder") as refused:
        read_text(text, folder, is_confined=True)
    assert "canary" not in refused.value.text
    # Also through a link.
    (folder / "link").symlink_to(outside)
    with pytest.raises(Problem, match="is not below the current folder"):
        read_text(
            FILE.replace(change, key.format(outside="link").replace("../outside", "link")),
            folder,
            is_confined=True,
        )
    assert read_text(FILE, folder, is_confined=True).name == "made"
