"""Holds the arrows between the engine's crates (ARCHITECTURE.md, rule 1), read from their Cargo.toml.

The arrows of the lab's rooms are contracts in pyproject.toml, held by import-linter.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent.name for path in ROOT.glob("engine/*/Cargo.toml"))

# door <- draw <- pace <- gauge and draw <- wire <- workload <- script; all of them <- drive <- cli;
# host stands beside wire on gauge; frontends knows door alone.
ALLOWED = {
    "door": set(),
    "draw": {"door"},
    "pace": {"door", "draw"},
    "wire": {"door", "draw"},
    "gauge": {"door", "draw", "pace"},
    "workload": {"door", "draw", "pace", "gauge", "wire"},
    "script": {"door", "draw", "wire", "workload"},
    "drive": {"door", "draw", "pace", "gauge", "wire", "workload", "script"},
    "host": {"door", "draw", "pace", "gauge"},
    "frontends": {"door"},
    "cli": {"door", "draw", "pace", "gauge", "wire", "workload", "script", "drive", "host", "frontends"},
}

# Crates that know the clock, sockets or the kernel's ways; the others are arithmetic.
MAY_DEPEND_ON = {
    "tokio": {"wire", "drive"},
    "libc": {"drive", "cli", "wire", "host"},
    "clap": {"cli"},
    "mlua": {"script", "drive"},
    "signal-hook": {"cli"},
}


def manifest(crate: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "engine" / crate / "Cargo.toml").read_text())


def dependencies(crate: str) -> set[str]:
    """Names of everything the crate links; what only its tests use does not count."""
    read = manifest(crate)
    targets = read.get("target", {}).values()
    return {
        name
        for part in (read, *targets)
        for name in (*part.get("dependencies", {}), *part.get("build-dependencies", {}))
    }


def test_every_crate_has_its_arrows() -> None:
    assert set(CRATES) == set(ALLOWED)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_imports_only_what_stands_below_it(crate: str) -> None:
    ours = {name.removeprefix("dbdyno-") for name in dependencies(crate) if name.startswith("dbdyno-")}
    assert ours <= ALLOWED[crate]


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_is_named_after_its_folder_and_under_the_workspaces_lints(crate: str) -> None:
    read = manifest(crate)
    assert read["package"]["name"] == f"dbdyno-{crate}"
    assert read["lints"] == {"workspace": True}


@pytest.mark.parametrize("library", sorted(MAY_DEPEND_ON))
def test_the_clock_sockets_and_arguments_stay_in_few_crates(library: str) -> None:
    assert {crate for crate in CRATES if library in dependencies(crate)} <= MAY_DEPEND_ON[library]
