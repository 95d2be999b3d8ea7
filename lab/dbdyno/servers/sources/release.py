"""The versions of servers that dbdyno can install: `releases.toml`, and the words that choose one of them."""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.servers.server import ServerProblem

_FILE = Path(__file__).with_name("releases.toml")
# Other names of a machine's architecture, as of `uname -m`.
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Release:
    """One version of one product, from one source."""

    product: str
    version: str
    # The name of a source in `catalogue`.
    source: str
    # What the source calls it: an artifact, a package or a URL.
    item: str
    # Of the file that the source provides; empty if the source verifies what it provides itself.
    sha256: str

    @property
    def name(self) -> str:
        """Its folder in the cache."""
        return f"{self.product}-{self.version}-{self.source}"


def has_version(version: str, declared: str) -> bool:
    """Whether a version begins with the declared numbers: "18.4" is 18, and not 1."""
    return re.match(rf"{re.escape(declared.rstrip('.'))}(?![0-9])", version) is not None


def version_order(version: str) -> tuple[int, ...]:
    """The numbers of a version, for sorting."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


@cache
def releases() -> Sequence[Release]:
    """Those for this machine's architecture, in the order of the file."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    entries = tomllib.loads(_FILE.read_text())["release"]
    return tuple(
        Release(entry["product"], entry["version"], entry["source"], entry["item"], entry["sha256"])
        for entry in entries
        if entry["machine"] == machine
    )


def choose_release(product: str, version: str, source: str | None) -> Release:
    """The newest release of that product whose version begins with `version`, from that source or from the
    first of the file that has one. Raises ServerProblem with the versions that there are.
    """
    of_product = [one for one in releases() if one.product == product and source in (None, one.source)]
    if (release := newest(of_product, version)) is not None:
        return release
    by_source = f" from {source}" if source else ""
    there_are = f"there are {_list_versions(of_product)}" if of_product else "there is none"
    raise ServerProblem(
        f"dbdyno knows no {product} {version}{by_source} for {platform.machine()}: {there_are}",
        "choose one of them, or name a tarball with --url URL --sha256 SUM",
    )


def newest(listed: Iterable[Release], version: str) -> Release | None:
    """The newest one whose version begins with `version`, of the first source that has one: versions of one
    source are built alike.
    """
    matching = [one for one in listed if has_version(one.version, version)]
    of_source = [one for one in matching if one.source == matching[0].source]
    return max(of_source, key=lambda one: version_order(one.version), default=None)


def _list_versions(of_product: Iterable[Release]) -> str:
    return ", ".join(sorted({one.version for one in of_product}, key=version_order))
