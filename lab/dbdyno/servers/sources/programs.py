"""Finds a server's programs on PATH, in a vendor's tarball, or in an unpacked root with its own loader.

A root is a folder into which packages of another distribution were unpacked. A root contains its own C
library, so its programs must be started by its own dynamic loader (ld.so(8)).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from dbdyno.servers.server import ServerProblem

# Folders of programs in packages and tarballs, below `basedir` or the root of the file system.
FOLDERS = ("bin", "sbin", "libexec", "scripts", "usr/bin", "usr/sbin", "usr/libexec")

# /usr/sbin is often missing from the PATH of an unprivileged user.
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/usr/libexec")


def find(names: Sequence[str], basedir: Path | None, folders: Sequence[str] = FOLDERS) -> Path | None:
    """The first of `names` that exists in `basedir`, or on PATH and in /usr if `basedir` is None; or None."""
    for name in names:
        if basedir is not None:
            candidates = (basedir / folder / name for folder in folders)
            path = next((file for file in candidates if file.is_file()), None)
        else:
            search = ":".join([*os.environ.get("PATH", "").split(":"), *SYSTEM_FOLDERS])
            which = shutil.which(name, path=search)
            path = Path(which) if which else None
        if path is not None:
            return path.resolve() if basedir is not None else path
    return None


def find_both(
    title: str,
    programs: tuple[tuple[str, ...], tuple[str, ...]],
    basedir: Path | None,
    fix: str,
    more_folders: Sequence[str] = (),
) -> tuple[Path, Path]:
    """A product's server program, and its program that creates data directories. Raises ServerProblem with
    `fix`.

    `more_folders` are further folders, below `basedir` or the root of the file system.
    """
    folders = (*FOLDERS, *more_folders)
    server, install = (find(names, basedir, folders) for names in programs)
    if basedir is None and more_folders and (server is None or install is None):
        server, install = (find(names, Path("/"), folders) for names in programs)
    if server is not None and install is not None:
        return server, install
    missing = programs[0 if server is None else 1][0]
    if basedir is not None:
        raise ServerProblem(
            f"server.basedir is {str(basedir)!r}, but {missing} is neither in this folder nor in its "
            f"subfolders {', '.join(FOLDERS)}",
            f"name the folder of an unpacked {title}",
        )
    raise ServerProblem(
        f"the {title} server's program {missing} is not installed (neither in PATH nor in /usr)", fix
    )


def loader_command(basedir: Path | None, private: Sequence[str] = ()) -> tuple[str, ...]:
    """The dynamic loader and its library paths for the programs of an unpacked root; empty elsewhere.

    `private` are further folders of libraries, below the root.
    """
    if basedir is None:
        return ()
    loader = next(iter(sorted(basedir.glob("usr/lib*/ld-linux*.so.*"))), None)
    libraries = [folder for folder in basedir.glob("usr/lib/*-linux-gnu*") if (folder / "libc.so.6").exists()]
    if loader is None or not libraries:
        return ()
    folders = [*libraries, *(basedir / name for name in private if (basedir / name).is_dir())]
    return (str(loader), "--library-path", ":".join(str(folder) for folder in folders))
