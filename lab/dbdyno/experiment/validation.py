"""Validates the input of the models, and reports its errors in the terms of the experiment file: key, value,
problem, fix.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, RootModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from dbdyno.experiment import bundled
from dbdyno.experiment.base import file_keys
from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.model import TITLE_KEYS, Experiment, OltpName
from dbdyno.experiment.overrides import LISTED

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
        known = {one.key for one in reported}
        errors = [
            one for key, one in by_key.items() if key not in known and not _is_inherited(one, by_key.values())
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
        known = [key for table in _tables(_type_of(path[:-1])) for key in file_keys(table)]
        return InputError(key, value, "there is no such key", did_you_mean(str(path[-1]), known))
    if kind == "missing":
        return InputError(key, None, "this is missing", _EXAMPLES.get(key, "Add it"))
    if kind == "literal_error":
        return _choice(key, value, path)
    fix = _WORDS.get(key, "")
    if kind in _BOUND:
        name, text = _BOUND[kind]
        return InputError(key, value, text.format(f"{context[name]:,}".replace(",", "_")), fix)
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


def _choice(key: str, value: Any, path: tuple[int | str, ...]) -> InputError:
    if "workload" in path and path[-1] == "name":
        near = difflib.get_close_matches(str(value), bundled.names(), n=1)
        names = (*get_args(OltpName), "sql")
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
    for one in get_args(kind):
        yield from _tables(one)


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
        for one in arguments:
            yield from _types_below(one, part)


def _choices(annotation: Any) -> list[str]:
    choices: list[str] = []
    for inner in get_args(annotation):
        choices += [inner] if isinstance(inner, str) else _choices(inner)
    return choices
