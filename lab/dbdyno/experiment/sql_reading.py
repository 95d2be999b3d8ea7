"""Resolves a SQL `[[workload]]`: reads its .sql file, makes paths absolute, and finds errors in statements.

It needs no server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dbdyno.experiment import bundled
from dbdyno.experiment.base import file_keys
from dbdyno.experiment.dialect import DIALECTS, MYSQL, Dialect
from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.file_reading import read_file
from dbdyno.experiment.generators import Generator, ParameterList, StatementResult, parse
from dbdyno.experiment.server import PRODUCTS
from dbdyno.experiment.sql_file import FILE_BYTES_MAX, read
from dbdyno.experiment.sql_text import (
    UnreadableSql,
    count_placeholders,
    parameter_names,
    split_statements,
)
from dbdyno.experiment.workload import SqlStatement, SqlWorkload, member_names, workload_title

# The fix for a `?` without a parameter.
_EXAMPLE = 'Write :name, and name = "uniform(1, 1_000_000)" under its parameters'


def dialect_of(server: Any) -> Dialect:
    """The SQL dialect of a variant's server, which is a table of the file, or a model."""
    product, url = (
        str((server.get(key) if isinstance(server, dict) else getattr(server, key, None)) or "")
        for key in ("product", "url")
    )
    protocol = "postgresql" if url.startswith("postgres") else PRODUCTS.get(product, "mysql")
    return DIALECTS[protocol]


def dialects_of(servers: Iterable[Any]) -> list[Dialect]:
    """The SQL dialects of servers, without duplicates; PostgreSQL's is last."""
    used = set(map(dialect_of, servers))
    return [dialect for dialect in DIALECTS.values() if dialect in used]


def resolve(
    workload: dict[str, Any],
    folder: Path,
    dialect: Dialect,
    errors: list[InputError],
    changes: Collection[str] = (),
) -> dict[str, Any]:
    """A SQL `[[workload]]` with the content of its file, and with absolute paths.

    Tables of the file and the workload are merged; lists are not, since their order would be ambiguous.
    `changes` are the keys that a variant sets: its list replaces the file's, and its file the list.
    """
    place = f"workload[{workload_title(workload)}]"
    merged = workload = _with_file(workload, place, errors)
    errors += _line_errors(place, workload.get("transactions"))
    if isinstance(path := workload.get("file"), str):
        absolute = (folder / Path(path).expanduser()).resolve()
        content, own_options = _read_file(absolute, place, workload, dialect, errors)
        merged = _merge(content, own_options, place, errors, changes)
        merged["file"] = str(absolute)
        # Paths in the file are relative to its folder.
        folder = absolute.parent
    if isinstance(value := merged.get("replay"), dict) and isinstance(value.get("file"), str):
        recorded = (folder / Path(value["file"]).expanduser()).resolve()
        if not recorded.is_file():
            fix = f"The path is {recorded}"
            errors.append(InputError(f"{place}.replay.file", value["file"], "there is no such file", fix))
        merged["replay"] = {**value, "file": str(recorded)}
    if isinstance(value := merged.get("parameters"), dict):
        merged["parameters"] = {
            name: _resolve_generator(f"{place}.parameters.{name}", text, folder, errors)
            for name, text in value.items()
        }
    return merged


def _with_file(workload: dict[str, Any], place: str, errors: list[InputError]) -> dict[str, Any]:
    """The workload; a bundled one as a SQL workload with its file, its name as its label, and its options in
    a table.
    """
    name = workload.get("name")
    if name not in bundled.names():
        return dict(workload)
    for key in ("file", "options"):
        if key in workload:
            fix = (
                'Write name = "sql" for a file of your own' if key == "file" else "Write the options as keys"
            )
            errors.append(InputError(f"{place}.{key}", None, "a bundled workload has no such key", fix))
    declared_options = bundled.options(str(name))
    others = workload.keys() - SqlWorkload.model_fields.keys() - declared_options.keys()
    for key in sorted(others):
        fix = did_you_mean(key, [*declared_options, *file_keys(SqlWorkload)])
        errors.append(InputError(f"{place}.{key}", workload[key], "there is no such key", fix))
    rest = {
        key: value for key, value in workload.items() if key not in {*others, *declared_options, "options"}
    }
    return {
        "label": name,
        **rest,
        "name": "sql",
        "file": str(bundled.path(str(name))),
        "options": {key: workload[key] for key in declared_options if key in workload},
    }


def _line_errors(place: str, transactions: Any) -> Iterator[InputError]:
    """Errors for the key `line`, which only statements of a .sql file have."""
    for table in transactions if isinstance(transactions, list) else ():
        if not isinstance(table, dict):
            continue
        yield from _line_errors(place, table.get("statements"))
        if "line" in table:
            yield InputError(f"{place}.transactions.line", table["line"], "there is no such key")


def _read_file(
    path: Path, place: str, workload: dict[str, Any], dialect: Dialect, errors: list[InputError]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a workload in its file, and the workload with its valid options."""
    key, value = f"{place}.file", workload["file"]

    def read_text(file: Path) -> str:
        return read_file(file, FILE_BYTES_MAX).decode("utf-8-sig")

    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        errors.append(InputError(key, value, f"it cannot be read: {why}", f"The path is {path}"))
        return {}, workload
    values = options if isinstance(options := workload.get("options", {}), dict) else {}
    content = read(text, path.name, dialect, values, lambda name: read_text(path.parent / name))
    # The options of a bundled workload are keys.
    section = place if bundled.has(path) else f"{place}.options"
    errors += [
        replace(entry, key=f"{section}.{entry.key}") if entry.key in content.options else entry
        for entry in content.errors
    ]
    for name in values.keys() - content.options.keys():
        fix = did_you_mean(name, content.options)
        errors.append(InputError(f"{section}.{name}", values[name], "the file has no such option", fix))
    if not content.errors and not content.keys:
        errors.append(InputError(key, value, "it has no statements", "Add a statement"))
    wrong = {entry.key for entry in content.errors}
    valid = {name: entry for name, entry in values.items() if name in content.options and name not in wrong}
    return content.keys, {**workload, "options": valid} if values else workload


def _merge(
    file_content: dict[str, Any],
    table: dict[str, Any],
    place: str,
    errors: list[InputError],
    changes: Collection[str],
) -> dict[str, Any]:
    merged = dict(file_content)
    for key, value in table.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            # Also merge within a table: the workload may change a table's rows and keep its columns.
            merged[key] = {
                **before,
                **{
                    name: {**before[name], **entry}
                    if isinstance(entry, dict) and isinstance(before.get(name), dict)
                    else entry
                    for name, entry in value.items()
                },
            }
        elif isinstance(before, list) and (key in changes) == ("file" in changes):
            errors.append(
                InputError(f"{place}.{key}", None, f"the .sql file also has {key}", "Remove one of them")
            )
        elif not isinstance(before, list) or key in changes:
            merged[key] = value
    return merged


def _resolve_generator(key: str, generator: Any, folder: Path, errors: list[InputError]) -> Any:
    """A generator with the absolute path of its CSV file."""
    if not isinstance(generator, str) or "csv" not in generator:
        return generator
    try:
        call = parse(generator, {})
        path = call.arguments[0] if call.arguments else call.named["file"]
    except (ValueError, KeyError):
        return generator
    if call.name != "csv" or not isinstance(path, str):
        return generator
    absolute = (folder / Path(path).expanduser()).resolve()
    if not absolute.is_file():
        errors.append(InputError(key, generator, "there is no such file", f"It was looked for at {absolute}"))
    rest = [repr(str(absolute)), *map(repr, call.arguments[1:])]
    rest += [f"{name}={value!r}" for name, value in call.named.items() if name != "file"]
    return f"csv({', '.join(rest)})"


def valid_workloads(workloads: Iterable[Any]) -> Iterator[SqlWorkload]:
    """The SQL workloads that pass the validation of the model."""
    for workload in workloads:
        if isinstance(workload, dict) and workload.get("name") == "sql":
            with suppress(ValidationError):
                yield SqlWorkload.from_file(workload)


def find_errors(workload: SqlWorkload, dialects: Iterable[Dialect]) -> list[InputError]:
    """Errors in the statements of a workload, without duplicates."""
    errors: dict[tuple[str, str], InputError] = {}
    for dialect in dialects:
        for error in _Statements(workload, dialect).errors():
            errors.setdefault((error.key, error.problem), error)
    return list(errors.values())


class _Statements:
    """Finds errors in the statements of one workload, by the rules of one SQL dialect."""

    def __init__(self, workload: SqlWorkload, dialect: Dialect) -> None:
        self._workload, self._dialect = workload, dialect
        self._key = f"workload[{workload.title}]"
        self._generators: dict[str, Generator | None] = {}

    def errors(self) -> Iterator[InputError]:
        """All errors."""
        yield from self._generator_errors()
        yield from self._name_errors()
        for key in ("setup", "after", "prewarm", "cleanup", "session"):
            for number, sql in enumerate(getattr(self._workload, key), start=1):
                yield from self._text_errors(f"{self._key}.{key}[{number}]", sql)
        for entry in self._workload.consistency:
            yield from self._text_errors(f"{self._key}.consistency[{entry.name}]", entry.sql)
        before: list[str] = []
        current: object = None
        for name, transaction, statement in self._workload.named_statements():
            if transaction is not current:
                before, current = [], transaction
            yield from self._statement_errors(name, statement, before)
            before.append(name)

    def _generator_errors(self) -> Iterator[InputError]:
        for name, text in self._workload.parameters.items():
            self._generators[name] = None
            try:
                self._generators[name] = self._workload.generator(name)
            except ValueError as error:
                yield InputError(f"{self._key}.parameters.{name}", text, str(error))
        for title, table in self._workload.tables.items():
            for name, text in table.columns.items():
                try:
                    self._workload.column(title, name)
                except ValueError as error:
                    yield InputError(f"{self._key}.tables.{title}.columns.{name}", text, str(error))

    def _name_errors(self) -> Iterator[InputError]:
        if bool(self._workload.transactions) == (self._workload.replay is not None):
            problem = (
                "it has both transactions and a replay" if self._workload.replay else "it has no transactions"
            )
            yield InputError(self._key, None, problem, "Give it transactions, a file with some, or a replay")
        names = [t.name or f"transaction{n}" for n, t in enumerate(self._workload.transactions, start=1)]
        for name, count in Counter(names).items():
            if count > 1:
                problem = f"{count} of them have this name"
                yield InputError(f"{self._key}.transactions[{name}]", None, problem, "Give each its own")
        weights = [transaction.weight for transaction in self._workload.transactions]
        if weights and not any(weights):
            yield InputError(f"{self._key}.transactions", None, "their weights are all 0", "Give one more")
        for name, generator in self._generators.items():
            members = member_names(name, generator) if isinstance(generator, ParameterList) else []
            for member in self._generators.keys() & set(members):
                problem = f"a value of the list {name} has this name"
                yield InputError(f"{self._key}.parameters.{member}", None, problem, "Rename the parameter")
            if not (name.isidentifier() and name.isascii()):
                problem, fix = (
                    "no statement can use this name",
                    "Use letters, digits and _, and no digit first",
                )
                yield InputError(f"{self._key}.parameters.{name}", None, problem, fix)

    def _text_errors(self, place: str, sql: str) -> Iterator[InputError]:
        try:
            count = len(split_statements(sql, self._dialect))
        except UnreadableSql as error:
            yield InputError(place, sql, str(error), "Close it")
            return
        if count != 1:
            what = "no statement" if not count else f"{count} statements"
            yield InputError(place, sql, f"it has {what}", "Write one statement per entry")

    def _statement_errors(
        self, name: str, statement: SqlStatement, before: list[str]
    ) -> Iterator[InputError]:
        file, line = self._workload.file, statement.line
        place = f"{Path(file).name}:{line}" if file and line else f"{self._key}.{name}"
        wrong = list(self._text_errors(place, statement.sql))
        if wrong:
            yield from wrong
            return
        prepared = (statement.mode or self._workload.statements) == "prepared"
        if prepared and self._dialect is MYSQL and count_placeholders(statement.sql, self._dialect):
            yield InputError(place, statement.sql, "it has a ? for a parameter", _EXAMPLE)
        for name_used in dict.fromkeys([*parameter_names(statement.sql, self._dialect), *statement.draw]):
            yield from self._parameter_errors(place, name_used, before)

    def _parameter_errors(self, place: str, name_used: str, before: list[str]) -> Iterator[InputError]:
        generator = self._generators.get(name_used)
        if name_used not in self._generators:
            generator_names = ", ".join(self._generators) or "none"
            problem = f"it uses :{name_used}, but there is no such parameter; there are: {generator_names}"
            fix = f'Write {name_used} = "uniform(1, 1000)" under its parameters, or quote the colon'
            yield InputError(place, None, problem, fix)
        elif isinstance(generator, StatementResult) and before.count(generator.statement) != 1:
            what, fix = "no earlier statement has", 'Give that statement a name: { sql = "…", name = "…" }'
            if generator.statement in before:
                what, fix = "two earlier statements have", "Rename one"
            problem = f"it uses a result of {generator.statement}, but {what} this name"
            yield InputError(place, None, problem, fix)
