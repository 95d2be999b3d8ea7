"""Builds a server's option file from the declarations of an experiment, without file access.

An option file is read from top to bottom and the last value wins, so the order of its parts is:

    dbdyno's options  <  the user's file (`config`)  <  the declared `variables`  <  paths and ports

The last part (data directory, socket, port, ...) keeps the server private. Syntax:
"Option Files" in the MariaDB knowledge base and in the MySQL reference manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from dbdyno.experiment.quantities import is_loose, variable_name
from dbdyno.servers.server import ServerProblem

Value = str | int | float | bool

# Groups of an option file that a server reads; a version may follow the name.
SERVER_GROUPS = re.compile(
    r"^(server|mysqld|mariadb|mariadbd|mysqld-[0-9.]+|mariadb-[0-9.]+|mariadbd-[0-9.]+)$"
)

# Other tools print "512MiB"; servers accept only the letter.
_BINARY_SIZE = re.compile(r"^([0-9]+)\s*([KMGTPE])iB$")

_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.]*$")


def format_value(name: str, value: Value) -> str:
    """A value in the server's syntax: booleans as ON and OFF, sizes with one letter.

    Raises ServerProblem for a value that an option file cannot hold.
    """
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    if isinstance(value, int | float):
        return str(value)
    if any(character in value for character in "\n\r\0"):
        raise ServerProblem(
            f"variables.{name} is {value!r}; a value in an option file is one line",
            "write it without line breaks",
        )
    size = _BINARY_SIZE.match(value)
    return f"{size[1]}{size[2]}" if size else value


def quote_value(value: str) -> str:
    """A value in double quotes, so that it can contain spaces, `#` and `;`."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def find_problems(variables: Mapping[str, Value], reserved: Mapping[str, str]) -> list[ServerProblem]:
    """All errors in declared variables that dbdyno can find without a server.

    `reserved` has the options that only dbdyno may set, each with the reason.
    """
    problems = []
    names: dict[str, str] = {}
    for name in variables:
        key = variable_name(name)
        if not _NAME.match(key):
            problems.append(ServerProblem(f"variables contains {name!r}, which is not a valid variable name"))
        elif key in reserved:
            problems.append(
                ServerProblem(
                    f"variables.{name} cannot be declared: {reserved[key]}", "remove it from the experiment"
                )
            )
        elif key in names:
            problems.append(
                ServerProblem(
                    f"variables contains {names[key]!r} and {name!r}, which are the same variable",
                    "keep one of them",
                )
            )
        names[key] = name
    return problems


def file_options(text: str) -> dict[str, str]:
    """The options in the server's groups of an option file, by normalized name; an option without a value
    gives "".
    """
    return {variable_name(name): value for name, value in _option_lines(text)}


def loose_options(text: str) -> Iterator[str]:
    """The options of an option file that the server ignores if it does not know them, as written."""
    return (name for name, _ in _option_lines(text) if is_loose(name))


def _option_lines(text: str) -> Iterator[tuple[str, str]]:
    """The names, as written, and the values in the server's groups of an option file."""
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;!":
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip().lower()
        elif SERVER_GROUPS.match(group):
            name, _, value = line.partition("=")
            yield _without_comment(name.strip()), _without_comment(value.strip())


def argument_options(arguments: Iterable[str]) -> dict[str, str]:
    """The options `--name=value` of a command line, by normalized name. Without a value it is ""."""
    options: dict[str, str] = {}
    for argument in arguments:
        if argument.startswith("--"):
            name, _, value = argument.partition("=")
            options[variable_name(name)] = value
    return options


def option_file(
    *,
    set_by_dbdyno: Mapping[str, str],
    config: str,
    declared: Mapping[str, str],
    place: Mapping[str, str],
    literal: Callable[[str], str] = quote_value,
    section: str = "[mysqld]",
) -> str:
    """The complete generated file; `literal` formats a value, `section` is the header of each group of
    options.
    """

    def group(title: str, options: Mapping[str, str]) -> list[str]:
        settings = (f"{name} = {literal(value)}" for name, value in options.items())
        return [f"# {title}", *filter(None, [section]), *settings, ""]

    lines = [
        *group("Options that dbdyno sets, equal in all variants", set_by_dbdyno),
        *(["# Your file (`config`), unchanged", config.rstrip(), ""] if config else []),
        *group("Options that the experiment declares", declared),
        *group("Paths and ports of this server", place),
    ]
    return "\n".join(lines)


def _without_comment(value: str) -> str:
    """A value of an option file without quotes and trailing comment."""
    for mark in "\"'":
        if value.startswith(mark) and mark in value[1:]:
            return value[1 : value.index(mark, 1)]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()
