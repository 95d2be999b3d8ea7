"""Reads a server's configuration file together with the files that it includes.

The server reads a copy in its own directory, where the relative path of an included file would lead
elsewhere. So the copy contains the content of these files. Their paths are relative to the file that includes
them, as in PostgreSQL ("Managing Configuration File Contents" in its manual).
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.experiment.file_reading import read_file

# Levels of files that include each other, as in PostgreSQL; more are a circle.
DEPTH_MAX = 10

# `!include` and `!includedir` of MySQL and MariaDB, and PostgreSQL's settings.
_INCLUDE = re.compile(
    r"\s*(?:!(?P<file>include)|!(?P<folder>includedir)"
    r"|(?P<file_2>include)|(?P<folder_2>include_dir)|(?P<optional>include_if_exists))"
    r"(?:\s*=\s*|\s+|(?='))(?P<path>'(?:[^']|'')*'|[^#\n]*?)\s*(?:#.*)?$"
)
_GROUP = re.compile(r"\s*(\[[^\]\n]+\])\s*$")
# What the names of the files in an included folder end with.
_MYSQL_END, _POSTGRESQL_END = ".cnf", ".conf"


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
    if depth > DEPTH_MAX:
        raise OSError(errno.EINVAL, f"more than {DEPTH_MAX} files include each other", str(path))
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
