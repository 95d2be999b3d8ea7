"""The versions between two versions of a product, for a bisection, and their installation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbdyno.servers.server import ServerProblem
from dbdyno.servers.sources.catalogue import SOURCES
from dbdyno.servers.sources.installed import Installed, find_installed, install, list_installed
from dbdyno.servers.sources.release import Release, choose_release, newest, releases, version_order
from dbdyno.servers.sources.source import Report


def versions_between(product: str, good: str, bad: str) -> list[Release]:
    """The versions from good to bad, both included, that are installed or can be installed. They are of the
    first source that has both, because versions of one source are built alike. The ends are the newest ones
    that begin with these numbers.

    Raises ServerProblem if no source has both.
    """
    of_product = {
        one.name: one
        for one in (*releases(), *(one.release for one in list_installed()))
        if one.product == product
    }
    for source in SOURCES:
        of_source = [one for one in of_product.values() if one.source == source]
        ends = newest(of_source, good), newest(of_source, bad)
        if ends[0] is not None and ends[1] is not None:
            return _between(of_source, ends[0], ends[1])
    raise ServerProblem(
        f"no source of servers has both {product} {good} and {bad}, so the versions between them are unknown",
        f"dbdyno servers list {product} shows what there is; or name the versions: --candidates A,B,C",
    )


def _between(listed: Iterable[Release], good: Release, bad: Release) -> list[Release]:
    low, high = sorted((version_order(good.version), version_order(bad.version)))
    by_order: Mapping[tuple[int, ...], Release] = {
        version_order(one.version): one for one in listed if low <= version_order(one.version) <= high
    }
    in_order = [by_order[order] for order in sorted(by_order)]
    return in_order if version_order(good.version) == low else in_order[::-1]


def install_missing(product: str, version: str, source: str | None, report: Report) -> Installed | None:
    """A version in the cache, of that source or of the first that has one; it is installed if it is missing
    and a source has it. None if there is none. Raises ServerProblem if the installation fails.
    """
    if (installed := find_installed(product, version, source)) is not None:
        return installed
    try:
        release = choose_release(product, version, source)
    except ServerProblem:
        # It may be among the packages of this machine; if not, the comparison says so.
        return None
    report(f"installing {product} {release.version}")
    return install(release, report)
