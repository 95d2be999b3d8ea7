"""Resolves what a `[[variant]]` changes besides its server: workloads, load and session."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from dbdyno.experiment.base import file_keys
from dbdyno.experiment.errors import InputError
from dbdyno.experiment.script_reading import workload_title
from dbdyno.experiment.server import ConnectionSettings
from dbdyno.experiment.variant import VariantLoad

# Resolves the table of a workload, of which a variant sets some keys; appends the errors to the list.
ResolveWorkload = Callable[[dict[str, Any], list[InputError], Collection[str]], dict[str, Any]]

# Keys of [load] that determine which trials are compared with each other.
_PAIRING = ("connections", "rate", "duration", "warmup", "arrivals", "ramp", "steps")
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
# Keys of a connection that name a file.
CONNECTION_FILES = ("tls_ca", "tls_certificate", "tls_key", "server_public_key")


def resolve(
    variant: dict[str, Any],
    workloads: list[dict[str, Any]],
    resolve_workload: ResolveWorkload,
    errors: list[InputError],
) -> dict[str, Any]:
    """The variant with the complete workloads that it changes, under the model's key `workloads`."""
    variant, place = dict(variant), f"variant[{variant.get('name', '?')}]"
    if "workloads" in variant:
        value = variant.pop("workloads")
        fix = "Did you mean workload?"
        errors.append(InputError(f"{place}.workloads", value, "there is no such key", fix))
    changes = variant.pop("workload", {})
    if isinstance(changes, dict):
        variant["workloads"] = _resolve_workloads(
            changes, workloads, resolve_workload, f"{place}.workload", errors
        )
    else:
        fix = "Write [variant.workload]"
        errors.append(InputError(f"{place}.workload", changes, "this must be a table", fix))
    if isinstance(load := variant.get("load"), dict):
        variant["load"] = _without_pairing_keys(load, f"{place}.load", errors)
    return variant


def connection_errors(variant: Mapping[str, Any]) -> Iterator[InputError]:
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


def resolve_files(
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
        known = ", ".join(file_keys(VariantLoad))
        fix = f"Set {key} in [load]; a variant may set {known}"
        errors.append(InputError(f"{place}.{key}", load[key], problem, fix))
    return {key: value for key, value in load.items() if key not in _PAIRING}


def _resolve_workloads(
    changes: dict[str, Any],
    workloads: list[dict[str, Any]],
    resolve_workload: ResolveWorkload,
    place: str,
    errors: list[InputError],
) -> list[dict[str, Any]]:
    """The complete workloads that `changes` affects. A key that is the title of a workload has changes of
    only that workload; all other keys change every workload.
    """
    titles = [workload_title(one) for one in workloads]
    shared = {
        key: value for key, value in changes.items() if key not in titles or not isinstance(value, dict)
    }
    for key in sorted(_TABLES & set(titles) & {key for key in changes if isinstance(changes[key], dict)}):
        problem = "this is a key of a workload, and the title of one"
        errors.append(InputError(f"{place}.{key}", None, problem, "Give the workload another label"))
    resolved = []
    for title, workload in zip(titles, workloads, strict=True):
        own = changes[title] if isinstance(changes.get(title), dict) else {}
        keys = _merge(shared, own)
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
        resolved.append(resolve_workload(merged, own_errors, keys.keys()))
        errors += relocate(own_errors, title, place)
    return resolved


def relocate(errors: list[InputError], title: str, place: str) -> list[InputError]:
    """The errors of a variant's workload, named by the key that the variant sets."""
    prefix = f"workload[{title}]"
    return [
        InputError(place + error.key.removeprefix(prefix), error.value, error.problem, error.fix)
        if error.key.startswith(prefix)
        else error
        for error in errors
    ]


def is_inherited(error: InputError, errors: Iterable[InputError]) -> bool:
    """Whether a variant's workload has this error only because the workload that it changes has it."""
    head, workload, key = error.key.partition("].workload.")
    return (
        bool(workload)
        and head.startswith("variant[")
        and any(
            base.key.startswith("workload[") and base.key.partition("].")[2] == key
            for base in errors
            if (base.value, base.problem) == (error.value, error.problem)
        )
    )


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
