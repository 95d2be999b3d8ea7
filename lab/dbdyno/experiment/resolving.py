"""Converts the tables of an experiment file to the input of the models: absolute paths, complete workloads.

::

    [[workload]]               statements and annotations of its .sql file, the digest of its script
    [[workload.background]]    setup, tables, after of the workload and of its background loads  ->  of each
    [[variant]]                complete workloads, each with the keys that the variant changes

The data of a workload and its background loads are loaded once, and `rows(TABLE)` in a background load means
the same tables.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from dbdyno.experiment import bundled, sql_reading
from dbdyno.experiment.base import file_keys
from dbdyno.experiment.dialect import Dialect
from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.file_reading import read_file
from dbdyno.experiment.model import TITLE_KEYS
from dbdyno.experiment.server import ConnectionSettings
from dbdyno.experiment.shapes import Shapes
from dbdyno.experiment.variant import VariantLoad, move_connection_settings
from dbdyno.experiment.workload import ScriptWorkload, is_script, workload_title

# Keys of [load] that determine which trials are compared with each other.
_PAIRING = ("connections", "rate", "duration", "warmup", "arrivals", *Shapes.model_fields)
# Keys of a workload that a variant sets elsewhere -> the fix.
ELSEWHERE = {
    "label": "Leave it out: the trials of all variants are paired by the workload's title",
    "statements": "Write prepared = true or false under [variant.session]",
    "session": "Write sql = [ … ] under [variant.session]; these statements follow those of the workload",
    "background": "Leave it out: all variants run with the same background loads",
    "after": "Write after = [ … ] under [variant.data]; these statements follow those of the workload",
}
# Keys of a workload whose values may be tables.
_TABLES = {"keys", "parameters", "tables", "replay", "options"}
# The keys of a variant's tables that name a file or a folder.
_FILES = {
    "server": ("basedir", "config", "password_file"),
    "session": ("tls_ca", "tls_certificate", "tls_key", "server_public_key"),
    "proxy": ("basedir",),
}
# The keys that define the data of a SQL workload.
_DATA_LISTS = ("setup", "after", "cleanup")
# The keys of the load of a background load; the others are those of a workload.
_BACKGROUND_LOAD = ("connections", "rate", "arrivals")
_SCRIPT_KEYS = tuple(file_keys(ScriptWorkload))
SCRIPT_BYTES_MAX = 16_000_000


def resolve(document: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """The document with the keys of the model `Experiment`, complete workloads and absolute paths. Required
    sections that the document lacks are missing.
    """
    resolved = {key: value for key, value in document.items() if key != "experiment"}
    title = document.get("experiment", {})
    for name in set(title) - set(TITLE_KEYS):
        fix = did_you_mean(name, TITLE_KEYS)
        errors.append(InputError(f"experiment.{name}", title[name], "there is no such key", fix))
    resolved |= {name: title[name] for name in TITLE_KEYS if name in title}
    if "workload" in document:
        dialect = dialects(document)[0]
        resolved["workload"] = [
            _resolve_workload(entry, folder, dialect, errors) for entry in document["workload"]
        ]
    if "variant" in document:
        resolved["variant"] = [
            _resolve_variant(entry, document, folder, errors) for entry in document["variant"]
        ]
    design = document.get("design", {})
    if "stop" in design and "blocks" in design:
        fix = "Drop stop for a fixed number of blocks, or drop blocks and write stop.max_blocks"
        problem = "blocks and stop exclude each other"
        errors.append(InputError("design.blocks", design["blocks"], problem, fix))
        resolved["design"] = {key: value for key, value in design.items() if key != "blocks"}
    return resolved


def _resolve_workload(
    workload: dict[str, Any],
    folder: Path,
    dialect: Dialect,
    errors: list[InputError],
    changes: Collection[str] = (),
) -> dict[str, Any]:
    if is_script(workload):
        return _resolve_script(workload, folder, errors)
    if workload.get("name") in ("sql", *bundled.names()):
        workload = sql_reading.resolve(workload, folder, dialect, errors, changes)
    if workload.get("name") == "lua":
        fix = 'Write script = "FILE.lua" instead'
        errors.append(InputError("workload[lua].name", "lua", "this is not a workload name", fix))
    return _resolve_backgrounds(workload, folder, dialect, errors)


def _resolve_script(workload: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """A `[[workload]]` with its absolute path, its digest, and the file's name if it has no label."""
    place = f"workload[{workload_title(workload)}]"
    complete = {key: value for key, value in workload.items() if key in _SCRIPT_KEYS}
    for key in (key for key in workload if key not in _SCRIPT_KEYS):
        if key == "name":
            fix = "Leave one of them out; a label sets the title"
            errors.append(InputError(f"{place}.name", workload[key], "the workload also has a script", fix))
        else:
            script_keys = ", ".join(_SCRIPT_KEYS)
            fix = f"Known here: {script_keys}. Write options of the script as options = {{ {key} = … }}"
            errors.append(InputError(f"{place}.{key}", workload[key], "a script has no such key", fix))
    complete = {**complete, "name": "lua", "label": workload_title(workload)}
    if isinstance(path := workload.get("script"), str):
        absolute = (folder / Path(path).expanduser()).resolve()
        complete["script"] = str(absolute)
        try:
            complete["digest"] = _digest(absolute)
        except OSError as error:
            fix = f"The path is {absolute}"
            errors.append(InputError(f"{place}.script", path, f"it cannot be read: {error.strerror}", fix))
    return complete


def _digest(script: Path) -> str:
    """SHA-256 of the script and of every Lua file in its folder, which it may require. Raises OSError."""
    content_hash = hashlib.sha256()
    for path in (script, *sorted(filter(Path.is_file, script.parent.glob("*.lua")))):
        content = read_file(path, SCRIPT_BYTES_MAX)
        content_hash.update(f"{path.name} {len(content)}\n".encode() + content)
    return content_hash.hexdigest()


def dialects(document: Mapping[str, Any]) -> list[Dialect]:
    """The SQL dialects of the variants' servers, without duplicates; PostgreSQL's is last. That of the
    default server if the document lacks variants.
    """
    return sql_reading.dialects_of(entry.get("server", {}) for entry in document.get("variant", [{}]))


def _dialect(variant: Mapping[str, Any]) -> Dialect:
    """The SQL dialect of a variant's server."""
    return sql_reading.dialect_of(variant.get("server", {}))


def _resolve_variant(
    variant: dict[str, Any], document: dict[str, Any], folder: Path, errors: list[InputError]
) -> dict[str, Any]:
    """A variant with complete workloads and absolute paths."""
    errors += _connection_errors(variant)
    variant = move_connection_settings(variant)
    variant = _resolve_changes(variant, document.get("workload", []), folder, errors)
    variant["workload"] += _of_own_dialect(variant, document, folder)
    for section, keys in _FILES.items():
        if isinstance(table := variant.get(section), dict):
            place = f"variant[{variant.get('name', '?')}].{section}"
            variant[section] = _resolve_files(table, keys, folder, place, errors)
    return variant


def _of_own_dialect(
    variant: dict[str, Any], document: dict[str, Any], folder: Path
) -> Iterator[dict[str, Any]]:
    """The workloads that a file writes differently for the variant's server than for the first dialect of
    the experiment (`@only`), as far as the variant does not change them.
    """
    variant_dialect, shared = _dialect(variant), dialects(document)[0]
    changed = {entry.get("label") for entry in variant["workload"]}
    for workload in document.get("workload", ()) if variant_dialect != shared else ():
        title = workload_title(workload)
        if title in changed or workload.get("name") not in ("sql", *bundled.names()):
            continue
        texts = [_resolve_workload(workload, folder, dialect, []) for dialect in (variant_dialect, shared)]
        if texts[0] != texts[1]:
            yield {**texts[0], "label": title}


def _resolve_backgrounds(
    workload: dict[str, Any], folder: Path, dialect: Dialect, errors: list[InputError]
) -> dict[str, Any]:
    """A resolved workload with its background loads resolved, all of them with the tables of all."""
    entries = workload.get("background")
    if not isinstance(entries, list):
        return workload
    place = f"workload[{workload_title(workload)}].background"
    backgrounds: list[Any] = []
    for entry in entries:
        if not isinstance(entry, dict):
            backgrounds.append(entry)
            continue
        load = {key: entry[key] for key in _BACKGROUND_LOAD if key in entry}
        named = {"name": "sql", **{key: value for key, value in entry.items() if key not in _BACKGROUND_LOAD}}
        input_errors: list[InputError] = []
        if named["name"] == "sql":
            named = sql_reading.resolve({"label": "background", **named}, folder, dialect, input_errors)
        elif named["name"] in bundled.names():
            named = sql_reading.resolve(named, folder, dialect, input_errors)
        backgrounds.append(named | load)
        errors += relocate(input_errors, workload_title(named), f"{place}[{workload_title(named)}]")
    if workload.get("name") == "sql":
        _share_data(
            [
                workload := dict(workload),
                *(background for background in backgrounds if isinstance(background, dict)),
            ]
        )
    return {**workload, "background": backgrounds}


def _share_data(workloads: list[dict[str, Any]]) -> None:
    """Give all of them the tables of all, each statement once."""
    for key in _DATA_LISTS:
        lists = [entry[key] for entry in workloads if isinstance(entry.get(key), list)]
        # A statement may be no text, which the model reports.
        every: list[Any] = []
        for list_of_place in lists:
            every += [sql for sql in list_of_place if sql not in every]
        for workload in workloads if every else ():
            if isinstance(workload.get(key, []), list):
                workload[key] = every
    tables: dict[str, Any] = {}
    for list_of_place in reversed(workloads):
        tables |= list_of_place["tables"] if isinstance(list_of_place.get("tables"), dict) else {}
    for list_of_place in workloads if tables else ():
        if isinstance(list_of_place.get("tables", {}), dict):
            list_of_place["tables"] = tables


def _resolve_changes(
    variant: dict[str, Any], workloads: list[dict[str, Any]], folder: Path, errors: list[InputError]
) -> dict[str, Any]:
    """The variant with the complete workloads that it changes instead of the changes."""
    variant, place = dict(variant), f"variant[{variant.get('name', '?')}]"
    changes = variant.pop("workload", {})
    variant["workload"] = []
    if isinstance(changes, dict):
        variant["workload"] = _changed_workloads(variant, changes, workloads, folder, errors)
    else:
        fix = "Write [variant.workload]"
        errors.append(InputError(f"{place}.workload", changes, "this must be a table", fix))
    if isinstance(load := variant.get("load"), dict):
        variant["load"] = _without_pairing_keys(load, f"{place}.load", errors)
    return variant


def _connection_errors(variant: Mapping[str, Any]) -> Iterator[InputError]:
    """Errors for connection settings that another place of the same variant would replace."""
    server, session = variant.get("server"), variant.get("session")
    if not isinstance(server, dict) or not isinstance(session, dict):
        return
    url = server.get("url")
    options = dict(parse_qsl(url.partition("?")[2])) if isinstance(url, str) else {}
    for key in (key for key in ConnectionSettings.model_fields if key in session):
        place = f"variant[{variant.get('name', '?')}].session.{key}"
        if key in server:
            yield InputError(place, session[key], f"server.{key} sets it too", f"Remove server.{key}")
        option = key.replace("_", "-")
        # A stored experiment has every default, so only other values can replace those of the URL.
        is_default = session[key] == ConnectionSettings.model_fields[key].default
        if option in options and is_default and options[option] != str(session[key]):
            problem = f"server.url has {option}={options[option]}, which a default value does not replace"
            yield InputError(place, session[key], problem, f"Remove {option} from the URL")


def _resolve_files(
    table: dict[str, Any], keys: Iterable[str], folder: Path, place: str, errors: list[InputError]
) -> dict[str, Any]:
    """`table` with the absolute paths of the files that `keys` name, and of the folder `basedir`."""
    table = dict(table)
    for key in keys:
        exists, kind = (Path.is_dir, "directory") if key == "basedir" else (Path.is_file, "file")
        if not isinstance(table.get(key), str):
            continue
        absolute = (folder / Path(table[key]).expanduser()).resolve()
        if not exists(absolute):
            fix = f"It was looked for at {absolute}"
            errors.append(InputError(f"{place}.{key}", table[key], f"there is no such {kind}", fix))
        table[key] = str(absolute)
    return table


def _without_pairing_keys(load: Mapping[str, Any], place: str, errors: list[InputError]) -> dict[str, Any]:
    for key in load.keys() & set(_PAIRING):
        problem = (
            "all variants run the same load, because trials are compared in pairs at the same points, times "
            "and rates"
        )
        load_keys = ", ".join(file_keys(VariantLoad))
        fix = f"Set {key} in [load]; a variant may set {load_keys}"
        errors.append(InputError(f"{place}.{key}", load[key], problem, fix))
    return {key: value for key, value in load.items() if key not in _PAIRING}


def _changed_workloads(
    variant: Mapping[str, Any],
    changes: dict[str, Any],
    workloads: list[dict[str, Any]],
    folder: Path,
    errors: list[InputError],
) -> list[dict[str, Any]]:
    """The complete workloads that `changes` affects. A key that is the title of a workload has changes of
    only that workload; all other keys change every workload.
    """
    place, dialect = f"variant[{variant.get('name', '?')}].workload", _dialect(variant)
    titles = [workload_title(entry) for entry in workloads]
    shared = {
        key: value for key, value in changes.items() if key not in titles or not isinstance(value, dict)
    }
    for key in sorted(_TABLES & set(titles) & {key for key in changes if isinstance(changes[key], dict)}):
        problem = "this is a key of a workload, and the title of one"
        errors.append(InputError(f"{place}.{key}", None, problem, "Give the workload another label"))
    resolved = []
    for title, workload in zip(titles, workloads, strict=True):
        changes_here = changes[title] if isinstance(changes.get(title), dict) else {}
        keys = _merge(shared, changes_here)
        for key in keys.keys() & ELSEWHERE.keys():
            error = InputError(f"{place}.{key}", keys[key], "a variant sets this elsewhere", ELSEWHERE[key])
            if error not in errors:
                errors.append(error)
        keys = {key: value for key, value in keys.items() if key not in ELSEWHERE}
        if not keys:
            continue
        base = dict(workload)
        if "script" in keys and "script" not in base:
            base.pop("name", None)
        merged = {**_merge(base, keys), "label": title}
        own_errors: list[InputError] = []
        resolved.append(_resolve_workload(merged, folder, dialect, own_errors, keys.keys()))
        errors += relocate(own_errors, title, place)
    return resolved


def relocate(errors: list[InputError], title: str, place: str) -> list[InputError]:
    """The errors of a workload that belongs to another table, a variant or a workload with background loads,
    named by its `place` there instead of by its title.
    """
    prefix = f"workload[{title}]"
    return [
        InputError(place + error.key.removeprefix(prefix), error.value, error.problem, error.fix)
        if error.key.startswith(prefix)
        else error
        for error in errors
    ]


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the changes: tables are merged key by key, everything else is replaced."""
    merged = copy.deepcopy(dict(base))
    for key, value in changes.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = _merge(before, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged
