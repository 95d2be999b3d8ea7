"""The error logs of MariaDB and MySQL: which lines are errors, and what they mean to the user."""

from __future__ import annotations

import re

from dbdyno.servers.products import diagnose
from dbdyno.servers.products.configuration import normal
from dbdyno.servers.products.product import Failure, Patterns
from dbdyno.servers.server import ServerProblem

# Errors that are only consequences of other errors.
_CONSEQUENCES = re.compile(
    r"\[ERROR\] (Aborting|Plugin 'InnoDB' registration|Unknown/unsupported storage engine|"
    r"Parsing options for plugin|InnoDB: Plugin initialization aborted)|"
    # MySQL: Aborting, built-in plug-ins, data dictionary, storage engine, end of InnoDB's start.
    r"\[ERROR\] \[MY-(?:010119|010168|010746|010020|010334|012930)\]"
)
# Time stamps of MariaDB and of MySQL, with the thread number.
_STAMP = re.compile(r"^[0-9-]+(?:\s+[0-9:]+|T[0-9:.]+Z?)\s+[0-9]+\s+")


def error_lines(log: str) -> list[str]:
    """The `[ERROR]` lines in order, without time stamps and without consequences of other errors."""
    lines = [line for line in log.splitlines() if "[ERROR]" in line or line.startswith(("ERROR", "FATAL"))]
    causes = [line for line in lines if not _CONSEQUENCES.search(line)] or lines
    return [_STAMP.sub("", line) for line in causes]


def plugin_errors(log: str) -> str:
    """The log's lines about plug-ins that could not be loaded; empty without any."""
    signs = ("shared library", "load plugin", "initialize plugin", "init function returned error")
    return "; ".join(line for line in error_lines(log) if any(sign in line for sign in signs))


def _unknown(match: re.Match[str], failure: Failure) -> ServerProblem:
    """Reports every declared name that this server does not know, not just the first."""
    known = known_options(failure)
    first = normal(match["name"].partition("=")[0])
    others = (name for name in failure.declared if known and name != first and name not in known)
    return diagnose.unknown([first, *others], known, failure)


def known_options(failure: Failure) -> frozenset[str]:
    """The normal names of all options of the server's program; empty if the program cannot list them."""
    # The program's output ends with a table "name value" below a line of dashes.
    _, _, table = diagnose.listed(failure, "--no-defaults", "--verbose", "--help").partition("\n---")
    return frozenset(normal(line.split()[0]) for line in table.splitlines()[1:] if re.match(r"[a-z]", line))


def _value(match: re.Match[str], failure: Failure) -> ServerProblem:
    return diagnose.refused_value(failure, normal(match["name"]), match["value"])


def _memory(match: re.Match[str], failure: Failure) -> ServerProblem:
    size = failure.declared.get("innodb_buffer_pool_size", "its default size")
    return ServerProblem(
        f"not enough memory for a buffer pool of {size} (innodb_buffer_pool_size): {match[0].strip()}",
        "declare a smaller one",
    )


PATTERNS: Patterns = (
    (re.compile(r"unknown (?:variable|option) '(?P<name>[^']*)'"), _unknown),
    (
        re.compile(r"ambiguous option '(?P<name>[^'=]*)[^']*' \((?P<candidates>[^)]*)\)"),
        diagnose.message(
            "{name!r} begins several options of this {title} server: {candidates}", "write the name in full"
        ),
    ),
    (re.compile(r"Error while setting value '(?P<value>[^']*)' to '(?P<name>[^']*)'"), _value),
    (re.compile(r"Address already in use"), diagnose.port_taken),
    (
        re.compile(r"No space left on device|Errcode: 28|OS error: 28|[Dd]isk is full|Error number 28"),
        diagnose.disk_full,
    ),
    (
        re.compile(
            r"uses page size (?P<made>\d+), but the innodb_page_size start-up parameter is (?P<asked>\d+)"
        ),
        diagnose.message(
            "the data were made with pages of {made} bytes and the variant asks for {asked}",
            "declare innodb_page_size as one number in every place",
        ),
    ),
    (re.compile(r"Cannot (?:map|allocate memory for) [^\n]*buffer.pool[^\n]*"), _memory),
    (re.compile(r"Cannot allocate memory for the buffer pool|MY-012681[^\n]*"), _memory),
    (
        re.compile(r"my_print_defaults"),
        diagnose.message(
            "mariadb-install-db needs the program my_print_defaults, which is not installed",
            "install the Debian package mariadb-client-core",
        ),
    ),
    (re.compile(r"Bind on TCP/IP port"), diagnose.port_taken),
    (re.compile(r"Permission denied|Errcode: 13"), diagnose.denied),
)
