"""`dbdyno compare --a … --b …`: the experiment file that it writes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from dbdyno.commands.option_document import choose_file, write_experiment
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read
from dbdyno.problem import Problem

POOL = "mariadb:thread_handling=pool-of-threads,thread_pool_size=2"


def written(folder: Path, a: str, *b: str, **options: Any) -> Experiment:
    return read(write_experiment({"a": a, "b": b, "workload": "oltp_read_only", **options}, [], folder))


def refused(folder: Path, a: str, *b: str, **options: Any) -> str:
    with pytest.raises(InvalidExperiment) as caught:
        written(folder, a, *b, **options)
    assert list(folder.iterdir()) == []
    return str(caught.value)


def test_servers_with_settings(tmp_path: Path) -> None:
    experiment = written(tmp_path, "mariadb", POOL, connections="16,64", time="3s", warmup="1s", tables=2)
    plain, pool = experiment.variants
    assert (plain.name, pool.name) == ("mariadb", "thread_handling-pool-of-threads-thread_pool_size-2")
    assert (plain.server.kind, plain.server.product, plain.server.variables) == ("local", "mariadb", {})
    assert pool.server.variables == {"thread_handling": "pool-of-threads", "thread_pool_size": 2}
    assert experiment.name == f"oltp_read_only-mariadb-{pool.name}"[:80].rstrip("-._")
    assert [point.connections for point in experiment.load.points()] == [16, 64]
    assert (experiment.load.duration_s, experiment.load.warmup_s) == (3.0, 1.0)
    assert experiment.workloads[0].data()["tables"] == 2
    assert experiment.design.stop is not None, "the defaults of the experiment file hold"


def test_images_urls_and_several_variants(tmp_path: Path) -> None:
    images = written(tmp_path, "mariadb:10.11", "mariadb:11.4:innodb_buffer_pool_size=1G", "mysql:9.1")
    assert [one.server.kind for one in images.variants] == ["docker"] * 3
    assert [one.server.image for one in images.variants] == ["mariadb:10.11", "mariadb:11.4", "mysql:9.1"]
    assert [one.server.product for one in images.variants] == ["mariadb", "mariadb", "mysql"]
    assert images.variants[1].server.variables == {"innodb_buffer_pool_size": "1G"}
    servers = written(tmp_path, "mysql://load@db1:3306/test", "mysql://load@db2/test", rate="50,100")
    assert [one.server.kind for one in servers.variants] == ["remote", "remote"]
    assert [one.name for one in servers.variants] == ["db1-3306", "db2"]
    assert [point.rate for point in servers.load.points()] == [50.0, 100.0]


def test_the_same_server_twice(tmp_path: Path) -> None:
    assert [one.name for one in written(tmp_path, "mariadb", "mariadb").variants] == ["mariadb", "mariadb-2"]


def test_own_sql(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text("-- query\nSELECT 1;\n")
    file = write_experiment({"a": "mariadb", "b": ["postgresql"], "workload": "shop.sql"}, [], tmp_path)
    assert tomllib.loads(file.read_text())["workload"] == [
        {"name": "sql", "file": "shop.sql", "label": "shop"}
    ]
    assert file.name == "shop-mariadb-postgresql.toml"


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    options = {"a": "mariadb", "b": ["mariadb:innodb_flush_log_at_trx_commit=2"]}
    first = write_experiment(options, [], tmp_path)
    assert write_experiment(options, [], tmp_path) == first
    first.write_text("# mine\n")
    second = write_experiment(options, [], tmp_path)
    assert second.name == f"{first.stem}-2.toml"
    assert first.read_text() == "# mine\n"


def test_all_mistakes_are_named_by_their_options(tmp_path: Path) -> None:
    text = refused(
        tmp_path, "mariad", "mysql:x=1,x=2", "mysql:=", connections="2,x", time="5", workload="oltp"
    )
    assert text.startswith("dbdyno compare: 6 errors")
    assert "--a = \"mariad\": 'mariad' is no product. Write mariadb, mysql or postgresql" in text
    assert "x is there twice" in text
    assert "'=' is no setting" in text
    assert "--connections = \"2,x\": 'x' is not a whole number" in text
    assert '--time = "5": a duration is a number and a unit' in text
    assert '--workload = "oltp": there is no such workload' in text
    assert "--b: this is missing" in refused(tmp_path, "mariadb")


def test_a_password_in_a_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    text = refused(tmp_path, "mysql://load:canary@db1/test", "mysql://load@db2/test")
    assert "password" in text
    assert "canary" not in text


def test_a_file_or_options() -> None:
    file = Path("x.toml")
    assert choose_file(file, {}, []) == file
    with pytest.raises(Problem, match="an experiment file is missing"):
        choose_file(None, {}, [])
    with pytest.raises(Problem, match=r"^--b, --table-size: an experiment file was given too, x\.toml"):
        choose_file(file, {"b": ["mysql"], "table_size": 4}, [])
