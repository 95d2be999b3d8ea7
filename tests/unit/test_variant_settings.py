"""What a variant changes besides its server: workload, load, session and data."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.simulated_trials import measured

from dbdyno.decide.comparison import comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.experiment.differences import describe_differences, is_identical, list_differences
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment, OltpWorkload, ServerSpec, SqlWorkload
from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.schedule import schedule
from dbdyno.run.loading import data_key
from dbdyno.run.plan import trial_plan
from dbdyno.say.sentence import sentence
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.url import parse_url

LOAD_AND_VARIANTS = """
[load]
connections = [2]
duration = "2s"
[[variant]]
name = "a"
[[variant]]
name = "b"
"""
OLTP = f"""
[experiment]
name = "x"
[[workload]]
name = "oltp_point_select"
table_size = 1_000
{LOAD_AND_VARIANTS}"""
SQL = """
[experiment]
name = "x"
[[workload]]
name = "sql"
label = "w"
setup = ["CREATE TABLE t (id INT PRIMARY KEY)"]
tables.t = { rows = 10, columns = { id = "sequence()" } }
parameters.id = "uniform(1, 10)"
transactions = [{ sql = "SELECT * FROM t WHERE id = :id", rows = 1 }]
"""
SQL += LOAD_AND_VARIANTS
URL = "server = { kind = 'remote', url = 'mysql://u@h/d"
TARGET = {"protocol": "mysql", "endpoints": [{"unix": {"path": "/"}}], "user": "u", "database": "d"}


def given(text: str, *assignments: str) -> Experiment:
    return read_bytes(text.encode(), Path("test.toml"), None, assignments)


def errors_of(text: str) -> list[str]:
    with pytest.raises(InvalidExperiment) as caught:
        given(text)
    return [str(error) for error in caught.value.errors]


def plan_of(experiment: Experiment, variant: str, protocol: str = "mysql") -> dict[str, object]:
    trial = next(one for one in schedule(experiment) if one.variant == variant)
    return trial_plan(experiment, trial, {**TARGET, "protocol": protocol})


def test_a_variant_changes_keys_of_its_workload() -> None:
    experiment = given(OLTP + "[variant.workload]\ntable_size = 9\nkeys = 'zipfian'\n")
    a, b = experiment.variants
    assert [experiment.workload_for(one, "oltp_point_select").rows for one in (a, b)] == [1_000, 9]
    assert len(experiment.distinct_workloads()) == 2
    assert list_differences(experiment, b) == ["workload.table_size", "workload.keys"]
    assert {trial.workload for trial in schedule(experiment)} == {"oltp_point_select"}


def test_a_version_is_a_difference_if_it_chooses_the_server() -> None:
    version = 'server = {{ product = "postgresql", version = "{}"{} }}'
    for more, differences in (("", ["version"]), (", basedir = '/'", [])):
        text = OLTP.replace('name = "a"', f'name = "a"\n{version.format("14", more)}')
        experiment = given(text.replace('name = "b"', f'name = "b"\n{version.format("18", more)}'))
        assert list_differences(experiment, experiment.variants[1]) == differences


def test_a_profile_and_set_reach_the_workload_of_a_variant() -> None:
    changed = given(OLTP, "variant[b].workload.table_size=7", "workload.tables=3")
    (workload,) = changed.workloads_of(changed.variants[1])
    assert isinstance(workload, OltpWorkload)
    assert (workload.table_size, workload.tables) == (7, 3)


def test_a_variant_has_another_query_on_the_same_data() -> None:
    sql = "SELECT COUNT(*) FROM t WHERE id = :id"
    experiment = given(SQL + f'[variant.workload]\ntransactions = ["{sql}"]\n')
    a, b = experiment.variants
    one, other = (experiment.workload_for(variant, "w") for variant in (a, b))
    assert isinstance(other, SqlWorkload)
    assert [statement.sql for _, _, statement in other.named_statements()] == [sql]
    assert data_key(one, a) == data_key(other, b)
    assert (list_differences(experiment, b), describe_differences(experiment, b)) == (["workload"], [sql])
    assert plan_of(experiment, "b")["workload"] != plan_of(experiment, "a")["workload"]


def test_the_keys_of_one_of_several_workloads_stand_under_its_title() -> None:
    second = OLTP.replace("[load]", '[[workload]]\nname = "oltp_read_only"\n[load]')
    experiment = given(second + "[variant.workload.oltp_read_only]\nrange_size = 5\n")
    (own,) = experiment.variants[1].workloads
    assert (own.title, list_differences(experiment, experiment.variants[1])) == (
        "oltp_read_only",
        ["workload.range_size"],
    )


def test_statements_after_loading_are_part_of_the_data() -> None:
    experiment = given(OLTP + '[variant.data]\nafter = ["CREATE INDEX c ON sbtest1 (c)"]\n')
    a, b = experiment.variants
    workload = experiment.workload_for(b, "oltp_point_select")
    assert data_key(workload, a) != data_key(workload, b)
    assert describe_differences(experiment, b) == ["CREATE INDEX c ON sbtest1 (c)"]
    assert not is_identical(experiment, b)


def test_a_session_sets_isolation_variables_and_protocol() -> None:
    session = """[variant.session]
prepared = false
isolation = "read committed"
sql = ["SET @a = 1"]
variables = { sort-buffer-size = "4M", autocommit = true, time_zone = "it's" }
"""
    experiment = given(OLTP + session)
    plan = plan_of(experiment, "b")
    assert plan["session"] == [
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION sort_buffer_size = 4194304",
        "SET SESSION autocommit = ON",
        "SET SESSION time_zone = 'it''s'",
        "SET @a = 1",
    ]
    assert plan_of(experiment, "b", "postgresql")["session"][1] == "SET sort_buffer_size = '4M'"  # type: ignore[index]
    assert plan["workload"]["statements"] == "text"  # type: ignore[index]
    assert "session" not in plan_of(experiment, "a")


def test_connection_settings_have_one_home() -> None:
    now = given(OLTP + '[variant.session]\ntls = "required"\ncompression = "zlib"\n')
    before = given(OLTP + '[variant.server]\ntls = "required"\ncompression = "zlib"\n')
    assert now == before
    assert list_differences(now, now.variants[1]) == ["session.tls", "session.compression"]


def test_a_load_key_of_a_variant_replaces_that_of_the_experiment() -> None:
    experiment = given(OLTP + '[variant.load]\nreconnect_every = 1\nthink_time = "5ms"\n')
    a, b = (plan_of(experiment, name)["load"] for name in ("a", "b"))
    assert b == {**a, "reconnect_every": 1, "think_time": {"constant": {"us": 5000}}}  # type: ignore[dict-item]


def test_the_levels_of_factors_set_the_same_keys() -> None:
    text = (
        OLTP.partition("[[variant]]")[0]
        + """
[factor.index]
without = {}
with = { data.after = ["CREATE INDEX c ON sbtest1 (c)"] }
[factor.protocol]
prepared = {}
text = { session.prepared = false }
"""
    )
    experiment = given(text)
    assert [(v.name, len(v.data.after), v.session.prepared) for v in experiment.variants] == [
        ("without+prepared", 0, None),
        ("without+text", 0, False),
        ("with+prepared", 1, None),
        ("with+text", 1, False),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[variant.load]\nconnections = [3]",
            "variant[b].load.connections = [3]: all variants run the same load",
        ),
        ("[variant.load]\nreconnect_every = -1", "variant[b].load.reconnect_every = -1: must be at least 0"),
        ("[variant.load]\ntransprot = 'unix'", "Did you mean transport?"),
        ("[variant.workload]\nstatements = 'text'", "Write prepared = true or false under [variant.session]"),
        ("[variant.workload]\nlabel = 'y'", "the trials of all variants are paired by the workload's title"),
        ("[variant.workload]\nafter = ['X']", "Write after = [ … ] under [variant.data]"),
        (
            "[variant.workload]\ntable_sise = 3",
            "variant[b].workload.table_sise = 3: there is no such key. Did",
        ),
        ("[variant.workload]\ntable_size = 0", "variant[b].workload.table_size = 0: must be at least 1"),
        ("[variant.workload]\nkeys = 'x'", "variant[b].workload.keys.distribution"),
        ("[variant.session]\nisolation = 'read comitted'", "Did you mean read committed?"),
        ("[variant.session]\ntls = 'verify-ca'", "needs tls_ca"),
        ("[variant.session]\nisolaton = 'x'", "Did you mean isolation?"),
        ("[variant.session]\nvariables.x = inf", "variant[b].session.variables.x"),
        ("[variant.server]\nvariables.x = nan", "variant[b].server.variables.x"),
        ("[variant]\nserver.tls = 'required'\nsession.tls = 'disabled'", "server.tls sets it too"),
        (
            f"[variant]\n{URL}?tls=required' }}\nsession.tls = 'disabled'",
            "server.url has tls=required",
        ),
        (f"[variant]\n{URL}' }}\nload.transport = 'unix'", "the server's URL names no socket"),
        ("[variant.load]\nthink = 'exponential'", "no effect without think_time"),
        ("[variant.session]\nzstd_level = 5", 'no effect without compression = "zstd"'),
        ("[variant.data]\nafter = 'X'", "variant[b].data.after"),
        ("[[variant.workloads]]\nname = 'sql'", "Did you mean workload?"),
    ],
)
def test_errors_name_the_key_of_the_variant(text: str, message: str) -> None:
    document = OLTP.removesuffix('[[variant]]\nname = "b"\n') if text.startswith("[variant]\n") else OLTP
    text = text.replace("[variant]\n", '[[variant]]\nname = "b"\n')
    state = '[design]\nstate = "reset"\n' if URL in text else ""
    (error,) = errors_of(f"{document}{text}\n{state}")
    assert message in error


def test_keys_without_effect_are_accepted_where_they_have_one() -> None:
    assert given(
        OLTP
        + "[variant.load]\nthink = 'exponential'\nthink_time = '1ms'\ntransport = 'unix'\n"
        + "[variant.session]\nzstd_level = 5\ncompression = 'zstd'\nvariables.x = 0.5\n"
    )


def test_a_list_of_names_is_not_one_name() -> None:
    experiment = given(
        OLTP + """[variant.session.variables]\nsearch_path = '"$user", a'\nDateStyle = "ISO, DMY"\n"""
    )
    assert plan_of(experiment, "b", "postgresql")["session"] == [
        "SET search_path = '$user', 'a'",
        "SET datestyle = 'ISO, DMY'",
    ]


def test_changed_fields_of_statements_are_named(tmp_path: Path) -> None:
    sql = "SELECT * FROM t WHERE id = :id"
    changed = f'[variant.workload]\ntransactions = [{{ sql = "{sql}", rows = 2, weight = 3 }}]\n'
    experiment = given(SQL + changed)
    assert describe_differences(experiment, experiment.variants[1]) == [
        f"weight = 3.0 of {sql}",
        f"rows = 2 of {sql}",
    ]
    for name, blank in (("a", ""), ("b", "\n")):
        (tmp_path / f"{name}.sql").write_text(f"{blank}SELECT 1;\n")
    head = SQL.partition("setup")[0] + 'file = "a.sql"\n[load]' + SQL.partition("[load]")[2]
    text = head + '[variant.workload]\nfile = "b.sql"\n'
    experiment = read_bytes(text.encode(), tmp_path / "test.toml", None, ())
    assert is_identical(experiment, experiment.variants[1])


def test_a_title_that_is_a_key_of_a_workload_is_ambiguous() -> None:
    text = SQL.replace('label = "w"', 'label = "tables"')
    assert given(text + "[variant.workload]\norder = 'in-order'\n")
    (error,) = errors_of(text + "[variant.workload.tables]\norder = 'in-order'\n")
    assert error.startswith("variant[b].workload.tables: this is a key of a workload, and the title of one")


def test_a_variant_replaces_what_a_sql_file_has(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1;\n")
    head, _, rest = SQL.replace(
        'transactions = [{ sql = "SELECT * FROM t WHERE id = :id", rows = 1 }]', "LIST"
    ).partition("LIST")
    pair = ('file = "a.sql"\n', 'transactions = ["SELECT 2"]\n')
    for first, second, sql in ((*pair, "SELECT 2"), (*reversed(pair), "SELECT 1")):
        text = f"{head}{first}{rest}[variant.workload]\n{second}"
        experiment = read_bytes(
            text.replace('parameters.id = "uniform(1, 10)"', "").encode(), tmp_path / "x.toml", None, ()
        )
        (own,) = experiment.workloads_of(experiment.variants[1])
        assert isinstance(own, SqlWorkload)
        assert [statement.sql for _, _, statement in own.named_statements()] == [sql]
    both = f"{head}{pair[0]}{rest}[variant.workload]\n{''.join(pair)}"
    with pytest.raises(InvalidExperiment, match=r"the \.sql file also has transactions"):
        read_bytes(both.encode(), tmp_path / "x.toml", None, ())


def test_statements_after_loading_are_for_the_tables_of_one_workload() -> None:
    two = OLTP.replace("[load]", '[[workload]]\nname = "oltp_read_only"\ntable_size = 1_000\n[load]')
    after = '[variant.data]\nafter = ["CREATE INDEX c ON sbtest1 (c)"]\n'
    assert given(two + after)
    (error,) = errors_of(two.replace('only"\ntable_size = 1_000', 'only"\ntable_size = 9') + after)
    assert error.startswith("variant[b].data.after: the workloads have different tables")


def test_an_error_of_the_workload_itself_is_reported_once() -> None:
    text = OLTP.replace("table_size = 1_000", "table_size = 0") + "[variant.workload]\ntables = 2\n"
    assert errors_of(text) == ["workload[oltp_point_select].table_size = 0: must be at least 1."]


def test_errors_in_the_sql_of_a_variant_name_the_variant() -> None:
    (error,) = errors_of(SQL + '[variant.workload]\ntransactions = ["SELECT :x"]\n')
    assert error.startswith("variant[b].workload.transaction1.1: it uses :x, but there is no such parameter")


def test_one_existing_database_has_the_same_data_for_all_variants() -> None:
    server = '[variant.server]\nkind = "remote"\nurl = "mysql://u@h/d"\n'
    text = OLTP.replace('name = "a"\n', f'name = "a"\n{server}') + server
    with_index = (
        text + '[variant.data]\nafter = ["CREATE INDEX c ON sbtest1 (c)"]\n[design]\nstate = "preserve"\n'
    )
    (error,) = errors_of(with_index)
    assert "'b' has other data than the variants that use the same database" in error
    assert given(with_index.replace("preserve", "reset"))
    # Another spelling of the same database.
    (error,) = errors_of(with_index.replace("u@h/d", "other@H:3306/d?tls=required", 1))
    assert "'b' has other data than the variants that use the same database" in error
    for url in (
        "mysql://u@h/d",
        "mariadb://v@H:3306/d",
        "postgres://u@[::1],b:1/a%20b",
        "mysql://u@/d?socket=/s",
    ):
        assert (
            ServerSpec(kind="remote", url=url).data_location
            == RemoteServer(parse_url(url), Password("")).address().location
        )


def test_the_data_that_a_command_restores_are_the_users() -> None:
    server = """[variant.server]
kind = "command"
url = "mysql://u@h/d"
restore = ["true"]
[variant.workload]
table_size = {size}
"""
    text = OLTP.replace('name = "a"\n', f'name = "a"\n{server.format(size=5)}') + server.format(size=6)
    assert given(text)
    (error,) = errors_of(text + '[variant.data]\nafter = ["CREATE INDEX c ON sbtest1 (c)"]\n')
    assert error.startswith("variant[b].data.after: with state")


def test_the_sentence_and_the_verdict_name_what_a_variant_changes() -> None:
    after = ["CREATE INDEX c ON t (c)", "DROP INDEX k ON t", "ANALYZE TABLE t"]
    of = given(OLTP + f"[variant.data]\nafter = {after}\n")
    (comparison,) = compare_all(measured(of, lambda _trial: 100.0), of, [])
    text = sentence(comparison, [])
    assert text.endswith("; b: CREATE INDEX c ON t (c), DROP INDEX k ON t and 1 more.")
    assert comparison_entry(comparison, text).differs == after


@pytest.mark.parametrize("key", ["session.sql", "data.after"])
def test_a_blank_statement_is_refused(key: str) -> None:
    table, name = key.split(".")
    (error,) = errors_of(f'{SQL}[variant.{table}]\n{name} = ["DO 1", " "]\n')
    assert error == f'variant[b].{key}[2] = " ": this statement is empty; leave it out.'
