"""Another person's experiment and run: nothing of them is executed, connected to or opened to read them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.stored_run import Making, experiment, make, store

from dbdyno.experiment.reading import read
from dbdyno.experiment.schedule import schedule
from dbdyno.report import writing as report
from dbdyno.report.rendering import RenderedCharts
from dbdyno.store import Run, StoreProblem
from dbdyno.verdict import judge

# Runs commands of dbdyno, and writes what they open, execute and connect to.
AUDITED = """
import json, os, sys
log, commands = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), json.loads(sys.argv[2])
EVENTS = ("open", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.system",
          "socket.connect", "ctypes.dlopen")
def watch(event, arguments):
    if event in EVENTS:
        os.write(log, (json.dumps([event, *map(str, arguments)]) + "\\n").encode())
sys.addaudithook(watch)
from dbdyno.__main__ import main
for command in commands:
    sys.argv = ["dbdyno", *command]
    os.write(log, (json.dumps(["command", *command]) + "\\n").encode())
    try:
        main()
    except SystemExit as end:
        print("exit code", end.code)
"""
FILE = """
[experiment]
name = "made"
[[workload]]
name = "oltp_read_write"
table_size = 1_000
[load]
connections = [10]
duration = "10s"
[design]
blocks = 6
state = "preserve"
[[variant]]
name = "a"
server.basedir = "{trap}"
server.config = "{trap}/my.cnf"
server.before_trial = ["{trap}/bin/mariadbd"]
proxy = {{ program = "haproxy", basedir = "{trap}" }}
[[variant]]
name = "b"
server.kind = "remote"
server.url = "mysql://someone@127.0.0.1:{port}/x"
server.password_file = "{trap}/password"
session.tls = "verify-ca"
session.tls_ca = "{trap}/ca.pem"
"""
SECRET = "canary-4711"


@dataclass(frozen=True)
class Stranger:
    """A folder that must stay untouched, a file that names it, and two stored runs of the file."""

    trap: Path
    file: Path
    results: Path
    runs: list[Path]


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    folder = tmp_path_factory.mktemp("stranger")
    trap = folder / "trap"
    (trap / "bin").mkdir(parents=True)
    for name in ("mariadbd", "mariadb-install-db", "haproxy"):
        program = trap / "bin" / name
        program.write_text(f"#!/bin/sh\necho ran >> {trap}/ran\necho mariadbd Ver 11.4.2-MariaDB\n")
        program.chmod(0o755)
    (trap / "my.cnf").write_text(f"[mysqld]\n{SECRET}=1\nplugin_load_add=evil.so\n")
    (trap / "password").write_text(SECRET)
    (trap / "ca.pem").write_text(SECRET)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(0.01)
        file = folder / "made.toml"
        file.write_text(FILE.format(trap=trap, port=listener.getsockname()[1]))
        runs = [_stored(folder / "results", file) for _ in range(2)]
        yield Stranger(trap, file, folder / "results", runs)
        with pytest.raises(TimeoutError):
            listener.accept()


def _stored(results: Path, file: Path) -> Path:
    """A judged run of the file."""
    making = Making(blocks=6, connections=(10,))
    plan = read(file)
    run = Run.create(results, plan, file.read_bytes(), None, {"host": "h", "lab": "1", "engine": "1"})
    for trial in schedule(plan):
        store(run, trial, experiment(making), making)
    judge(run)
    run.release()
    return run.path


def audited(folder: Path, *commands: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Output of commands, and what they opened, executed and connected to."""
    log = folder / "log"
    log.touch()
    answer = subprocess.run(
        [sys.executable, "-c", AUDITED, log, json.dumps(commands)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in answer.stderr, answer.stderr
    assert "internal error" not in answer.stderr, answer.stderr
    events = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    assert [event[1:] for event in events if event[0] == "command"] == [list(one) for one in commands]
    return answer.stdout + answer.stderr, events


def touched(stranger: Stranger, events: list[list[str]]) -> list[list[str]]:
    """The events that concern the experiment: its files, and any program or connection besides the charts'
    and the engine's description of a workload, which are dbdyno's own.
    """
    own = ("render_charts", "dbdyno-engine")
    return [
        event
        for event in events
        if event[0] != "command"
        and (
            str(stranger.trap) in " ".join(event)
            or (event[0] not in ("open", "ctypes.dlopen") and not any(one in " ".join(event) for one in own))
        )
    ]


def test_a_stored_run_is_read_without_its_programs_and_files(stranger: Stranger, tmp_path: Path) -> None:
    first, second = map(str, stranger.runs)
    place = ("--results", str(stranger.results))
    output, events = audited(
        tmp_path,
        ["list", *place],
        ["show", first],
        *(["report", first, "--format", name] for name in ("md", "csv", "json", "otava", "parquet")),
        ["diff", first, second],
        ["site", str(stranger.results), "--out", "site"],
        ["history", "made", *place],
    )
    assert output.count("exit code 0") == 10 - output.count("exit code 5")
    assert touched(stranger, events) == []
    assert not (stranger.trap / "ran").exists()


def test_a_static_check_executes_nothing_and_shows_everything(stranger: Stranger, tmp_path: Path) -> None:
    check = ["check", str(stranger.file), "--results", str(tmp_path / "results")]
    output, events = audited(
        tmp_path, [*check, "--static"], ["init", "copy.toml", "--from", str(stranger.runs[0])]
    )
    # The configuration file belongs to the experiment; its settings are shown.
    assert {tuple(one[:2]) for one in touched(stranger, events)} == {("open", f"{stranger.trap}/my.cnf")}
    assert not (stranger.trap / "ran").exists()
    for text in (
        f"a: server.basedir = {stranger.trap}",
        f"a: server.before_trial = {stranger.trap}/bin/mariadbd",
        f"a: proxy.basedir = {stranger.trap}",
        "my.cnf: plugin_load_add = evil.so",
        f"b: server.password_file = {stranger.trap}/password",
        f"b: session.tls_ca = {stranger.trap}/ca.pem",
        "b: server.url = mysql://someone@127.0.0.1",
    ):
        assert output.count(text) == 2, text
    # Without --static the same command asks the program for its version.
    _, events = audited(tmp_path, check)
    assert [one for one in touched(stranger, events) if one[0] == "subprocess.Popen"] != []
    assert (stranger.trap / "ran").exists()
    (stranger.trap / "ran").unlink()


def test_paths_in_names_lead_nowhere(tmp_path: Path) -> None:
    """Names of variants and workloads, and folders of trials, are not paths."""
    outside = tmp_path / "outside"
    outside.mkdir()
    making = Making(blocks=6, connections=(10,), names=("../../../../outside/a", "/etc/passwd"))
    results = tmp_path / "results"
    run = Run.create(results, experiment(making), b"", None, {"host": "h"})
    for trial in run.schedule():
        store(run, trial, experiment(making), making)
    judge(run)
    run.release()
    results_of = ("--results", str(results))
    output, _ = audited(
        tmp_path,
        ["show", str(run.path), *results_of],
        *(["report", str(run.path), "--format", name, *results_of] for name in ("html", "parquet", "svg")),
    )
    assert output.count("exit code 0") == 4, output
    assert list(outside.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"outside", "results"}
    assert [path.name for path in results.iterdir()] == ["made"]
    assert [path.name for path in (results / "made").iterdir()] == [run.path.name]


@pytest.mark.parametrize("name", ["ko", "charts"])
def test_a_report_follows_no_link(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in the run's folder could lead to pages or pictures of the user."""
    monkeypatch.setattr("dbdyno.report.writing._render", lambda *_: ([], RenderedCharts()))
    own = tmp_path / "own"
    own.mkdir()
    (own / "report.html").write_text("mine")
    run = make(tmp_path / "results", Making(blocks=6, connections=(10,)))
    judge(run)
    run.release()
    (run.path / name).symlink_to(own)
    with pytest.raises(StoreProblem, match="is a link"):
        report.write(run, language="ko" if name == "ko" else "en")
    assert [(path.name, path.read_text()) for path in own.iterdir()] == [("report.html", "mine")]
    report.write(run, language="ko", folder=tmp_path / "elsewhere")
