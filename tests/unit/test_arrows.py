"""Holds the arrows between the crates (ARCHITECTURE.md, rule 1), read from their Cargo.toml.

The arrows between the lab's packages are contracts in pyproject.toml, held by import-linter.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# What each crate may import.
ENGINE = {
    "random": set(),
    "load": {"random"},
    "schema": {"random", "load"},
    "wire": {"schema", "random"},
    "metrics": {"schema", "random", "load"},
    "workload": {"schema", "random", "load", "metrics", "wire"},
    "runner": {"schema", "random", "load", "metrics", "wire", "workload"},
    "cli": {"schema", "random", "load", "metrics", "wire", "workload", "runner"},
}
COMPAT = {
    "sysbench": {"schema", "runner"},
    "slap": {"schema", "runner", "sysbench"},
    "builtin": {"schema", "random", "load", "metrics", "runner", "sysbench"},
    "lua": {*ENGINE, "sysbench"} - {"workload", "cli"},
    "compat": {*ENGINE, "sysbench", "slap", "builtin", "lua"},
}
ALLOWED = {**ENGINE, **COMPAT}

# Where a workload or a distribution of its keys names its origin, and in how many lines. The engine names no
# other tool anywhere else.
ORIGINS = {
    "random/src/key/distribution.rs": 1,
    "schema/src/plan/script.rs": 1,
    "schema/src/plan/workload.rs": 2,
    "random/src/key/mod.rs": 1,
    "random/src/key/special.rs": 1,
    "workload/src/bulk.rs": 1,
    "workload/src/kind.rs": 1,
    "workload/src/oltp.rs": 1,
    "workload/src/schema.rs": 1,
    "workload/src/composition.rs": 1,
}
OTHER_TOOLS = re.compile("sysbench|mysqlslap|mariadb-slap", re.IGNORECASE)

# Crates that use the clock, sockets or the kernel; the others are arithmetic.
MAY_DEPEND_ON = {
    "tokio": {"wire", "runner", "lua"},
    "libc": {"runner", "wire", "builtin"},
    "clap": {"cli"},
    "mlua": {"lua"},
    "signal-hook": {"cli", "compat"},
}


def manifests() -> dict[str, tuple[Path, dict[str, Any]]]:
    """By the name of the package without `dbdyno-`: its folder and its Cargo.toml."""
    read = {
        path.parent: tomllib.loads(path.read_text())
        for part in ("engine", "compat")
        for path in ROOT.glob(f"{part}/*/Cargo.toml")
    }
    return {
        manifest["package"]["name"].removeprefix("dbdyno-"): (folder, manifest)
        for folder, manifest in read.items()
    }


CRATES = manifests()


def dependencies(crate: str, *, tests: bool = False) -> set[str]:
    """Names of everything the crate links; what only its tests use counts with `tests`."""
    _, read = CRATES[crate]
    kinds = ["dependencies", "build-dependencies", *(["dev-dependencies"] if tests else [])]
    targets = read.get("target", {}).values()
    return {name for part in (read, *targets) for kind in kinds for name in part.get(kind, {})}


def ours(names: set[str]) -> set[str]:
    """The crates of this repository among them."""
    return {name.removeprefix("dbdyno-") for name in names if name.startswith("dbdyno-")}


def test_every_crate_has_its_arrows() -> None:
    assert set(CRATES) == set(ALLOWED)


@pytest.mark.parametrize("crate", ALLOWED)
def test_a_crate_imports_only_what_is_below_it(crate: str) -> None:
    assert ours(dependencies(crate)) <= ALLOWED[crate]


@pytest.mark.parametrize("crate", ENGINE)
def test_the_engine_needs_nothing_of_compat(crate: str) -> None:
    assert not ours(dependencies(crate, tests=True)) & set(COMPAT)


def test_the_engine_names_other_tools_only_as_the_origin_of_a_workload() -> None:
    folder = ROOT / "engine"
    files = {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }
    named = [(file, line) for file in files for line in files[file].splitlines() if OTHER_TOOLS.search(line)]
    assert Counter(file for file, _ in named) == ORIGINS
    assert all(line.startswith(("///", "//!")) for _, line in named)
    assert not any(OTHER_TOOLS.search(file) for file in files)


@pytest.mark.parametrize("crate", ALLOWED)
def test_a_crate_is_named_after_its_folder_and_under_the_workspaces_lints(crate: str) -> None:
    folder, read = CRATES[crate]
    assert folder.relative_to(ROOT).as_posix() in {f"engine/{crate}", f"compat/{crate}", f"{crate}/cli"}
    assert read["lints"] == {"workspace": True}


@pytest.mark.parametrize("library", sorted(MAY_DEPEND_ON))
def test_the_clock_sockets_and_arguments_stay_in_few_crates(library: str) -> None:
    assert {crate for crate in CRATES if library in dependencies(crate)} <= MAY_DEPEND_ON[library]
