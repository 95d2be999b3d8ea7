"""`dbdyno servers`: the versions of servers in dbdyno's cache, and those that it can install."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.commands.choices import ServersAction
from dbdyno.problem import Problem
from dbdyno.run.machine_lock import only_measurement
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.sources.installed import (
    Installed,
    cache_folder,
    find_installed,
    install,
    list_installed,
    remove,
)
from dbdyno.servers.sources.source import (
    SOURCES,
    Release,
    choose_release,
    has_version,
    releases,
    version_order,
)
from dbdyno.terminal.console import Column, fit, heading, line
from dbdyno.terminal.messages import print_message

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Choice:
    """The arguments that choose a version; None for those that were not typed."""

    product: str | None = None
    version: str | None = None
    source: str | None = None
    url: str | None = None
    sha256: str | None = None

    def require_valid(self, action: ServersAction) -> None:
        """Raise Problem with all that is wrong for that action."""
        wrong = []
        if action is not ServersAction.LIST:
            words = {"PRODUCT": self.product, "VERSION": self.version}
            wrong += [f"{name} is missing" for name, word in words.items() if word is None]
        if self.product not in (None, *PRODUCTS):
            wrong.append(f"{self.product!r} is none of {', '.join(PRODUCTS)}")
        if self.version is not None and not self.version[:1].isdigit():
            wrong.append(f"{self.version!r} is no version, which begins with a digit, as in 18 or 11.4.5")
        if self.source not in (None, *SOURCES):
            wrong.append(f"there is no source {self.source!r}; there are {', '.join(SOURCES)}")
        if self.url and action is not ServersAction.INSTALL:
            wrong.append("--url is for install")
        if self.url and self.source not in (None, "url"):
            wrong.append("--url and --source exclude each other")
        if (self.url is None) != (self.sha256 is None):
            wrong.append("--url and --sha256 need each other, because dbdyno runs no unverified program")
        elif self.sha256 is not None and not _SHA256.fullmatch(self.sha256):
            wrong.append(f"--sha256 {self.sha256!r} is not 64 hexadecimal digits")
        if wrong:
            raise Problem("; ".join(wrong), "dbdyno servers --help shows the arguments")

    def release(self) -> Release:
        """The release to install. Raises ServerProblem if dbdyno knows none."""
        product, version = str(self.product), str(self.version)
        if self.url is not None:
            return Release(product, version, "url", self.url, str(self.sha256).lower())
        return choose_release(product, version, self.source)

    def installed(self) -> Installed:
        """The installed version. Raises Problem if there is none."""
        if (installed := find_installed(str(self.product), str(self.version), self.source)) is not None:
            return installed
        by_source = f" from {self.source}" if self.source else ""
        raise Problem(
            f"{self.product} {self.version}{by_source} is not in {cache_folder()}",
            f"dbdyno servers list shows what is; dbdyno servers install {self.product} {self.version} "
            "installs it",
        )

    def includes(self, release: Release) -> bool:
        """Whether it is one of those to list."""
        return (
            self.product in (None, release.product)
            and (self.version is None or has_version(release.version, self.version))
            and self.source in (None, release.source)
        )


def servers(action: ServersAction, choice: Choice, *, share: bool = False) -> None:
    """List, install, remove or name versions of servers; with `share`, remove one while another dbdyno
    measures. Raises Problem with all errors.
    """
    choice.require_valid(action)
    if share and action is not ServersAction.REMOVE:
        raise Problem("--share-machine is for remove", "Leave it out")
    if action is ServersAction.LIST:
        _print_list(choice)
    elif action is ServersAction.INSTALL:
        installed = install(choice.release(), _report)
        print(f"{_title(installed)} is in {installed.programs}", file=sys.stderr)
    elif action is ServersAction.REMOVE:
        installed = choice.installed()
        # A comparison may need it.
        with only_measurement(f"dbdyno servers remove {installed.release.name}", print_message, share=share):
            remove(installed, _report)
        print(f"{_title(installed)} is removed", file=sys.stderr)
    else:
        print(choice.installed().programs)


def _print_list(choice: Choice) -> None:
    """Print all releases of this machine's architecture, and the installed ones with their sizes."""
    installed: Mapping[str, Installed] = {one.release.name: one for one in list_installed()}
    listed = {one.name: one for one in (*releases(), *(one.release for one in installed.values()))}
    shown = [one for one in listed.values() if choice.includes(one)]
    shown.sort(key=lambda one: (one.product, version_order(one.version), list(SOURCES).index(one.source)))
    rows = [
        [one.product, one.version, one.source, _state(installed.get(one.name)), one.item] for one in shown
    ]
    columns = [Column(name) for name in ("product", "version", "source", "installed", "from")]
    fit(columns, rows)
    print(heading(columns))
    for row in rows:
        print(line(columns, row))
    print(f"installed versions are in {cache_folder()}", file=sys.stderr)


def _state(installed: Installed | None) -> str:
    return "-" if installed is None else f"{installed.bytes() / 2**20:,.0f} MiB"


def _title(installed: Installed) -> str:
    release = installed.release
    return f"{release.product} {release.version} ({release.source})"


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
