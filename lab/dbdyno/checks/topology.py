"""Whether a server runs on this machine, and names of architectures."""

from __future__ import annotations

import socket

import psutil

from dbdyno.experiment.model import Variant
from dbdyno.servers.url import parse_url


def is_local(variant: Variant) -> bool:
    """Whether a variant's server runs on this machine, as far as its address shows.

    A forwarded port, or a container with its own network, looks like another machine.
    """
    if variant.server.is_private or variant.server.url is None:
        return True
    target = parse_url(variant.server.url)
    return target.unix_socket is not None or all(
        is_this_machine(host) for host, _ in target.hosts_and_ports()
    )


def is_this_machine(host: str) -> bool:
    """Whether a host name or address belongs to this machine; False if it cannot be resolved."""
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    own = {
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    }
    return bool(addresses & (own | {"127.0.0.1", "::1"})) or any(one.startswith("127.") for one in addresses)


def architecture(name: str) -> str:
    """The same name for one architecture, whatever its spelling."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name.lower())
