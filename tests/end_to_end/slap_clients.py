"""The real slap clients and dbdyno in their place: how each is started, and what it said and sent.

A flavour is a client with the server of its own make. Both sides are started under the same name with the
same options; the password stands in an option file.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.end_to_end.mysql_server import ROOT

TIMEOUT_S = 60.0
ACCOUNT = PASSWORD = "slap"
# Schemas that the account may make and drop.
SCHEMAS = "mysqlslap%"

# What no two runs have in common.
SECONDS = re.compile(r"\d+\.\d{3}\b")
KEYS = re.compile(r"(WHERE id =  )'[^']*'")


@dataclass(frozen=True)
class Said:
    """What a program said, and how it ended."""

    exit_code: int
    output: str
    errors: str

    def masked(self) -> tuple[int, list[str], str]:
        """Without times and keys."""
        output = KEYS.sub(r"\1'?'", SECONDS.sub("S", self.output))
        return self.exit_code, output.splitlines(), self.errors


@dataclass(frozen=True)
class Flavour:
    """A client, and a private server of its make that writes the general log into a table."""

    name: str
    real: tuple[str, ...]
    ours: tuple[str, ...]
    options: tuple[str, ...]
    query: Callable[[str], Sequence[tuple[Any, ...]]]

    def say(
        self, side: Sequence[str], *arguments: str, server: bool = True, folder: Path | None = None
    ) -> Said:
        """Run one side; without `server` it knows of none."""
        done = subprocess.run(
            [*side, *(self.options if server else ("--no-defaults",)), *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
        )
        # An unpacked client calls itself by its path.
        errors = re.sub(r"\S*/(mysqlslap|mariadb-slap)\b", r"\1", done.stderr)
        return Said(done.returncode, done.stdout, errors)

    def sent(self, side: Sequence[str], *arguments: str) -> tuple[Said, list[list[str]]]:
        """What one side says, and what the server heard of it, connection by connection."""
        self.query("TRUNCATE mysql.general_log")
        said = self.say(side, *arguments)
        # A server notes a goodbye when it comes to it, maybe after the program has ended.
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            connections = self._connections()
            if all(heard[-1] == "Quit" for heard in connections) or time.monotonic() > deadline:
                return said, connections
            time.sleep(0.02)

    def _connections(self) -> list[list[str]]:
        """What every connection said that was opened since the log was emptied."""
        rows = self.query("SELECT user_host, thread_id, command_type, argument FROM mysql.general_log")
        heard: dict[int, list[str]] = {}
        for who, thread, kind, argument in rows:
            text = argument.decode() if isinstance(argument, bytes) else argument
            if who.startswith(f"{ACCOUNT}[") or f"[{ACCOUNT}]" in who:
                heard.setdefault(int(thread), []).append(_heard(kind, text))
        return [said for said in heard.values() if said[0].startswith("Connect")]


def _heard(kind: str, text: str) -> str:
    if kind == "Connect":
        return "Connect " + re.sub(r" using .*", "", text)
    if kind == "Init DB":
        # A command of the protocol, and a statement that does the same.
        return f"Query USE `{text}`"
    # The originals send the zero byte at the end of some of their strings, too.
    keyless = KEYS.sub(r"\1'?'", text.rstrip("\0"))
    return f"{kind} {keyless}".strip()


def unpacked_mysqlslap() -> tuple[str, ...]:
    """MySQL's client from its unpacked package, with its own C library where that is there."""
    tarball = ROOT / "bin" / "mysqlslap"
    if tarball.is_file():
        return (str(tarball),)
    program = ROOT / "usr" / "bin" / "mysqlslap"
    assert program.is_file(), f"{program} is missing; remove {ROOT} and run make test again"
    loader = next(ROOT.glob("usr/lib*/ld-linux*.so.*"))
    folders = sorted({str(path.parent) for path in (ROOT / "usr").rglob("*.so*")})
    return (str(loader), "--library-path", ":".join(folders), str(program))


def option_file(folder: Path, name: str, port: int) -> tuple[str, ...]:
    """The options that lead to a server."""
    path = folder / f"{name}.cnf"
    path.write_text(
        f"[client]\nhost=127.0.0.1\nport={port}\nuser={ACCOUNT}\npassword={PASSWORD}\n", encoding="utf-8"
    )
    return (f"--defaults-file={path}",)
