"""Reads a TOML file into a validated `Experiment`, and reports all errors together.

It merges the file, the profile and `--set`, in this order, and builds one model with all defaults. It needs
no server.

::

    tables -> profile, --set -> `resolving`: input of the models -> `validate`: valid sections, errors
           -> rules (`combinations`), each of which runs if the sections that it needs are valid
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, RootModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from dbdyno.experiment import bundled, combinations, factors, overrides, sql_reading
from dbdyno.experiment.base import file_keys
from dbdyno.experiment.errors import OF_OTHER_TOOLS, RENAMED, InputError, InvalidExperiment, did_you_mean
from dbdyno.experiment.family import has_verdict
from dbdyno.experiment.file_reading import parse_toml, read_file
from dbdyno.experiment.model import NAME_LENGTH_MAX, TITLE_KEYS, Design, Experiment, OltpName, Stop
from dbdyno.experiment.overrides import LISTED
from dbdyno.experiment.resolving import dialects, resolve

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
        errors = [error for error in errors if _section_of(error.key) not in self.unusable]
        self.entries += [error for error in errors if error not in self.entries]
        if errors:
            self.unusable.update(losing)


def _section_of(key: str) -> str:
    """The section of an error's key; an error in a .sql file is one of the workloads. Empty for an option."""
    match = re.match(r"[^.\[]+", key)
    if match is None or key.startswith("-"):
        return ""
    return match[0] if match[0] in SECTIONS or match[0] == key else "workload"


def _is_same_key(first: str, second: str) -> bool:
    """Whether two keys, without the names in brackets, are equal or one is below the other."""
    parts = [re.sub(r"\[[^\]]*\]", "", key).split(".") for key in (first, second)]
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
        copy_errors: list[InputError] = []
        experiment = _with_identical_copy(experiment, copy_errors)
        errors.add(copy_errors)
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
            problem = "an experiment needs at least one of them"
            yield InputError(section, entries, problem, f"Add a [[{section}]] table")
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
        profile_names = ", ".join(sorted(profiles)) or "none"
        problem = f"the file has no such profile; it has: {profile_names}"
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
    names = [change for change in changes if overrides.is_workload_name(change[0])]
    errors = overrides.apply(document, names) + bundled.expand(document)
    return errors + overrides.apply(document, [change for change in changes if change not in names])


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
    """The experiment, which ends when its verdict is decided if the file says neither `blocks` nor `stop`.

    Without different variants no verdict can be decided, so such an experiment has a fixed number of blocks.
    """
    if "blocks" in design or "stop" in design or not has_verdict(experiment):
        return experiment
    chosen = {**experiment.design.model_dump(), "stop": Stop().model_dump()}
    return experiment.model_copy(update={"design": Design.model_validate(chosen)})


def _with_identical_copy(experiment: Experiment, errors: list[InputError]) -> Experiment:
    """The experiment with `design.identical_copy`: its second variant is the baseline again, under another
    name.
    """
    if not experiment.design.identical_copy:
        return experiment
    baseline, *others = experiment.variants
    if experiment.factors or not others:
        what = "factors" if experiment.factors else "only one variant"
        fix = (
            "Leave out identical_copy" if experiment.factors else "Leave out identical_copy, or add a variant"
        )
        errors.append(InputError("design.identical_copy", True, f"the experiment has {what}", fix))
        return experiment
    copy = baseline.model_copy(update={"name": f"{baseline.name} again"})
    limit = NAME_LENGTH_MAX - len(copy.name) + len(baseline.name)
    if copy.name in {variant.name for variant in others}:
        what = f"a variant has the name of the copy, {copy.name!r}"
        errors.append(
            InputError("design.identical_copy", True, what, "Leave out identical_copy, or rename the variant")
        )
    elif len(baseline.name) > limit:
        what = f"the name of the baseline has more than {limit} characters, too many for that of its copy"
        errors.append(
            InputError("design.identical_copy", True, what, "Leave out identical_copy, or shorten the name")
        )
    return experiment.model_copy(update={"variants": (baseline, copy, *others)})


# The expected type, by pydantic's name of the error.
_WANTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list in [ ]",
    "dict_type": "a table",
    "model_type": "a table",
    "path_type": "a path in quotes",
}
_EXAMPLES = {
    "experiment.name": 'Add name = "my-experiment" under [experiment]',
    "load.connections": "Add connections = [10, 20, 40] under [load]",
    "load.duration": 'Add duration = "30s" under [load]',
}
_BOUND = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "greater_than": ("gt", "must be above {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "less_than": ("lt", "must be below {}"),
}


# What pydantic adds to the location for a branch of a union.
_BRANCHES = {"str", "int", "float", "bool", "constrained-int", "constrained-float", "constrained-str"}
# Keys that accept a word besides a number.
_WORDS = {"client.workers": 'Or write "auto"'}


@dataclass(frozen=True)
class Validated:
    """The values of an experiment, as far as they are valid."""

    # None if there are errors.
    experiment: Experiment | None
    # Field of the model -> its value.
    valid: Mapping[str, Any]
    # The sections of the file that have errors.
    invalid: frozenset[str] = frozenset()
    errors: Sequence[InputError] = ()


def validate(
    document: Mapping[str, Any], reported: Iterable[InputError] = (), *, is_stored: bool = False
) -> Validated:
    """The experiment of a resolved file, or of one that a run has stored. A key with an error in `reported`
    has no second one.
    """
    valid: dict[str, Any] = {}
    try:
        if is_stored:
            experiment = Experiment.model_validate_json(json.dumps(document, default=str))
        else:
            experiment = Experiment.from_file(document, valid)
    except ValidationError as error:
        # One error per key: a union reports an error for every branch that does not match.
        details = [detail for detail in error.errors() if not _is_echo(detail)]
        by_key = {error.key: error for error in (_to_input_error(detail, document) for detail in details)}
        reported_keys = {entry.key for entry in reported}
        errors = [
            entry
            for key, entry in by_key.items()
            if key not in reported_keys and not _is_inherited(entry, by_key.values())
        ]
        invalid = frozenset(_section(str(detail["loc"][0])) for detail in error.errors())
        return Validated(None, valid, invalid, errors)
    return Validated(experiment, valid)


def _section(key: str) -> str:
    """The section of the file in which a key of the model is."""
    return "experiment" if key in TITLE_KEYS else key


def _is_inherited(error: InputError, errors: Iterable[InputError]) -> bool:
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


def _is_echo(error: ErrorDetails) -> bool:
    """Whether `error` only repeats another one: pydantic reports a list as too short if its entries have
    errors, and a value that may also be a word, such as `auto`, once more as no such word.
    """
    is_word = bool(error["loc"]) and str(error["loc"][-1]).startswith("literal[")
    return is_word or (error["type"] == "too_short" and bool(error["input"]))


def _to_input_error(error: ErrorDetails, document: Mapping[str, Any]) -> InputError:
    """Convert an error of the validation; `document` has the names of the list entries."""
    path = tuple(part for part in error["loc"] if part not in _BRANCHES)
    # The variant that changes the workload in which the error is.
    owner = path[:2] if path[:1] == ("variant",) and path[2:3] == ("workload",) else ()
    location = path[len(owner) :]
    if location[:1] == ("workload",):
        # Without the kind of workload, the branch of the union that pydantic chose.
        location = (*location[:2], *location[3:])
    key = _format_key(location, document)
    if owner:
        key = f"{_format_key(owner, document)}.workload{key.partition(']')[2]}"
    value, kind = error["input"], error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return InputError(key, value, "there is no such key", _place_of_key(path))
    if kind == "missing":
        return InputError(key, None, "this is missing", _EXAMPLES.get(key, "Add it"))
    if kind == "literal_error":
        return _choice(key, value, path)
    fix = _WORDS.get(key, "")
    if kind in _BOUND:
        name, text = _BOUND[kind]
        return InputError(key, value, text.format(_number(context[name])), fix)
    if kind in ("too_short", "string_too_short"):
        return InputError(key, value, "this is empty", "Give at least one")
    if kind == "string_too_long":
        return InputError(key, value, f"this is longer than {context['max_length']} characters")
    if kind == "string_pattern_mismatch":
        return InputError(
            key, value, "only letters, digits, dots, dashes and underscores, and a letter or digit first"
        )
    if kind == "value_error":
        # A table's rules concern several of its keys.
        is_table = isinstance(value, dict) and any(_tables(_type_of(path)))
        return InputError(key, None if is_table else value, str(context["error"]))
    of_any_kind = "variables" in location or location[2:3] == ("options",)
    expected = "text, a number, true or false" if of_any_kind else _WANTED.get(kind)
    return InputError(key, value, f"this must be {expected}" if expected else error["msg"], fix)


def _keys_at(path: Iterable[int | str]) -> list[str]:
    return [key for table in _tables(_type_of(path)) for key in file_keys(table)]


def _place_of_key(path: tuple[int | str, ...]) -> str:
    """The fix for an unknown key: the tables that have it, or its name in this table."""
    name, here = str(path[-1]), _keys_at(path[:-1])
    if name not in RENAMED and name not in OF_OTHER_TOOLS:
        places: dict[str, tuple[int | str, ...]] = {
            **{f"[{section}]": (section,) for section in overrides.SECTIONS if section not in LISTED},
            **{f"[[{section}]]": (section, 0) for section in LISTED},
            "server of [[variant]]": ("variant", 0, "server"),
        }
        having = [place for place, table in places.items() if name in _keys_at(table)]
        if having:
            return f"It belongs in {' or '.join(having)}"
    return did_you_mean(name, here)


def _format_key(location: tuple[int | str, ...], document: Mapping[str, Any]) -> str:
    """("variant", 1, "server", "cpus") -> "variant[pool].server.cpus"."""
    if location and location[0] in TITLE_KEYS:
        return f"experiment.{location[0]}"
    text = ""
    for index, part in enumerate(location):
        if isinstance(part, int):
            entry = document[str(location[0])][part] if index == 1 and location[0] in LISTED else None
            name = (entry.get("label") or entry.get("name")) if isinstance(entry, dict) else None
            text += f"[{name}]" if isinstance(name, str) and location[-1] != "name" else f"[{part + 1}]"
        else:
            text += f".{part}" if text else part
    return text


def _number(value: Any) -> str:
    """A bound as an experiment file writes it: 65_535, 0.5, 1_000."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return f"{whole:,}".replace(",", "_")


def _choice(key: str, value: Any, path: tuple[int | str, ...]) -> InputError:
    if "workload" in path and path[-1] == "name":
        names = (*get_args(OltpName), "sql")
        near = difflib.get_close_matches(str(value), [*names, *bundled.names()], n=1, cutoff=0.8)
        fix = (
            f"Did you mean {near[0]}? dbdyno workloads lists all"
            if near
            else f"Valid names: {', '.join(names)}, and those that dbdyno workloads lists. "
            'For a Lua script, set script = "FILE.lua" and omit name'
        )
        return InputError(key, value, "there is no such workload", fix)
    return InputError(
        key, value, "there is no such choice", did_you_mean(str(value), _choices(_type_of(path)))
    )


def _type_of(path: Iterable[int | str]) -> Any:
    """The type of the value at a place of the experiment."""
    kind: Any = Experiment
    for part in path:
        kind = next(_types_below(kind, part), None)
    return kind


def _tables(kind: Any) -> Iterator[type[BaseModel]]:
    """The models of a type that may be a union."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for arg in get_args(kind):
        yield from _tables(arg)


def _types_below(kind: Any, part: int | str) -> Iterator[Any]:
    """The types that a value of this type may have in an entry or under a key, or as a branch of a union."""
    arguments = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, RootModel):
        yield from _types_below(kind.model_fields["root"].annotation, part)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from (field.annotation for field in kind.model_fields.values() if field.alias == part)
    elif get_origin(kind) is Annotated:
        yield from arguments[:1] if Tag(str(part)) in arguments else _types_below(arguments[0], part)
    elif get_origin(kind) in (dict, tuple):
        yield arguments[1] if isinstance(part, str) else arguments[0]
    else:
        for argument in arguments:
            yield from _types_below(argument, part)


def _choices(annotation: Any) -> list[str]:
    choices: list[str] = []
    for inner in get_args(annotation):
        choices += [inner] if isinstance(inner, str) else _choices(inner)
    return choices
