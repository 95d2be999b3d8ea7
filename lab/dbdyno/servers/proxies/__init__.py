"""Proxies that dbdyno starts in front of its own servers: one file for each program.

`proxy` has the interface, and the process of one variant's proxy.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.servers.proxies.haproxy import HAProxy
from dbdyno.servers.proxies.odyssey import Odyssey
from dbdyno.servers.proxies.pgbouncer import PgBouncer
from dbdyno.servers.proxies.pgpool import Pgpool
from dbdyno.servers.proxies.proxy import ProxyProgram

# To add a program, add it here and to `ProxyName` in experiment/variant.py.
PROGRAMS: Mapping[str, ProxyProgram] = {
    program.name: program for program in (HAProxy(), Odyssey(), PgBouncer(), Pgpool())
}

__all__ = ["PROGRAMS", "ProxyProgram"]
