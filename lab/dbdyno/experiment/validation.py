"""Validates the input of the models, and reports its errors in the terms of the experiment file: key, value,
problem, fix.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dbdyno.experiment import bundled, shapes
from dbdyno.experiment import model as models
from dbdyno.experiment.base import file_key, file_keys
from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.variant import Proxy

# Sections whose name in the model differs from the name in the file.
_SECTION = {"workloads": "workload", "variants": "variant"}
_MODEL: dict[str, type[BaseModel]] = {
    "workload": models.OltpWorkload,
    "workload.keys": models.Keys,
    "lua": models.ScriptWorkload,
    "lua.keys": models.Keys,
    "sql": models.SqlWorkload,
    "sql.replay": models.SqlReplay,
    "sql.transactions": models.SqlTransaction,
    "sql.transactions.statements": models.SqlStatement,
    "sql.tables": models.SqlTable,
    "workload.background": models.Background,
    "sql.background": models.Background,
    "load": models.Load,
    "load.promise": models.Promise,
    "load.abort_if": models.AbortIf,
    **{f"load.{key}": table for key, table in shapes.TABLES.items()},
    "design": models.Design,
    "design.stop": models.Stop,
    "client": models.Client,
    "variant": models.Variant,
    "variant.server": models.ServerSpec,
    "variant.session": models.SessionSettings,
    "variant.load": models.VariantLoad,
    "variant.data": models.VariantData,
    "variant.proxy": Proxy,
}
_MODELS: tuple[type[BaseModel], ...] = (*_MODEL.values(), models.Loading, models.Fleet)
# Name of a field in the model -> key in the file.
_KEY = {field: file_key(field) for model in _MODELS for field in model.model_fields}
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


def validate(resolved: Mapping[str, Any], reported: Iterable[InputError] = ()) -> Validated:
    """The experiment of the input of its model. A key with an error in `reported` has no second one."""
    valid: dict[str, Any] = {}
    try:
        # Validated as JSON: strict mode then accepts a list for a tuple and text for a path, but not text for
        # a number.
        experiment = Experiment.model_validate_json(json.dumps(resolved, default=str), context=valid)
    except ValidationError as error:
        # One error per key: a union reports an error for every branch that does not match.
        details = [detail for detail in error.errors() if not _is_echo(detail)]
        by_key = {error.key: error for error in (_to_input_error(detail, resolved) for detail in details)}
        known = {one.key for one in reported}
        errors = [
            one for key, one in by_key.items() if key not in known and not _is_inherited(one, by_key.values())
        ]
        invalid = frozenset(_section(str(detail["loc"][0])) for detail in error.errors())
        return Validated(None, valid, invalid, errors)
    return Validated(experiment, valid)


def _section(field: str) -> str:
    """The section of the file in which a field of the model is."""
    return "experiment" if field in models.TITLE_KEYS else file_key(field)


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
    location = tuple(part for part in error["loc"] if part not in _BRANCHES)
    # The variant that changes the workload in which the error is.
    owner = location[:2] if location[:1] == ("variants",) and location[2:3] == ("workloads",) else ()
    location = location[len(owner) :]
    family = ""
    if location[:1] == ("workloads",) and location[2:3] in (("sql",), ("lua",), ("oltp",)):
        # The kind of workload, from the branch of the union that pydantic chose.
        family = str(location[2]) if location[2] != "oltp" else ""
        location = (*location[:2], *location[3:])
    key, last = _format_key(location, document), str(location[-1]) if location else ""
    if owner:
        key = f"{_format_key(owner, document)}.workload{key.partition(']')[2]}"
    value, kind = error["input"], error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return InputError(
            key, value, "there is no such key", did_you_mean(last, _known_keys(location, family))
        )
    if kind == "missing":
        return InputError(key, None, "this is missing", _EXAMPLES.get(key, "Add it"))
    if kind == "literal_error":
        return _choice(key, value, location)
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
        return InputError(key, None if isinstance(value, dict) else value, str(context["error"]))
    of_any_kind = "variables" in location or location[2:3] == ("options",)
    expected = "text, a number, true or false" if of_any_kind else _WANTED.get(kind)
    return InputError(key, value, f"this must be {expected}" if expected else error["msg"], fix)


def _format_key(location: tuple[int | str, ...], document: Mapping[str, Any]) -> str:
    """("variants", 1, "server", "cpus") -> "variant[pool].server.cpus"."""
    if location and location[0] in models.TITLE_KEYS:
        return f"experiment.{location[0]}"
    text = ""
    for index, part in enumerate(location):
        if isinstance(part, int):
            entry = document[str(location[0])][part] if index == 1 and str(location[0]) in _SECTION else None
            name = (entry.get("label") or entry.get("name")) if isinstance(entry, dict) else None
            text += f"[{name}]" if isinstance(name, str) and location[-1] != "name" else f"[{part + 1}]"
        else:
            word = _SECTION.get(part, part) if index == 0 else _KEY.get(part, part)
            text += f".{word}" if text else word
    return text


def _known_keys(location: tuple[int | str, ...], family: str) -> list[str]:
    words = [part for part in location[:-1] if isinstance(part, str)]
    if not words:
        return []
    if family:
        # The word after "tables" is the name of a table.
        words = [family, *(words[1:2] if words[1:2] == ["tables"] else words[1:])]
    section = ".".join([_SECTION.get(words[0], words[0]), *words[1:]])
    model = _MODEL.get(section)
    return file_keys(model) if model else []


def _choice(key: str, value: Any, location: tuple[int | str, ...]) -> InputError:
    if location[0] == "workloads" and location[-1] == "name":
        near = difflib.get_close_matches(str(value), bundled.names(), n=1)
        names = (*get_args(models.OltpName), "sql")
        fix = (
            f"Did you mean {near[0]}? dbdyno workloads lists all"
            if near
            else f"Valid names: {', '.join(names)}, and those that dbdyno workloads lists. "
            'For a Lua script, set script = "FILE.lua" and omit name'
        )
        return InputError(key, value, "there is no such workload", fix)
    model: Any = models.Experiment
    if location[0] == "workloads":
        # Search the rest of the location in the kind of workload that has such a key.
        location = location[2:]
        kinds = (models.OltpWorkload, models.SqlWorkload, models.ScriptWorkload)
        model = next(kind for kind in kinds if location[0] in kind.model_fields)
    for part in location:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            nested = (one for one in (annotation, *get_args(annotation)) if hasattr(one, "model_fields"))
            model = next(nested, annotation)
    return InputError(key, value, "there is no such choice", did_you_mean(str(value), _choices(model)))


def _choices(annotation: Any) -> list[str]:
    choices: list[str] = []
    for inner in get_args(annotation):
        choices += [inner] if isinstance(inner, str) else _choices(inner)
    return choices
