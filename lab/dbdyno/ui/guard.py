"""Who may use the pages: requests must name this server, come from its own pages, and bring the token.

A browser sends the token once, in a form; then it has a cookie with a secret of this process.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dbdyno.listening import Listener

COOKIE = "dbdyno"
FORM_BYTES_MAX = 8192
_FORM = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>dbdyno</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>dbdyno</h1><form method="post" action="/login"><label>Token
<input type="password" name="token" autocomplete="current-password" autofocus>
</label> <button>Open</button></form></main></body></html>"""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Guard:
    """An ASGI application around another one, which gets only the requests that are allowed."""

    def __init__(self, inner: Application, place: Listener) -> None:
        self._inner, self._place = inner, place
        self._secret = secrets.token_urlsafe(32)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request. See ASGI."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._place.accepts_host(headers.get("host", "")):
            await _refuse(scope, send, 403, b"the Host header does not name this server\n")
        elif not _is_own_page(headers):
            await _refuse(scope, send, 403, b"the request comes from a page of another site\n")
        elif self._place.token is None or self._has_cookie(headers):
            await self._inner(scope, receive, send)
        elif scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", "/login"):
            await self._log_in(receive, send)
        else:
            await _refuse(scope, send, 401, _FORM, "text/html; charset=utf-8")

    def _has_cookie(self, headers: MutableMapping[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._secret.encode())

    async def _log_in(self, receive: Receive, send: Send) -> None:
        form = b""
        while len(form) <= FORM_BYTES_MAX:
            message = await receive()
            form += message.get("body", b"")
            if not message.get("more_body"):
                break
        (sent,) = parse_qs(form[:FORM_BYTES_MAX].decode("latin-1")).get("token", [""])[:1]
        assert self._place.token is not None, "asked only if there is a token"
        if not hmac.compare_digest(sent.encode(), self._place.token.encode()):
            await _answer(send, 401, _FORM, [(b"content-type", b"text/html; charset=utf-8")])
            return
        cookie = f"{COOKIE}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(send, 303, b"", [(b"location", b"/"), (b"set-cookie", cookie.encode())])


def _is_own_page(headers: MutableMapping[str, str]) -> bool:
    """Whether a request has no origin (a link, a program), or that of this server's pages."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


async def _refuse(scope: Message, send: Send, status: int, body: bytes, kind: str = "text/plain") -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, status, body, [(b"content-type", kind.encode())])


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
