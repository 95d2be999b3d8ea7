"""Reads the files of an experiment: ordinary files of a limited size, TOML of a limited depth, and
configuration files of servers together with the files that they include.

A server reads a copy of its configuration in its own directory, where the relative path of an included file
would lead elsewhere. So the copy contains the content of these files. Their paths are relative to the file
that includes them, as in PostgreSQL ("Managing Configuration File Contents" in its manual).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE_BYTES_MAX = 1_000_000
# Maximum number of tables and lists inside each other, and of the parts of a key: far more than an experiment
# has, and few enough for every parser and for recursion.
DEPTH_MAX = 50

_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
# TOML parsers need quadratic time for such a key.
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{DEPTH_MAX}}}")
# Levels of files that include each other, as in PostgreSQL; more are a circle.
INCLUDE_DEPTH_MAX = 10

# `!include` and `!includedir` of MySQL and MariaDB, and PostgreSQL's settings.
_INCLUDE = re.compile(
    r"\s*(?:!(?P<file>include)|!(?P<folder>includedir)"
    r"|(?P<file_2>include)|(?P<folder_2>include_dir)|(?P<optional>include_if_exists))"
    r"(?:\s*=\s*|\s+|(?='))(?P<path>'(?:[^']|'')*'|[^#\n]*?)\s*(?:#.*)?$"
)
_GROUP = re.compile(r"\s*(\[[^\]\n]+\])\s*$")
# What the names of the files in an included folder end with.
_MYSQL_END, _POSTGRESQL_END = ".cnf", ".conf"


def read_file(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """The content of an ordinary file. Raises OSError, also for a file that is too large, and for a pipe or a
    device, which may have no end.
    """
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
            raise OSError(errno.EINVAL, f"it is {kind}, not an ordinary file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(bytes_max + 1)
    finally:
        os.close(descriptor)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max:,} bytes")
    return content


def parse_toml(source: bytes) -> dict[str, Any]:
    """The tables of a TOML file. Raises ValueError."""
    if len(source) > FILE_BYTES_MAX:
        raise ValueError(f"it has {len(source)} bytes; the maximum is {FILE_BYTES_MAX}")
    try:
        # Some editors begin a file with a byte order mark.
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8 (at byte {error.start + 1})") from error
    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ValueError(f"a key has more than {DEPTH_MAX} parts (at line {line})")
    too_deep = f"tables or lists are nested more than {DEPTH_MAX} deep"
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(too_deep) from error
    if _depth(document) > DEPTH_MAX:
        raise ValueError(too_deep)
    return document


def _depth(document: dict[str, Any]) -> int:
    """How many tables and lists are inside each other. Without recursion, because it may be many."""
    deepest = 0
    todo: list[tuple[dict[str, Any] | list[Any], int]] = [(document, 1)]
    while todo:
        value, depth = todo.pop()
        deepest = max(deepest, depth)
        inner = value.values() if isinstance(value, dict) else value
        todo += [(entry, depth + 1) for entry in inner if isinstance(entry, dict | list)]
    return deepest


@dataclass(frozen=True)
class ServerConfig:
    """The text of a configuration file, with that of the files that it includes."""

    text: str
    # The files that it includes.
    included: tuple[Path, ...] = ()


def read_server_config(path: Path) -> ServerConfig:
    """Read a configuration file. The line for an absolute path that this machine does not have stays, because
    the server's image may have it.

    Raises OSError, whose `filename` is the file that cannot be read.
    """
    included: list[Path] = []
    lines = _lines(path, included, 1)
    return ServerConfig("\n".join(lines), tuple(included))


def config_digests(path: Path) -> bytes:
    """The SHA-256 of a configuration file, then those of the files that it includes. Raises OSError."""
    files = (path, *read_server_config(path).included)
    return b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)


def _lines(path: Path, included: list[Path], depth: int) -> Iterator[str]:
    if depth > INCLUDE_DEPTH_MAX:
        raise OSError(errno.EINVAL, f"more than {INCLUDE_DEPTH_MAX} files include each other", str(path))
    group = ""
    for line in _text(path).split("\n"):
        if header := _GROUP.match(line):
            group = header[1]
        match = _INCLUDE.match(line)
        if match is None:
            yield line
            continue
        name = match["path"]
        name = name[1:-1].replace("''", "'") if name[:1] == "'" else name
        target = path.parent / name
        if Path(name).is_absolute() and not target.exists():
            yield line
            continue
        yield f"# {line.strip()}"
        for file in _files(target, match):
            included.append(file)
            yield from _lines(file, included, depth + 1)
        # The options below the line belong to the group above it.
        yield from [group] if group else []


def _files(target: Path, match: re.Match[str]) -> list[Path]:
    if match["optional"] and not target.exists():
        return []
    if not (match["folder"] or match["folder_2"]):
        return [target]
    end = _MYSQL_END if match["folder"] else _POSTGRESQL_END
    names = (file for file in target.iterdir() if file.name.endswith(end) and file.name[0] != ".")
    return sorted(file for file in names if not file.is_dir())


def _text(path: Path) -> str:
    try:
        return read_file(path).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise OSError(errno.EINVAL, "it is not text", str(path)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
