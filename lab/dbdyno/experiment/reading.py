"""Reads a TOML file into a validated `Experiment`, and reports all errors together.

It merges the file, the profile and `--set`, in this order, and builds one model with all defaults. It needs
no server.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dbdyno.experiment import (
    background_reading,
    bundled,
    combinations,
    factors,
    overrides,
    script_reading,
    sql_reading,
    stop,
    variant_reading,
)
from dbdyno.experiment.durations import parse_duration_s
from dbdyno.experiment.errors import InputError, InvalidExperiment, did_you_mean
from dbdyno.experiment.explain import is_echo, to_input_error
from dbdyno.experiment.family import has_verdict
from dbdyno.experiment.file_reading import parse_toml, read_file
from dbdyno.experiment.model import NAME_LENGTH_MAX, TITLE_KEYS, Design, Experiment
from dbdyno.experiment.promise import Percentiles
from dbdyno.experiment.script_reading import workload_title
from dbdyno.experiment.shapes import TABLES
from dbdyno.experiment.sql_text import Dialect
from dbdyno.experiment.valid_sections import SECTIONS, Errors, is_same_key, section_of, use_valid_sections
from dbdyno.experiment.variant import move_connection_settings

# The problem of a key that does not exist.
_UNKNOWN_KEY = ("there is no such key", "a script has no such key")


def read(path: Path, profile: str | None = None, assignments: Iterable[str] = ()) -> Experiment:
    """The experiment in `path`, with the profile and then the `key=value` assignments applied.

    Raises InvalidExperiment with all errors.
    """
    return read_bytes(_read_file(path), path, profile, assignments)


def _read_file(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}"
        raise InvalidExperiment(
            str(path), [InputError("", None, problem, "Give the path of an experiment file")]
        ) from error


def read_bytes(
    source: bytes, path: Path, profile: str | None = None, assignments: Iterable[str] = ()
) -> Experiment:
    """Like `read`, for the content of a file; `path` names the file, and relative paths start from its
    folder.
    """
    document, errors = _merge(source, path, profile, assignments)
    return from_document(document, str(path), path.parent, errors)


def read_document(path: Path, profile: str | None, assignments: Iterable[str]) -> dict[str, Any]:
    """The file as a document for `from_document`, with the profile and the assignments applied, not
    validated. Raises InvalidExperiment.
    """
    document, errors = _merge(_read_file(path), path, profile, assignments)
    if errors.entries:
        raise InvalidExperiment(str(path), errors.entries)
    return document


def _merge(
    source: bytes, path: Path, profile: str | None, assignments: Iterable[str]
) -> tuple[dict[str, Any], Errors]:
    try:
        document = parse_toml(source)
    except ValueError as error:
        raise InvalidExperiment(str(path), [InputError("", None, f"invalid TOML: {error}")]) from error
    errors = Errors()
    # Factors are expanded first, because profiles and --set may name the resulting variants.
    errors.add(factors.expand(document), invalidating=("variant", "factor"))
    for wrong in list(_shape_errors(document)):
        errors.add([wrong], invalidating=(wrong.key,))
    use_valid_sections(document, errors.invalid)
    profiles = document.pop("profile", {})
    errors.add(_unchosen_profile_errors(document, profiles, profile, path.parent))
    changes, rejected = _chosen_changes(profiles, profile, assignments)
    errors.add([*rejected, *_apply(document, changes)])
    return document, errors


def from_document(
    document: dict[str, Any], source: str, folder: Path, errors: Errors | None = None
) -> Experiment:
    """The experiment of a parsed file without profiles; `source` is the file's name in messages, and `errors`
    are those that were found before.

    Paths are relative to `folder`. Raises InvalidExperiment with all errors.
    """
    errors = errors or Errors()
    # The documents of options have had no profile, so that their patterns are expanded here.
    errors.add(bundled.expand(document))
    of_values: list[InputError] = []
    resolved = _resolve(document, folder, of_values)
    experiment = _validate(resolved, of_values)
    errors.add(of_values)
    errors.add(combinations.find_independent_errors(document, resolved))
    if experiment is None:
        # Also report errors in SQL statements if another part of the file is invalid.
        for workload in sql_reading.valid_workloads(resolved["workloads"]):
            errors.add(sql_reading.find_errors(workload, _dialects(document["variant"])))
        # And errors between valid sections.
        errors.invalid |= {section_of(error.key) for error in of_values}
        rest = dict(document)
        use_valid_sections(rest, errors.invalid)
        experiment = _validate(_resolve(rest, folder, []), [])
    if experiment is not None:
        twin_errors: list[InputError] = []
        experiment = _with_default_stop(experiment, document.get("design", {}))
        experiment = _with_twin(experiment, twin_errors)
        errors.add(twin_errors, unless=("design", "variant"))
        for find, sections in combinations.FINDERS:
            errors.add(find(experiment), unless=sections)
    if errors.entries or experiment is None:
        raise InvalidExperiment(source, errors.entries)
    return experiment


def _shape_errors(document: dict[str, Any]) -> Iterator[InputError]:
    """Errors for sections that are unknown, missing or of the wrong type."""
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


def _chosen_changes(
    profiles: Mapping[str, Any], profile: str | None, assignments: Iterable[str]
) -> tuple[list[tuple[str, Any]], list[InputError]]:
    """The changes of the chosen profile and of --set, in this order, and the errors."""
    changes: list[tuple[str, Any]] = []
    errors: list[InputError] = []
    if profile is not None and profile not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        problem = f"the file has no such profile; it has: {known}"
        errors.append(InputError(f"--profile {profile}", None, problem))
    elif profile is not None and isinstance(profiles[profile], dict):
        changes += overrides.flatten(profiles[profile]).items()
    for parsed in map(overrides.parse_assignment, assignments):
        if isinstance(parsed, InputError):
            errors.append(parsed)
        else:
            changes.append(parsed)
    return changes, errors


def _apply(document: dict[str, Any], changes: Collection[tuple[str, Any]]) -> list[InputError]:
    """Change `document` in place. Changes of names come first: a name may be a pattern, which selects the
    workloads that the other changes name.
    """
    names = [one for one in changes if overrides.is_workload_name(one[0])]
    errors = overrides.apply(document, names) + bundled.expand(document)
    return errors + overrides.apply(document, [one for one in changes if one not in names])


def _unchosen_profile_errors(
    document: dict[str, Any], profiles: Mapping[str, Any], chosen: str | None, folder: Path
) -> Iterator[InputError]:
    """Profiles that are no tables, and unknown keys of profiles other than the chosen one."""
    for name, table in profiles.items():
        if not isinstance(table, dict):
            key = f"profile.{name}"
            yield InputError(key, table, "this must be a table", f"Write [{key}]")
        elif name != chosen:
            flat = overrides.flatten(table)
            changed = copy.deepcopy(document)
            errors = _apply(changed, flat.items())
            validated: list[InputError] = []
            _validate(_resolve(changed, folder, validated), validated)
            errors += [
                error
                for error in validated
                if error.problem in _UNKNOWN_KEY and any(is_same_key(error.key, key) for key in flat)
            ]
            for error in errors:
                yield InputError(f"profile.{name}.{error.key}", error.value, error.problem, error.fix)


def _resolve(document: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """The document with the names of the model `Experiment`, durations in seconds, and absolute paths."""
    resolved: dict[str, Any] = dict(document.get("experiment", {}))
    for name in set(resolved) - set(TITLE_KEYS):
        fix = did_you_mean(name, TITLE_KEYS)
        errors.append(InputError(f"experiment.{name}", resolved.pop(name), "there is no such key", fix))
    dialect = _dialects(document["variant"])[0]
    resolved["workloads"] = [_resolve_workload(one, folder, dialect, errors) for one in document["workload"]]
    resolved["factors"] = document.get("factor", [])
    resolved["variants"] = [_resolve_variant(one, document, folder, errors) for one in document["variant"]]
    resolved["load"] = _convert_durations(document["load"], "load", errors)
    design = stop.resolve(document.get("design", {}), errors)
    resolved["design"] = _convert_to_seconds(design, "design", ("slice",), errors)
    for section in ("client", "loading", "override"):
        resolved[section] = document.get(section, {})
    if "fleet" in document:
        resolved["fleet"] = document["fleet"]
    return resolved


def _resolve_workload(
    workload: dict[str, Any],
    folder: Path,
    dialect: Dialect,
    errors: list[InputError],
    changes: Collection[str] = (),
) -> dict[str, Any]:
    if script_reading.is_script(workload):
        return script_reading.resolve(workload, folder, errors)

    def resolve_sql(table: dict[str, Any], own: list[InputError]) -> dict[str, Any]:
        return sql_reading.resolve(table, folder, dialect, own)

    if workload.get("name") in ("sql", *bundled.names()):
        workload = sql_reading.resolve(workload, folder, dialect, errors, changes)
    if workload.get("name") == "lua":
        fix = 'Write script = "FILE.lua" instead'
        errors.append(InputError("workload[lua].name", "lua", "this is not a workload name", fix))
    return background_reading.resolve(workload, resolve_sql, errors)


def _dialects(variants: list[dict[str, Any]]) -> list[Dialect]:
    """The SQL dialects of the variants' servers, without duplicates; PostgreSQL's is last."""
    dialects = {sql_reading.dialect_of(variant.get("server", {})) for variant in variants}
    return sorted(dialects)


def _convert_durations(load: dict[str, Any], place: str, errors: list[InputError]) -> dict[str, Any]:
    """[load] or [variant.load] with its durations in seconds, including those of its load shapes."""
    times = ("duration", "warmup", "think_time", "give_up", "answer_timeout")
    load = _convert_to_seconds(load, place, times, errors)
    keys = tuple(field.removesuffix("_s") for field in Percentiles.model_fields)
    for name in ("promise", "abort_if"):
        if isinstance(limits := load.get(name), dict):
            load[name] = _convert_to_seconds(limits, f"{place}.{name}", keys, errors)
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


def _resolve_variant(
    variant: dict[str, Any], document: dict[str, Any], folder: Path, errors: list[InputError]
) -> dict[str, Any]:
    """A variant with complete workloads, times in seconds, and absolute paths."""

    def resolve_workload(
        workload: dict[str, Any], own_errors: list[InputError], changes: Collection[str]
    ) -> dict[str, Any]:
        return _resolve_workload(workload, folder, _dialects([variant])[0], own_errors, changes)

    place = f"variant[{variant.get('name', '?')}]"
    errors += variant_reading.connection_errors(variant)
    variant = _resolve_server(move_connection_settings(variant), folder, errors)
    variant = variant_reading.resolve(variant, document["workload"], resolve_workload, errors)
    variant["workloads"] += _of_own_dialect(variant, document, folder)
    if isinstance(load := variant.get("load"), dict):
        variant["load"] = _convert_durations(load, f"{place}.load", errors)
    if isinstance(session := variant.get("session"), dict):
        variant["session"] = variant_reading.resolve_files(
            session, variant_reading.CONNECTION_FILES, folder, f"{place}.session", errors
        )
    if isinstance(proxy := variant.get("proxy"), dict):
        variant["proxy"] = variant_reading.resolve_files(
            proxy, ("basedir",), folder, f"{place}.proxy", errors
        )
    return variant


def _of_own_dialect(
    variant: dict[str, Any], document: dict[str, Any], folder: Path
) -> Iterator[dict[str, Any]]:
    """The workloads that a file writes differently for the variant's server than for the first dialect of
    the experiment (`@only`), as far as the variant does not change them.
    """
    (own, *_), (shared, *_) = _dialects([variant]), _dialects(document["variant"])
    changed = {one.get("label") for one in variant["workloads"]}
    for workload in document["workload"] if own != shared else ():
        title = workload_title(workload)
        if title in changed or workload.get("name") not in ("sql", *bundled.names()):
            continue
        texts = [_resolve_workload(workload, folder, dialect, []) for dialect in (own, shared)]
        if texts[0] != texts[1]:
            yield {**texts[0], "label": title}


# Keys of a server that name a file or a folder.
_FILES = ("basedir", "config", "password_file")
_TIMEOUTS = ("command_timeout", "start_timeout", "hook_timeout")


def _resolve_server(variant: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """A variant with its server's times in seconds, and files and base directory relative to the experiment's
    file.
    """
    server = variant.get("server")
    if not isinstance(server, dict):
        return variant
    prefix = f"variant[{variant.get('name', '?')}].server"
    server = _convert_to_seconds(server, prefix, _TIMEOUTS, errors)
    return {**variant, "server": variant_reading.resolve_files(server, _FILES, folder, prefix, errors)}


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
        errors += [
            error
            for key, error in by_key.items()
            if key not in known and not variant_reading.is_inherited(error, by_key.values())
        ]
        return None


def _with_default_stop(experiment: Experiment, design: dict[str, Any]) -> Experiment:
    """The experiment, which ends when its verdict is sure if the file says neither `blocks` nor `stop`.

    Without different variants no verdict can be sure, so such an experiment has a fixed number of blocks.
    """
    if "blocks" in design or "stop" in design or not has_verdict(experiment):
        return experiment
    chosen = {**experiment.design.model_dump(), "stop": stop.Stop().model_dump()}
    return experiment.model_copy(update={"design": Design.model_validate(chosen)})


def _with_twin(experiment: Experiment, errors: list[InputError]) -> Experiment:
    """The experiment with `design.twin`: its second variant is the baseline again, under another name."""
    if not experiment.design.twin:
        return experiment
    baseline, *others = experiment.variants
    if experiment.factors or not others:
        what = "factors" if experiment.factors else "only one variant"
        fix = "Drop twin" if experiment.factors else "Drop twin, or add a variant"
        errors.append(InputError("design.twin", True, f"the experiment has {what}", fix))
        return experiment
    twin = baseline.model_copy(update={"name": f"{baseline.name} again"})
    if twin.name in {variant.name for variant in others}:
        what = f"a variant has the name of the twin, {twin.name!r}"
        errors.append(InputError("design.twin", True, what, "Drop twin, or rename the variant"))
        return experiment
    limit = NAME_LENGTH_MAX - len(twin.name) + len(baseline.name)
    if len(baseline.name) > limit:
        what = f"the name of the baseline has more than {limit} characters, too many for that of its twin"
        errors.append(InputError("design.twin", True, what, "Drop twin, or shorten the name"))
        return experiment
    return experiment.model_copy(update={"variants": (baseline, twin, *others)})
