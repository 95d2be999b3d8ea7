"""`dbdyno fleet up|down|doctor`: the hosts of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dbdyno.problem import ExitCode, Problem

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
# Clocks that differ by more may have been set manually. The start allows for the measured offsets.
CLOCK_MS = 100.0
# An engine needs a file for each connection.
OPEN_FILES_MIN = 4096
CONNECT_S_MAX = 5.0
# What must be equal on all hosts, and its name in messages.
_EQUAL = {"ray": "versions of Ray", "python": "versions of Python", "machine": "kinds of machine"}


# What `dbdyno fleet` does.
FleetAction = Literal["up", "down", "doctor"]


def fleet(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    action: Annotated[
        FleetAction,
        typer.Argument(
            metavar="up|down|doctor",
            help="Start or stop Ray on this machine, or check all hosts.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE.toml]", help="With doctor: also check the way to the servers of an experiment."
        ),
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="With up: join the cluster with this head."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="With up: this machine's address for the other hosts."),
    ] = None,
    port: Annotated[int, typer.Option(help="With up: the port of the head.")] = 6379,
    cpus: Annotated[
        int | None,
        typer.Option(help="With up: load generators that fit on this machine (default: its CPUs)."),
    ] = None,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT|auto", help="With doctor: the head of the cluster.")
    ] = "auto",
) -> None:
    """Start, stop or check the hosts of several load generators ([fleet] in an experiment)."""
    from dbdyno.fleet.cluster import NodeOptions, start_node, stop_nodes

    if file is not None and action != "doctor":
        raise Problem(f"{file}: an experiment is for dbdyno fleet doctor")
    if action == "up":
        head = start_node(NodeOptions(join, host, port, cpus))
        print(f"Ray runs on this machine; its head is {head}")
        if join is None:
            print(f"On each other host: dbdyno fleet up --join {head}")
            print("with the same token in ~/.ray/auth_token there (mode 600)")
    elif action == "down":
        stopped = stop_nodes()
        print(
            f"stopped {stopped} process{'' if stopped == 1 else 'es'} of Ray"
            if stopped
            else "dbdyno has started no Ray on this machine"
        )
    else:
        _examine(address, _servers(file) if file else {})


def _servers(file: Path) -> dict[str, tuple[str, int]]:
    """Variant -> host and port of its server, for servers that dbdyno does not start."""
    from dbdyno.experiment.reading import read
    from dbdyno.servers.url import parse_url

    targets = {
        variant.name: variant.server.url for variant in read(file).variants if variant.server.url is not None
    }
    return {name: parse_url(url).hosts_and_ports()[0] for name, url in targets.items()}


def _examine(address: str, servers: dict[str, tuple[str, int]]) -> None:
    from dbdyno.terminal.console import Column, table_lines

    hosts = _hosts(address, servers)
    problems = _problems(hosts)
    columns = [Column(heading, right=right) for heading, right in _HEADINGS]
    print(*table_lines(columns, list(map(_row, hosts))), sep="\n")
    for name, (host, port) in servers.items():
        times = ", ".join(
            f"{host_facts['name']} {_time(host_facts['servers'][name])}" for host_facts in hosts
        )
        print(f"TCP connection to {name} ({host}:{port}) from {times}")
    for problem in problems:
        print(f"problem: {problem}")
    if problems:
        raise typer.Exit(ExitCode.NOT_COMPARABLE)
    print("1 host is ready" if len(hosts) == 1 else f"{len(hosts)} hosts are ready")


def _hosts(address: str, servers: Mapping[str, tuple[str, int]]) -> list[dict[str, Any]]:
    """The facts of each host of a cluster, which a process there finds. `servers`: name -> host and port that
    every host must reach. Raises FleetProblem and EngineLost.
    """
    from dbdyno.fleet.carrier import measure_clocks, wait_for
    from dbdyno.fleet.cluster import open_carrier

    hosts = []
    with closing(open_carrier(address)) as carrier:
        places = carrier.place(carrier.count_hosts(), 1)
        clocks = measure_clocks(places)
        for place, clock in zip(places, clocks, strict=True):
            facts = wait_for(place, place.call("facts"))
            reached = {
                name: wait_for(place, place.call("round_trip_us", *where, CONNECT_S_MAX), 4 * CONNECT_S_MAX)
                for name, where in servers.items()
            }
            of_clock = {"clock_offset_us": clock.offset_us, "round_trip_us": clock.round_trip_us}
            hosts.append({**facts, "name": place.name, "servers": reached, **of_clock})
    return hosts


def _problems(hosts: list[dict[str, Any]]) -> list[str]:
    """What does not fit together, as sentences."""
    problems = []
    for key, title in _EQUAL.items():
        values = sorted({str(host[key]) for host in hosts})
        if len(values) > 1:
            problems.append(f"the hosts have different {title}: {', '.join(values)}")
    for host in hosts:
        offset_ms = host["clock_offset_us"] / 1000.0
        if abs(offset_ms) > CLOCK_MS:
            problems.append(
                f"the clock of {host['name']} is {offset_ms:+.0f} ms off; start a time service (chrony)"
            )
        if host["open_files"] < OPEN_FILES_MIN:
            problems.append(
                f"{host['name']} allows {host['open_files']} open files; an engine needs one for each "
                "connection: raise the hard limit (ulimit -Hn)"
            )
        problems += [
            f"{host['name']} does not reach {name}: {answer}"
            for name, answer in host["servers"].items()
            if isinstance(answer, str)
        ]
    return problems


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
