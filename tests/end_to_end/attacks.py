"""Runs the engine against a hostile server and holds what must be true whatever the server does.

No panic, no hang, bounded memory, one clear sentence with a way out, and no password in any form that can be
turned back.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from tests.end_to_end.hostile_server import NONCE, HostileServer

from dbdyno.run.engine import find_engine

PASSWORD = "canary-Kj4Z9-q7Wm"
VARIABLE = "DBDYNO_TEST_PASSWORD"

CONNECT_S, MEASURE_S, DRAIN_S = 1.0, 0.5, 0.2
# Far above what an engine needs that keeps its limits, on a busy machine too, and far below "for ever".
SECONDS_MAX = 30.0
# An engine with one connection needs 8 MiB.
MEMORY_MAX = 64 << 20


def plan(port: int, *, host: str = "127.0.0.1", target: Any = None, **changes: Any) -> dict[str, Any]:
    """One connection, point selects, half a second."""
    return {
        "schema": 1,
        "target": {
            "protocol": "mysql",
            "endpoints": [{"tcp": {"host": host, "port": port}}],
            "user": "victim",
            "password": {"env": VARIABLE},
            "database": "dbdyno",
            "connect_timeout_us": round(CONNECT_S * 1e6),
            **(target or {}),
        },
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 100}},
        "load": {"connections": 1},
        "phases": {"measure_us": round(MEASURE_S * 1e6), "drain_us": round(DRAIN_S * 1e6)},
        "seed": 1,
        **changes,
    }


@dataclass(frozen=True)
class Attack:
    """What the engine did."""

    exit_code: int
    out: str
    words: str
    seconds: float
    server: HostileServer

    @property
    def records(self) -> list[dict[str, Any]]:
        """Every record."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def end(self) -> dict[str, Any]:
        """The data of the last record, which must be `end`."""
        last = self.records[-1]
        assert last["type"] == "end", self.out[-2000:]
        data: dict[str, Any] = last["data"]
        return data

    def held(self, exit_code: int) -> Attack:
        """Hold that it ended with this code, and what must be true whatever the server did."""
        assert self.exit_code == exit_code, (self.exit_code, self.words)
        assert "panicked" not in self.words, self.words
        assert self.seconds < SECONDS_MAX
        assert self.end["memory_peak_bytes"] < MEMORY_MAX
        # Nothing a server sends may reach the terminal as a command to it.
        assert all(character.isprintable() or character == "\n" for character in self.words), self.words
        assert len(self.out) < 1 << 20
        for where, text in (("stdout", self.out), ("stderr", self.words)):
            assert not leaks(text.encode()), where
        assert not leaks(self.server.received), "sent to the server"
        return self

    def refused(self, exit_code: int, says: str) -> Attack:
        """Hold that it ended with this code and with one sentence, and at most one line of advice."""
        self.held(exit_code)
        lines = self.words.splitlines()
        assert 1 <= len(lines) <= 2, self.words
        assert lines[0].startswith("dbdyno-engine: ")
        assert says in lines[0], self.words
        assert all(len(line) < 900 for line in lines), self.words
        assert self.end["failure"]["text"] == lines[0].removeprefix("dbdyno-engine: ")
        return self


def attack(server: HostileServer, command: str = "run", **changes: Any) -> Attack:
    """Run the engine against the server, to its end."""
    began = time.monotonic()
    done = subprocess.run(
        [find_engine(), command],
        input=json.dumps(plan(server.port, **changes)) + "\n",
        capture_output=True,
        text=True,
        env={VARIABLE: PASSWORD},
        timeout=2 * SECONDS_MAX,
        check=False,
    )
    return Attack(done.returncode, done.stdout, done.stderr, time.monotonic() - began, server)


def interrupt(server: HostileServer, command: str, **changes: Any) -> None:
    """Send SIGTERM to an engine that a server leaves waiting for good, and hold that it ends and says why."""
    asked = plan(server.port, **changes)
    asked["phases"]["measure_us"] = 600_000_000
    process = subprocess.Popen(
        [find_engine(), command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={VARIABLE: PASSWORD},
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.close()
        deadline = time.monotonic() + SECONDS_MAX
        while not any(b"sbtest" in bytes(peer.received) for peer in server.peers):
            assert time.monotonic() < deadline, "it never asked"
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DRAIN_S + 5) == 130
        assert process.stdout is not None
        last = json.loads(process.stdout.read().splitlines()[-1])
        assert (last["type"], last["data"]["reason"]) == ("end", "interrupted")
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def leaks(content: bytes, password: str = PASSWORD, nonce: bytes = NONCE) -> list[str]:
    """The forms in which `content` holds the password, of those that whoever listens can turn back."""
    secret = password.encode()
    forms = {
        "as it is": secret,
        "backwards": secret[::-1],
        "base64": base64.b64encode(secret).rstrip(b"=")[:-1],
        "hexadecimal": secret.hex().encode(),
        "UTF-16": password.encode("utf-16-le"),
        "inverted": bytes(byte ^ 0xFF for byte in secret),
        # What caching_sha2_password and sha256_password encrypt: without encryption it hides nothing.
        "exclusive or with the nonce": bytes(
            byte ^ nonce[place % len(nonce)] for place, byte in enumerate(secret)
        ),
    }
    folded = content.lower()
    found = [name for name, form in forms.items() if form in content]
    return found + (["hexadecimal"] if forms["hexadecimal"] in folded and "hexadecimal" not in found else [])
