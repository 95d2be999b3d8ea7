"""`dbdyno fleet up|down|doctor`: the hosts of a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from dbdyno.commands.choices import FleetAction
from dbdyno.experiment.reading import read
from dbdyno.fleet import doctor
from dbdyno.fleet.cluster import NodeOptions, start_node, stop_nodes
from dbdyno.problem import ExitCode, Problem
from dbdyno.servers.url import parse_url
from dbdyno.terminal.console import Column, fit, heading, line

# Each with whether its values are aligned to the right.
_HEADINGS = (
    ("host", False),
    ("Ray", False),
    ("Python", False),
    ("machine", False),
    ("CPUs", True),
    ("open files", True),
    ("clock", True),
    ("round trip", True),
)


def fleet(action: FleetAction, options: NodeOptions, address: str, file: Path | None) -> None:
    """Do what `action` says, and print the result."""
    if file is not None and action is not FleetAction.DOCTOR:
        raise Problem(f"{file}: an experiment is for dbdyno fleet doctor")
    if action is FleetAction.UP:
        head = start_node(options)
        print(f"Ray runs on this machine; its head is {head}")
        if options.join is None:
            print(f"On each other host: dbdyno fleet up --join {head}")
            print("with the same token in ~/.ray/auth_token there (mode 600)")
    elif action is FleetAction.DOWN:
        stopped = stop_nodes()
        print(
            f"stopped {stopped} processes of Ray" if stopped else "dbdyno has started no Ray on this machine"
        )
    else:
        _examine(address, _servers(file) if file else {})


def _servers(file: Path) -> dict[str, tuple[str, int]]:
    """Variant -> host and port of its server, for servers that dbdyno does not start."""
    targets = {one.name: one.server.url for one in read(file).variants if one.server.url is not None}
    return {name: parse_url(url).hosts_and_ports()[0] for name, url in targets.items()}


def _examine(address: str, servers: dict[str, tuple[str, int]]) -> None:
    report = doctor.examine(address, servers)
    columns, rows = (
        [Column(heading, right=right) for heading, right in _HEADINGS],
        list(map(_row, report.hosts)),
    )
    fit(columns, rows)
    print(heading(columns))
    for row in rows:
        print(line(columns, row))
    for name, (host, port) in servers.items():
        times = ", ".join(f"{one['name']} {_time(one['servers'][name])}" for one in report.hosts)
        print(f"TCP connection to {name} ({host}:{port}) from {times}")
    for problem in report.problems:
        print(f"problem: {problem}")
    if report.problems:
        raise typer.Exit(ExitCode.NOT_COMPARABLE)
    print(f"{len(report.hosts)} hosts are ready")


def _row(host: dict[str, Any]) -> tuple[str, ...]:
    return (
        host["name"],
        str(host["ray"]),
        host["python"],
        host["machine"],
        str(host["cpus"]),
        str(host["open_files"]),
        f"{host['clock_offset_us'] / 1000.0:+.1f} ms",
        _time(host["round_trip_us"]),
    )


def _time(value: float | str) -> str:
    return f"fails: {value}" if isinstance(value, str) else f"{value / 1000.0:.1f} ms"
