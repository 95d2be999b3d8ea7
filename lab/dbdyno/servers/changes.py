"""Changes on servers that dbdyno must undo: stored before they are made, until they are undone.

::

    DIRECTORY/<server>.json    the changes on one server
    DIRECTORY/<server>.lock    locked by the process that makes or undoes them

A process that is killed at any instant leaves the file, so the next command that uses the server finds it,
with any folder of results. Files of other users and of other machines are not found. No file contains a
password.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dbdyno.servers.server import ServerProblem
from dbdyno.servers.workspace import Lock

# Maximum bytes of a file; the variables of a server have some 40 kB.
_BYTES_MAX = 1 << 22
# Facts of which each identifies a server, and facts that copies of a server do not share.
_UNIQUE = ("server_uuid", "server_uid", "system_identifier")
_FOLDERS = ("datadir", "data_directory")
_FACTS = (*_UNIQUE, *_FOLDERS, "hostname", "port")
# Names of settings whose values may contain a password.
_SECRET = re.compile(r"passphrase|(?:pass|passwd|password|pwd|secret|conninfo)$")


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Stored):
    """One change on a server."""

    # What was changed: a variable of the whole server. Changes of other kinds are stored here too.
    kind: Literal["variable"] = "variable"
    name: str
    # The earlier value as text. None: NULL, or PostgreSQL's postgresql.auto.conf did not set the variable.
    before: str | None
    # What the server will report when the variable is set, as far as dbdyno can know it before.
    expected: str
    # The value that the server reported afterwards.
    after: str | None = None
    # planned: perhaps not made yet. undoing: perhaps undone, and other values of this state too.
    state: Literal["planned", "made", "undoing"] = "planned"
    # The server changed it along with another variable.
    is_side_effect: bool = False
    # The statements that undo the change, for a user who must run them.
    undo: str


class Record(_Stored):
    """The changes on one server, and who made them."""

    version: Literal[1] = 1
    # Without password.
    url: str
    # The facts of `_FACTS` that the server reported.
    identity: dict[str, str]
    # When the server started, by its clock, and the number of the connection; None if it reports none.
    started_unix_s: float | None = None
    connection: int | None = None
    # The folder of the run that made the changes.
    run: str
    variant: str
    process: int = Field(default_factory=os.getpid)
    unix_s: float = Field(default_factory=time.time)
    # In the order in which they are made.
    changes: tuple[Change, ...]
    # All variables before planned changes, to find those that the server changes along with them.
    others: dict[str, str] = {}

    def made_by(self) -> str:
        """As in "by variant a of the run FOLDER (process 17) at TIME"."""
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.unix_s))
        run = f" of the run {self.run}" if self.run else ""
        return f"by variant {self.variant}{run} (process {self.process}) at {at}"


def identity_facts(facts: Mapping[str, object]) -> dict[str, str]:
    """The facts that tell servers apart, out of all that a server reports about its identity."""
    return {name: str(facts[name]) for name in _FACTS if facts.get(name)}


def is_same_server(record: Record, identity: Mapping[str, str], place: str, record_place: str) -> bool:
    """Whether a server with this identity, at this place, is the one of a record.

    Accounts see different facts. Without a common fact that identifies a server, the places decide.
    """
    common = [name for name in _FACTS if name in identity and name in record.identity]
    if any(name in common for name in _FOLDERS):
        # A server that starts again may get another port.
        common = [name for name in common if name != "port"]
    if any(record.identity[name] != identity[name] for name in common):
        return False
    return place == record_place or any(name in common for name in (*_UNIQUE, *_FOLDERS))


def may_hold_password(name: str) -> bool:
    """Whether the value of a setting may contain a password, which no file of dbdyno may contain."""
    return _SECRET.search(name.lower()) is not None


def directory() -> Path:
    """The folder of the changes, which need not exist. Raises ServerProblem."""
    declared = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        state = declared if declared.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise ServerProblem(
            "this user has no home directory, in which dbdyno stores what it changes on servers",
            "set XDG_STATE_HOME to a folder that stays after this command",
        ) from error
    return state / "dbdyno" / "server-changes"


class StoredChanges:
    """The stored changes on one server, to be locked before they are made or undone."""

    def __init__(self, path: Path, record: Record) -> None:
        self.path, self.record = path, record
        self._lock: Lock | None = None

    @classmethod
    def for_server(cls, record: Record) -> StoredChanges:
        """Changes on a server that has none yet; nothing is written. Raises ServerProblem."""
        folder = directory()
        with _errors(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.stat()
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise PermissionError(0, "other users can write to this folder")
        key = json.dumps(record.identity or {"url": record.url}, sort_keys=True)
        return cls(folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.json", record)

    def acquire(self) -> bool:
        """Lock the changes; False if a process is making or undoing them. Raises ServerProblem."""
        with _errors(self.path):
            lock = Lock(self.path.with_suffix(".lock"))
            if not lock.acquire(wait=False):
                lock.release()
                return False
        self._lock = lock
        return True

    def read_again(self) -> bool:
        """Read the record as it is stored now; False if nothing is stored. Raises ServerProblem."""
        stored = _read(self.path)
        if stored is not None:
            self.record = stored.record
        return stored is not None

    def write(self, **parts: object) -> None:
        """Store the record with these new parts. Raises ServerProblem."""
        self.record = self.record.model_copy(update=parts)
        temporary = self.path.with_suffix(".partial")
        with _errors(self.path):
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(self.record.model_dump_json(indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
            _sync(self.path.parent)

    def remove(self) -> None:
        """Remove the file: nothing is left to undo. Raises ServerProblem."""
        with _errors(self.path):
            self.path.unlink(missing_ok=True)
            _sync(self.path.parent)

    def release(self) -> None:
        """Let other processes lock the changes; idempotent."""
        lock, self._lock = self._lock, None
        if lock is not None:
            with suppress(OSError):
                lock.path.unlink()
            lock.release()


def stored_changes() -> list[StoredChanges]:
    """All changes of this user on this machine. Raises ServerProblem for a file that cannot be read."""
    try:
        folder = directory()
    except ServerProblem:
        # Without a folder nothing was stored.
        return []
    with _errors(folder):
        paths = sorted(folder.glob("*.json"))
    return [one for one in map(_read, paths) if one is not None]


def has_left_changes(run: str) -> bool:
    """Whether changes on servers that were made for this run are not undone. Raises ServerProblem."""
    return any(one.record.run == run for one in stored_changes())


def _read(path: Path) -> StoredChanges | None:
    """None if another process has just removed the file."""
    try:
        with _errors(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(0, "it is not a regular file")
                content = file.read(_BYTES_MAX)
        return StoredChanges(path, Record.model_validate_json(content))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        detail = error.errors()[0]
        raise ServerProblem(
            f"{path}, which says what dbdyno has changed on a server, is invalid: "
            f"{'.'.join(str(one) for one in detail['loc'])}: {detail['msg']}",
            "use the version of dbdyno that wrote it; or set the values in it yourself, and remove it",
            exit_code=4,
        ) from error


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Turn an OSError about a file into a ServerProblem, except that the file does not exist."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ServerProblem(
            f"{path}, in which dbdyno stores what it changes on servers: {error.strerror or error}",
            "fix the permissions or make room, or set XDG_STATE_HOME to another folder",
            exit_code=4,
        ) from error


def _sync(folder: Path) -> None:
    """Make the entries of a folder durable. Ignores file systems that cannot sync a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
