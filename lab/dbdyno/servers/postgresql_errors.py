"""PostgreSQL's words when it does not start, turned into the user's terms.

The patterns are those of its log in English; whatever they do not know is quoted as it is.
"""

from __future__ import annotations

import re

from dbdyno.servers import explaining
from dbdyno.servers.account import ServerUser
from dbdyno.servers.product import Failure
from dbdyno.servers.server import ServerProblem

_TELLING = re.compile(r"(?:FATAL|PANIC|ERROR|initdb: error|could not)[^\n]*")


def error_lines(log: str) -> list[str]:
    """What the log says of errors, without time stamps, in order."""
    return [match[0].strip() for match in _TELLING.finditer(log)]


def explain(failure: Failure, user: ServerUser) -> ServerProblem:
    """Why the server did not start or died."""
    return explaining.explain(failure, user, _PATTERNS, error_lines)


def known_settings(failure: Failure) -> frozenset[str]:
    """The names of all settings of this server's program; empty when it does not say."""
    told = explaining.listed(failure, "--describe-config").splitlines()
    return frozenset(line.partition("\t")[0].lower() for line in told if "\t" in line)


def _unknown(match: re.Match[str], failure: Failure, _: ServerUser) -> ServerProblem:
    """Every declared name this server does not know, not just the first."""
    known = known_settings(failure)
    first = match["name"].lower()
    others = (n for n in failure.declared if known and n != first and n not in known and "." not in n)
    return explaining.unknown([first, *others], known, failure)


def _value(match: re.Match[str], failure: Failure, _: ServerUser) -> ServerProblem:
    hint = re.search(r"HINT:\s*([^\n]*)", failure.log[match.end() :])
    return ServerProblem(
        f"this PostgreSQL server refuses the value {match['value']!r} for {match['name']!r}",
        hint[1].strip() if hint else "see its manual for the values it takes",
    )


def _range(match: re.Match[str], _: Failure, __: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"this PostgreSQL server refuses {match['name']!r}: {match['value']} is outside {match['range']}",
        "choose a value inside it",
    )


def _fixed(match: re.Match[str], _: Failure, __: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"the PostgreSQL setting {match['name']!r} cannot be changed", "remove it from the variant"
    )


def _memory(_: re.Match[str], failure: Failure, __: ServerUser) -> ServerProblem:
    size = failure.declared.get("shared_buffers", "its default size")
    return ServerProblem(
        f"not enough memory for shared buffers of {size} (shared_buffers, max_connections): "
        + "; ".join(error_lines(failure.log)[:2]),
        "declare a smaller one",
    )


def _library(match: re.Match[str], _: Failure, __: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"the PostgreSQL server has no library {match['name']!r} (shared_preload_libraries)",
        "install the extension's package, or remove it from the variant",
    )


def _other_version(match: re.Match[str], _: Failure, __: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"the data were made by PostgreSQL {match['made']} and this server is {match['is']}",
        "name the folder of that version as server.basedir",
    )


_PATTERNS: explaining.Patterns = (
    (re.compile(r'unrecognized configuration parameter "(?P<name>[^"]*)"'), _unknown),
    (
        re.compile(
            r"(?P<value>-?[\d.]+(?: \w+)?) is outside the valid range for parameter "
            r'"(?P<name>[^"]*)" (?P<range>\([^)]*\))'
        ),
        _range,
    ),
    (re.compile(r'invalid value for parameter "(?P<name>[^"]*)": "(?P<value>[^"]*)"'), _value),
    (re.compile(r'parameter "(?P<name>[^"]*)" cannot be changed'), _fixed),
    (re.compile(r"Address already in use|could not bind IPv4"), explaining.port_taken),
    (re.compile(r"No space left on device"), explaining.disk_full(error_lines)),
    (re.compile(r"Cannot allocate memory|could not map anonymous shared memory"), _memory),
    (re.compile(r'could not access file "(?P<name>[^"]*)": No such file'), _library),
    (
        re.compile(
            r"initialized by PostgreSQL version (?P<made>[\d.]+), "
            r"which is not compatible with this version (?P<is>[\d.]+)"
        ),
        _other_version,
    ),
    (re.compile(r"Permission denied"), explaining.denied(error_lines)),
)
