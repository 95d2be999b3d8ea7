"""The JSON Schema of the experiment file, for editors; and the generated tables of documents:
`python -m dbdyno.experiment.file_schema FILE…`.

The schema is that of the models, by draft 7, with what `reading` replaces before it builds them: bundled
workloads, changes of variants, factors, profiles. It accepts every file that `reading` accepts and rejects
unknown keys. Rules that concern more than one key are left to `reading`.

A document has its tables of keys between `<!-- keys of MODEL -->` and `<!-- end -->`; they say what the
schema says. The table of the bundled workloads follows `<!-- workloads -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel

from dbdyno.experiment import bundled, factors
from dbdyno.experiment.base import Model, file_key, file_keys
from dbdyno.experiment.model import TITLE_KEYS, Experiment
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.overrides import LISTED, SECTIONS
from dbdyno.experiment.resolving import ELSEWHERE
from dbdyno.experiment.server import NEEDED, ONLY_FOR, ConnectionSettings

Schema = dict[str, Any]
# Where a schema is in the document, and the schema.
_Place = tuple[str, Schema]

_UNITS = {"h": 3600, "m": 60, "s": 1}
_CHOICES = ("anyOf", "oneOf", "allOf")
# A key of a table that profiles may change in any way.
_CHANGES = "x-changes"
# Names of bundled workloads, and patterns and lists that select several.
_NAME: Schema = {
    "anyOf": [
        {"enum": [*get_args(OltpName), *bundled.names()]},
        {"type": "string", "pattern": r"/.*[*?\[]|[*?\[].*/"},
    ]
}
_NAMES: Schema = {
    "description": "Name of a bundled workload, a pattern such as `micro/*`, or a list of both.",
    "anyOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1}],
}
_PROFILE = "With --profile NAME these values replace those of the same keys."


def file_schema() -> Schema:
    """The schema as a JSON value."""
    root: Schema = _clean(Experiment.model_json_schema(by_alias=True))
    tables, sections = root["$defs"], root["properties"]
    del tables["Factor"]
    title = {name: sections.pop(name) for name in TITLE_KEYS}
    about = "What the experiment is called, and what it asks."
    tables["Experiment"] = {"description": about, **_table(title), "required": ["name"]}
    _add_bundled_workloads(tables)
    for field, kinds in ONLY_FOR.items():
        key = tables["ServerSpec"]["properties"][file_key(field)]
        key["description"] = f"{', '.join(kinds)}: {key['description']}"
    # A [[variant]] next to [factor] has no name; the condition below requires it elsewhere.
    del tables["Variant"]["required"]
    variant = tables["Variant"]["properties"]
    variant["workload"] = _changed_workload(tables, variant["workload"]["description"])
    # Version 0.2.0 had the settings of connections here.
    for field in ConnectionSettings.model_fields:
        present = tables["SessionSettings"]["properties"][file_key(field)]
        former = {**present, "description": "The former place of this key of [variant.session]."}
        tables["ServerSpec"]["properties"][file_key(field)] = {**former, "deprecated": True}
    tables["Level"] = _table({key: variant[key] for key in variant if key != "name"})
    del sections["variant"]["minItems"]
    level = rf"^[^{re.escape(factors.JOINT)}\]]*$"
    sections["factor"] = {
        "description": sections["factor"]["description"],
        **_map(_map(_ref("Level")) | {"minProperties": 2, "propertyNames": {"pattern": level}}),
        "minProperties": 1,
    }
    sections["workload"]["items"]["oneOf"].append(_ref("BundledWorkload"))
    sections = {"experiment": _ref("Experiment"), **sections}
    changes = _Changes({"properties": sections, "$defs": tables})
    sections["profile"] = {"description": _PROFILE, **_map(changes.profile())}
    sections["workload"]["items"] = _workload(tables)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Experiment file of dbdyno",
        **_table(sections),
        "required": ["experiment", "workload", "load"],
        "if": {"required": ["factor"]},
        "then": {"properties": {"variant": {"maxItems": 1, "items": {"not": {"required": ["name"]}}}}},
        "else": {
            "required": ["variant"],
            "properties": {"variant": {"minItems": 1, "items": {"required": ["name"]}}},
        },
        "$defs": dict(sorted((tables | changes.tables).items())),
    }


def schema_text() -> str:
    """The schema, as committed in schema/."""
    return json.dumps(file_schema(), indent=2, ensure_ascii=False) + "\n"


def _clean(value: Any) -> Any:
    """The schema without titles and null, which TOML does not have, and with references by draft 7."""
    if isinstance(value, list):
        return [_clean(entry) for entry in value if entry != {"type": "null"}]
    if not isinstance(value, dict):
        return value
    cleaned = {
        key: _clean(entry)
        for key, entry in value.items()
        if not (key in ("title", "format") and isinstance(entry, str))
        and not (key == "default" and entry is None)
    }
    match cleaned:
        case {"x-seconds": _, "default": float() as seconds}:
            unit, size = next((unit, size) for unit, size in _UNITS.items() if seconds % size == 0)
            return {**cleaned, "default": f"{seconds / size:g}{unit}"}
        case {"anyOf": [single], **rest}:
            return _clean({**single, **rest})
        case {"$ref": target, **rest} if rest:
            # In draft 7 the other keys next to a $ref have no effect.
            return {"allOf": [{"$ref": target}], **rest}
    if patterns := cleaned.pop("patternProperties", {}):
        # Other keys are invalid, and profiles need the schema of the values.
        ((pattern, values),) = patterns.items()
        return {**cleaned, **_map(values), "propertyNames": {"pattern": pattern}}
    return cleaned


def _add_bundled_workloads(tables: dict[str, Schema]) -> None:
    """Add the names and the options of the bundled workloads that are .sql files."""
    sql, background = tables["SqlWorkload"]["properties"], tables["Background"]["properties"]
    # The keys of a table that are missing here may be in the .sql file.
    del tables["SqlTable"]["required"]
    numbers = {
        key: {"type": "number", "description": option.description}
        for name in bundled.names()
        for key, option in bundled.options(name).items()
    }
    name_of_sql = {"enum": ["sql", *bundled.names()], "description": background["name"]["description"]}
    background |= numbers | {"name": name_of_sql}
    keys = {key: value for key, value in sql.items() if key not in ("file", "options")}
    tables["BundledWorkload"] = {
        **tables["SqlWorkload"],
        "description": "A bundled workload of dbdyno workloads, with its options.",
        "properties": {**keys, **numbers, "name": _NAMES},
    }


def _workload(tables: Mapping[str, Schema]) -> Schema:
    """A workload: the keys of all kinds, which editors can show, and the rules of its kind."""
    is_sql = {"required": ["name"], "properties": {"name": {"const": "sql"}}}
    is_oltp = {"properties": {"name": {"enum": list(get_args(OltpName))}}}
    return {
        **_table(_workload_keys(tables)),
        "if": {"required": ["script"]},
        "then": _ref("ScriptWorkload"),
        "else": {
            "if": is_sql,
            "then": _ref("SqlWorkload"),
            "else": {"if": is_oltp, "then": _ref("OltpWorkload"), "else": _ref("BundledWorkload")},
        },
    }


def _changed_workload(tables: Mapping[str, Schema], description: str) -> Schema:
    """[variant.workload]: any keys of a workload, and such keys under the title of a workload."""
    # The keys of `replay` are merged, so it may lack some.
    keys = {key: value for key, value in _workload_keys(tables).items() if key not in (*ELSEWHERE, "replay")}
    return {
        "description": description,
        **_table(keys),
        "additionalProperties": {"type": "object"},
        _CHANGES: {},
    }


def _workload_keys(tables: Mapping[str, Schema]) -> dict[str, Schema]:
    """The keys of all kinds of workloads."""
    keys: dict[str, list[_Place]] = {}
    for kind in ("OltpWorkload", "SqlWorkload", "BundledWorkload", "ScriptWorkload"):
        for key, value in tables[kind]["properties"].items():
            places = keys.setdefault(key, [])
            if value not in [listed for _, listed in places]:
                places.append((f"{kind}/properties/{key}", value))
    refs = {key: [_ref(place) for place, _ in places] for key, places in keys.items()}
    return {key: ref[0] if len(ref) == 1 else {"anyOf": ref} for key, ref in refs.items()}


def _table(keys: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(keys), "additionalProperties": False}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


class _Changes:
    """The schemas of profiles: tables in which every key is optional, and `a.b` is key b of table a."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self.tables: dict[str, Schema] = {}

    def profile(self) -> Schema:
        """A reference to the schema of a profile."""
        patterns: dict[str, list[_Place]] = {}
        for section in SECTIONS:
            place = f"#/properties/{section}" + ("/items" if section in LISTED else "")
            element = section + (r"(\[[^\]]*\])?" if section in LISTED else "")
            self._add(patterns, element, list(self._alternatives(place, _at(place, self._document))))
        self.tables["Profile"] = self._table(patterns)
        return _ref("Profile")

    def _alternatives(self, place: str, schema: Schema) -> Iterator[_Place]:
        """What a value may be, without references."""
        if "$ref" in schema:
            yield from self._alternatives(schema["$ref"], _at(schema["$ref"], self._document))
        elif choice := next((key for key in _CHOICES if key in schema), None):
            for index, entry in enumerate(schema[choice]):
                yield from self._alternatives(f"{place}/{choice}/{index}", entry)
        else:
            yield place, schema

    def _add(self, patterns: dict[str, list[_Place]], path: str, values: list[_Place]) -> None:
        """Add `path` and the paths below it, as regular expressions."""
        same_path = [schema for _, schema in patterns.setdefault(path, [])]
        patterns[path] += [value for value in values if value[1] not in same_path]
        for place, schema in values:
            for element, key in _children(schema):
                self._add(
                    patterns, rf"{path}\.{element}", list(self._alternatives(f"{place}/{key[0]}", key[1]))
                )

    def _changed(self, values: Iterable[_Place]) -> Schema:
        """The schema of a changed value: a table is changed key by key, everything else is replaced."""
        values = list(values)
        tables = [value for value in values if _is_table(value[1])]
        changed = [{"$ref": place} for place, schema in values if (place, schema) not in tables]
        if tables:
            parts = [part for place, _ in tables for part in place.split("/")[2:]]
            name = "-".join(["Changed", *(part for part in parts if part[0].isupper() or part == "tables")])
            if name not in self.tables:
                self.tables[name] = {}
                patterns: dict[str, list[_Place]] = {}
                for place, schema in tables:
                    for element, key in _children(schema):
                        self._add(patterns, element, list(self._alternatives(f"{place}/{key[0]}", key[1])))
                self.tables[name] = self._table(patterns)
            changed.append(_ref(name))
        return changed[0] if len(changed) == 1 else {"anyOf": changed}

    def _table(self, patterns: Mapping[str, list[_Place]]) -> Schema:
        values = {pattern: self._changed(places) for pattern, places in patterns.items()}
        plain = {name: value for name, value in values.items() if re.fullmatch("[a-z_]+", name)}
        others = {f"^{name}$": value for name, value in values.items() if name not in plain}
        return {**_table(plain), **({"patternProperties": others} if others else {})}


def _is_table(schema: Schema) -> bool:
    """Whether changes are merged into it: a table with keys, or with tables."""
    values = schema.get("additionalProperties")
    return "properties" in schema or (isinstance(values, dict) and "$ref" in values)


def _children(schema: Schema) -> Iterator[tuple[str, tuple[str, Schema]]]:
    """The keys of a table: a regular expression, and the schema below `schema`."""
    if _CHANGES in schema:
        yield ".+", (_CHANGES, schema[_CHANGES])
        return
    for key, value in schema.get("properties", {}).items():
        yield key, (f"properties/{key}", value)
    if isinstance(value := schema.get("additionalProperties"), dict):
        yield "[^.]+", ("additionalProperties", value)


_MARKED = re.compile(r"(<!-- keys of (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_WORKLOADS = re.compile(r"(<!-- workloads -->\n).*?(<!-- end -->\n)", re.DOTALL)
_PLURAL = {"whole number": "whole numbers", "number": "numbers", "table": "tables"}
_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def with_tables(text: str) -> str:
    """A document with the tables of the models that it names, and of the workloads."""
    text = _WORKLOADS.sub(lambda part: f"{part[1]}\n{_workloads()}\n{part[2]}", text)
    named = {model.__name__: model for model in _models(Model)}
    shown = {name for _, name, _ in _MARKED.findall(text)}
    schema = file_schema()
    return _MARKED.sub(
        lambda part: f"{part[1]}\n{_keys_table(named[part[2]], schema, shown)}\n{part[3]}", text
    )


def _workloads() -> str:
    """The bundled workloads that are files, with their options and defaults."""
    rows = [
        f"| `{name}` | {bundled.description(name)} | "
        f"{', '.join(f'`{key} = {entry.default:_}`' for key, entry in bundled.options(name).items())} |"
        for name in bundled.names()
    ]
    return "\n".join(["| workload | what it does | options |", "|---|---|---|", *rows]) + "\n"


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _keys_table(model: type[BaseModel], schema: Schema, shown: set[str]) -> str:
    """The keys of a model, except those of a base class that has its own table."""
    bases = [base for base in model.__mro__[1:] if issubclass(base, BaseModel)]
    elsewhere = {key for base in bases if base.__name__ in shown for key in file_keys(base)}
    fields = {file_key(name): field for name, field in model.model_fields.items()}
    tables = schema["$defs"]
    descriptions = tables.get(model.__name__) or next(
        tables[entry.__name__] for entry in _models(model) if entry.__name__ in tables
    )
    keys = [key for key in file_keys(model) if key in descriptions["properties"] and key not in elsewhere]
    inherited = {key for base in bases for key in file_keys(base)}
    # Required keys first, those of base classes last.
    keys.sort(key=lambda key: (not fields[key].is_required(), key in inherited))
    rows = [
        _row(key, descriptions["properties"][key], schema, is_required=fields[key].is_required())
        for key in keys
    ]
    return "\n".join(["| key | meaning | value | default |", "|---|---|---|---|", *rows]) + "\n"


def _row(key: str, field: Schema, schema: Schema, *, is_required: bool) -> str:
    kinds = next((kinds for name, kinds in ONLY_FOR.items() if file_key(name) == key), ())
    is_needed = bool(kinds) and all(key in NEEDED.get(kind, ()) for kind in kinds)
    default = "required" if is_required or is_needed else _default(field.get("default"))
    return f"| `{key}` | {_meaning(field, schema)} | {_value(field, schema)} | {default} |"


def _default(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return json.dumps(value)
    return f"`{value}`" if isinstance(value, str) else _number(value)


def _meaning(field: Schema, schema: Schema) -> str:
    """The description without the full stop; links and code are Markdown already."""
    reference = field.get("$ref") or next(
        (entry["$ref"] for entry in field.get("anyOf", ()) if "$ref" in entry), ""
    )
    text = field.get("description") or _at(reference, schema)["description"]
    return " ".join(text.split()).removesuffix(".").replace("|", "\\|")


def _value(field: Schema, schema: Schema, *, is_plural: bool = False) -> str:
    """The values that a key accepts: their type, their limits."""
    if "$ref" in field:
        return _value(_at(field["$ref"], schema), schema, is_plural=is_plural)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in field:
            values = (_value(entry, schema, is_plural=is_plural) for entry in field[choice])
            return " or ".join(dict.fromkeys(values))
    match field:
        case {"const": value}:
            return f"`{value}`"
        case {"enum": values}:
            return " · ".join(f"`{value}`" for value in values)
        case {"x-seconds": limits}:
            return "time" + _limits(limits, "h", 3600)
        case {"type": "array", "items": items}:
            return f"list of {_value(items, schema, is_plural=True)}" + _limits(field)
        case {"type": [*kinds]}:
            return " or ".join(_TYPES[kind] for kind in kinds)
        case {"type": "object"}:
            return "tables" if is_plural else "table"
    name = _TYPES[field["type"]]
    if is_plural:
        return _PLURAL.get(name, name) + ("" if name == "text" else _limits(field))
    return name + _limits(field)


def _limits(field: Schema, unit: str = "", size: float = 1) -> str:
    """The limits of a value, in words."""
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    limits = {
        words[key]: f"{_number(field[key] / size)}{unit if field[key] else ''}"
        for key in words
        if key in field
    }
    if "at least" in limits and "at most" in limits:
        return f", {limits['at least']} to {limits['at most']}"
    if unit and limits.get("above") == "0":
        del limits["above"]
    if "maxLength" in field:
        limits["at most"] = f"{field['maxLength']:,} characters"
    return "".join(f", {word} {limit}" for word, limit in limits.items())


def _number(value: float) -> str:
    power = round(value + 1).bit_length() - 1
    if value >= 2**31 and value + 1 == 2**power:
        return f"2^{power} - 1"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _at(reference: str, schema: Schema) -> Schema:
    node: Any = schema
    for part in reference.split("/")[1:]:
        node = node[int(part) if isinstance(node, list) else part]
    return cast(Schema, node)


if __name__ == "__main__":
    for document in map(Path, sys.argv[1:]):
        document.write_text(with_tables(document.read_text()))
