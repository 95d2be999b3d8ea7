"""`dbdyno servers`: the versions of servers in dbdyno's cache, and those that it can install."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem
from dbdyno.terminal.messages import print_message

if TYPE_CHECKING:
    from dbdyno.servers.sources.installed import Installed

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


# What `dbdyno servers` does.
ServersAction = Literal["list", "install", "remove", "path"]


def servers(
    action: Annotated[
        ServersAction,
        typer.Argument(
            metavar="list|install|remove|path",
            help="List all versions, install or remove one, or print its folder.",
            show_default=False,
        ),
    ],
    product: Annotated[
        str | None,
        typer.Argument(metavar="PRODUCT", help="mariadb, mysql or postgresql.", show_default=False),
    ] = None,
    version: Annotated[
        str | None,
        typer.Argument(metavar="VERSION", help="A version, or how it begins, as in 18.", show_default=False),
    ] = None,
    *,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only from this source: maven, npm, pypi or url."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Install from this tarball: a URL or a path.")
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(metavar="SUM", help="With --url: the SHA-256 that the vendor publishes.")
    ] = None,
    share_machine: options.ShareMachine = False,
) -> None:
    """List, install or remove versions of servers, for server.version in an experiment."""
    from dbdyno.run.machine_lock import only_measurement
    from dbdyno.servers.sources import installed as cache
    from dbdyno.servers.sources.source import Release, choose_release

    _require_valid(action, product, version, source=source, url=url, sha256=sha256)
    if share_machine and action != "remove":
        raise Problem("--share-machine is for remove", "Leave it out")
    if action == "list":
        _print_list(product, version, source)
        return
    product, version = str(product), str(version)
    if action == "install":
        release = (
            choose_release(product, version, source)
            if url is None
            else Release(product, version, "url", url, str(sha256).lower())
        )
        installed = cache.install(release, print_message)
        print(f"{_title(installed)} is in {installed.programs}", file=sys.stderr)
        return
    stored = cache.find_installed(product, version, source)
    if stored is None:
        by_source = f" from {source}" if source else ""
        raise Problem(
            f"{product} {version}{by_source} is not in {cache.cache_folder()}",
            f"dbdyno servers list shows what is; dbdyno servers install {product} {version} installs it",
        )
    if action == "path":
        print(stored.programs)
        return
    # A comparison may need it.
    with only_measurement(f"dbdyno servers remove {stored.release.name}", print_message, share=share_machine):
        cache.remove(stored, print_message)
    print(f"{_title(stored)} is removed", file=sys.stderr)


def _require_valid(
    action: ServersAction,
    product: str | None,
    version: str | None,
    *,
    source: str | None,
    url: str | None,
    sha256: str | None,
) -> None:
    """Raise Problem with all that is wrong for that action."""
    from dbdyno.servers.products.declaration import PRODUCTS
    from dbdyno.servers.sources.source import SOURCES

    wrong = []
    if action != "list":
        words = {"PRODUCT": product, "VERSION": version}
        wrong += [f"{name} is missing" for name, word in words.items() if word is None]
    if product not in (None, *PRODUCTS):
        wrong.append(f"{product!r} is none of {', '.join(PRODUCTS)}")
    if version is not None and not version[:1].isdigit():
        wrong.append(f"{version!r} is no version, which begins with a digit, as in 18 or 11.4.5")
    if source not in (None, *SOURCES):
        wrong.append(f"there is no source {source!r}; there are {', '.join(SOURCES)}")
    if url and action != "install":
        wrong.append("--url is for install")
    if url and source not in (None, "url"):
        wrong.append("--url and --source exclude each other")
    if (url is None) != (sha256 is None):
        wrong.append("--url and --sha256 need each other, because dbdyno runs no unverified program")
    elif sha256 is not None and not _SHA256.fullmatch(sha256):
        wrong.append(f"--sha256 {sha256!r} is not 64 hexadecimal digits")
    if wrong:
        raise Problem("; ".join(wrong), "dbdyno servers --help shows the arguments")


def _print_list(product: str | None, version: str | None, source: str | None) -> None:
    """Print the releases of this machine's architecture that were asked for, and the sizes of the installed
    ones.
    """
    from dbdyno.servers.sources.installed import cache_folder, list_installed
    from dbdyno.servers.sources.source import SOURCES, has_version, releases, version_order
    from dbdyno.terminal.console import Column, table_lines

    installed = {entry.release.name: entry for entry in list_installed()}
    listed = {
        release.name: release for release in (*releases(), *(entry.release for entry in installed.values()))
    }
    shown = [
        entry
        for entry in listed.values()
        if product in (None, entry.product)
        and (version is None or has_version(entry.version, version))
        and source in (None, entry.source)
    ]
    shown.sort(
        key=lambda entry: (entry.product, version_order(entry.version), list(SOURCES).index(entry.source))
    )
    rows = [
        [entry.product, entry.version, entry.source, _state(installed.get(entry.name)), entry.item]
        for entry in shown
    ]
    columns = [Column(name) for name in ("product", "version", "source", "installed", "from")]
    print(*table_lines(columns, rows), sep="\n")
    print(f"installed versions are in {cache_folder()}", file=sys.stderr)


def _state(installed: Installed | None) -> str:
    return "-" if installed is None else f"{installed.bytes() / 2**20:,.0f} MiB"


def _title(installed: Installed) -> str:
    release = installed.release
    return f"{release.product} {release.version} ({release.source})"
