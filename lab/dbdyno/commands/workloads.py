"""`dbdyno workloads`: the bundled workloads with one sentence each, or one of them in full."""

from __future__ import annotations

import json
from typing import Any

from dbdyno.commands.choices import TextFormat
from dbdyno.experiment import bundled
from dbdyno.experiment.errors import did_you_mean
from dbdyno.experiment.oltp import OltpWorkload
from dbdyno.experiment.oltp_name import DESCRIPTIONS
from dbdyno.problem import Problem
from dbdyno.terminal.console import Column, fit, heading, line

# Keys of every workload, which are no options of one.
_COMMON = ("name", "label", "statements")


def print_list(output: TextFormat) -> None:
    """Print all workloads."""
    known = [_as_dict(name) for name in (*DESCRIPTIONS, *bundled.names())]
    if output is TextFormat.JSON:
        print(json.dumps(known, indent=1))
        return
    columns = [Column("workload"), Column("what it does")]
    rows = [[one["name"], one["description"]] for one in known]
    fit(columns, rows)
    print(heading(columns))
    for row in rows:
        print(line(columns, row))


def print_one(name: str, output: TextFormat) -> None:
    """Print a workload as a file that does the same. Raises Problem if there is no such workload."""
    if name not in (*DESCRIPTIONS, *bundled.names()):
        known = (*DESCRIPTIONS, *bundled.names())
        raise Problem(f"there is no bundled workload {name!r}", did_you_mean(name, known))
    text = bundled.definition(name) if name in bundled.names() else _oltp_definition(name)
    if output is TextFormat.JSON:
        print(json.dumps({**_as_dict(name), "definition": text}, indent=1))
    else:
        print(text, end="")


def _as_dict(name: str) -> dict[str, Any]:
    """Name, sentence and options of a workload."""
    if name in bundled.names():
        options = {
            key: {"default": one.default, "description": one.description}
            for key, one in bundled.options(name).items()
        }
        return {"name": name, "description": bundled.description(name), "options": options}
    keys: dict[str, Any] = {
        key: {"default": _default(key), "description": field.description}
        for key, field in OltpWorkload.model_fields.items()
        if key not in _COMMON
    }
    return {
        "name": name,
        "description": next(text for known, text in DESCRIPTIONS.items() if known == name),
        "options": keys,
    }


def _default(key: str) -> Any:
    default = OltpWorkload.model_fields[key].get_default(call_default_factory=True)
    return default.distribution if key == "keys" else default


def _oltp_definition(name: str) -> str:
    """A table [[workload]] with all options and their defaults; the engine generates the statements."""
    lines = [f"# {_as_dict(name)['description']}", "[[workload]]", f'name = "{name}"']
    for key, option in _as_dict(name)["options"].items():
        lines += [f"# {option['description']}", f"{key} = {json.dumps(option['default'])}"]
    return "\n".join(lines) + "\n"
