"""Converts the options of `dbdyno run WORKLOAD --target URL` to an experiment.

The options become the content of an experiment file, so that the same rules check them, and the run is stored
and reported like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from dbdyno.checks.topology import is_this_machine
from dbdyno.experiment import overrides
from dbdyno.experiment.abort import parse_abort_if
from dbdyno.experiment.errors import InputError, InvalidExperiment
from dbdyno.experiment.model import NAME, Experiment, OltpName
from dbdyno.experiment.reading import from_document
from dbdyno.problem import Problem
from dbdyno.servers.url import Target, parse_url

VARIANT = "target"

# Keys of an experiment file -> the options that set them.
_OPTIONS = {
    "load.connections": "--connections",
    "load.rate": "--rate",
    "load.duration": "--time",
    "load.warmup": "--warmup",
    "load.max_rate": "--max-rate",
    "load.abort_if": "--abort-if",
    "client.workers": "--workers",
}
_WORKLOAD_OPTIONS = {
    "name": "WORKLOAD",
    "script": "WORKLOAD",
    "tables": "--tables",
    "table_size": "--table-size",
    "options.tables": "--tables",
    "options.table_size": "--table-size",
}
_WORKLOAD_KEY = re.compile(r"workload\[[^\]]*\]\.(.+)")


@dataclass(frozen=True)
class SweepOptions:
    """The options as the user typed them, not validated."""

    workload: str
    target: str
    connections: str
    rate: str | None
    time: str
    warmup: str
    tables: int | None
    table_size: int | None
    workers: str
    # key=value; a key without a dot is an option of the workload.
    assignments: Sequence[str]
    max_rate: float | None = None
    abort_if: str | None = None


def experiment(options: SweepOptions) -> tuple[Experiment, Target, str]:
    """The experiment, the address of its server, and the text of an equivalent experiment file.

    Raises InvalidExperiment with all errors, which name the options instead of the keys.
    """
    errors: list[InputError] = []
    target = _target(options.target, errors)
    document = _build_document(options, target, errors)
    section = "workload.options" if _is_script(options) else "workload"
    changes = [overrides.parse_assignment(_add_section(text, section)) for text in options.assignments]
    errors += [change for change in changes if isinstance(change, InputError)]
    errors += overrides.apply(document, [change for change in changes if not isinstance(change, InputError)])
    source = as_toml(document)
    try:
        checked = from_document(document, "dbdyno run", Path.cwd())
    except InvalidExperiment as invalid:
        known = {error.key for error in errors}
        errors += [error for error in map(_with_option_name, invalid.errors) if error.key not in known]
        raise InvalidExperiment("dbdyno run", errors) from None
    if errors or target is None:
        raise InvalidExperiment("dbdyno run", errors)
    return checked, target, source


def as_toml(document: Mapping[str, Any]) -> str:
    """A document of tables and lists of tables as TOML."""
    lines: list[str] = []

    def table(header: str, prefix: str, content: Mapping[str, Any]) -> None:
        lines.append(header)
        nested = {key: value for key, value in content.items() if isinstance(value, Mapping)}
        # Strings, numbers, booleans and lists have the same syntax in JSON and TOML.
        lines.extend(
            f"{_key(key)} = {json.dumps(value)}" for key, value in content.items() if key not in nested
        )
        for key, value in nested.items():
            table(f"[{prefix}.{_key(key)}]", f"{prefix}.{_key(key)}", value)

    for section, content in document.items():
        for entry in content if isinstance(content, list) else [content]:
            table(f"[[{section}]]" if isinstance(content, list) else f"[{section}]", section, entry)
    return "\n".join(lines) + "\n"


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)


def _target(url: str, errors: list[InputError]) -> Target | None:
    if not url:
        fix = "Write --target mysql://user@host:3306/database, or postgresql://"
        errors.append(InputError("--target", None, "this is missing", fix))
        return None
    try:
        return parse_url(url)
    except Problem as problem:
        # The URL itself is not repeated: it may hold a password.
        errors.append(InputError("--target", None, problem.text.removeprefix("--target: "), problem.fix))
        return None


def _build_document(options: SweepOptions, target: Target | None, errors: list[InputError]) -> dict[str, Any]:
    known = options.workload in get_args(OltpName)
    file = Path(options.workload)
    local = target is not None and (
        target.unix_socket is not None or all(is_this_machine(host) for host, _ in target.hosts_and_ports())
    )
    workload: dict[str, Any] = {"name": options.workload}
    name = f"run-{options.workload}" if known else "run"
    # Absolute, so that the stored experiment finds it again.
    if file.suffix == ".sql":
        workload = {"name": "sql", "file": str(file.absolute())}
    elif _is_script(options):
        workload = {"script": str(file.absolute()), "options": {}}
    if file.suffix in (".sql", ".lua") and re.fullmatch(NAME, file.stem):
        workload["label"] = file.stem
        name = f"run-{file.stem}"
    # A Lua script has options of its own for the number and size of tables.
    table_keys = workload["options"] if _is_script(options) else workload
    if options.tables is not None:
        table_keys["tables"] = options.tables
    if options.table_size is not None:
        table_keys["table_size"] = options.table_size
    load: dict[str, Any] = {
        "connections": _numbers("--connections", options.connections, int, errors),
        "duration": options.time,
        "warmup": options.warmup,
        "transport": "unix" if target is not None and target.unix_socket is not None else "tcp",
    }
    if options.rate is not None:
        load["rate"] = _numbers("--rate", options.rate, float, errors)
    if options.max_rate is not None:
        load["max_rate"] = options.max_rate
    if options.abort_if is not None:
        try:
            load["abort_if"] = parse_abort_if(options.abort_if)
        except ValueError as error:
            errors.append(InputError("--abort-if", options.abort_if, str(error)))
    return {
        "experiment": {"name": name},
        "workload": [workload],
        "load": load,
        "design": {"blocks": 1, "state": "preserve", "order": "given"},
        "client": {
            "workers": int(options.workers) if options.workers.isdecimal() else options.workers,
            # If client and server share CPUs, the client must not preempt the server at each reply.
            "scheduling": "batch" if local and options.rate is None else "normal",
        },
        "variant": [
            {"name": VARIANT, "server": {"kind": "remote", "url": str(target) if target else "unknown"}}
        ],
        "override": {},
    }


def _numbers(
    option: str, text: str, number: Callable[[str], int | float], errors: list[InputError]
) -> list[int | float]:
    """The numbers of "2,4,8". Text that is not a number adds an error and gives [1]."""
    values: list[int | float] = []
    wrong: list[str] = []
    for part in text.split(","):
        try:
            values.append(number(part.strip()))
        except ValueError:
            wrong.append(part.strip())
    if wrong:
        kind = "a whole number" if number is int else "a number"
        shown = ", ".join(repr(part) for part in wrong)
        errors.append(InputError(option, text, f"{shown} is not {kind}", f"Write {option} 2,4,8"))
        return [1]
    return values


def _is_script(options: SweepOptions) -> bool:
    return options.workload.endswith(".lua")


def _add_section(text: str, section: str) -> str:
    """`point_selects=5` means an option of the workload; a key with a section stays unchanged."""
    key = text.partition("=")[0]
    return text if "." in key or "=" not in text else f"{section}.{text}"


def _with_option_name(error: InputError) -> InputError:
    """The error with the name of the option instead of the key that the option sets."""
    match = _WORKLOAD_KEY.fullmatch(error.key)
    if match is not None:
        return replace(error, key=_WORKLOAD_OPTIONS.get(match[1], f"--set {match[1]}"))
    for name, option in _OPTIONS.items():
        if error.key == name or error.key.startswith(f"{name}["):
            return replace(error, key=option)
        if error.key.startswith(f"{name}."):
            return replace(error, key=f"{option} {error.key.removeprefix(f'{name}.')}")
    return replace(error, key=f"--set {error.key}")
