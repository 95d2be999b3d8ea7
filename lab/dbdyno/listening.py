"""Who may use what dbdyno serves over HTTP: those who know a token, or everyone on this machine.

On a loopback address other users of the machine can connect, and pages of other sites in a browser can try to
(DNS rebinding), so the Host header must name this machine.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from dbdyno.problem import Problem
from dbdyno.store.files import open_regular

TOKEN_BYTES_MAX = 4096
TOKEN_CHARACTERS_MIN = 16


@dataclass(frozen=True)
class Listener:
    """An address to listen on. Clients must send the token, if there is one."""

    host: str
    port: int
    token: str | None
    # Whether `token` is of this process, and not of a file that the user has named.
    has_own_token: bool = False

    @property
    def url_host(self) -> str:
        """The host as in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def accepts_host(self, header: str) -> bool:
        """Whether a Host header names this machine. Any name will do with the token of a file: a proxy with
        another name may forward the requests.
        """
        if self.token is not None and not self.has_own_token:
            return True
        name = re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^:\[\]]+)(?::\d{1,5})?", header)
        return name is not None and (name[1].strip("[]") == self.host or _is_loopback(name[1].strip("[]")))


def listener(listen: str, token_file: Path | None, what: str, *, needs_token: bool = False) -> Listener:
    """The listener for ADDRESS:PORT; `what` is served there. With `needs_token` it makes a token if no file
    has one. Raises Problem if the address is none, or not a loopback one without a file.
    """
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:]+)\]|([^:\[\]]+)):(\d{1,5})", listen)
    if match is None or int(match[3]) > 65535:
        raise Problem(f"--listen is {listen}; it must be ADDRESS:PORT", "For example --listen 127.0.0.1:9400")
    host = match[1] or match[2]
    token = None if token_file is None else _token(token_file)
    if token is None and not _is_loopback(host):
        raise Problem(
            f"{listen} is not a loopback address, so others could {what}",
            "Listen on 127.0.0.1, or name a file with a token: --token-file FILE",
        )
    if token is None and needs_token:
        return Listener(host, int(match[3]), secrets.token_urlsafe(32), has_own_token=True)
    return Listener(host, int(match[3]), token)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token(path: Path) -> str:
    with open_regular(path, follows_links=True) as file:
        token = file.read(TOKEN_BYTES_MAX).decode(errors="replace").strip()
    if not token.isascii() or len(token) < TOKEN_CHARACTERS_MIN:
        raise Problem(
            f"the token in {path} has fewer than {TOKEN_CHARACTERS_MIN} ASCII characters",
            "openssl rand -hex 32 prints a good one",
        )
    return token
