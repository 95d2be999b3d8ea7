"""Makes changes on a remote server and undoes them, and finds those that a process has left there.

A change is stored before it is made (`servers.changes`). Before it is undone, the current value is compared:

    the earlier value               nothing is to do
    the value that dbdyno has set   the earlier value is set again
    any other value                 another user has set it since: it stays, and the user decides
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dbdyno.experiment.quantities import variable_name
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.changes import (
    Change,
    Record,
    StoredChanges,
    identity_facts,
    is_same_server,
    may_hold_password,
    stored_changes,
)
from dbdyno.servers.kinds.remote_variables import (
    MySQLVariables,
    PostgreSQLVariables,
    RemoteVariables,
    Setting,
)
from dbdyno.servers.products.product import Value
from dbdyno.servers.server import ServerProblem, StatementRefused, combine_problems
from dbdyno.servers.url import Target, parse_url

# How often a variable is set that has not its earlier value yet: some change others along with them.
_ATTEMPTS = 4
# Seconds between two attempts: a server may apply a value, such as the size of a cache, step by step.
_PAUSE_S = 0.3
# Seconds by which the start times of a server that has not restarted may differ.
_START_TOLERANCE_S = 3.0
_TRUE, _FALSE = frozenset({"1", "on", "true", "yes"}), frozenset({"0", "off", "false", "no"})
VARIABLES: Mapping[str, RemoteVariables] = {"mysql": MySQLVariables(), "postgresql": PostgreSQLVariables()}


class RemoteChanges:
    """The changes of dbdyno on one remote server."""

    def __init__(
        self,
        admin: AdminConnection,
        target: Target,
        facts: Callable[[], Mapping[str, Any]],
        variant: str,
        run: str,
    ) -> None:
        """`facts` reads the server's identity; `run` is the folder of the run that makes the changes."""
        self._admin, self._target, self._facts = admin, target, facts
        self._variant, self._run = variant, run
        self._variables = VARIABLES[target.protocol]
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
        identity = identity_facts(self._facts())
        here = place(self._target)
        of_this, of_others = [], []
        for one in stored:
            stored_place = record_place(one.record)
            if is_same_server(one.record, identity, here, stored_place):
                of_this.append(one)
            elif stored_place == here:
                of_others.append(one)
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
        for change in stored.record.changes:
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
            f"{self._variant}: dbdyno has changed settings of the server {self._target} and not restored "
            f"them: {'; '.join(self.lines(stored))}. They were changed {stored.record.made_by()}",
            f"restore them: {self.restore_command}{again}",
            exit_code=4,
        )

    def _in_use(self, stored: StoredChanges) -> ServerProblem:
        names = ", ".join(change.name for change in stored.record.changes)
        return ServerProblem(
            f"{self._variant}: settings of the server {self._target} are changed for another measurement"
            + (f" ({names}), {stored.record.made_by()}" if names else ""),
            "wait until it has ended; variants with set_global on one server cannot run at the same time",
            exit_code=4,
        )

    def _is_undone(self, stored: StoredChanges) -> bool:
        """Whether nothing is left to undo, so that only the file is to be removed."""
        with suppress(ServerProblem):
            changes = stored.record.changes
            if self._has_restarted(stored.record):
                return True
            return all(self._variables.read(self._admin, one.name).text == one.before for one in changes)
        return False

    # --- changes that this object makes

    def make(self, variables: Mapping[str, Value]) -> None:
        """Store and make changes of variables, once until `undo`. Raises ServerProblem.

        After an error, `undo` undoes what was changed.
        """
        if self._own is not None or not variables:
            return
        facts = self._facts()
        stored = StoredChanges.for_server(
            Record(
                url=str(self._target),
                identity=identity_facts(facts),
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
            plans = [self._plan(variable_name(name), value) for name, value in variables.items()]
            # Predictions have changed settings of the session.
            self._admin.close()
            others = {
                n: v for n, v in self._variables.values(self._admin).items() if not may_hold_password(n)
            }
            stored.write(changes=tuple(change for change, _ in plans), others=others)
        except BaseException:
            stored.release()
            raise
        self._own = stored
        self._make(stored, plans)

    def _plan(self, name: str, value: Value) -> tuple[Change, Setting]:
        """The change of one variable, and what is to be set."""
        with self._explaining(name):
            if may_hold_password(name):
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
        """The server has lost the changes of this object, because it has stopped."""
        for stored in stored_changes():
            if stored.record.run == self._run and stored.record.url == str(self._target) and stored.acquire():
                stored.remove()
                stored.release()

    def _undo(self, stored: StoredChanges) -> tuple[list[str], list[ServerProblem]]:
        """Undo changes, and store those that are left. Returns messages, and a problem for each failure."""
        names = [change.name for change in stored.record.changes]
        todo: list[Change] = []
        foreign: dict[str, ServerProblem] = {}
        notes: list[str] = []
        try:
            todo, foreign, notes = self._classify(stored.record)
            if len(todo) > 1:
                # Setting one may change others along with it, so their values no longer tell who set them.
                kept = [change for change in stored.record.changes if change.name in foreign]
                undoing = [change.model_copy(update={"state": "undoing"}) for change in todo]
                # On a full disk the variables get their earlier values all the same.
                with suppress(ServerProblem):
                    stored.write(changes=(*kept, *undoing), others={})
            failed = self._set_back(todo)
        except ServerProblem as problem:
            failed = dict.fromkeys(names, problem)
        left = tuple(one for one in stored.record.changes if one.name in failed or one.name in foreign)
        if left:
            with suppress(ServerProblem):
                stored.write(changes=left)
        else:
            stored.remove()
        notes += [
            f"{change.name} has its earlier value {self._variables.describe(change.before)} again"
            for change in todo
            if change.name not in failed
        ]
        problems = [*foreign.values()]
        problems += [self._failure(one, failed[one.name]) for one in reversed(left) if one.name in failed]
        return notes, problems

    def _classify(self, record: Record) -> tuple[list[Change], dict[str, ServerProblem], list[str]]:
        """The changes to undo; problems of those whose value another user has set; and messages about the
        rest, of which nothing is left.
        """
        describe, has_restarted = self._variables.describe, self._has_restarted(record)
        todo: list[Change] = []
        foreign: dict[str, ServerProblem] = {}
        notes: list[str] = []
        for change in record.changes:
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
            names = [change.name for change in record.changes]
            todo += [one for one in self._side_effects(record) if _are_related(one.name, names)]
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
            if not failures or all(isinstance(one, StatementRefused) for one in failures.values()):
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
    return current is not None and any(one is not None and _is_equal(current, one) for one in values)


def _is_equal(one: str, other: str) -> bool:
    """Whether two texts are the same value: 75 and 75.000000, or 1 and ON."""
    one, other = one.casefold(), other.casefold()
    if one == other or any(one in words and other in words for words in (_TRUE, _FALSE)):
        return True
    with suppress(ValueError):
        return float(one) == float(other)
    return False


def _are_related(name: str, names: Iterable[str]) -> bool:
    """Whether a server is likely to have changed a variable along with one of `names`."""

    def group(text: str) -> str:
        return "_".join(text.split("_")[:2]).replace("collation", "character_set")[:13]

    return any(group(name) == group(other) for other in names)


def place(target: Target) -> str:
    """Where a server is, without account, database and options."""
    hosts = ",".join(f"{host}:{port}" for host, port in target.hosts_and_ports())
    return f"{target.protocol} {target.unix_socket or hosts}"


def record_place(record: Record) -> str:
    """The place of the server that a record names."""
    try:
        return place(parse_url(record.url))
    except ServerProblem:
        # A URL of another version.
        return record.url
