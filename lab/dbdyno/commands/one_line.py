"""Writes the experiment file of `dbdyno compare --a SERVER --b SERVER …`; it is then read like any other."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.commands.option_document import as_toml, numbers, with_option_name, workload_table
from dbdyno.experiment import overrides
from dbdyno.experiment.errors import InputError, InvalidExperiment
from dbdyno.experiment.reading import from_document
from dbdyno.problem import Problem
from dbdyno.store import files

# Letters and digits of a variant's name.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_SYNTAX = (
    "Write mariadb, mysql or postgresql; mariadb:name=value,name=value with settings; mariadb:11.4 for a "
    "container's image; or the URL of a server that runs"
)
# Characters of a file's name; the file system allows 255 bytes.
_NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class OneLine:
    """The options as the user typed them, not validated; None and () for those that were not typed."""

    a: str | None = None
    # The variants that are compared with `a`.
    b: Sequence[str] = ()
    workload: str | None = None
    connections: str | None = None
    rate: str | None = None
    time: str | None = None
    warmup: str | None = None
    tables: int | None = None
    table_size: int | None = None

    def typed(self) -> list[str]:
        """The names of the options that were typed."""
        return [f"--{key.replace('_', '-')}" for key, value in vars(self).items() if value not in (None, ())]


def choose_file(file: Path | None, options: OneLine, assignments: Sequence[str]) -> Path:
    """The experiment file that was given, or that of the options, which is written. Raises Problem."""
    typed = options.typed()
    if file is not None and typed:
        raise Problem(
            f"{', '.join(typed)}: an experiment file was given too, {file}",
            "Leave out the file, or change its keys with --set, as in --set load.connections=[16,64]",
        )
    if file is None and not typed:
        raise Problem(
            "an experiment file is missing",
            "Write dbdyno compare FILE.toml, or name two servers: dbdyno compare --a mariadb --b "
            "mariadb:NAME=VALUE",
        )
    if file is not None:
        return file
    path = write_experiment(options, assignments, Path())
    print(f"experiment file: {path}", file=sys.stderr)
    return path


def write_experiment(options: OneLine, assignments: Sequence[str], folder: Path) -> Path:
    """Write the experiment file of the options into `folder`, and return its path. An equal file is used
    again; one with other content stays, and the new one gets a number.

    Raises InvalidExperiment with all errors, which name the options instead of the keys.
    """
    document = make_document(options, assignments, folder, "dbdyno compare")
    return write_new(as_toml(document), folder, document["experiment"]["name"])


def make_document(options: OneLine, assignments: Sequence[str], folder: Path, command: str) -> dict[str, Any]:
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
        known = {error.key for error in errors}
        named = [_with_option_name(error) for error in invalid.errors]
        errors += [error for error in named if error.key not in known]
    if errors:
        raise InvalidExperiment(command, errors)
    return document


def _document(options: OneLine, errors: list[InputError]) -> dict[str, Any]:
    load: dict[str, Any] = {
        "connections": numbers("--connections", options.connections or "16", int, errors),
        "duration": options.time or "10s",
    }
    if options.rate is not None:
        load["rate"] = numbers("--rate", options.rate, float, errors)
    if options.warmup is not None:
        load["warmup"] = options.warmup
    typed = [("--a", options.a or ""), *(("--b", server) for server in options.b or [""])]
    servers = [_server(option, text, errors) for option, text in typed]
    names = _names([text for _, text in typed])
    name = options.workload or "oltp_read_write"
    workload = workload_table(name, options.tables, options.table_size, lambda path: path)
    # A bundled workload, or a pattern of some.
    title = Path(name).stem if Path(name).suffix else name.replace("*", "all")
    return {
        "experiment": {"name": _short("-".join(_NOT_IN_NAMES.sub("-", one) for one in (title, *names)))},
        "workload": [workload],
        "load": load,
        # dbdyno cannot restore the data directory of a server that others run: it loads the tables again.
        **({"design": {"state": "reset"}} if any("://" in text for _, text in typed) else {}),
        "variant": [{"name": name, "server": server} for name, server in zip(names, servers, strict=True)],
    }


def _server(option: str, text: str, errors: list[InputError]) -> dict[str, Any]:
    """The server of "mariadb", "mariadb:name=value,name=value", "mariadb:11.4:name=value" or of a URL."""
    if not text:
        errors.append(InputError(option, None, "this is missing", _SYNTAX))
        return {}
    if "://" in text:
        return {"kind": "remote", "url": text}
    product, *parts = text.split(":")
    server: dict[str, Any] = {"product": product}
    settings = parts.pop() if parts and "=" in parts[-1] else ""
    if parts:
        server |= {"kind": "docker", "image": ":".join([product, *parts])}
    variables: dict[str, Any] = {}
    for setting in filter(None, settings.split(",")):
        parsed = overrides.parse_assignment(setting.strip())
        if isinstance(parsed, InputError):
            errors.append(InputError(option, text, f"{setting!r} is no setting", _SYNTAX))
        elif parsed[0] in variables:
            errors.append(InputError(option, text, f"{parsed[0]} is there twice"))
        else:
            variables[parsed[0]] = parsed[1]
    if product not in ("mariadb", "mysql", "postgresql"):
        errors.append(InputError(option, text, f"{product!r} is no product", _SYNTAX))
        return {}
    return {**server, **({"variables": variables} if variables else {})}


def _names(servers: Sequence[str]) -> list[str]:
    """Names of the variants: their settings where all have the same product, else what was typed; of a URL,
    host and port. A name that is there twice gets a number.
    """
    products = {text.partition(":")[0] for text in servers}
    names: list[str] = []
    for text in servers:
        place = text.rpartition("@")[2].partition("/")[0] if "://" in text else text
        if len(products) == 1 and "://" not in text and "=" in text:
            place = text.partition(":")[2]
        name = _short(_NOT_IN_NAMES.sub("-", place).strip("-._")) or "server"
        same = sum(one == name or re.fullmatch(rf"{re.escape(name)}-\d+", one) is not None for one in names)
        names.append(f"{name}-{same + 1}" if same else name)
    return names


def _short(name: str) -> str:
    return name[:_NAME_LENGTH_MAX].rstrip("-._")


def _with_option_name(error: InputError) -> InputError:
    return with_option_name(error, "--workload")


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
