"""Finds and explains the errors in PostgreSQL's log, which is in English."""

from __future__ import annotations

import re

from dbdyno.servers.products import diagnose
from dbdyno.servers.products.product import Failure, Patterns
from dbdyno.servers.server import ServerProblem

_ERROR = re.compile(r"(?:FATAL|PANIC|ERROR|initdb: error|could not)[^\n]*")


def error_lines(log: str) -> list[str]:
    """The log's errors in order, without time stamps."""
    return [match[0].strip() for match in _ERROR.finditer(log)]


def known_settings(failure: Failure) -> frozenset[str]:
    """The names of all settings of this server's program; empty if the program cannot list them."""
    lines = diagnose.list_options(failure, "--describe-config").splitlines()
    return frozenset(line.partition("\t")[0].lower() for line in lines if "\t" in line)


def _unknown_setting(match: re.Match[str], failure: Failure) -> ServerProblem:
    """Reports every declared name that this server does not know, not just the first."""
    known = known_settings(failure)
    first = match["name"].lower()
    others = (n for n in failure.declared if known and n != first and n not in known and "." not in n)
    return diagnose.unknown_names([first, *others], known, failure)


def _invalid_value(match: re.Match[str], failure: Failure) -> ServerProblem:
    hint = re.search(r"HINT:\s*([^\n]*)", failure.log[match.end() :])
    return diagnose.refused_value(failure, match["name"], match["value"], hint[1].strip() if hint else "")


def _out_of_memory(_: re.Match[str], failure: Failure) -> ServerProblem:
    size = failure.declared.get("shared_buffers", "its default size")
    return ServerProblem(
        f"not enough memory for shared buffers of {size} (shared_buffers, max_connections): "
        + "; ".join(failure.errors[:2]),
        "declare smaller shared buffers",
    )


PATTERNS: Patterns = (
    (re.compile(r'unrecognized configuration parameter "(?P<name>[^"]*)"'), _unknown_setting),
    (
        re.compile(
            r"(?P<value>-?[\d.]+(?: \w+)?) is outside the valid range for parameter "
            r'"(?P<name>[^"]*)" (?P<range>\([^)]*\))'
        ),
        diagnose.explanation(
            "this PostgreSQL server refuses {name!r}: {value} is outside {range}",
            "choose another value",
        ),
    ),
    (re.compile(r'invalid value for parameter "(?P<name>[^"]*)": "(?P<value>[^"]*)"'), _invalid_value),
    (
        re.compile(r'parameter "(?P<name>[^"]*)" cannot be changed'),
        diagnose.explanation(
            "the PostgreSQL setting {name!r} cannot be changed", "remove it from the variant"
        ),
    ),
    (re.compile(r"Address already in use|could not bind IPv4"), diagnose.port_in_use),
    (re.compile(r"No space left on device"), diagnose.disk_full),
    (re.compile(r"Cannot allocate memory|could not map anonymous shared memory"), _out_of_memory),
    (
        re.compile(r'could not access file "(?P<name>[^"]*)": No such file'),
        diagnose.explanation(
            "the PostgreSQL server has no library {name!r} (shared_preload_libraries)",
            "install the extension's package, or remove it from the variant",
        ),
    ),
    (
        re.compile(
            r"initialized by PostgreSQL version (?P<made>[\d.]+), "
            r"which is not compatible with this version (?P<is>[\d.]+)"
        ),
        diagnose.explanation(
            "the data were created by PostgreSQL {made}, but this server is PostgreSQL {is}",
            "set server.basedir to the folder of that version",
        ),
    ),
    (re.compile(r"Permission denied"), diagnose.permission_denied),
)
