"""The system account that runs a private server; it is never root.

A server needs no rights beyond its own directory, and MariaDB refuses to run as root.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.servers.server import ServerProblem

# Accounts that dbdyno tries, in this order, when it runs as root.
CANDIDATES = ("mysql", "nobody")


@dataclass(frozen=True)
class ServerUser:
    """The account of a server. `switches`: dbdyno runs as root, so the server must switch to this account."""

    name: str
    uid: int
    gid: int
    switches: bool

    def popen_options(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` that change to this user and drop root's groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switches else {}

    def own(self, path: Path, mode: int | None = None) -> None:
        """Make this user the owner of a file or directory. `mode` is set first, so that other users can
        never read the file. Raises ServerProblem for a symbolic link, and for a file with a second name (hard
        link): the server's user may write to the directory, and must not get files from elsewhere by it.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ServerProblem(f"{path} is a symbolic link, and dbdyno did not create it") from error
            raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISDIR(status.st_mode) and status.st_nlink != 1:
                raise ServerProblem(f"{path} has a second name (hard link), and dbdyno did not create it")
            if mode is not None:
                os.fchmod(descriptor, mode)
            if self.switches:
                os.fchown(descriptor, self.uid, self.gid)
        finally:
            os.close(descriptor)

    def write_file(self, path: Path, text: str) -> None:
        """Replace a file by a new one that only this user can read."""
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        self.own(path, 0o600)

    def may_enter(self, directory: Path) -> bool:
        """Whether this user can reach `directory`, by the mode bits of all directories on the path."""
        if not self.switches:
            return os.access(directory, os.X_OK)
        resolved = directory.resolve()
        return all(self._may_pass(path.stat()) for path in (resolved, *resolved.parents))

    def _may_pass(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def _is_mapped(kind: str, number: int) -> bool:
    """Whether this process's user namespace maps a user (`kind` "uid") or a group ("gid"). The kernel
    refuses to switch to an unmapped user or group (user_namespaces(7)).
    """
    lines = Path(f"/proc/self/{kind}_map").read_text().splitlines()
    ranges = (map(int, line.split()) for line in lines)
    return any(first <= number < first + count for first, _, count in ranges)


def server_user() -> ServerUser:
    """The account for servers: the current user or, when dbdyno runs as root, `mysql` or `nobody`.

    Raises ServerProblem when dbdyno runs as root and can switch to neither account.
    """
    if os.geteuid() != 0:
        try:
            name = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            name = str(os.geteuid())
        return ServerUser(name, os.geteuid(), os.getegid(), switches=False)
    unmapped = []
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0 and _is_mapped("uid", entry.pw_uid) and _is_mapped("gid", entry.pw_gid):
            return ServerUser(name, entry.pw_uid, entry.pw_gid, switches=True)
        unmapped.append(name)
    if unmapped:
        raise ServerProblem(
            f"dbdyno runs as root of a user namespace without the user {' or '.join(unmapped)}, and servers "
            "must not run as root",
            "run dbdyno as an ordinary user outside the namespace, or map more users into it "
            "(unshare --map-auto)",
        )
    raise ServerProblem(
        f"dbdyno runs as root, servers must not, and there is no user {' or '.join(CANDIDATES)}",
        "create one of them, or run dbdyno as an ordinary user",
    )
