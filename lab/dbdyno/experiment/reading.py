"""Reads a TOML file into a validated `Experiment`, and reports all errors together.

It merges the file, the profile and `--set`, in this order, and builds one model with all defaults. It needs
no server.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dbdyno.experiment import factors, overrides, script_reading, sql_reading, stop
from dbdyno.experiment.durations import parse_duration_s
from dbdyno.experiment.errors import InputError, InvalidExperiment, did_you_mean
from dbdyno.experiment.explain import is_echo, to_input_error
from dbdyno.experiment.family import has_verdict
from dbdyno.experiment.model import Design, Experiment, ScriptWorkload, SqlWorkload
from dbdyno.experiment.shapes import TABLES
from dbdyno.experiment.sql_text import Dialect

SECTIONS = (*overrides.SECTIONS, "factor", "profile")
FILE_BYTES_MAX = 1_000_000
# Seconds. The engine's tick is 0.1 s; in a shorter measurement the ticks at both ends dominate.
DURATION_S_MIN = 0.5


def read(path: Path, profile: str | None = None, assignments: Iterable[str] = ()) -> Experiment:
    """The experiment in `path`, with the profile and then the `key=value` assignments applied.

    Raises InvalidExperiment with all errors.
    """
    try:
        source = path.read_bytes()
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}"
        raise InvalidExperiment(
            str(path), [InputError("", None, problem, "Give the path of an experiment file")]
        ) from error
    return read_bytes(source, path, profile, assignments)


def read_bytes(
    source: bytes, path: Path, profile: str | None = None, assignments: Iterable[str] = ()
) -> Experiment:
    """Like `read`, for the content of a file; `path` names the file, and relative paths start from its
    folder.
    """
    try:
        document = _parse(source)
    except (ValueError, RecursionError) as error:
        raise InvalidExperiment(str(path), [InputError("", None, f"invalid TOML: {error}")]) from error
    # Factors are expanded first, because profiles and --set may name the resulting variants.
    errors = factors.expand(document)
    errors = errors or list(_shape_errors(document))
    if not errors:
        errors += _apply_profile(document, profile)
        errors += _apply_assignments(document, assignments)
    if errors:
        raise InvalidExperiment(str(path), errors)
    return from_document(document, str(path), path.parent)


def from_document(document: dict[str, Any], source: str, folder: Path) -> Experiment:
    """The experiment of a parsed file without profiles; `source` is the file's name in messages.

    Paths are relative to `folder`. Raises InvalidExperiment with all errors.
    """
    errors: list[InputError] = []
    resolved = _resolve(document, folder, errors)
    experiment = _validate(resolved, errors)
    if experiment is not None:
        experiment = _with_default_stop(experiment, document.get("design", {}))
        errors += _combination_errors(experiment)
    else:
        # Also report errors in SQL statements if another part of the file is invalid.
        for workload in sql_reading.valid_workloads(resolved["workloads"]):
            errors += sql_reading.find_errors(workload, _dialects(document["variant"]))
    if errors or experiment is None:
        raise InvalidExperiment(source, errors)
    return experiment


def _parse(source: bytes) -> dict[str, Any]:
    if len(source) > FILE_BYTES_MAX:
        raise ValueError(f"it has {len(source)} bytes; the maximum is {FILE_BYTES_MAX}")
    return tomllib.loads(source.decode())


def _shape_errors(document: dict[str, Any]) -> Iterator[InputError]:
    """Errors for sections that are unknown, missing or of the wrong type. If there are any, the keys are not
    validated.
    """
    for section in document:
        if section not in SECTIONS:
            yield InputError(section, None, "there is no such section", did_you_mean(section, SECTIONS))
    for section in overrides.LISTED:
        entries = document.get(section)
        if not entries:
            yield InputError(
                section, entries, "an experiment needs at least one of them", f"Add a [[{section}]] table"
            )
        elif not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            yield InputError(section, None, "this is one table and must be a list", f"Write [[{section}]]")
    for section in ("experiment", "load"):
        if section not in document:
            yield InputError(section, None, "the section is missing", f"Add [{section}]")
    for section, table in document.items():
        if (
            section in SECTIONS
            and section not in (*overrides.LISTED, "factor")
            and not isinstance(table, dict)
        ):
            yield InputError(section, table, "this must be a table", f"Write [{section}]")


def _apply_profile(document: dict[str, Any], profile: str | None) -> list[InputError]:
    profiles = document.pop("profile", {})
    if profile is None:
        return []
    if profile not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        return [InputError(f"--profile {profile}", None, f"the file has no such profile; it has: {known}")]
    if not isinstance(profiles[profile], dict):
        key = f"profile.{profile}"
        return [InputError(key, profiles[profile], "this must be a table", f"Write [{key}]")]
    return overrides.apply(document, overrides.flatten(profiles[profile]).items())


def _apply_assignments(document: dict[str, Any], assignments: Iterable[str]) -> list[InputError]:
    parsed = [overrides.parse_assignment(text) for text in assignments]
    errors = [change for change in parsed if isinstance(change, InputError)]
    return errors + overrides.apply(
        document, [change for change in parsed if not isinstance(change, InputError)]
    )


def _resolve(document: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """The document with the names of the model `Experiment`, durations in seconds, and absolute paths."""
    resolved: dict[str, Any] = dict(document.get("experiment", {}))
    for name in set(resolved) - {"name", "question"}:
        fix = did_you_mean(name, ("name", "question"))
        errors.append(InputError(f"experiment.{name}", resolved.pop(name), "there is no such key", fix))
    dialect = _dialects(document["variant"])[0]
    resolved["workloads"] = [_resolve_workload(one, folder, dialect, errors) for one in document["workload"]]
    resolved["factors"] = document.get("factor", [])
    resolved["variants"] = [_resolve_server(variant, folder, errors) for variant in document["variant"]]
    resolved["load"] = _convert_durations(document["load"], errors)
    resolved["design"] = stop.resolve(document.get("design", {}), errors)
    for section in ("client", "loading", "override"):
        resolved[section] = document.get(section, {})
    return resolved


def _resolve_workload(
    workload: dict[str, Any], folder: Path, dialect: Dialect, errors: list[InputError]
) -> dict[str, Any]:
    if script_reading.is_script(workload):
        return script_reading.resolve(workload, folder, errors)
    if workload.get("name") == "sql":
        return sql_reading.resolve(workload, folder, dialect, errors)
    if workload.get("name") == "lua":
        fix = 'Write script = "FILE.lua" instead'
        errors.append(InputError("workload[lua].name", "lua", "this is not a workload name", fix))
    return workload


def _dialects(variants: list[dict[str, Any]]) -> list[Dialect]:
    """The SQL dialects of the variants' servers, without duplicates; PostgreSQL's is last."""
    dialects = {sql_reading.dialect_of(variant.get("server", {})) for variant in variants}
    return sorted(dialects)


def _convert_durations(load: dict[str, Any], errors: list[InputError]) -> dict[str, Any]:
    """[load] with its durations in seconds, including those of its load shapes."""
    load = _convert_to_seconds(load, "load", ("duration", "warmup", "give_up", "think_time"), errors)
    for name, model in TABLES.items():
        keys = tuple(field.removesuffix("_s") for field in model.model_fields if field.endswith("_s"))
        match load.get(name):
            case dict() as table:
                load[name] = _convert_to_seconds(table, f"load.{name}", keys, errors)
            case list() as tables:
                load[name] = [
                    _convert_to_seconds(table, f"load.{name}[{number}]", keys, errors)
                    if isinstance(table, dict)
                    else table
                    for number, table in enumerate(tables, 1)
                ]
    return load


def _convert_to_seconds(
    table: dict[str, Any], prefix: str, keys: tuple[str, ...], errors: list[InputError]
) -> dict[str, Any]:
    """`table` with each of `keys` converted to seconds, under its name in the model."""
    table = dict(table)
    for key in keys:
        if f"{key}_s" in table:
            value = table.pop(f"{key}_s")
            fix = f"Did you mean {prefix}.{key}?"
            errors.append(InputError(f"{prefix}.{key}_s", value, "there is no such key", fix))
        if key not in table:
            continue
        value = table.pop(key)
        if key == "warmup" and value == "auto":
            continue
        try:
            table[f"{key}_s"] = parse_duration_s(value)
        except ValueError as error:
            errors.append(InputError(f"{prefix}.{key}", value, str(error)))
            # A valid placeholder, so that the rest can be validated.
            table[f"{key}_s"] = 1.0
    return table


# Keys of a server that name a file.
_FILES = ("config", "password_file", "tls_ca", "tls_certificate", "tls_key", "server_public_key")
_TIMEOUTS = ("command_timeout", "hook_timeout")


def _resolve_server(variant: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """A variant with its server's times in seconds, and files and base directory relative to the experiment's
    file.
    """
    server = variant.get("server")
    if not isinstance(server, dict):
        return variant
    prefix = f"variant[{variant.get('name', '?')}].server"
    server = _convert_to_seconds(server, prefix, _TIMEOUTS, errors)
    for key in ("basedir", *_FILES):
        exists, kind = (Path.is_dir, "directory") if key == "basedir" else (Path.is_file, "file")
        if not isinstance(server.get(key), str):
            continue
        absolute = (folder / Path(server[key]).expanduser()).resolve()
        if not exists(absolute):
            fix = f"It was looked for at {absolute}"
            errors.append(InputError(f"{prefix}.{key}", server[key], f"there is no such {kind}", fix))
        server[key] = str(absolute)
    return {**variant, "server": server}


def _validate(resolved: dict[str, Any], errors: list[InputError]) -> Experiment | None:
    try:
        # Validated as JSON: strict mode then accepts a list for a tuple and text for a path, but not text for
        # a number.
        return Experiment.model_validate_json(json.dumps(resolved, default=str))
    except ValidationError as invalid:
        # One error per key: a union reports an error for every branch that does not match.
        details = [detail for detail in invalid.errors() if not is_echo(detail)]
        by_key = {error.key: error for error in (to_input_error(detail, resolved) for detail in details)}
        known = {error.key for error in errors}
        errors += [error for key, error in by_key.items() if key not in known]
        return None


def _with_default_stop(experiment: Experiment, design: dict[str, Any]) -> Experiment:
    """The experiment, which ends when its verdict is sure if the file says neither `blocks` nor `stop`.

    Without different variants no verdict can be sure, so such an experiment has a fixed number of blocks.
    """
    if "blocks" in design or "stop" in design or not has_verdict(experiment):
        return experiment
    chosen = {**experiment.design.model_dump(), "stop": stop.Stop().model_dump()}
    return experiment.model_copy(update={"design": Design.model_validate(chosen)})


def _combination_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of values that are valid individually but not together."""
    yield from _duplicate_errors("variant", [variant.name for variant in experiment.variants])
    yield from _duplicate_errors("workload", [workload.title for workload in experiment.workloads])
    yield from _state_errors(experiment)
    dialects = sorted({sql_reading.dialect_of(variant.server) for variant in experiment.variants})
    for workload in experiment.workloads:
        if isinstance(workload, SqlWorkload):
            yield from sql_reading.find_errors(workload, dialects)
            if experiment.load.prewarm == "scan" and not (workload.prewarm or workload.tables):
                problem = f"{workload.title} has no generated tables, so dbdyno does not know what to read"
                fix = f"Give workload[{workload.title}].prewarm, a list of statements that read its data"
                yield InputError("load.prewarm", "scan", problem, fix)
    scripts = [one.title for one in experiment.workloads if isinstance(one, ScriptWorkload)]
    if scripts and experiment.load.reconnect_every:
        problem = f"{scripts[0]} is a script, which opens its connections itself"
        yield InputError("load.reconnect_every", experiment.load.reconnect_every, problem, "Leave it out")
    for one in experiment.workloads:
        if isinstance(one, ScriptWorkload) and not one.prepare and experiment.design.state == "reset":
            problem = f"{one.title} has prepare = false, so dbdyno cannot load its data again"
            yield InputError("design.state", "reset", problem, "Remove prepare = false")
    for code, reason in experiment.override.items():
        if not reason.strip():
            fix = f'Write {code} = "the reason why the run may continue"'
            yield InputError(f"override.{code}", reason, "an override needs a reason", fix)
    if experiment.load.duration_s < DURATION_S_MIN:
        yield InputError(
            "load.duration", f"{experiment.load.duration_s:g}s", "a trial measures at least 500ms"
        )


def _state_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of servers that do not support `state`."""
    state = experiment.design.state
    for variant in experiment.variants:
        kind, possible = variant.server.kind, variant.server.states()
        if state not in possible:
            lacking = f" without {_COMMANDS[state]}" if kind == "command" and state in _COMMANDS else ""
            problem = (
                f"variant {variant.name!r} has a server of kind {kind}, which has no such state{lacking}"
            )
            fix = "Write " + " or ".join(f'state = "{one}"' for one in possible)
            yield InputError("design.state", state, problem, fix)
    existing = [variant.name for variant in experiment.variants if not variant.server.is_private]
    data = {json.dumps(workload.data(), sort_keys=True) for workload in experiment.workloads}
    if existing and len(data) > 1 and state != "reset":
        yield InputError(
            "design.state",
            state,
            f"the workloads have different tables, and {existing[0]!r} has one database for all workloads",
            'Write state = "reset", or give all workloads the same tables and table_size',
        )


# Commands that a server of kind `command` needs, by state.
_COMMANDS = {"restart": "start and stop", "restore": "restore"}


def _duplicate_errors(section: str, names: list[str]) -> Iterator[InputError]:
    fix = "Give each its own label" if section == "workload" else "Give each its own name"
    for name, count in Counter(names).items():
        if count > 1:
            yield InputError(f"{section}[{name}]", None, f"{count} of them have this name", fix)
