"""What other users and processes can read of a password in /proc while dbdyno runs on a real server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.end_to_end.comparing import environment

from dbdyno.servers.kinds.local import LocalServer

SCRIPT = """
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT SLEEP(0.01)") end
"""
RUN_S = 1.5
TIME_LIMIT_S = 60.0


def processes_with(secret: bytes) -> Iterator[tuple[str, int, str]]:
    """File of /proc, process and its program, for each process with the secret; this one does not count."""
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        for file in ("cmdline", "environ"):
            try:
                if secret in (process / file).read_bytes():
                    yield (
                        file,
                        int(process.name),
                        (process / "exe").readlink().name.removesuffix(" (deleted)"),
                    )
            except OSError:
                continue


def sightings(command: Sequence[str], secret: str, **variables: str) -> tuple[set[tuple[str, str]], str]:
    """Where the secret is while the command runs, once each program has had 0.2 s, and the standard error."""
    seen: dict[tuple[str, int, str], float] = {}
    late: set[tuple[str, str]] = set()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment(), **variables},
    ) as process:
        began = time.monotonic()
        while process.poll() is None:
            assert time.monotonic() - began < TIME_LIMIT_S
            for place in processes_with(secret.encode()):
                if time.monotonic() - seen.setdefault(place, time.monotonic()) > 0.2:
                    late.add((place[0], place[2]))
            time.sleep(0.03)
        assert process.stdout is not None
        return late, process.stdout.read()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "one.lua"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("password", ["--password={}", "-p{}", "-vp{}"])
def test_no_process_shows_the_password_of_slap(mariadb: LocalServer, password: str) -> None:
    address = mariadb.address()
    options = ["--no-defaults", f"--host={address.host}", f"--port={address.port}", f"-u{address.user}"]
    load = ["--no-drop", f"--create-schema={address.database}", "--query=SELECT SLEEP(0.02)", "-i30", "-c2"]
    command = [sys.executable, "-m", "dbdyno", "slap", *options, password.format(address.password), *load]
    seen, output = sightings(command, address.password)
    assert "Average number of seconds" in output
    assert seen == set()


def test_no_process_shows_the_password_of_sysbench(mariadb: LocalServer, script: Path) -> None:
    address = mariadb.address()
    options = [f"--mysql-host={address.host}", f"--mysql-port={address.port}", f"--mysql-user={address.user}"]
    options += [f"--mysql-db={address.database}", f"--mysql-password={address.password}"]
    command = [
        sys.executable,
        "-m",
        "dbdyno",
        "sysbench",
        str(script),
        *options,
        f"--time={RUN_S:.0f}",
        "run",
    ]
    seen, output = sightings(command, address.password)
    assert "total number of events" in output
    assert seen == set()


def test_only_the_load_generator_has_the_password_of_a_target(
    mariadb: LocalServer, script: Path, tmp_path: Path
) -> None:
    address = mariadb.address()
    (tmp_path / "password").write_text(address.password)
    target = f"mysql://{address.user}@{address.host}:{address.port}/{address.database}"
    command = [sys.executable, "-m", "dbdyno", "run", str(script), "--target", target, "--connections", "2"]
    command += [
        "--time",
        f"{RUN_S}s",
        "--warmup",
        "0s",
        "--workers",
        "1",
        "--results",
        str(tmp_path / "results"),
    ]
    seen, output = sightings([*command, "--password-file", str(tmp_path / "password")], address.password)
    assert "stored in" in output
    # Only this user and root can read it there.
    assert seen == {("environ", "dbdyno-compat")}
    stored = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert stored
    assert not [path for path in stored if address.password.encode() in path.read_bytes()]
