"""No password leaves in clear text, whatever a server asks for.

The listener here keeps every byte; `leaks` looks for the password in each form that can be turned back.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.end_to_end.attacks import CONNECT_S, PASSWORD, VARIABLE, attack, leaks, plan
from tests.end_to_end.hostile_server import (
    CACHING_SHA2,
    CAPABILITIES,
    CLEAR,
    CLIENT_SSL,
    NATIVE,
    NONCE,
    OK,
    SHA256,
    Peer,
    greeting,
    hostile,
    more_data,
    switch,
)

from dbdyno.run.engine import find_engine
from dbdyno.servers.kinds.local import LocalServer

PROJECT = Path(__file__).parents[2]

FULL_LOGIN, FAST_LOGIN = b"\x04", b"\x03"


def test_the_detector_sees_every_form() -> None:
    secret = PASSWORD.encode()
    exclusive = bytes(byte ^ NONCE[place % 20] for place, byte in enumerate(secret + b"\0"))
    forms = [
        secret,
        secret[::-1],
        base64.b64encode(secret),
        secret.hex().encode(),
        secret.hex().upper().encode(),
        PASSWORD.encode("utf-16-le"),
        bytes(byte ^ 0xFF for byte in secret),
        exclusive,
    ]
    for form in forms:
        assert leaks(b"before " + form + b" after"), form
    assert not leaks(b"before " + secret[:-1] + b" after")


@pytest.mark.parametrize(
    "method",
    [
        CLEAR,
        SHA256,
        b"mysql_old_password",
        b"dialog",
        b"authentication_ldap_simple_client",
        b"auth_gssapi_client",
        b"",
        b"\x1b[31mred\x07",
        b"x" * 50_000,
    ],
    ids=lambda method: method[:20].decode("latin-1").encode("unicode_escape").decode() or "empty",
)
@pytest.mark.parametrize("when", ["greeting", "switch"])
def test_no_method_gets_the_password(method: bytes, when: str) -> None:
    def ask(peer: Peer, _asked: bytes) -> None:
        if when == "switch":
            peer.send(switch(method))
        peer.read_until_closed()

    with hostile({"login": ask}, plugin=method if when == "greeting" else NATIVE) as server:
        done = attack(server).held(3)
        assert len(done.words.splitlines()) <= 2


@pytest.mark.parametrize("when", ["greeting", "switch"])
@pytest.mark.parametrize("answer", [FULL_LOGIN, FAST_LOGIN, b"\x02", b"\x01", b"", b"\x04\x04"])
def test_caching_sha2_over_plain_tcp_sends_no_password(when: str, answer: bytes) -> None:
    """The full login asks for the password itself, which only encryption may carry."""

    def ask(peer: Peer, _asked: bytes) -> None:
        if when == "switch":
            peer.send(switch(CACHING_SHA2))
            peer.read()
        peer.send(more_data(answer))
        peer.read_until_closed()

    with hostile({"login": ask}, plugin=CACHING_SHA2 if when == "greeting" else NATIVE) as server:
        attack(server).held(3)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"-----BEGIN PUBLIC KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        # A modulus of one byte: encrypting with it would hide nothing.
        b"-----BEGIN PUBLIC KEY-----\nMBowDQYJKoZIhvcNAQEBBQADCQAwBgIBDwIBAw==\n-----END PUBLIC KEY-----\n",
        b"\xff" * 60_000,
    ],
    ids=["empty", "cut", "no key", "tiny key", "noise"],
)
@pytest.mark.parametrize("method", [CACHING_SHA2, SHA256])
def test_a_bad_key_gets_no_password(method: bytes, key: bytes) -> None:
    def ask(peer: Peer, _asked: bytes) -> None:
        peer.send(switch(method))
        peer.read()
        if method == CACHING_SHA2:
            peer.send(more_data(FULL_LOGIN))
            peer.read()
        peer.send(more_data(key))
        peer.read_until_closed()

    with hostile({"login": ask}) as server:
        attack(server).held(3)


@pytest.mark.parametrize("may", ["refused", "allowed"])
def test_a_key_from_far_away_is_asked_for_only_where_that_is_allowed(may: str) -> None:
    """Whoever answers with a key of their own reads the password: a key from the network must be allowed."""
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-m", "tests.end_to_end.far_away", may]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'lab'}:{PROJECT}"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["exit"] == 3
    if may == "refused":
        assert told["messages"] == [], "it asked"
        assert "allow_public_key_retrieval" in told["words"]
    else:
        # The request for the key, and the password under it: 2048 bits, other ones each time.
        assert told["messages"][0] == "02"
        assert len(bytes.fromhex(told["messages"][1])) == 256


def test_one_method_after_another_ends() -> None:
    methods = [NATIVE, CACHING_SHA2, SHA256, CLEAR]

    def ask(peer: Peer, _asked: bytes) -> None:
        for number in range(10_000):
            peer.send(switch(methods[number % len(methods)]))
            peer.read()

    with hostile({"login": ask}) as server:
        done = attack(server).held(3)
        assert done.seconds < CONNECT_S + 2


def test_tls_that_is_offered_and_not_spoken_gets_nothing() -> None:
    """A server, or whoever sits between, that promises TLS and answers in plain."""

    def ask(peer: Peer, _asked: bytes) -> None:
        peer.send(OK)
        peer.read_until_closed()

    def greet(peer: Peer, _asked: bytes) -> bool:
        peer.send(greeting(CLEAR, CAPABILITIES | CLIENT_SSL))
        return True

    with hostile({"greeting": greet, "login": ask}) as server:
        attack(server).refused(3, "no answer within 1.0 s")


# --- a real server: the password is nowhere but in the login's own proof


@pytest.mark.parametrize("kept_in", ["environment", "file"])
def test_the_password_shows_nowhere(mariadb: LocalServer, tmp_path: Path, kept_in: str) -> None:
    address = mariadb.address()
    secret, environment = {"env": VARIABLE}, {VARIABLE: address.password}
    if kept_in == "file":
        (tmp_path / "password").write_text(address.password + "\n")
        secret, environment = {"file": str(tmp_path / "password")}, {}
    asked = plan(
        address.port,
        target={"user": address.user, "database": address.database, "password": secret},
        phases={"measure_us": 300_000},
    )
    for command in ("prepare", "run", "cleanup"):
        process = subprocess.Popen(
            [find_engine(), command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert process.stdin is not None
        # It waits for its plan. The kernel lets Popen go on a little before the new argv is in place.
        deadline = time.monotonic() + 30
        while not (argv := Path(f"/proc/{process.pid}/cmdline").read_bytes()):
            assert time.monotonic() < deadline, "it has no argv"
            time.sleep(0.001)
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        out, words = process.communicate(timeout=60)
        assert process.returncode == 0, words
        assert command.encode() in argv
        for where, content in (("argv", argv), ("stdout", out), ("stderr", words)):
            assert not leaks(content, address.password), (command, where)


@pytest.mark.parametrize("command", ["prepare", "run", "cleanup"])
def test_a_refused_password_shows_nowhere(mariadb: LocalServer, command: str) -> None:
    address = mariadb.address()
    asked = plan(address.port, target={"user": address.user, "database": address.database})
    done = subprocess.run(
        [find_engine(), command],
        input=json.dumps(asked).encode() + b"\n",
        capture_output=True,
        env={VARIABLE: PASSWORD},
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert b"1045" in done.stderr
    assert not leaks(done.stdout + done.stderr)
