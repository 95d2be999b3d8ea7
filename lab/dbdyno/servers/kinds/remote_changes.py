"""Makes changes on a remote server and undoes them, and finds those that a process has left there.

A change is stored before it is made, until it is undone::

    DIRECTORY/<server>.json    the changes on one server
    DIRECTORY/<server>.lock    locked by the process that makes or undoes them

A process that is killed at any instant leaves the file, so the next command that uses the server finds it,
with any folder of results. Files of other users and of other machines are not found. No file contains a
password.

Before a change is undone, the current value is compared:

    the earlier value               nothing is to do
    the value that dbdyno has set   the earlier value is set again
    any other value                 another user has set it since: it stays, and the user decides

Statements that change data are undone by statements. If a process ended before it knew whether a statement
was executed, a refusal of what undoes it says that nothing is left to undo.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dbdyno.experiment.dialect import DIALECTS
from dbdyno.experiment.quantities import variable_name
from dbdyno.experiment.sql_text import created_index
from dbdyno.servers.admin.answers import shorten_statement
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS, Setting
from dbdyno.servers.products.product import Value
from dbdyno.servers.server import ServerProblem, StatementRefused, combine_problems
from dbdyno.servers.url import Target, parse_url
from dbdyno.servers.workspace import Lock

# Maximum bytes of a file; the variables of a server have some 40 kB.
_BYTES_MAX = 1 << 22
# Facts of which each identifies a server, and facts that copies of a server do not share.
_UNIQUE = ("server_uuid", "server_uid", "system_identifier")
_FOLDERS = ("datadir", "data_directory")
_FACTS = (*_UNIQUE, *_FOLDERS, "hostname", "port")
# Names of settings whose values may contain a password.
_SECRET = re.compile(r"passphrase|(?:pass|passwd|password|pwd|secret|conninfo)$")
# How often a variable is set that has not its earlier value yet: some change others along with them.
_ATTEMPTS = 4
# Seconds between two attempts: a server may apply a value, such as the size of a cache, step by step.
_PAUSE_S = 0.3
# Seconds by which the start times of a server that has not restarted may differ.
_START_TOLERANCE_S = 3.0
_TRUE, _FALSE = frozenset({"1", "on", "true", "yes"}), frozenset({"0", "off", "false", "no"})


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Stored):
    """One change on a server."""

    # What was changed: a variable of the whole server, or data, by a statement, which is the name.
    kind: Literal["variable", "statement"] = "variable"
    name: str
    # The statements that undo a statement, in order.
    statements: tuple[str, ...] = ()
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

    @property
    def earlier(self) -> str:
        """What was before, for a message."""
        return "was executed" if self.kind == "statement" else f"was {self.before!r}"


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

    @property
    def variables(self) -> tuple[Change, ...]:
        """The changes of variables."""
        return tuple(change for change in self.changes if change.kind == "variable")

    @property
    def executed(self) -> tuple[Change, ...]:
        """The statements that have changed data."""
        return tuple(change for change in self.changes if change.kind == "statement")

    @property
    def place(self) -> str:
        """Where the server is, as `Target.place`."""
        try:
            return parse_url(self.url).place
        except ServerProblem:
            # A URL of another version.
            return self.url

    def made_by(self) -> str:
        """As in "by variant a of the run FOLDER (process 17) at TIME"."""
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.unix_s))
        run = f" of the run {self.run}" if self.run else ""
        return f"by variant {self.variant}{run} (process {self.process}) at {at}"


def _identity_facts(facts: Mapping[str, object]) -> dict[str, str]:
    """The facts that tell servers apart, out of all that a server reports about its identity."""
    return {name: str(facts[name]) for name in _FACTS if facts.get(name)}


def _is_same_server(record: Record, identity: Mapping[str, str], place: str) -> bool:
    """Whether a server with this identity, at this place, is the one of a record.

    Accounts see different facts. Without a common fact that identifies a server, the places decide.
    """
    common = [name for name in _FACTS if name in identity and name in record.identity]
    if any(name in common for name in _FOLDERS):
        # A server that starts again may get another port.
        common = [name for name in common if name != "port"]
    if any(record.identity[name] != identity[name] for name in common):
        return False
    return place == record.place or any(name in common for name in (*_UNIQUE, *_FOLDERS))


def _may_hold_password(name: str) -> bool:
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
    return [entry for entry in map(_read, paths) if entry is not None]


def has_left_changes(run: str) -> bool:
    """Whether changes on servers that were made for this run are not undone. Raises ServerProblem."""
    return any(change.record.run == run for change in stored_changes())


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
            f"{'.'.join(str(entry) for entry in detail['loc'])}: {detail['msg']}",
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


class RemoteChanges:
    """The changes of dbdyno on one remote server."""

    def __init__(
        self,
        admin: AdminConnection,
        target: Target,
        facts: Callable[[], Mapping[str, Any]],
        *,
        variant: str,
        run: str,
        open_load: Callable[[str], AbstractContextManager[AdminConnection]],
    ) -> None:
        """`facts` reads the server's identity; `run` is the folder of the run that makes the changes;
        `open_load` connects to the database of a URL of this server.
        """
        self._open_load = open_load
        self._admin, self._target, self._facts = admin, target, facts
        self._variant, self._run = variant, run
        self._variables = PROTOCOLS[target.protocol].variables
        # The changes that this object has made and not undone.
        self._own: StoredChanges | None = None

    @property
    def restore_command(self) -> str:
        """The command that undoes changes on this server."""
        return f"dbdyno data restore --target {shlex.quote(str(self._target))}"

    # --- changes that others have left

    def left(self) -> tuple[list[StoredChanges], list[StoredChanges]]:
        """The stored changes on the server that answers, and those on others that had its URL.

        Raises ServerProblem.
        """
        stored = stored_changes()
        if not stored:
            return [], []
        identity = _identity_facts(self._facts())
        here = self._target.place
        of_this, of_others = [], []
        for entry in stored:
            if _is_same_server(entry.record, identity, here):
                of_this.append(entry)
            elif entry.record.place == here:
                of_others.append(entry)
        return of_this, of_others

    def require_undone(self) -> list[str]:
        """Undo what an earlier process has changed for this run. Returns messages for the user.

        Raises ServerProblem if there are changes of others, because measurements need the server's own
        settings.
        """
        if self._own is not None:
            return []
        notes = []
        of_this, of_others = self.left()
        for stored in of_this:
            if not stored.acquire():
                raise self._in_use(stored)
            try:
                if not stored.read_again():
                    continue
                is_own = bool(self._run) and stored.record.run == self._run
                if not is_own and not self._is_undone(stored):
                    raise self._refusal(stored)
                done, problems = self._undo(stored)
                notes += done
                if problems:
                    raise combine_problems(problems, str(self._target))
            finally:
                stored.release()
        return notes + [self.another_server(stored) for stored in of_others]

    def another_server(self, stored: StoredChanges) -> str:
        """The message that another server answers at the URL of stored changes."""
        names = ", ".join(change.name for change in stored.record.changes)
        return (
            f"dbdyno has changed {names} on another server that had the URL {stored.record.url}, "
            f"{stored.record.made_by()}; if that server is gone: {self.restore_command} --forget"
        )

    def lines(self, stored: StoredChanges) -> list[str]:
        """A line for each change, with the earlier and the current value."""
        describe = self._variables.describe
        lines = []
        for change in stored.record.executed:
            lines.append(f"{change.name!r} was executed, and is undone by {change.undo!r}")
        for change in stored.record.variables:
            try:
                current = describe(self._variables.read(self._admin, change.name).text)
            except ServerProblem:
                current = "unknown"
            lines.append(f"{change.name} is {current}, was {describe(change.before)}")
        return lines

    def undo_stored(self, stored: StoredChanges) -> tuple[list[str], list[ServerProblem]]:
        """Undo changes that a process has left. Returns messages and failures. Raises ServerProblem if a
        process uses them.
        """
        if not stored.acquire():
            raise self._in_use(stored)
        try:
            return self._undo(stored) if stored.read_again() else ([], [])
        finally:
            stored.release()

    def forget(self, stored: StoredChanges) -> None:
        """Remove stored changes without undoing them. Raises ServerProblem if a process uses them."""
        if not stored.acquire():
            raise self._in_use(stored)
        try:
            stored.remove()
        finally:
            stored.release()

    def _refusal(self, stored: StoredChanges) -> ServerProblem:
        again = (
            f", or repeat that run's command with --resume ({stored.record.run})" if stored.record.run else ""
        )
        return ServerProblem(
            f"{self._variant}: dbdyno has changed settings or data of the server {self._target} and not "
            f"restored them: {'; '.join(self.lines(stored))}. They were changed {stored.record.made_by()}",
            f"restore them: {self.restore_command}{again}",
            exit_code=4,
        )

    def _in_use(self, stored: StoredChanges) -> ServerProblem:
        names = ", ".join(change.name for change in stored.record.changes)
        return ServerProblem(
            f"{self._variant}: settings or data of the server {self._target} are changed for another "
            "measurement" + (f" ({names}), {stored.record.made_by()}" if names else ""),
            "wait until it has ended; variants that change one server cannot run at the same time",
            exit_code=4,
        )

    def _is_undone(self, stored: StoredChanges) -> bool:
        """Whether nothing is left to undo, so that only the file is to be removed."""
        with suppress(ServerProblem):
            if stored.record.executed:
                return False
            if self._has_restarted(stored.record):
                return True
            return all(
                self._variables.read(self._admin, change.name).text == change.before
                for change in stored.record.variables
            )
        return False

    # --- changes that this object makes

    def make(self, variables: Mapping[str, Value]) -> None:
        """Store and make changes of variables, once until `undo`. Raises ServerProblem.

        After an error, `undo` undoes what was changed.
        """
        if self._own is not None or not variables:
            return
        stored = self._acquire()
        try:
            plans = [self._plan(variable_name(name), value) for name, value in variables.items()]
            # Predictions have changed settings of the session.
            self._admin.close()
            others = {
                n: v for n, v in self._variables.values(self._admin).items() if not _may_hold_password(n)
            }
            stored.write(changes=tuple(change for change, _ in plans), others=others)
        except BaseException:
            stored.release()
            raise
        self._own = stored
        self._make(stored, plans)

    def change_data(self, after: Sequence[str], undo: Sequence[str]) -> None:
        """Store and execute statements that change data, once until `undo`. Without statements in `undo`,
        each of `after` creates an index. Raises ServerProblem.

        After an error, `undo` undoes what was executed.
        """
        stored = self._own
        if stored is not None and stored.record.executed:
            return
        dialect = DIALECTS[self._target.protocol]
        planned = []
        for sql in after:
            index = created_index(sql, dialect)
            undone_by = tuple(undo) or ((index.drop,) if index is not None else ())
            planned.append(
                Change(
                    kind="statement",
                    name=sql,
                    statements=undone_by,
                    before=None,
                    expected="",
                    undo="; ".join(undone_by),
                )
            )
        if undo:
            # They undo all statements together.
            (first, *rest) = planned
            planned = [first, *(change.model_copy(update={"statements": (), "undo": ""}) for change in rest)]
        self._own = stored or self._acquire()
        # An index of a large table may take hours.
        with answers_within(None), self._open_load(str(self._target)) as admin:
            for change in planned:
                index = created_index(change.name, dialect)
                if index is not None and admin.query(index.find):
                    raise ServerProblem(
                        f"{self._variant}: data.after: {index.table} has an index {index.name} already, so "
                        f"{shorten_statement(change.name)!r} would change nothing",
                        "name the index differently, or drop it first",
                    )
                before = self._own.record.changes
                self._own.write(changes=(*before, change))
                try:
                    admin.query(change.name)
                except StatementRefused as refusal:
                    if change.statements and not undo:
                        # Nothing was made. An index of this name may have been there before.
                        self._own.write(changes=before)
                    raise ServerProblem(
                        f"{self._variant}: data.after: {refusal.text}",
                        f"correct {shorten_statement(change.name)!r}",
                    ) from refusal
                self._own.write(changes=(*before, change.model_copy(update={"state": "made"})))

    def _acquire(self) -> StoredChanges:
        """The stored changes on this server, of which there are none, locked. Raises ServerProblem."""
        facts = self._facts()
        stored = StoredChanges.for_server(
            Record(
                url=str(self._target),
                identity=_identity_facts(facts),
                started_unix_s=facts.get("started_unix_s"),
                connection=self._variables.connection(self._admin),
                run=self._run,
                variant=self._variant,
                changes=(),
            )
        )
        if not stored.acquire():
            stored.read_again()
            raise self._in_use(stored)
        try:
            if stored.read_again():
                raise self._refusal(stored)
        except BaseException:
            stored.release()
            raise
        return stored

    def _plan(self, name: str, value: Value) -> tuple[Change, Setting]:
        """The change of one variable, and what is to be set."""
        with self._explaining(name):
            if _may_hold_password(name):
                raise ServerProblem("its value may contain a password, which dbdyno does not store")
            self._variables.require_changeable(self._admin, name)
            now = self._variables.read(self._admin, name)
            setting = self._variables.requested(name, value, now)
            expected = self._variables.predict(self._admin, name, setting)
            undo = self._variables.instruction(name, now)
            return Change(name=name, before=now.text, expected=expected, undo=undo), setting

    def _make(self, stored: StoredChanges, plans: Sequence[tuple[Change, Setting]]) -> None:
        record = stored.record
        for change, setting in plans:
            with self._explaining(change.name):
                self._variables.write(self._admin, change.name, setting)
        with self._explaining(", ".join(change.name for change in record.changes)):
            self._variables.apply(self._admin)
        changes = [
            change.model_copy(
                update={"after": self._variables.read(self._admin, change.name).text, "state": "made"}
            )
            for change in record.changes
        ]
        changes += self._side_effects(record)
        stored.write(changes=tuple(changes), others={})

    def _side_effects(self, record: Record) -> list[Change]:
        """The variables that the server has changed along with those of the record."""
        declared = {change.name for change in record.changes}
        now = self._variables.values(self._admin) if record.others else {}
        effects = []
        for name, before in record.others.items():
            after = now.get(name, before)
            if after != before and name not in declared:
                with suppress(ServerProblem):
                    setting = self._variables.read(self._admin, name)
                    effects.append(
                        Change(
                            name=name,
                            before=before,
                            expected=after,
                            after=after,
                            state="made",
                            is_side_effect=True,
                            undo=self._variables.instruction(name, Setting(before, setting.is_text)),
                        )
                    )
        return effects

    def _explaining(self, name: str) -> _Explaining:
        return _Explaining(f"{self._variant}: {name} could not be set on the server: ")

    # --- undoing

    def undo(self) -> list[ServerProblem]:
        """Undo the changes that this object has made. Returns the failures, once; they stay stored.

        If Ctrl-C interrupts it, the next call goes on.
        """
        stored = self._own
        if stored is None:
            return []
        try:
            problems = self._undo(stored)[1]
        except ServerProblem as problem:
            problems = [problem]
        self._own = None
        stored.release()
        return problems

    def forget_own(self) -> None:
        """The server has lost the variables that this object has changed, because it has stopped."""
        for stored in stored_changes():
            if stored.record.run == self._run and stored.record.url == str(self._target) and stored.acquire():
                if stored.record.executed:
                    stored.write(changes=stored.record.executed)
                else:
                    stored.remove()
                stored.release()

    def _undo(self, stored: StoredChanges) -> tuple[list[str], list[ServerProblem]]:
        """Undo changes, and store those that are left. Returns messages, and a problem for each failure."""
        notes, problems, data_left = self._undo_statements(stored)
        if not stored.record.variables:
            if not data_left:
                stored.remove()
            return notes, problems
        variable_notes, variable_problems = self._undo_variables(stored, data_left)
        return notes + variable_notes, problems + variable_problems

    def _undo_statements(
        self, stored: StoredChanges
    ) -> tuple[list[str], list[ServerProblem], tuple[Change, ...]]:
        """Undo the statements of a record, the last one first, and store which are left. Returns messages,
        problems, and what is left.
        """
        record = stored.record
        notes: list[str] = []
        problems: list[ServerProblem] = []
        left = list(record.executed)
        if not left:
            return notes, problems, ()
        try:
            # Removing an index may have to wait for a statement that still creates it.
            with answers_within(None), self._open_load(record.url) as admin:
                for change in reversed(record.executed):
                    if refusal := self._refused(admin, change):
                        problems.append(
                            ServerProblem(
                                f"{change.name!r} was executed, and dbdyno could not undo it: {refusal.text}",
                                f"undo it yourself: {change.undo}; then {self.restore_command} --forget; or "
                                f"later: {self.restore_command}",
                                exit_code=4,
                            )
                        )
                        continue
                    left.remove(change)
                    with suppress(ServerProblem):
                        stored.write(changes=(*left, *record.variables))
                    if change.statements:
                        notes.append(f"undone: {shorten_statement(change.name)}")
        except ServerProblem as problem:
            problems.append(problem)
        return notes, problems, tuple(left)

    def _refused(self, admin: AdminConnection, change: Change) -> StatementRefused | None:
        """Undo one statement. The refusal, if it means that something is left to undo."""
        refused = None
        for sql in change.statements:
            try:
                admin.query(sql)
            except StatementRefused as refusal:
                refused = refused or refusal
        # What was perhaps never executed, or perhaps undone, has nothing to undo.
        return refused if change.state == "made" else None

    def _undo_variables(
        self, stored: StoredChanges, data_left: tuple[Change, ...]
    ) -> tuple[list[str], list[ServerProblem]]:
        names = [change.name for change in stored.record.variables]
        todo: list[Change] = []
        foreign: dict[str, ServerProblem] = {}
        notes: list[str] = []
        try:
            todo, foreign, notes = self._classify(stored.record)
            if len(todo) > 1:
                # Setting one may change others along with it, so their values no longer tell who set them.
                kept = [change for change in stored.record.variables if change.name in foreign]
                undoing = [change.model_copy(update={"state": "undoing"}) for change in todo]
                # On a full disk the variables get their earlier values all the same.
                with suppress(ServerProblem):
                    stored.write(changes=(*data_left, *kept, *undoing), others={})
            failed = self._set_back(todo)
        except ServerProblem as problem:
            failed = dict.fromkeys(names, problem)
        left = tuple(
            change for change in stored.record.variables if change.name in failed or change.name in foreign
        )
        if left or data_left:
            with suppress(ServerProblem):
                stored.write(changes=(*data_left, *left))
        else:
            stored.remove()
        notes += [
            f"{change.name} has its earlier value {self._variables.describe(change.before)} again"
            for change in todo
            if change.name not in failed
        ]
        problems = [*foreign.values()]
        problems += [
            self._failure(entry, failed[entry.name]) for entry in reversed(left) if entry.name in failed
        ]
        return notes, problems

    def _classify(self, record: Record) -> tuple[list[Change], dict[str, ServerProblem], list[str]]:
        """The changes to undo; problems of those whose value another user has set; and messages about the
        rest, of which nothing is left.
        """
        describe, has_restarted = self._variables.describe, self._has_restarted(record)
        todo: list[Change] = []
        foreign: dict[str, ServerProblem] = {}
        notes: list[str] = []
        for change in record.variables:
            current = self._variables.read(self._admin, change.name).text
            if current == change.before:
                if not change.is_side_effect:
                    notes.append(f"{change.name} has its earlier value {describe(current)} already")
            elif has_restarted:
                notes.append(
                    f"{change.name} was {describe(change.before)} before dbdyno changed it; the server "
                    f"has restarted since, so {describe(current)} is from its configuration, and stays"
                )
            elif _is_set_by_dbdyno(change, current):
                todo.append(change)
            elif not change.is_side_effect:
                foreign[change.name] = self._foreign(change, current)
        if not has_restarted and todo and any(change.state == "planned" for change in todo):
            names = [change.name for change in record.variables]
            todo += [effect for effect in self._side_effects(record) if _are_related(effect.name, names)]
        return todo, foreign, notes

    def _has_restarted(self, record: Record) -> bool:
        """Whether the server has certainly restarted and lost the changes.

        If only its clock was set, the numbers of connections go on.
        """
        now = self._variables.connection(self._admin)
        if now is None or record.connection is None or record.started_unix_s is None:
            return False
        started = self._facts().get("started_unix_s")
        is_later = started is not None and abs(started - record.started_unix_s) > _START_TOLERANCE_S
        return is_later and now <= record.connection

    def _set_back(self, changes: Sequence[Change]) -> dict[str, ServerProblem]:
        """Set the earlier values, and apply them. Returns a problem for each variable that has another value.
        Raises ServerProblem if the server does not answer.
        """
        failures: dict[str, ServerProblem] = {}
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE_S if attempt > 1 else 0.0)
            failures = {}
            for change in reversed(changes):
                now = self._variables.read(self._admin, change.name)
                if now.text == change.before:
                    continue
                before = Setting(change.before, now.is_text)
                failures[change.name] = ServerProblem(
                    f"the server reports {self._variables.describe(now.text)} after "
                    f"{self._variables.statement(change.name, before)}"
                )
                try:
                    self._variables.write(self._admin, change.name, before)
                except StatementRefused as refusal:
                    failures[change.name] = refusal
            if not failures or all(isinstance(failure, StatementRefused) for failure in failures.values()):
                break
        self._variables.apply(self._admin)
        of_server = {change.name for change in changes if change.is_side_effect}
        # A variable that only the server can change follows those that dbdyno has set back.
        return {
            name: problem
            for name, problem in failures.items()
            if name not in of_server or not isinstance(problem, StatementRefused)
        }

    def _failure(self, change: Change, problem: ServerProblem) -> ServerProblem:
        return ServerProblem(
            f"{change.name} was {self._variables.describe(change.before)}, and dbdyno could not restore it: "
            f"{problem.text}",
            f"set it yourself: {change.undo}; or later: {self.restore_command}",
            exit_code=4,
        )

    def _foreign(self, change: Change, current: str | None) -> ServerProblem:
        describe = self._variables.describe
        did = "was about to set" if change.state == "planned" else "has set"
        return ServerProblem(
            f"{change.name} is {describe(current)}; dbdyno {did} {change.after or change.expected!r}, "
            f"so another user may have set it since. It was {describe(change.before)} before",
            f"to keep the value: {self.restore_command} --forget; for the earlier value: {change.undo}",
            exit_code=4,
        )


class _Explaining:
    """Begins the text of a ServerProblem with the variable, and adds the privilege that may be missing."""

    def __init__(self, begin: str) -> None:
        self._begin = begin

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, problem: BaseException | None, _traceback: object) -> None:
        if isinstance(problem, ServerProblem):
            raise ServerProblem(
                self._begin + problem.text,
                problem.fix
                or "grant the account the privilege (MariaDB: SUPER, MySQL: SYSTEM_VARIABLES_ADMIN, "
                "PostgreSQL: ALTER SYSTEM), or set the variable yourself and omit set_global",
                problem.exit_code,
            ) from problem


def _is_set_by_dbdyno(change: Change, current: str | None) -> bool:
    """Whether a value other than the earlier one is what dbdyno has set."""
    if change.state == "undoing":
        return True
    values = [change.expected] if change.state == "planned" else [change.expected, change.after]
    return current is not None and any(value is not None and _is_equal(current, value) for value in values)


def _is_equal(first: str, second: str) -> bool:
    """Whether two texts are the same value: 75 and 75.000000, or 1 and ON."""
    first, second = first.casefold(), second.casefold()
    if first == second or any(first in words and second in words for words in (_TRUE, _FALSE)):
        return True
    with suppress(ValueError):
        return float(first) == float(second)
    return False


def _are_related(name: str, names: Iterable[str]) -> bool:
    """Whether a server is likely to have changed a variable along with one of `names`."""

    def group(text: str) -> str:
        return "_".join(text.split("_")[:2]).replace("collation", "character_set")[:13]

    return any(group(name) == group(candidate) for candidate in names)
