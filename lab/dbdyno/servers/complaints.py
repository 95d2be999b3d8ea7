"""The words of MariaDB and MySQL when they do not start, turned into the user's terms.

The patterns are those of their error logs; whatever they do not know is quoted as it is.
"""

from __future__ import annotations

import re

from dbdyno.servers import explaining
from dbdyno.servers.account import ServerUser
from dbdyno.servers.configuration import normal
from dbdyno.servers.product import Failure
from dbdyno.servers.server import ServerProblem

# Consequences, which would hide the cause.
_NOISE = re.compile(
    r"\[ERROR\] (Aborting|Plugin 'InnoDB' registration|Unknown/unsupported storage engine|"
    r"Parsing options for plugin|InnoDB: Plugin initialization aborted)|"
    # MySQL's own: Aborting, built-in plug-ins, dictionary, storage engine, end of InnoDB's start.
    r"\[ERROR\] \[MY-(?:010119|010168|010746|010020|010334|012930)\]"
)
# Time stamps of MariaDB and of MySQL, with the number of the thread.
_STAMP = re.compile(r"^[0-9-]+(?:\s+[0-9:]+|T[0-9:.]+Z?)\s+[0-9]+\s+")


def error_lines(log: str) -> list[str]:
    """The server's own `[ERROR]` lines without their time stamps, without mere consequences, in order."""
    lines = [line for line in log.splitlines() if "[ERROR]" in line or line.startswith(("ERROR", "FATAL"))]
    telling = [line for line in lines if not _NOISE.search(line)] or lines
    return [_STAMP.sub("", line) for line in telling]


def complaint(log: str) -> str:
    """The lines of a running server that could not load a plug-in; "" without any."""
    telling = ("shared library", "load plugin", "initialize plugin", "init function returned error")
    lines = [line for line in error_lines(log) if any(words in line for words in telling)]
    return "; ".join(lines)


def explain(failure: Failure, user: ServerUser) -> ServerProblem:
    """Why the server did not start or died."""
    return explaining.explain(failure, user, _PATTERNS, error_lines)


def _unknown(match: re.Match[str], failure: Failure, _: ServerUser) -> ServerProblem:
    """Every declared name this server does not know, not just the first."""
    known = known_options(failure)
    first = normal(match["name"].partition("=")[0])
    others = (name for name in failure.declared if known and name != first and name not in known)
    return explaining.unknown([first, *others], known, failure)


def known_options(failure: Failure) -> frozenset[str]:
    """The normal names of all options of this server's program; empty when it does not say."""
    # The program ends with a table "name   value" under a line of dashes.
    _, _, table = explaining.listed(failure, "--no-defaults", "--verbose", "--help").partition("\n---")
    return frozenset(normal(line.split()[0]) for line in table.splitlines()[1:] if re.match(r"[a-z]", line))


def _value(match: re.Match[str], failure: Failure, _: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"this {failure.title} server refuses the value {match['value']!r} for {normal(match['name'])!r}",
        "see its manual for the values it takes",
    )


def _ambiguous(match: re.Match[str], failure: Failure, _: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"{match['name']!r} begins several options of this {failure.title} server: {match['candidates']}",
        "write the name in full",
    )


def _memory(match: re.Match[str], failure: Failure, _: ServerUser) -> ServerProblem:
    size = failure.declared.get("innodb_buffer_pool_size", "its default size")
    return ServerProblem(
        f"not enough memory for a buffer pool of {size} (innodb_buffer_pool_size): {match[0].strip()}",
        "declare a smaller one",
    )


def _page_size(match: re.Match[str], _: Failure, __: ServerUser) -> ServerProblem:
    return ServerProblem(
        f"the data were made with pages of {match['made']} bytes and the variant asks for {match['asked']}",
        "declare innodb_page_size as one number in every place",
    )


def _print_defaults(_: re.Match[str], __: Failure, ___: ServerUser) -> ServerProblem:
    return ServerProblem(
        "mariadb-install-db needs the program my_print_defaults, which is not installed",
        "install the Debian package mariadb-client-core",
    )


_PATTERNS: explaining.Patterns = (
    (re.compile(r"unknown (?:variable|option) '(?P<name>[^']*)'"), _unknown),
    (re.compile(r"ambiguous option '(?P<name>[^'=]*)[^']*' \((?P<candidates>[^)]*)\)"), _ambiguous),
    (re.compile(r"Error while setting value '(?P<value>[^']*)' to '(?P<name>[^']*)'"), _value),
    (re.compile(r"Address already in use"), explaining.port_taken),
    (
        re.compile(r"No space left on device|Errcode: 28|OS error: 28|[Dd]isk is full|Error number 28"),
        explaining.disk_full(error_lines),
    ),
    (
        re.compile(
            r"uses page size (?P<made>\d+), but the innodb_page_size start-up parameter is (?P<asked>\d+)"
        ),
        _page_size,
    ),
    (re.compile(r"Cannot (?:map|allocate memory for) [^\n]*buffer.pool[^\n]*"), _memory),
    (re.compile(r"Cannot allocate memory for the buffer pool|MY-012681[^\n]*"), _memory),
    (re.compile(r"my_print_defaults"), _print_defaults),
    (re.compile(r"Bind on TCP/IP port"), explaining.port_taken),
    (re.compile(r"Permission denied|Errcode: 13"), explaining.denied(error_lines)),
)
