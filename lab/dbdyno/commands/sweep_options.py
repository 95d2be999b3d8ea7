"""Converts the options of `dbdyno run WORKLOAD --target URL` to an experiment.

The options become the content of an experiment file, so that the same rules check them, and the run is stored
and reported like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from dbdyno.checks.topology import is_this_machine
from dbdyno.commands.option_document import as_toml, is_script, numbers, with_option_name, workload_table
from dbdyno.experiment import bundled, overrides
from dbdyno.experiment.errors import InputError, InvalidExperiment
from dbdyno.experiment.model import Experiment, OltpName
from dbdyno.experiment.promise import parse_abort_if
from dbdyno.experiment.reading import from_document
from dbdyno.problem import Problem
from dbdyno.servers.url import Target, parse_url

VARIANT = "target"


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
    # Number of load generators; None: one, without a fleet.
    fleet: int | None = None


def experiment(options: SweepOptions) -> tuple[Experiment, Target, str]:
    """The experiment, the address of its server, and the text of an equivalent experiment file.

    Raises InvalidExperiment with all errors, which name the options instead of the keys.
    """
    errors: list[InputError] = []
    target = _target(options.target, errors)
    document = _build_document(options, target, errors)
    section = "workload.options" if is_script(options.workload) else "workload"
    changes = [overrides.parse_assignment(_add_section(text, section)) for text in options.assignments]
    errors += [change for change in changes if isinstance(change, InputError)]
    errors += overrides.apply(document, [change for change in changes if not isinstance(change, InputError)])
    source = as_toml(document)
    try:
        checked = from_document(document, "dbdyno run", Path.cwd())
    except InvalidExperiment as invalid:
        known = {error.key for error in errors}
        errors += [
            error
            for error in (with_option_name(one, "WORKLOAD") for one in invalid.errors)
            if error.key not in known
        ]
        raise InvalidExperiment("dbdyno run", errors) from None
    if (count := len(checked.workloads)) > 1:
        fix = f"Name one of them; dbdyno compare --a URL --workload '{options.workload}' measures all"
        errors.append(InputError("WORKLOAD", options.workload, f"it selects {count} workloads", fix))
    if errors or target is None:
        raise InvalidExperiment("dbdyno run", errors)
    return checked, target, source


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
    known = options.workload in (*get_args(OltpName), *bundled.names())
    local = target is not None and (
        target.unix_socket is not None or all(is_this_machine(host) for host, _ in target.hosts_and_ports())
    )
    # An absolute path, so that the stored experiment finds the file again.
    workload = workload_table(options.workload, options.tables, options.table_size, Path.absolute)
    title = options.workload if known else workload.get("label")
    load: dict[str, Any] = {
        "connections": numbers("--connections", options.connections, int, errors),
        "duration": options.time,
        "warmup": options.warmup,
        "transport": "unix" if target is not None and target.unix_socket is not None else "tcp",
    }
    if options.rate is not None:
        load["rate"] = numbers("--rate", options.rate, float, errors)
    if options.max_rate is not None:
        load["max_rate"] = options.max_rate
    if options.abort_if is not None:
        try:
            load["abort_if"] = parse_abort_if(options.abort_if)
        except ValueError as error:
            errors.append(InputError("--abort-if", options.abort_if, str(error)))
    fleet = {} if options.fleet is None else {"fleet": {"engines": options.fleet}}
    return {
        **fleet,
        "experiment": {"name": f"run-{title.replace('/', '-')}" if title else "run"},
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


def _add_section(text: str, section: str) -> str:
    """`point_selects=5` means an option of the workload; a key with a section stays unchanged."""
    key = text.partition("=")[0]
    return text if "." in key or "=" not in text else f"{section}.{text}"
