"""Which server program a variant uses, as a text for users."""

from __future__ import annotations

import re

from dbdyno.experiment.model import Variant
from dbdyno.experiment.variant import Proxy
from dbdyno.servers.kinds.docker import describe_software
from dbdyno.servers.kinds.remote import variant_target
from dbdyno.servers.products.declaration import PRODUCTS, read_declaration
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.sources.installed import find_installed, programs_folder
from dbdyno.servers.url import bracket_ipv6

_VERSION = re.compile(r"\b\d+\.\d+(\.\d+)?")


def describe_server(variant: Variant, *, executes: bool = True) -> str:
    """What dbdyno starts or connects to, such as "MariaDB 10.11.6 (/usr/sbin/mariadbd)". Starts no server;
    asks programs for their version, unless `executes` is false.

    Raises ServerProblem if a program or an image is missing.
    """
    if not executes:
        return _declared_server(variant)
    spec = variant.server
    if not spec.is_private:
        target = variant_target(variant)
        where = f"{bracket_ipv6(target.host)}:{target.port}/{target.database}"
        return f"{where}, started by your command" if spec.start else where
    product = PRODUCTS[str(spec.product)]
    if spec.kind == "docker":
        text, place = describe_software(variant).partition(" ")[2], f"image {spec.image}"
    else:
        binaries = product.binaries(programs_folder(spec))
        text, place = product.version(binaries), str(binaries.server)
    version = _VERSION.search(text)
    server = f"{product.title} {version[0] if version else text} ({place})"
    return server if variant.proxy is None else f"{server} behind {_describe_proxy(variant.proxy)}"


def _declared_server(variant: Variant) -> str:
    """What the experiment says of a variant's server. Raises ServerProblem for declarations that are wrong,
    and for a missing program.
    """
    spec = variant.server
    if not spec.is_private:
        return describe_server(variant)
    declared = read_declaration(variant)
    product, version = declared.product, f" {spec.version}" if spec.version else ""
    if spec.kind == "docker":
        place = f"image {spec.image}"
    elif spec.version is not None and spec.basedir is None:
        installed = find_installed(product.name, spec.version)
        place = "a program of this machine" if installed is None else str(installed.programs)
    else:
        place = str(product.binaries(spec.basedir).server)
    server = f"{product.title}{version} ({place})"
    if variant.proxy is None:
        return server
    program = PROGRAMS[variant.proxy.program]
    program.declared(variant.proxy, variant.name)
    return f"{server} behind {program.title} ({program.find(variant.proxy.basedir)[-1]})"


def _describe_proxy(proxy: Proxy) -> str:
    program = PROGRAMS[proxy.program]
    command = program.find(proxy.basedir)
    return f"{program.title} {program.version(command)} ({command[-1]})"
