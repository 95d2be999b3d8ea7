"""Who may use the pages: requests must name this server, come from its own pages, and bring the token.

A browser sends the token once, in the address that `dbdyno ui` prints or in a form; then it has a cookie with
a secret of this process.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

from dbdyno.listening import Listener

COOKIE = "dbdyno"
FORM_BYTES_MAX = 8192
# Where a browser that has sent the token gets its cookie.
ENTER = "/enter"
_HTML = [(b"content-type", b"text/html; charset=utf-8")]
_FORM = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>dbdyno</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>dbdyno</h1><p>The address that dbdyno ui has printed opens these pages.</p>
<form method="post" action="/login"><label>Token
<input type="password" name="token" autocomplete="current-password" autofocus>
</label> <button>Open</button></form></main></body></html>"""
# A browser sends a SameSite=Strict cookie only if the navigation began on this site: after a link in another
# program's page not even in the request that follows a redirect. So a page of this site leads to the pages.
_ENTERED = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>dbdyno</title>
<meta http-equiv="refresh" content="0; url={}"></head><body><a href="{}">dbdyno</a></body></html>"""
# Headers of all answers, unless an answer has another value.
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    # With no-referrer a form would have no Origin.
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
}
# NiceGUI compiles templates in the browser, which needs 'unsafe-eval'. Its own scripts have the nonce, so a
# script or an event handler within a text of a run does not run.
_POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_SCRIPT = re.compile(rb"<script(?=[\s>])")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = MutableMapping[str, str]


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
        if scope["type"] == "http":
            send = _Secured(send)
        if not self._place.accepts_host(headers.get("host", "")):
            await _refuse(scope, send, 403, b"the Host header does not name this server\n")
        elif not _is_own_page(headers):
            await _refuse(scope, send, 403, b"the request comes from a page of another site\n")
        elif scope["type"] == "http" and self._is_token(_sent_token(scope)):
            await self._set_cookie(headers, _without_token(scope), send)
        elif scope["type"] == "http" and scope["path"] == ENTER:
            await _enter(scope, send)
        elif self._has_cookie(headers):
            await self._inner(_plain(scope), receive, send)
        elif scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", "/login"):
            await self._log_in(headers, receive, send)
        else:
            await _refuse(scope, send, 401, _FORM, "text/html; charset=utf-8")

    def _is_token(self, sent: str) -> bool:
        assert self._place.token is not None, "pages always have a token"
        return hmac.compare_digest(sent.encode(), self._place.token.encode())

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._secret.encode())

    async def _log_in(self, headers: Headers, receive: Receive, send: Send) -> None:
        form = b""
        while len(form) <= FORM_BYTES_MAX:
            message = await receive()
            form += message.get("body", b"")
            if not message.get("more_body"):
                break
        (sent,) = parse_qs(form[:FORM_BYTES_MAX].decode("latin-1")).get("token", [""])[:1]
        if self._is_token(sent):
            await self._set_cookie(headers, "/", send)
        else:
            await _answer(send, 401, _FORM, _HTML)

    async def _set_cookie(self, headers: Headers, path: str, send: Send) -> None:
        """Give the browser its cookie, and lead it to `path`."""
        cookie = f"{cookie_name(headers)}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
        location = f"{ENTER}?{urlencode({'to': path})}"
        sent = [(b"location", location.encode()), (b"set-cookie", cookie.encode())]
        await _answer(send, 303, b"", [*sent, (b"referrer-policy", b"no-referrer")])


def cookie_name(headers: Headers) -> str:
    """The name of the cookie: browsers send a cookie to all ports of a host, so it contains the port."""
    port = re.search(r":(\d{1,5})$", headers.get("host", ""))
    return f"{COOKIE}-{port[1] if port else 80}"


class _Secured:
    """Sends the answer to one request with the headers of all answers, and the nonce in its scripts."""

    def __init__(self, send: Send) -> None:
        self._send, self._nonce = send, secrets.token_urlsafe(16)
        # The start of a page whose body is collected.
        self._page: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """See ASGI."""
        if message["type"] == "http.response.start":
            headers = {name.lower(): value for name, value in message.get("headers", ())}
            has_policy = b"content-security-policy" in headers
            policy = {b"content-security-policy": _POLICY.format(nonce=self._nonce).encode()}
            extra = {name: value for name, value in (_HEADERS | policy).items() if name not in headers}
            message = {**message, "headers": [*message.get("headers", ()), *extra.items()]}
            if headers.get(b"content-type", b"").startswith(b"text/html") and not has_policy:
                self._page = message
                return
        elif self._page is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            start, body = self._page, _SCRIPT.sub(b'<script nonce="%b"' % self._nonce.encode(), self._body)
            length = (b"content-length", str(len(body)).encode())
            others = [(name, value) for name, value in start["headers"] if name.lower() != length[0]]
            await self._send({**start, "headers": [*others, length]})
            message = {"type": "http.response.body", "body": body}
        await self._send(message)


def _plain(scope: Message) -> Message:
    """A request whose answer is not compressed if it is a page, in which scripts get their nonce."""
    if scope["type"] != "http" or scope["path"].startswith("/_nicegui/"):
        return scope
    return {**scope, "headers": [entry for entry in scope["headers"] if entry[0] != b"accept-encoding"]}


def _query(scope: Message) -> str:
    return bytes(scope.get("query_string", b"")).decode("latin-1")


def _sent_token(scope: Message) -> str:
    """The token in a request's address; "" without one."""
    return parse_qs(_query(scope)).get("token", [""])[0]


def _without_token(scope: Message) -> str:
    """The path and query of a request, without the token."""
    rest = urlencode([(key, value) for key, value in parse_qsl(_query(scope)) if key != "token"])
    return quote(scope["path"]) + (f"?{rest}" if rest else "")


async def _enter(scope: Message, send: Send) -> None:
    """Lead to a page of this server."""
    path = parse_qs(_query(scope)).get("to", ["/"])[0]
    # "//host" and "/\host" are addresses of other hosts.
    if re.fullmatch(r"/(?![/\\])[^\x00-\x20;\\]*", path) is None:
        path = "/"
    body = _ENTERED.format(escape(path), escape(path)).encode()
    await _answer(send, 200, body, [*_HTML, (b"referrer-policy", b"no-referrer")])


def _is_own_page(headers: Headers) -> bool:
    """Whether a request has no origin (a link, a program), or that of this server's pages. A page of another
    port gets the cookie sent, but may only lead here.
    """
    is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    if is_foreign and headers.get("sec-fetch-mode") != "navigate":
        return False
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
