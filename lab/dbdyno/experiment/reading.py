"""Reads a TOML file into a validated `Experiment`, and reports all errors together.

It merges the file, the profile and `--set`, in this order, and builds one model with all defaults. It needs
no server.

::

    tables -> profile, --set -> `resolving`: forms of the model -> `validation`: valid sections, errors
           -> rules (`combinations`), each of which runs if the sections that it needs are valid
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dbdyno.experiment import bundled, combinations, factors, overrides, sql_reading
from dbdyno.experiment.errors import InputError, InvalidExperiment, did_you_mean
from dbdyno.experiment.family import has_verdict
from dbdyno.experiment.file_reading import parse_toml, read_file
from dbdyno.experiment.model import NAME_LENGTH_MAX, Design, Experiment, Stop
from dbdyno.experiment.resolving import dialects, resolve
from dbdyno.experiment.validation import validate

SECTIONS = (*overrides.SECTIONS, "factor", "profile")
# The problem of a key that does not exist.
_UNKNOWN_KEY = ("there is no such key", "a script has no such key")


class Errors:
    """The errors of a file in the order in which they are found, without duplicates."""

    def __init__(self) -> None:
        self.entries: list[InputError] = []
        # Sections that are missing or have no table, so that nothing in them can be read. Errors in them that
        # are found later are consequences of the first one.
        self.unusable: set[str] = set()

    def add(self, errors: Iterable[InputError], *, losing: Iterable[str] = ()) -> None:
        """Add the errors outside unusable sections; if there are any, the sections `losing` are unusable."""
        errors = [one for one in errors if _section_of(one.key) not in self.unusable]
        self.entries += [one for one in errors if one not in self.entries]
        if errors:
            self.unusable.update(losing)


def _section_of(key: str) -> str:
    """The section of an error's key; an error in a .sql file is one of the workloads. Empty for an option."""
    match = re.match(r"[^.\[]+", key)
    if match is None or key.startswith("-"):
        return ""
    return match[0] if match[0] in SECTIONS or match[0] == key else "workload"


def _is_same_key(one: str, other: str) -> bool:
    """Whether two keys, without the names in brackets, are equal or one is below the other."""
    parts = [re.sub(r"\[[^\]]*\]", "", key).split(".") for key in (one, other)]
    length = min(map(len, parts))
    return parts[0][:length] == parts[1][:length]


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
    errors.add(factors.expand(document), losing=("variant", "factor"))
    for wrong in list(_shape_errors(document)):
        # Without variants there are no factors.
        errors.add([wrong], losing=(wrong.key, "factor") if wrong.key == "variant" else (wrong.key,))
    for section in errors.unusable:
        document.pop(section, None)
    profiles = document.pop("profile", {})
    errors.add(_unchosen_profile_errors(document, profiles, profile, path.parent, errors.unusable))
    changes, rejected = _chosen_changes(profiles, profile, assignments)
    errors.add([*rejected, *_apply(document, _to_usable(changes, errors.unusable))])
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
    resolved = resolve(document, folder, of_values)
    validated = validate(resolved, of_values)
    errors.add([*of_values, *validated.errors])
    errors.add(combinations.find_duplicates(document))
    if validated.experiment is None:
        # Also report errors in the SQL of a valid workload if another one is invalid.
        for workload in sql_reading.valid_workloads(resolved.get("workload", ())):
            errors.add(sql_reading.find_errors(workload, dialects(document)))
    invalid = errors.unusable | validated.invalid
    experiment = validated.experiment or Experiment.of_valid(validated.valid)
    experiment = _with_default_stop(experiment, document.get("design", {}))
    if not invalid & {"design", "variant"}:
        twin_errors: list[InputError] = []
        experiment = _with_twin(experiment, twin_errors)
        errors.add(twin_errors)
    errors.add(combinations.find_errors(experiment, invalid))
    if errors.entries:
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


def _to_usable(changes: Iterable[tuple[str, Any]], unusable: Collection[str]) -> list[tuple[str, Any]]:
    """The changes of sections that the document has."""
    return [(key, value) for key, value in changes if _section_of(key) not in unusable]


def _apply(document: dict[str, Any], changes: Collection[tuple[str, Any]]) -> list[InputError]:
    """Change `document` in place. Changes of names come first: a name may be a pattern, which selects the
    workloads that the other changes name.
    """
    names = [one for one in changes if overrides.is_workload_name(one[0])]
    errors = overrides.apply(document, names) + bundled.expand(document)
    return errors + overrides.apply(document, [one for one in changes if one not in names])


def _unchosen_profile_errors(
    document: dict[str, Any],
    profiles: Mapping[str, Any],
    chosen: str | None,
    folder: Path,
    unusable: Collection[str],
) -> Iterator[InputError]:
    """Profiles that are no tables, and unknown keys of profiles other than the chosen one."""
    for name, table in profiles.items():
        if not isinstance(table, dict):
            key = f"profile.{name}"
            yield InputError(key, table, "this must be a table", f"Write [{key}]")
        elif name != chosen:
            changes = _to_usable(overrides.flatten(table).items(), unusable)
            changed = copy.deepcopy(document)
            errors = _apply(changed, changes)
            of_values: list[InputError] = []
            validated = validate(resolve(changed, folder, of_values), of_values)
            errors += [
                error
                for error in (*of_values, *validated.errors)
                if error.problem in _UNKNOWN_KEY and any(_is_same_key(error.key, key) for key, _ in changes)
            ]
            for error in errors:
                yield InputError(f"profile.{name}.{error.key}", error.value, error.problem, error.fix)


def _with_default_stop(experiment: Experiment, design: dict[str, Any]) -> Experiment:
    """The experiment, which ends when its verdict is sure if the file says neither `blocks` nor `stop`.

    Without different variants no verdict can be sure, so such an experiment has a fixed number of blocks.
    """
    if "blocks" in design or "stop" in design or not has_verdict(experiment):
        return experiment
    chosen = {**experiment.design.model_dump(), "stop": Stop().model_dump()}
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
