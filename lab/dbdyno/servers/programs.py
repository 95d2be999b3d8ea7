"""Finding a server's programs: on PATH, in a vendor's tarball, or in an unpacked root with its own loader.

A root is what packages of another distribution become when they are unpacked into a folder: it brings its
own C library, so its programs are started by its own dynamic loader (ld.so(8)).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

# Where packages and tarballs put programs, below `basedir` or the root of the file system.
FOLDERS = ("bin", "sbin", "libexec", "scripts", "usr/bin", "usr/sbin", "usr/libexec")

# /usr/sbin is rarely on an ordinary user's PATH.
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/usr/libexec")


def find(
    names: Sequence[str],
    basedir: Path | None,
    folders: Sequence[str] = FOLDERS,
) -> Path | None:
    """The first of `names` in `basedir`, or on PATH and in /usr without one; None where there is none."""
    for name in names:
        if basedir is not None:
            places = (basedir / folder / name for folder in folders)
            found = next((place for place in places if place.is_file()), None)
        else:
            path = ":".join([*os.environ.get("PATH", "").split(":"), *SYSTEM_FOLDERS])
            which = shutil.which(name, path=path)
            found = Path(which) if which else None
        if found is not None:
            return found.resolve() if basedir is not None else found
    return None


def loader(basedir: Path | None, private: Sequence[str] = ()) -> tuple[str, ...]:
    """What a root's programs are started with: its own loader and libraries; nothing elsewhere.

    `private` are further folders of libraries, below the root.
    """
    if basedir is None:
        return ()
    found = next(iter(sorted(basedir.glob("usr/lib*/ld-linux*.so.*"))), None)
    libraries = [folder for folder in basedir.glob("usr/lib/*-linux-gnu*") if (folder / "libc.so.6").exists()]
    if found is None or not libraries:
        return ()
    folders = [*libraries, *(basedir / name for name in private if (basedir / name).is_dir())]
    return (str(found), "--library-path", ":".join(str(folder) for folder in folders))
