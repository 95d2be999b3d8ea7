"""`dbdyno workloads`: the bundled workloads with one sentence each, or one of them in full."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dbdyno.commands import options
from dbdyno.commands.completion import bundled_workloads
from dbdyno.problem import Problem

# Keys of every workload, which are no options of one.
_COMMON = ("name", "label", "statements")


def workloads(
    show: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Print this workload in full, as a start for your own file.",
            autocompletion=bundled_workloads,
        ),
    ] = None,
    output_format: options.TextOrJson = "text",
) -> None:
    """List the bundled workloads, or print one."""
    from dbdyno.experiment.errors import did_you_mean
    from dbdyno.terminal.console import Column, table_lines

    names = bundled_workloads("")
    if show is not None:
        if show not in names:
            raise Problem(f"there is no bundled workload {show!r}", did_you_mean(show, names))
        workload = _describe(show)
        text = _definition(workload)
        if output_format == "json":
            print(json.dumps({**workload, "definition": text}, indent=1))
        else:
            print(text, end="")
        return
    listed = [_describe(name) for name in names]
    if output_format == "json":
        print(json.dumps(listed, indent=1))
    else:
        columns = [Column("workload"), Column("what it does")]
        print(*table_lines(columns, [[entry["name"], entry["description"]] for entry in listed]), sep="\n")


def _describe(name: str) -> dict[str, Any]:
    """Name, sentence and options of a workload."""
    from dbdyno.experiment import bundled
    from dbdyno.experiment.oltp_name import DESCRIPTIONS
    from dbdyno.experiment.workload import OltpWorkload

    keys: dict[str, Any]
    if name in bundled.names():
        keys = {
            key: {"default": entry.default, "description": entry.description}
            for key, entry in bundled.options(name).items()
        }
        return {"name": name, "description": bundled.description(name), "options": keys}
    fields = {key: field for key, field in OltpWorkload.model_fields.items() if key not in _COMMON}
    defaults = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    # The file names a distribution of keys by a word.
    defaults["keys"] = defaults["keys"].distribution
    keys = {
        key: {"default": defaults[key], "description": field.description} for key, field in fields.items()
    }
    description = next(text for title, text in DESCRIPTIONS.items() if title == name)
    return {"name": name, "description": description, "options": keys}


def _definition(workload: Mapping[str, Any]) -> str:
    """A workload as a file that does the same; for an OLTP workload, whose statements the engine generates, a
    table [[workload]] with all options and their defaults.
    """
    from dbdyno.experiment import bundled

    if workload["name"] in bundled.names():
        return bundled.definition(workload["name"])
    lines = [f"# {workload['description']}", "[[workload]]", f'name = "{workload["name"]}"']
    for key, option in workload["options"].items():
        lines += [f"# {option['description']}", f"{key} = {json.dumps(option['default'])}"]
    return "\n".join(lines) + "\n"
