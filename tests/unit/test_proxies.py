"""`[variant.proxy]`: what may be written, what the programs read, and what check P25 finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.differences import describe_differences, list_differences
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.variant import PROXY_TITLES, Proxy
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.run.affinity import assign_cpus, require_cpus
from dbdyno.servers import ports
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.proxies.proxy import ProxyPlace
from dbdyno.servers.server import Address, Description, ServerProblem

FILE = """
[experiment]
name = "x"
[[workload]]
name = "oltp_point_select"
table_size = 1_000
[load]
connections = [30]
duration = "2s"
[[variant]]
name = "direct"
server.product = "postgresql"
[[variant]]
name = "pooled"
server.product = "postgresql"
proxy = { program = "pgbouncer", settings = { pool_mode = "transaction", default_pool_size = 20 } }
"""
SERVER = Address(
    "127.0.0.1", 25_001, "/d/.s.PGSQL.25001", "dbdyno", "dbdyno", "secret", protocol="postgresql"
)
PLACE = ProxyPlace(Path("/p"), Path("/s"), 25_002, 25_003)


def given(text: str = FILE, *assignments: str) -> Experiment:
    return read_bytes(text.encode(), Path("test.toml"), None, assignments)


def errors_of(*assignments: str) -> str:
    with pytest.raises(InvalidExperiment) as caught:
        given(FILE, *assignments)
    return "\n".join(map(str, caught.value.errors))


def test_a_proxy_is_one_difference_with_its_settings() -> None:
    experiment = given()
    assert list_differences(experiment, experiment.variants[1]) == ["proxy"]
    texts = ["through PgBouncer", "pool_mode = transaction", "default_pool_size = 20"]
    assert describe_differences(experiment, experiment.variants[1]) == texts
    assert describe_differences(experiment, experiment.variants[1], server=False) == texts


def test_two_proxies_differ_by_their_keys() -> None:
    both = given(FILE, "variant.proxy.program=pgbouncer", "variant.proxy.settings.pool_mode=transaction")
    assert list_differences(both, both.variants[1]) == ["proxy.settings.default_pool_size"]
    other = given(FILE, "variant[direct].proxy.program=haproxy")
    assert list_differences(other, other.variants[1])[0] == "proxy.program"
    reverse = given(
        FILE.replace('"direct"', '"z"').replace('"pooled"', '"direct"').replace('"z"', '"pooled"')
    )
    assert reverse.variants[1].proxy is not None


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (("variant.server.product=mariadb",), "PgBouncer is a proxy for PostgreSQL"),
        (("load.transport=unix",), "the load reaches a proxy over TCP"),
        (("variant.session.tls=required",), "dbdyno starts PgBouncer without TLS"),
        (("variant[pooled].proxy.program=squid",), "variant[pooled].proxy.program"),
    ],
)
def test_what_does_not_go_together_is_one_error(assignments: tuple[str, ...], words: str) -> None:
    assert words in errors_of(*assignments)


def test_an_existing_server_has_its_own_proxy() -> None:
    text = FILE.replace(
        'server.product = "postgresql"', 'server = { kind = "remote", url = "postgresql://u@h/d" }'
    )
    with pytest.raises(
        InvalidExperiment, match="dbdyno starts proxies only in front of servers that it starts"
    ):
        given(text + '[design]\nstate = "preserve"\n')


def test_haproxy_forwards_every_protocol_and_tls() -> None:
    text = FILE.replace(
        'program = "pgbouncer", settings = { pool_mode = "transaction", default_pool_size = 20 }', ""
    )
    text = text.replace("proxy = {  }", 'proxy = { program = "haproxy" }').replace("postgresql", "mariadb")
    assert given(text, "variant.session.tls=required").variants[1].proxy == Proxy(program="haproxy")


def test_declared_cpus_are_not_divided_and_must_exist() -> None:
    pinned = given(FILE, "variant[pooled].proxy.cpus='0'")
    assert assign_cpus(pinned) is pinned
    assert pinned.variants[1].cpu_sets == (None, "0")
    with pytest.raises(Problem, match=r"variant\[pooled\]\.proxy\.cpus"):
        require_cpus(given(FILE, "variant[pooled].proxy.cpus='4000'"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_listens_on_loopback_and_forwards_to_the_server(name: str) -> None:
    program = PROGRAMS[name]
    settings = program.own_settings(30_000)
    files = program.files(PLACE, SERVER, settings)
    text = files[PLACE.config]
    assert PROXY_TITLES[name] == program.title
    assert "25001" in text
    assert "25002" in text
    assert all(path.parent == PLACE.directory for path in files)
    assert str(PLACE.config) in program.arguments(PLACE)
    assert "secret" not in " ".join(program.arguments(PLACE))
    assert "0.0.0.0" not in text
    for reserved in program.reserved:
        proxy = Proxy.model_validate({"program": name, "settings": {reserved: "x"}})
        with pytest.raises(ServerProblem, match=f"proxy.settings.{reserved}: dbdyno"):
            program.declared(proxy, "v")


def test_settings_are_written_where_the_program_reads_them() -> None:
    haproxy = PROGRAMS["haproxy"].files(
        PLACE, SERVER, {"nbthread": "2", "timeout client": "1h", "maxconn": "9"}
    )
    assert haproxy[PLACE.config].splitlines() == [
        "global", "    nbthread 2", "    maxconn 9", "listen load", "    mode tcp",
        "    bind 127.0.0.1:25002", "    maxconn 9", "    timeout client 1h",
        "    server database 127.0.0.1:25001",
    ]  # fmt: skip
    odyssey = PROGRAMS["odyssey"].files(
        PLACE, SERVER, {"workers": "2", "pool": "transaction", "pool_size": "5"}
    )
    lines = odyssey[PLACE.config].splitlines()
    assert lines.index("workers 2") < lines.index("listen {")
    assert lines.index('        pool "transaction"') > lines.index('    user "dbdyno" {')
    pgpool = PROGRAMS["pgpool"].declared(Proxy(program="pgpool", settings={"connection_cache": False}), "v")
    assert "connection_cache = 'off'" in PROGRAMS["pgpool"].files(PLACE, SERVER, pgpool)[PLACE.config]


def test_a_setting_is_one_line() -> None:
    with pytest.raises(ServerProblem, match="more than one line"):
        PROGRAMS["pgbouncer"].declared(Proxy(program="pgbouncer", settings={"a": "1\nlisten_addr = *"}), "v")


def test_the_ports_of_a_proxy_belong_to_the_directory(tmp_path: Path) -> None:
    first = ports.reserve_pair(ports.proxy_name(tmp_path), None)
    assert ports.reserve_pair(ports.proxy_name(tmp_path), None) == first
    ports.release_directory(tmp_path)
    assert not ports._held.get(ports.proxy_name(tmp_path))


def findings(version: str = "1.18.0", *assignments: str, **settings: Any) -> list[Finding]:
    changed = [f"variant[pooled].proxy.settings.{name}={value}" for name, value in settings.items()]
    experiment = given(FILE, *changed, *assignments)
    variant = experiment.variants[1]
    assert variant.proxy is not None
    program = PROGRAMS[variant.proxy.program]
    declared = program.declared(variant.proxy, variant.name)
    own = program.own_settings(30_000)
    identity = {
        "proxy": {
            "program": program.name,
            "version": version,
            "binary": "/usr/sbin/x",
            "settings": {**own, **declared},
            "set_by_dbdyno": {name: text for name, text in own.items() if name not in declared},
        }
    }
    described = Description("postgresql", "15.1", identity, {}, {}, {})
    return checks.run(Moment.READY, Context(experiment, variant=variant, description=described), ["P25"])


def test_prepared_statements_need_a_pooler_that_follows_them() -> None:
    stop, note = findings("1.18.0")
    assert (stop.code, stop.level, note.level) == ("P25", "stop", "note")
    assert "prepares statements, and PgBouncer 1.18.0 gives a client another connection" in stop.text
    assert "PgBouncer 1.21 or later" in stop.fix
    assert [one.level for one in findings("1.18.0", "variant.session.prepared=false")] == ["note"]
    assert [one.level for one in findings("1.22.0")] == ["stop", "note"]
    assert [one.level for one in findings("1.22.0", max_prepared_statements=100)] == ["note"]
    assert [one.level for one in findings("1.26.1")] == ["note"]
    assert [one.level for one in findings("1.26.1", max_prepared_statements=0)] == ["stop", "note"]


def test_in_session_mode_every_connection_needs_one_to_the_server() -> None:
    stop, _ = findings("1.26.1", pool_mode="session")
    assert "default_pool_size of PgBouncer 1.26.1 is 20, and the load needs 30" in stop.text
    assert [one.level for one in findings("1.26.1", pool_mode="session", default_pool_size=30)] == ["note"]


def test_a_proxy_admits_one_client_more_than_the_load() -> None:
    stop, _ = findings("1.26.1", max_client_conn=30)
    assert "max_client_conn of PgBouncer 1.26.1 is 30, and the load needs 31" in stop.text


def test_statements_of_the_session_hold_in_some_connections() -> None:
    warning, _ = findings("1.26.1", "variant.session.variables.work_mem=8MB")
    assert warning.level == "warn"
    assert "SET work_mem = '8MB'" in warning.text


def test_a_pooler_lowers_what_the_server_must_admit() -> None:
    """P07: 1,000 connections of the load need 20 of the server."""
    experiment = given(FILE, "load.connections=[1000]", "variant.server.variables.max_connections=100")
    found = checks.run(Moment.DESIGN, Context(experiment), ["P07"])
    assert {finding.subject for finding in found} == {"direct"}
