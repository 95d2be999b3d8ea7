"""Snapshots for real: made once, shared, restored byte for byte, and never taken for complete when they are
not.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import variant

from dbdyno.commands.clean import clean
from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload
from dbdyno.servers import open_server
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import MachineProblem, Server, ServerProblem
from dbdyno.servers.snapshots.cache import SNAPSHOTS_MAX, Snapshots
from dbdyno.servers.snapshots.directories import Snapshot, remove_unused_empty
from dbdyno.servers.workspace import Workspace

ROWS = 5_000


@pytest.fixture
def place(results: Path) -> Iterator[Workspace]:
    """A workspace whose cache starts empty."""
    with closing(Workspace.open(results / "snapshots-test", removes=True)) as workspace:
        yield workspace
        shutil.rmtree(workspace.base)


def experiment(seed: int = 1, **data: Any) -> Experiment:
    return Experiment(
        name="snapshots",
        workloads=(OltpWorkload(name="oltp_read_only", table_size=ROWS, **data),),
        load=Load(connections=(1,), duration_s=1.0),
        design=Design(seed=seed),
        variants=(variant("one"), variant("other", variables={"innodb_page_size": "8k"})),
    )


class Loader:
    """Fills a table by SQL and counts how often it was asked."""

    def __init__(self) -> None:
        self.servers: list[str] = []

    def __call__(self, server: Server) -> None:
        self.servers.append(server.variables()["innodb_page_size"])
        server.query("CREATE TABLE dbdyno.sbtest1 (id INT PRIMARY KEY, c CHAR(120)) ENGINE=InnoDB")
        server.query(f"INSERT INTO dbdyno.sbtest1 SELECT seq, REPEAT('x', 120) FROM dbdyno.seq_1_to_{ROWS}")


def digests(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def obtain(place: Workspace, load: Any, asked: Experiment | None = None, index: int = 0) -> Snapshot:
    asked = asked or experiment()
    return Snapshots(place).obtain(asked, asked.workloads[0], asked.variants[index], load)


def test_a_snapshot_is_made_once_and_restored_byte_for_byte(place: Workspace) -> None:
    load = Loader()
    with closing(obtain(place, load)) as snapshot, closing(obtain(place, load)) as again:
        assert load.servers == ["16384"]
        assert again == snapshot
        before = digests(snapshot.data)
        assert not {"ib_buffer_pool", "ibtmp1"} & before.keys()
        with closing(open_server(experiment().variants[0], place, snapshot)) as server:
            for _ in range(2):
                server.restore()
                data = place.base / "servers" / "one" / "data"
                assert digests(data) == before
                assert all(
                    p.stat().st_blocks * 512 >= p.stat().st_size for p in data.rglob("*") if p.is_file()
                )
                server.start()
                assert server.query("SELECT COUNT(*), MIN(id), MAX(id) FROM dbdyno.sbtest1") == [
                    (ROWS, 1, ROWS)
                ]
                # Settled: statistics are there, and nothing waits to be purged.
                statistics = server.query(
                    "SELECT n_rows FROM mysql.innodb_table_stats WHERE table_name = 'sbtest1'"
                )
                assert 0.9 * ROWS < statistics[0][0] < 1.1 * ROWS
                assert int(server.status()["Innodb_history_list_length"]) < 50
                server.query("DELETE FROM dbdyno.sbtest1")
                assert server.describe().identity["snapshot"] == snapshot.key
                assert "full copy" in server.describe().identity["restored_by"]
                server.stop(clean=False)
        assert digests(snapshot.data) == before


def test_other_data_seed_or_file_format_is_another_snapshot(place: Workspace) -> None:
    load = Loader()
    first = obtain(place, load)
    others = [
        obtain(place, load, experiment(seed=2)),
        obtain(place, load, experiment(tables=2)),
        obtain(place, load, index=1),
    ]
    same = obtain(place, load, experiment(range_size=7, point_selects=3))
    assert len({first.key, *(other.key for other in others)}) == 4
    assert same.key == first.key
    assert load.servers == ["16384", "16384", "16384", "8192"]
    for snapshot in (first, same, *others):
        snapshot.close()


def test_a_build_that_failed_or_was_killed_leaves_no_snapshot(place: Workspace) -> None:
    def broken(server: Server) -> None:
        Loader()(server)
        raise RuntimeError("the loader broke")

    with pytest.raises(RuntimeError, match="the loader broke"):
        obtain(place, broken)
    assert not [path for path in place.snapshots.iterdir() if path.is_dir()]
    assert not [path for path in (place.base / "servers").iterdir() if path.is_dir()]
    # What a kill in the middle leaves behind: data without the name of a finished snapshot.
    with closing(obtain(place, Loader())) as snapshot:
        finished = snapshot.data.parent
    finished.rename(finished.with_suffix(".unfinished"))
    load = Loader()
    with closing(obtain(place, load)) as snapshot:
        assert load.servers == ["16384"]
        assert json.loads((snapshot.data.parent / "snapshot.json").read_text())["bytes"] == snapshot.bytes
    assert not finished.with_suffix(".unfinished").exists()


def test_a_snapshot_that_was_changed_is_created_again(place: Workspace, tmp_path: Path) -> None:
    load = Loader()
    with closing(obtain(place, load)) as snapshot:
        table = snapshot.data / "dbdyno" / "sbtest1.ibd"
        size = snapshot.bytes
    with table.open("r+b") as file:
        file.truncate(1 << 14)
    with closing(obtain(place, load)) as snapshot:
        assert snapshot.bytes == size
        assert len(load.servers) == 2
    # A snapshot elsewhere is neither used nor removed.
    elsewhere = tmp_path / "elsewhere"
    snapshot.data.parent.rename(elsewhere)
    snapshot.data.parent.symlink_to(elsewhere)
    with pytest.raises(ServerProblem, match="is no snapshot of dbdyno"):
        obtain(place, load)
    assert (elsewhere / "snapshot.json").exists()
    assert len(load.servers) == 2


def test_the_cache_is_bounded_and_spares_what_is_in_use(place: Workspace) -> None:
    used = obtain(place, Loader(), experiment(seed=100))
    for seed in range(SNAPSHOTS_MAX + 1):
        obtain(place, Loader(), experiment(seed=seed)).close()
    names = {path.name for path in place.snapshots.iterdir() if path.is_dir()}
    assert used.key in names
    assert len(names) == SNAPSHOTS_MAX + 1
    used.close()
    obtain(place, Loader(), experiment(seed=200)).close()
    assert used.key not in {path.name for path in place.snapshots.iterdir()}


def test_clean_shows_the_cache_and_removes_what_is_not_used(
    place: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    results = place.base.parent
    first, second, used = (obtain(place, Loader(), experiment(seed=seed)) for seed in range(3))
    clean(results=results)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {first.key, second.key, used.key}
    assert all(line.endswith("mariadb, 1 table of 5,000 rows") for line in lines)
    first.close()
    second.close()
    clean(results=results, keep=0)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in lines[:2]} == {first.key, second.key}
    assert all(line.startswith("removed ") for line in lines[:2])
    assert lines[2].startswith(used.key)
    assert [path.name for path in place.snapshots.iterdir() if path.is_dir()] == [used.key]
    used.close()


def test_too_little_space_is_told_before_loading(place: Workspace) -> None:
    huge = experiment()
    workload = OltpWorkload(name="oltp_read_only", tables=100_000, table_size=1_000_000)
    with pytest.raises(
        MachineProblem, match="no space left for a snapshot of 100,000,000,000 rows"
    ) as caught:
        Snapshots(place).obtain(huge, workload, huge.variants[0], Loader())
    assert caught.value.exit_code == 4


def installed(place: Workspace, name: str, **variables: str) -> None:
    """Start a server without loaded data, and stop it."""
    with closing(open_server(variant(name, variables=variables), place, None)) as server:
        server.restore()
        server.start()
        assert server.query("SELECT 1")


def test_an_empty_data_directory_is_installed_once_for_each_file_format(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    install = LocalServer._install

    def counted(server: LocalServer, command: Any) -> None:
        keys.append(server.variant)
        install(server, command)

    monkeypatch.setattr(LocalServer, "_install", counted)
    installed(place, "first")
    installed(place, "second", innodb_flush_log_at_trx_commit="2")
    assert keys == ["first"]
    installed(place, "third", innodb_page_size="8k")
    assert keys == ["first", "third"]
    for folder in place.empty.glob("*/data"):
        (folder / "aria_log_control").write_bytes(b"changed")
    installed(place, "fourth")
    assert keys == ["first", "third", "fourth"]
    assert (remove_unused_empty(place, 1), len(list(place.empty.glob("*/data")))) == (1, 1)
