"""Reads the files of an experiment: ordinary files of a limited size, and TOML of a limited depth."""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

FILE_BYTES_MAX = 1_000_000
# Maximum number of tables and lists inside each other, and of the parts of a key: far more than an experiment
# has, and few enough for every parser and for recursion.
DEPTH_MAX = 50

_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
# TOML parsers need quadratic time for such a key.
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{DEPTH_MAX}}}")


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
        todo += [(one, depth + 1) for one in inner if isinstance(one, dict | list)]
    return deepest
