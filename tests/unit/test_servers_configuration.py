"""Option files, declared values and their errors: pure text, exact."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.experiment.quantities import variable_name
from dbdyno.experiment.server import Product
from dbdyno.servers.kinds.docker import ContainerOptions, Image
from dbdyno.servers.products.declaration import PRODUCTS, read_declaration
from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.mysql_family import _quote_value
from dbdyno.servers.products.product import ConfigOptions, Value
from dbdyno.servers.server import ServerProblem


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "ON"),
        (False, "OFF"),
        (8, "8"),
        (0.5, "0.5"),
        ("8G", "8G"),
        ("512MiB", "512M"),
        ("64 KiB", "64K"),
        ("ROW", "ROW"),
    ],
)
def test_values_are_written_as_servers_want_them(value: Value, text: str) -> None:
    assert MariaDB().format_value("x", value) == text


def test_a_value_with_a_line_break_is_refused() -> None:
    with pytest.raises(ServerProblem, match=r"variables\.init_connect is 'a\\nb'"):
        MariaDB().format_value("init_connect", "a\nb")


@pytest.mark.parametrize(
    "name", ["innodb-page-size", "INNODB_PAGE_SIZE", "--innodb-page-size", "loose-innodb_page_size"]
)
def test_all_spellings_of_a_name_are_one(name: str) -> None:
    assert variable_name(name) == "innodb_page_size"


def test_an_option_file_is_read_as_a_server_reads_it() -> None:
    text = """
    # a comment
    [client]
    port = 1
    [mysqld]
    innodb-page-size = 8k   # pages
    skip-log-bin
    init_connect = "SET x = '#1'"
    !include /elsewhere
    [mariadb-10.11]
    max_connections=7
    [mysqldump]
    max_connections=9
    """
    assert MariaDB().file_options(text) == {
        "innodb_page_size": "8k",
        "skip_log_bin": "",
        "init_connect": "SET x = '#1'",
        "max_connections": "7",
    }


def test_the_generated_file_holds_harness_config_variables_and_place_in_this_order() -> None:
    options = ConfigOptions(
        set_by_dbdyno={"max_connections": "100"},
        config="[mysqld]\nmax_connections = 200\n",
        declared={"max_connections": "300", "sql_mode": "", "init_connect": 'say "a\\b"'},
    )
    text = options.text({"port": "20000"}, _quote_value, "[mysqld]")
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "["))]
    assert lines == [
        'max_connections = "100"',
        "max_connections = 200",
        'max_connections = "300"',
        'sql_mode = ""',
        r'init_connect = "say \"a\\b\""',
        'port = "20000"',
    ]


def test_every_error_is_told_at_once() -> None:
    spec = ServerSpec(
        variables={"datadir": "/x", "a b": 1, "max-connections": 3, "max_connections": 4, "port": "70000"},
        arguments=("--socket=/x", "plain"),
        config=Path("/nowhere/my.cnf"),
    )
    with pytest.raises(ServerProblem) as caught:
        read_declaration(Variant(name="v", server=spec))
    text = caught.value.text
    assert caught.value.exit_code == 2
    for part in (
        "variant 'v'",
        "variables.datadir cannot be declared",
        "'a b', which is not a valid variable name",
        "'max-connections' and 'max_connections'",
        "variables.port is '70000'; a port is a number from 1 to 65535",
        "arguments must not contain '--socket=/x'",
        "arguments contains 'plain'",
        "config is '/nowhere/my.cnf', which cannot be read: No such file",
    ):
        assert part in text


def test_arguments_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "my.cnf"
    config.write_text("[mysqld]\ninnodb_page_size=4k\nmax_connections=1\nback_log=5\ndatadir=/x\nport=1\n")
    spec = ServerSpec(
        config=config,
        variables={"innodb-page-size": "8k", "max_connections": 2},
        arguments=("--max-connections=3",),
    )
    wanted = read_declaration(Variant(name="v", server=spec))
    assert wanted.options() == {"innodb_page_size": "8k", "max_connections": "3", "back_log": "5"}
    assert wanted.init_options() == {"innodb_page_size": "8k"}
    assert wanted.port is None


def test_a_containers_ports_are_published_on_loopback_alone() -> None:
    image = Image("image", "sha256:0", "amd64")
    bridged = ContainerOptions(image, "a", "1:1", network="bridge", ports=(3306, 3307)).sdk_options()
    assert bridged["ports"] == {"3306/tcp": ("127.0.0.1", 3306), "3307/tcp": ("127.0.0.1", 3307)}
    assert "ports" not in ContainerOptions(image, "a", "1:1", ports=(3306,)).sdk_options()


def test_an_experiment_can_name_every_product_that_runs_locally() -> None:
    assert set(get_args(Product)) == set(PRODUCTS)
