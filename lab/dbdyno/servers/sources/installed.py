"""The versions of servers that `dbdyno servers install` has put into the cache, which one a variant uses,
and those between two of them.

::

    <cache>/<product>-<version>-<source>/release.json     where it comes from
    <cache>/<product>-<version>-<source>/server/          its programs and their files
    <cache>/<product>-<version>-<source>.unfinished/      an installation or a removal that goes on, or was
                                                          interrupted
    <cache>/<product>-<version>-<source>.lock             exclusive lock: it is installed or removed
    <cache>/downloads/<product>-<version>-<source>/       the downloaded file, until it is unpacked

Each of these folders has the mark of dbdyno (`owned_folder`), without which nothing is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dbdyno.experiment.server import ServerSpec
from dbdyno.servers import owned_folder
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.products.product import Product
from dbdyno.servers.server import MachineProblem, ServerProblem
from dbdyno.servers.snapshots.copying import tree_bytes
from dbdyno.servers.sources import archives
from dbdyno.servers.sources.programs import FOLDERS
from dbdyno.servers.sources.source import (
    SOURCES,
    Release,
    Report,
    choose_release,
    download,
    has_version,
    newest,
    releases,
    version_order,
)
from dbdyno.servers.workspace import Lock

# The folder of the cache, and a folder or an address that has the files of all sources.
CACHE_VARIABLE = "DBDYNO_SERVERS"
MIRROR_VARIABLE = "DBDYNO_SERVERS_MIRROR"


@dataclass(frozen=True)
class Installed:
    """One installed version."""

    folder: Path
    release: Release

    @property
    def programs(self) -> Path:
        """The folder for `basedir`."""
        return self.folder / "server"

    def bytes(self) -> int:
        """The size of all its files."""
        return tree_bytes(self.folder)


def cache_folder() -> Path:
    """The folder of the cache: the variable DBDYNO_SERVERS, or /var/cache for root, whose servers run as
    another user, or the user's cache.
    """
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/dbdyno/servers")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbdyno" / "servers"


def list_installed() -> list[Installed]:
    """All installed versions, in the order of `SOURCES`."""
    complete = (path.parent for path in cache_folder().glob("*/release.json"))
    listed = [
        installed
        for path in complete
        if path.suffix != ".unfinished" and (installed := _read(path)) is not None
    ]
    return sorted(listed, key=lambda entry: list(SOURCES).index(entry.release.source))


def find_installed(product: str, version: str, source: str | None = None) -> Installed | None:
    """The newest installed version that begins with `version`, from that source or from the first of
    `SOURCES` that has one; or None.
    """
    by_release = {
        entry.release: entry
        for entry in list_installed()
        if entry.release.product == product and source in (None, entry.release.source)
    }
    release = newest(by_release, version)
    return None if release is None else by_release[release]


def programs_folder(spec: ServerSpec) -> Path | None:
    """The folder of a private server's programs: `basedir`, or that of the installed server with the
    declared version; None for the programs of this machine.

    Raises ServerProblem if neither the cache nor this machine has the declared version.
    """
    if spec.basedir is not None or spec.version is None:
        return spec.basedir
    product = PRODUCTS[str(spec.product)]
    if (installed := find_installed(product.name, spec.version)) is not None:
        return installed.programs
    present = []
    for folder in product.system_folders():
        try:
            version = _program_version(product, folder)
        except ServerProblem:
            continue
        if has_version(version, spec.version):
            return folder
        present.append(version)
    machine = f"this machine has {', '.join(present)}" if present else "this machine has none"
    raise ServerProblem(
        f"{product.title} {spec.version} is not installed: {machine}",
        f"dbdyno servers install {product.name} {spec.version}; or set server.basedir",
    )


def install(release: Release, report: Report) -> Installed:
    """Download, verify and unpack a release, unless it is installed. An interrupted installation goes on
    with what it has downloaded. Raises ServerProblem.
    """
    cache = cache_folder()
    with _locked(cache, release.name, report):
        if (present := _read(cache / release.name)) is not None:
            if release.sha256 not in ("", present.release.sha256):
                raise ServerProblem(
                    f"{release.name} is installed from another file, {present.release.item}",
                    f"remove it first: dbdyno servers remove {release.product} {release.version}",
                )
            return present
        downloads, unfinished = cache / "downloads" / release.name, cache / f"{release.name}.unfinished"
        _remove(unfinished, cache)
        try:
            owned_folder.require_folder(downloads.parent)
            if not owned_folder.is_owned(downloads, cache):
                owned_folder.create(downloads, cache)
            owned_folder.create(unfinished, cache)
            archive = _obtain(release, downloads, report)
            report(f"unpacking {archive.name}")
            _unpack(release, archive, unfinished)
            (unfinished / "release.json").write_text(json.dumps(asdict(release), indent=1))
            unfinished.chmod(0o755)
            unfinished.rename(cache / release.name)
            owned_folder.remove(downloads, cache)
        except OSError as error:
            raise MachineProblem(
                f"{release.name} cannot be installed into {cache}: {error.strerror or error}",
                f"free some space, or choose another folder with {CACHE_VARIABLE}",
            ) from error
        finally:
            owned_folder.remove(unfinished, cache)
    installed = _read(cache / release.name)
    assert installed is not None, "just installed"
    return installed


def install_missing(product: str, version: str, source: str | None, report: Report) -> Installed | None:
    """A version in the cache, of that source or of the first that has one; it is installed if it is missing
    and a source has it. None if there is none. Raises ServerProblem if the installation fails.
    """
    if (installed := find_installed(product, version, source)) is not None:
        return installed
    try:
        release = choose_release(product, version, source)
    except ServerProblem:
        # It may be among the packages of this machine; if not, the comparison says so.
        return None
    report(f"installing {product} {release.version}")
    return install(release, report)


def remove(installed: Installed, report: Report) -> None:
    """Remove an installed version. If this is interrupted, it is not listed any more."""
    folder, cache = installed.folder, installed.folder.parent
    unfinished = folder.with_name(f"{folder.name}{owned_folder.UNFINISHED}")
    with _locked(cache, folder.name, report):
        _remove(unfinished, cache)
        if not os.path.lexists(folder):
            return
        if not owned_folder.is_owned(folder, cache):
            raise _not_owned(folder)
        folder.rename(unfinished)
        _remove(unfinished, cache)


def versions_between(product: str, good: str, bad: str) -> list[Release]:
    """The versions from good to bad, both included, that are installed or can be installed. They are of the
    first source that has both, because versions of one source are built alike. The ends are the newest ones
    that begin with these numbers.

    Raises ServerProblem if no source has both.
    """
    of_product = {
        release.name: release
        for release in (*releases(), *(entry.release for entry in list_installed()))
        if release.product == product
    }
    for source in SOURCES:
        of_source = [entry for entry in of_product.values() if entry.source == source]
        ends = newest(of_source, good), newest(of_source, bad)
        if ends[0] is not None and ends[1] is not None:
            return _between(of_source, ends[0], ends[1])
    raise ServerProblem(
        f"no source of servers has both {product} {good} and {bad}, so the versions between them are unknown",
        f"dbdyno servers list {product} shows what there is; or name the versions: --candidates A,B,C",
    )


def _between(listed: Iterable[Release], good: Release, bad: Release) -> list[Release]:
    low, high = sorted((version_order(good.version), version_order(bad.version)))
    by_order: Mapping[tuple[int, ...], Release] = {
        version_order(entry.version): entry for entry in listed if low <= version_order(entry.version) <= high
    }
    in_order = [by_order[order] for order in sorted(by_order)]
    return in_order if version_order(good.version) == low else in_order[::-1]


def _remove(folder: Path, cache: Path) -> None:
    """Raises ServerProblem if the folder is not one of dbdyno."""
    if not owned_folder.remove(folder, cache):
        raise _not_owned(folder)


def _not_owned(folder: Path) -> ServerProblem:
    return ServerProblem(
        f"{folder} is a symbolic link, or has no mark of dbdyno ({owned_folder.MARK}), so dbdyno does not "
        "remove it",
        "remove it yourself, if it is of an earlier version",
    )


@contextmanager
def _locked(cache: Path, name: str, report: Report) -> Iterator[None]:
    if Path(name).name != name:
        raise ServerProblem(f"{name!r} cannot be the name of a folder", "write the version without a slash")
    try:
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = Lock(cache / f"{name}.lock")
    except OSError as error:
        raise MachineProblem(
            f"the folder of servers {cache} cannot be written: {error.strerror}",
            f"choose another with {CACHE_VARIABLE}",
        ) from error
    try:
        if not lock.acquire(wait=False):
            report(f"waiting for another dbdyno that installs {name}")
            lock.acquire()
        yield
    finally:
        lock.release()


def _read(folder: Path) -> Installed | None:
    try:
        return Installed(folder, Release(**json.loads((folder / "release.json").read_text())))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _obtain(release: Release, folder: Path, report: Report) -> Path:
    """The release's file, verified. Raises ServerProblem, and removes a wrong file."""
    source = SOURCES[release.source]
    archive = folder / source.file_name(release)
    if not archive.exists():
        mirror = os.environ.get(MIRROR_VARIABLE)
        if mirror and release.source != "url":
            download(f"{mirror.rstrip('/')}/{archive.name}", archive, report)
        else:
            source.fetch(release, folder, report)
    if release.sha256:
        with archive.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != release.sha256.lower():
            archive.unlink()
            raise ServerProblem(
                f"{archive.name} is not the expected file: its SHA-256 is {actual}, not {release.sha256}",
                "nothing was installed; download it again, and compare the sum with that of the vendor",
            )
    return archive


def _unpack(release: Release, archive: Path, unfinished: Path) -> None:
    product, unpacked = PRODUCTS[release.product], unfinished / "unpacked"
    archives.unpack(archive, unpacked, FOLDERS)
    names = product.programs[0]
    programs = [path for name in names for folder in FOLDERS for path in unpacked.rglob(f"{folder}/{name}")]
    if not programs:
        raise ServerProblem(
            f"{archive.name} contains no {names[0]}, so it is no {product.title} server",
            "name the archive of a server for this machine",
        )
    # The shortest path: some archives contain a second, debug program below the first one's folder.
    program = min(programs, key=lambda path: len(path.parts))
    program.parent.parent.rename(unfinished / "server")
    shutil.rmtree(unpacked, ignore_errors=True)
    version = _program_version(product, unfinished / "server")
    if not has_version(version, release.version):
        raise ServerProblem(
            f"{archive.name} contains {product.title} {version}, not {release.version}",
            f"repeat the command with {version}",
        )


def _program_version(product: Product, folder: Path | None) -> str:
    """The version of the programs in a folder, or of this machine's. Raises ServerProblem."""
    text = product.version(product.binaries(folder))
    match = re.search(r"\b\d+(\.\d+)+\b|\b\d+(?=(?:beta|rc|devel))", text)
    return match[0] if match else text
