"""Whether the tests of sysbench's drop-in run on one server by one way, or on all servers by both ways.

Only the drop-in's sources and its tests decide the outcome of these tests, and there are hundreds. If all of
them have passed on the present files, `make test` runs those on MariaDB by the native way. `--passed` records
that they have passed; `make test` calls it after a run of all.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PASSED = Path(__file__).with_suffix(".sha256")
_SOURCES = (
    "engine/**/*.rs",
    "engine/**/Cargo.toml",
    "compat/**/*.rs",
    "compat/**/*.lua",
    "compat/**/Cargo.toml",
)
# Relative to the folder `tests`.
_TESTS = (
    "end_to_end/test_sysbench_*.py",
    "end_to_end/differential*.py",
    "end_to_end/mysql_server.py",
    "fixtures/shop.lua",
    "unprinting.py",
)
# Fixtures that are a server of another product than MariaDB.
_OTHER_SERVERS = {"pgsbtest", "mysbtest"}


def _files() -> Iterator[Path]:
    yield from (_ROOT / name for name in ("Cargo.toml", "Cargo.lock"))
    for pattern in _SOURCES:
        yield from sorted(_ROOT.glob(pattern))
    for pattern in _TESTS:
        yield from sorted((_ROOT / "tests").glob(pattern))


def _digest() -> str:
    digest = hashlib.sha256()
    for path in _files():
        digest.update(f"{path.relative_to(_ROOT)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def has_passed() -> bool:
    """Whether all tests of the drop-in have passed on the present files."""
    return _PASSED.exists() and _PASSED.read_text().strip() == _digest()


def is_on_another_server_or_way(item: pytest.Item) -> bool:
    """Whether a test of the drop-in needs another server than MariaDB, or the way of the Lua scripts."""
    if not isinstance(item, pytest.Function) or not item.path.name.startswith("test_sysbench_"):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    by_scripts = parameters.get("way") in ("lua", ("--lua",))
    return by_scripts or not _OTHER_SERVERS.isdisjoint(item.fixturenames)


if __name__ == "__main__":
    if sys.argv[1:] != ["--passed"]:
        sys.exit("usage: python -m tests.end_to_end.drop_in_matrix --passed")
    _PASSED.write_text(f"{_digest()}\n")
