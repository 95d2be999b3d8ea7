"""Turns options of `compare` and `run` into an experiment file, and errors in it into errors in options.

The same rules as for a file check the options, and the run is stored and reported like any other. The file of
`dbdyno compare --a SERVER --b SERVER …` is written whole.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dbdyno.experiment import bundled, overrides
from dbdyno.experiment.errors import InputError, InvalidExperiment
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.reading import from_document
from dbdyno.experiment.server import PRODUCTS
from dbdyno.experiment.workload import NAME
from dbdyno.problem import Problem
from dbdyno.store import files

if TYPE_CHECKING:
    from dbdyno.experiment.model import Experiment
    from dbdyno.servers.url import Target

# Keys of an experiment file -> the options that set them.
OPTIONS = {
    "load.connections": "--connections",
    "load.rate": "--rate",
    "load.duration": "--time",
    "load.warmup": "--warmup",
    "load.max_rate": "--max-rate",
    "load.abort_if": "--abort-if",
    "load.writes": "--writes",
    "load.latency_objective.p95": "--p95",
    "load.latency_objective.p99": "--p99",
    "load.latency_objective.p999": "--p999",
    "design.blocks": "--blocks",
    "client.workers": "--workers",
    "fleet.engines": "--fleet",
}
WORKLOAD_OPTIONS = {
    "tables": "--tables",
    "table_size": "--table-size",
    "options.tables": "--tables",
    "options.table_size": "--table-size",
}
_WORKLOAD_KEY = re.compile(r"workload\[[^\]]*\]\.(.+)")


def is_script(workload: str) -> bool:
    """Whether the workload is a Lua script."""
    return workload.endswith(".lua")


def workload_table(
    name: str, tables: int | None, table_size: int | None, file: Callable[[Path], Path]
) -> dict[str, Any]:
    """The table [[workload]] of a workload's name, an SQL file or a Lua script. `file` gives the path to
    write for one that was typed.
    """
    path = Path(name)
    workload: dict[str, Any] = {"name": name}
    if path.suffix == ".sql":
        workload = {"name": "sql", "file": str(file(path))}
    elif is_script(name):
        workload = {"script": str(file(path)), "options": {}}
    if path.suffix in (".sql", ".lua") and re.fullmatch(NAME, path.stem):
        workload["label"] = path.stem
    # A Lua script has options of its own for the number and size of tables.
    table_keys = workload["options"] if is_script(name) else workload
    if tables is not None:
        table_keys["tables"] = tables
    if table_size is not None:
        table_keys["table_size"] = table_size
    return workload


def numbers(
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


def with_option_name(error: InputError, workload_option: str) -> InputError:
    """The error with the name of the option instead of the key that the option sets; `workload_option` names
    the workload.
    """
    match = _WORKLOAD_KEY.fullmatch(error.key)
    if match is not None:
        named = {"name": workload_option, "script": workload_option, **WORKLOAD_OPTIONS}
        return replace(error, key=named.get(match[1], f"--set {match[1]}"))
    for name, option in OPTIONS.items():
        if error.key == name or error.key.startswith(f"{name}["):
            return replace(error, key=option)
        if error.key.startswith(f"{name}."):
            return replace(error, key=f"{option} {error.key.removeprefix(f'{name}.')}")
    return replace(error, key=f"--set {error.key}")


def as_toml(document: Mapping[str, Any]) -> str:
    """A document of tables and lists of tables as TOML."""
    lines: list[str] = []

    def table(header: str, prefix: str, content: Mapping[str, Any]) -> None:
        lines.append(header)
        nested = {key: value for key, value in content.items() if isinstance(value, Mapping)}
        lines.extend(f"{_key(key)} = {_value(value)}" for key, value in content.items() if key not in nested)
        for key, value in nested.items():
            table(f"[{prefix}.{_key(key)}]", f"{prefix}.{_key(key)}", value)

    for section, content in document.items():
        for entry in content if isinstance(content, list) else [content]:
            table(f"[[{section}]]" if isinstance(content, list) else f"[{section}]", section, entry)
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value in one line. Strings, numbers and booleans have the same syntax in JSON and TOML."""
    match value:
        case Mapping():
            return f"{{ {', '.join(f'{_key(key)} = {_value(entry)}' for key, entry in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case datetime() | date() | time():
            return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)


# Letters and digits of a variant's name.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_SYNTAX = (
    "Write mariadb, mysql or postgresql; mariadb:name=value,name=value with settings; mariadb:11.4 for a "
    "container's image; or the URL of a server that runs"
)
# Characters of a file's name; the file system allows 255 bytes.
_NAME_LENGTH_MAX = 80


def choose_file(file: Path | None, options: Mapping[str, Any], assignments: Sequence[str]) -> Path:
    """The experiment file that was given, or that of the options, which is written. `options` are those of
    `dbdyno compare` that were typed, and not validated. Raises Problem.
    """
    if file is not None:
        refuse_with_file(file, options)
        return file
    if not options:
        raise Problem(
            "an experiment file is missing",
            "Write dbdyno compare FILE.toml, or name two servers: dbdyno compare --a mariadb --b "
            "mariadb:NAME=VALUE",
        )
    path = write_experiment(options, assignments, Path())
    print(f"experiment file: {path}", file=sys.stderr)
    return path


def refuse_with_file(file: Path, names: Iterable[str]) -> None:
    """Raise Problem if options were typed that describe an experiment, which is already in `file`."""
    if typed := ", ".join(f"--{name.replace('_', '-')}" for name in names):
        raise Problem(
            f"{typed}: an experiment file was given too, {file}",
            "Leave out the file, or change its keys with --set, as in --set load.connections=[16,64]",
        )


def write_experiment(options: Mapping[str, Any], assignments: Sequence[str], folder: Path) -> Path:
    """Write the experiment file of the options into `folder`, and return its path. An equal file is used
    again; one with other content stays, and the new one gets a number.

    Raises InvalidExperiment with all errors, which name the options instead of the keys.
    """
    command = "dbdyno capacity" if "latency_objective" in options else "dbdyno compare"
    document = make_document(options, assignments, folder, command)
    return write_new(as_toml(document), folder, document["experiment"]["name"])


def make_document(
    options: Mapping[str, Any], assignments: Sequence[str], folder: Path, command: str
) -> dict[str, Any]:
    """The experiment of the options, without the assignments. Raises InvalidExperiment with all errors of
    both, which name the options instead of the keys.
    """
    errors: list[InputError] = []
    document = _document(options, errors)
    changed = copy.deepcopy(document)
    changes = [overrides.parse_assignment(text) for text in assignments]
    # The file does not have them: they are options of compare, which also reports what is wrong with them.
    overrides.apply(changed, [change for change in changes if not isinstance(change, InputError)])
    try:
        from_document(changed, command, folder)
    except InvalidExperiment as invalid:
        wrong_keys = {error.key for error in errors}
        named = [with_option_name(error, "--workload") for error in invalid.errors]
        errors += [error for error in named if error.key not in wrong_keys]
    if errors:
        raise InvalidExperiment(command, errors)
    return document


def _document(options: Mapping[str, Any], errors: list[InputError]) -> dict[str, Any]:
    load: dict[str, Any] = {
        "connections": numbers("--connections", options.get("connections") or "16", int, errors),
        "duration": options.get("time") or "10s",
    }
    if "rate" in options:
        load["rate"] = numbers("--rate", options["rate"], float, errors)
    load |= {key: options[key] for key in ("warmup", "writes") if key in options}
    typed = [("--a", options.get("a") or ""), *(("--b", server) for server in options.get("b") or [""])]
    if "latency_objective" in options:
        typed = [("--target", options["target"] or "")]
    has_target = "target" in options and "latency_objective" not in options
    if has_target:
        target = _variant("--target", options["target"], errors)
        variants = [_changed(target, option, text, errors) for option, text in typed]
    else:
        variants = [_variant(option, text, errors) for option, text in typed]
    names = _names([text for _, text in typed], has_target=has_target)
    name = options.get("workload") or "oltp_read_write"
    workload = workload_table(name, options.get("tables"), options.get("table_size"), lambda path: path)
    # A bundled workload, or a pattern of some.
    title = Path(name).stem if Path(name).suffix else name.replace("*", "all")
    # dbdyno cannot restore the data directory of a server that others run: it loads the tables again.
    is_remote = any("://" in text for text in (options.get("target") or "", *(text for _, text in typed)))
    design: dict[str, Any] = {"state": "reset"} if is_remote else {}
    if "latency_objective" in options:
        load["latency_objective"] = options["latency_objective"]
        design["blocks"] = options["blocks"]
    return {
        "experiment": {"name": _short("-".join(_NOT_IN_NAMES.sub("-", entry) for entry in (title, *names)))},
        "workload": [workload],
        "load": load,
        **({"design": design} if design else {}),
        "variant": [{"name": name, **variant} for name, variant in zip(names, variants, strict=True)],
    }


# A product, an image's tag, and settings; and one setting, whose value in quotes may have commas and colons.
_TYPED_SERVER = re.compile(r"([^:=]*)((?::[^:=,]+)*?)(?::([^:=,]*=.*))?", re.DOTALL)
_SETTING = re.compile(r"""\s*([^=,]+?)\s*=\s*('(?:[^']|'')*'|"[^"]*"|[^,]*?)\s*(?:,|$)""", re.DOTALL)
# Settings that change the loaded data instead of a variable of the server.
_DATA_SETTINGS = ("after", "undo")


def _changed(target: Mapping[str, Any], option: str, text: str, errors: list[InputError]) -> dict[str, Any]:
    """The variant `target` with the settings of a text, of which there may be none."""
    settings = _settings(option, text, errors)
    server = target.get("server", {})
    changes = settings.pop("server", {})
    if changes and "url" in server:
        changes["set_global"] = True
    return {**target, "server": {**server, **changes}, **settings}


def _variant(option: str, text: str, errors: list[InputError]) -> dict[str, Any]:
    """The variant of "mariadb", "mariadb:name=value,name=value", "mariadb:11.4:name=value" or of a URL."""
    if not text:
        errors.append(InputError(option, None, "this is missing", _SYNTAX))
        return {}
    if "://" in text:
        return {"server": {"kind": "remote", "url": text}}
    match = _TYPED_SERVER.fullmatch(text)
    product = match[1] if match else text.partition(":")[0]
    settings = _settings(option, match[3] or "", errors) if match else {}
    if match is None or product not in PRODUCTS:
        # It may be a URL without its scheme, with a password.
        shown = None if "@" in text else text
        problem = f"{product!r} is no product" if product not in PRODUCTS else "this is no server"
        errors.append(InputError(option, shown, problem, _SYNTAX))
        return {}
    image = {"kind": "docker", "image": product + match[2]} if match[2] else {}
    return {"server": {"product": product, **image, **settings.pop("server", {})}, **settings}


def _settings(option: str, text: str, errors: list[InputError]) -> dict[str, Any]:
    """The tables of a variant for "name=value,after='CREATE INDEX …'"."""
    variables: dict[str, Any] = {}
    data: dict[str, Any] = {}
    at = 0
    while at < len(text):
        match = _SETTING.match(text, at)
        if match is None:
            errors.append(InputError(option, text, f"{text[at:]!r} is no setting", _SYNTAX))
            break
        at = match.end()
        name, value = match[1], match[2]
        if name in _DATA_SETTINGS:
            if value[:1] not in ("'", '"') or len(value) < 3:
                errors.append(
                    InputError(option, text, f"{name} is a statement in quotes", f"Write {name}='…'")
                )
            else:
                sql = value[1:-1].replace("''", "'") if value[0] == "'" else value[1:-1]
                data.setdefault(name, []).append(sql)
            continue
        parsed = overrides.parse_assignment(f"{name}={value}")
        if isinstance(parsed, InputError):
            errors.append(InputError(option, text, f"{match[0]!r} is no setting", _SYNTAX))
        elif parsed[0] in variables:
            errors.append(InputError(option, text, f"{parsed[0]} is there twice"))
        else:
            variables[parsed[0]] = parsed[1]
    return {**({"server": {"variables": variables}} if variables else {}), **({"data": data} if data else {})}


# The name of a variant without a setting, and the words of a statement that name a variant.
_UNCHANGED, _NAME_WORDS = "unchanged", 5


def _names(servers: Sequence[str], *, has_target: bool = False) -> list[str]:
    """Names of the variants: their settings where all have the same product, else what was typed; of a URL,
    host and port; of a statement, its first words. A name that is there twice gets a number.
    """
    products = {text.partition(":")[0] for text in servers}
    names: list[str] = []
    for text in servers:
        place = text.rpartition("@")[2].partition("/")[0] if "://" in text else text
        if len(products) == 1 and "://" not in text and "=" in text:
            place = text.partition(":")[2]
        if (statement := re.search(r"""(?:^|[:,])\s*after\s*=\s*['"]([^'"]+)""", text)) is not None:
            place = "-".join(statement[1].split("(")[0].split()[:_NAME_WORDS])
        elif has_target:
            place = text or _UNCHANGED
        name = _short(_NOT_IN_NAMES.sub("-", place).strip("-._")) or "server"
        same = sum(
            entry == name or re.fullmatch(rf"{re.escape(name)}-\d+", entry) is not None for entry in names
        )
        names.append(f"{name}-{same + 1}" if same else name)
    return names


def _short(name: str) -> str:
    return name[:_NAME_LENGTH_MAX].rstrip("-._")


def write_new(source: str, folder: Path, name: str) -> Path:
    """Write an experiment file and return its path. An equal file is used again; one with other content
    stays, and the new one gets a number. Raises Problem.
    """
    for number in range(1, 1000):
        path = folder / (f"{name}.toml" if number == 1 else f"{name}-{number}.toml")
        if not path.exists():
            try:
                files.create(path, source.encode())
            except OSError as error:
                raise Problem(
                    f"the experiment file {path} cannot be written: {error.strerror}",
                    "Run the command in a folder that you can write to",
                ) from error
            return path
        if path.is_file() and path.read_bytes() == source.encode():
            return path
    raise Problem(f"{folder} has 999 experiment files named {name}", "Remove some of them")


def sweep_experiment(
    workload: str, options: Mapping[str, Any], assignments: Sequence[str]
) -> tuple[Experiment, Target, str]:
    """The experiment of `dbdyno run`, the address of its server, and an equivalent experiment file.

    `options` are those of the command, not validated. An assignment without a section is that of an option of
    the workload. Raises InvalidExperiment with all errors, which name the options instead of the keys.
    """
    errors: list[InputError] = []
    target = _parse_target(options.get("target") or "", errors)
    document = _sweep_document(workload, options, target, errors)
    section = "workload.options" if is_script(workload) else "workload"
    changes = [overrides.parse_assignment(_add_section(text, section)) for text in assignments]
    errors += [change for change in changes if isinstance(change, InputError)]
    errors += overrides.apply(document, [change for change in changes if not isinstance(change, InputError)])
    source = as_toml(document)
    try:
        checked = from_document(document, "dbdyno run", Path.cwd())
    except InvalidExperiment as invalid:
        wrong_keys = {error.key for error in errors}
        named = [with_option_name(error, "WORKLOAD") for error in invalid.errors]
        errors += [error for error in named if error.key not in wrong_keys]
        raise InvalidExperiment("dbdyno run", errors) from None
    if (count := len(checked.workloads)) > 1:
        fix = f"Name one of them; dbdyno compare --a URL --workload '{workload}' measures all"
        errors.append(InputError("WORKLOAD", workload, f"it selects {count} workloads", fix))
    if errors or target is None:
        raise InvalidExperiment("dbdyno run", errors)
    return checked, target, source


def _parse_target(url: str, errors: list[InputError]) -> Target | None:
    from dbdyno.servers.url import parse_url

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


def _sweep_document(
    name: str, options: Mapping[str, Any], target: Target | None, errors: list[InputError]
) -> dict[str, Any]:
    # Slow, and `dbdyno compare` does not need them.
    from dbdyno.checks.host import is_this_machine
    from dbdyno.experiment.load import parse_abort_if

    local = target is not None and (
        target.unix_socket is not None or all(is_this_machine(host) for host, _ in target.hosts_and_ports())
    )
    # An absolute path, so that the stored experiment finds the file again.
    workload = workload_table(name, options.get("tables"), options.get("table_size"), Path.absolute)
    title = name if name in (*get_args(OltpName), *bundled.names()) else workload.get("label")
    load: dict[str, Any] = {
        "connections": numbers("--connections", options["connections"], int, errors),
        "duration": options["time"],
        "warmup": options["warmup"],
        "transport": "unix" if target is not None and target.unix_socket is not None else "tcp",
    }
    if (rate := options.get("rate")) is not None:
        load["rate"] = numbers("--rate", rate, float, errors)
    if (max_rate := options.get("max_rate")) is not None:
        load["max_rate"] = max_rate
    if (writes := options.get("writes")) is not None:
        load["writes"] = writes
    if (limits := options.get("abort_if")) is not None:
        try:
            load["abort_if"] = parse_abort_if(limits)
        except ValueError as error:
            errors.append(InputError("--abort-if", limits, str(error)))
    engines, workers = options.get("fleet"), options["workers"]
    return {
        **({} if engines is None else {"fleet": {"engines": engines}}),
        "experiment": {"name": f"run-{title.replace('/', '-')}" if title else "run"},
        "workload": [workload],
        "load": load,
        "design": {"blocks": 1, "state": "preserve", "order": "given"},
        "client": {
            "workers": int(workers) if workers.isdecimal() else workers,
            # If client and server share CPUs, the client must not preempt the server at each reply.
            "scheduling": "batch" if local and rate is None else "normal",
        },
        "variant": [
            {"name": "target", "server": {"kind": "remote", "url": str(target) if target else "unknown"}}
        ],
        "override": {},
    }


def _add_section(text: str, section: str) -> str:
    """`point_selects=5` means an option of the workload; a key with a section stays unchanged."""
    key = text.partition("=")[0]
    return text if "." in key or "=" not in text else f"{section}.{text}"
