"""What every host of a cluster has, and what does not fit together."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from dbdyno.fleet.carrier import measure_clocks, wait_for
from dbdyno.fleet.carriers import open_carrier

# Clocks that differ by more may have been set manually. The start allows for the measured offsets.
CLOCK_MS = 100.0
# An engine needs a file for each connection.
OPEN_FILES_MIN = 4096
CONNECT_S_MAX = 5.0
# What must be equal on all hosts, and its name in messages.
_EQUAL = {"ray": "versions of Ray", "python": "versions of Python", "machine": "kinds of machine"}


@dataclass
class Report:
    """The hosts, each a mapping of facts, and the problems as sentences."""

    hosts: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def examine(address: str, servers: Mapping[str, tuple[str, int]]) -> Report:
    """Place one process on each host of a cluster and examine it. `servers`: name -> host and port that every
    host must reach. Raises FleetProblem and EngineLost.
    """
    report = Report()
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
            report.hosts.append({**facts, "name": place.name, "servers": reached, **of_clock})
    report.problems = list(_problems(report.hosts))
    return report


def _problems(hosts: list[dict[str, Any]]) -> list[str]:
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
