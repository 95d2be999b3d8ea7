"""Finds and explains the errors in the logs of MariaDB and MySQL."""

from __future__ import annotations

import re

from dbdyno.experiment.quantities import variable_name
from dbdyno.servers.products import diagnose
from dbdyno.servers.products.product import Failure, Patterns
from dbdyno.servers.server import ServerProblem

# Errors that are only consequences of other errors.
_CONSEQUENCES = re.compile(
    r"\[ERROR\] (Aborting|Plugin 'InnoDB' registration|Unknown/unsupported storage engine|"
    r"Parsing options for plugin|InnoDB: Plugin initialization aborted)|"
    # MySQL: Aborting, built-in plug-ins, data dictionary, storage engine, end of InnoDB's start.
    r"\[ERROR\] \[MY-(?:010119|010168|010746|010020|010334|012930)\]"
)
_UNKNOWN = re.compile(r"unknown (?:variable|option) '(?P<name>[^']*)'")
# Time stamps of MariaDB and of MySQL, with the thread number.
_STAMP = re.compile(r"^[0-9-]+(?:\s+[0-9:]+|T[0-9:.]+Z?)\s+[0-9]+\s+")


def error_lines(log: str) -> list[str]:
    """The `[ERROR]` lines in order, without time stamps and without consequences of other errors."""
    lines = [line for line in log.splitlines() if "[ERROR]" in line or line.startswith(("ERROR", "FATAL"))]
    causes = [line for line in lines if not _CONSEQUENCES.search(line)] or lines
    return [_STAMP.sub("", line) for line in causes]


def plugin_errors(log: str) -> str:
    """The error lines about plug-ins that could not be loaded; empty if there are none."""
    phrases = ("shared library", "load plugin", "initialize plugin", "init function returned error")
    return "; ".join(line for line in error_lines(log) if any(phrase in line for phrase in phrases))


def _unknown_option(_: re.Match[str], failure: Failure) -> ServerProblem:
    """Reports every declared name that this server does not know, not just the first."""
    known = known_options(failure)
    # MariaDB names all of them, MySQL the first; names of `loose-` options have warnings.
    named = (one for line in error_lines(failure.log) for one in _UNKNOWN.finditer(line))
    names = [variable_name(one["name"].partition("=")[0]) for one in named]
    if failure.title != "MariaDB" and known:
        names += (name for name in failure.declared if not _is_known(name, known))
    return diagnose.unknown_names(list(dict.fromkeys(names)), known, failure)


def _is_known(name: str, known: frozenset[str]) -> bool:
    """Whether the server knows an option, or the one that it switches (`skip-`) or limits (`maximum-`)."""
    switched = re.sub(r"^(?:skip|disable|enable|maximum)_", "", name)
    return not known.isdisjoint({name, switched, f"skip_{switched}"})


def known_options(failure: Failure) -> frozenset[str]:
    """The normalized names of all options of the server's program; empty if the program cannot list them."""
    # The program's output ends with a table "name value" below a line of dashes.
    _, _, table = diagnose.list_options(failure, "--no-defaults", "--verbose", "--help").partition("\n---")
    return frozenset(
        variable_name(line.split()[0]) for line in table.splitlines()[1:] if re.match(r"[a-z]", line)
    )


def _invalid_value(match: re.Match[str], failure: Failure) -> ServerProblem:
    return diagnose.refused_value(failure, variable_name(match["name"]), match["value"])


def _out_of_memory(match: re.Match[str], failure: Failure) -> ServerProblem:
    size = failure.declared.get("innodb_buffer_pool_size", "its default size")
    return ServerProblem(
        f"not enough memory for a buffer pool of {size} (innodb_buffer_pool_size): {match[0].strip()}",
        "declare a smaller buffer pool",
    )


PATTERNS: Patterns = (
    (re.compile(rf"^(?=.*(?:ERROR|FATAL)).*{_UNKNOWN.pattern}", re.MULTILINE), _unknown_option),
    (
        re.compile(r"ambiguous option '(?P<name>[^'=]*)[^']*' \((?P<candidates>[^)]*)\)"),
        diagnose.explanation(
            "{name!r} begins several options of this {title} server: {candidates}", "write the name in full"
        ),
    ),
    (re.compile(r"Error while setting value '(?P<value>[^']*)' to '(?P<name>[^']*)'"), _invalid_value),
    (re.compile(r"Address already in use"), diagnose.port_in_use),
    (
        re.compile(r"No space left on device|Errcode: 28|OS error: 28|[Dd]isk is full|Error number 28"),
        diagnose.disk_full,
    ),
    (
        re.compile(
            r"uses page size (?P<made>\d+), but the innodb_page_size start-up parameter is (?P<asked>\d+)"
        ),
        diagnose.explanation(
            "the data have pages of {made} bytes, but the variant declares {asked}",
            "declare the same innodb_page_size everywhere",
        ),
    ),
    (re.compile(r"Cannot (?:map|allocate memory for) [^\n]*buffer.pool[^\n]*"), _out_of_memory),
    (re.compile(r"Cannot allocate memory for the buffer pool|MY-012681[^\n]*"), _out_of_memory),
    (
        re.compile(r"my_print_defaults"),
        diagnose.explanation(
            "mariadb-install-db needs the program my_print_defaults, which is not installed",
            "install the Debian package mariadb-client-core",
        ),
    ),
    (re.compile(r"Bind on TCP/IP port"), diagnose.port_in_use),
    (re.compile(r"Permission denied|Errcode: 13"), diagnose.permission_denied),
)
