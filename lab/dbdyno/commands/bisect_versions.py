"""The versions of a bisection, and the variant of each: from the file, from the versions of the product, or
from the commits of a repository.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.commands.choices import Over
from dbdyno.commands.verbosity import announce
from dbdyno.experiment.base import parse_duration_s
from dbdyno.experiment.bisection import (
    BUILD,
    CANDIDATE,
    Document,
    fill,
    find_template,
    has_placeholder,
    variant_names,
    with_server,
)
from dbdyno.problem import Problem
from dbdyno.servers import commits
from dbdyno.servers.sources.between import install_missing, versions_between


@dataclass(frozen=True)
class Ends:
    """The options that choose the versions, as the user typed them."""

    good: str
    bad: str
    over: Over | None
    candidates: str | None
    repository: Path
    build: str | None
    build_timeout: str


class Versions(ABC):
    """The versions in order, with the two ends."""

    over: Over
    # A version in the sentences.
    noun = "version"

    def __init__(self, names: list[str]) -> None:
        self.names = names

    @abstractmethod
    def variant(self, name: str) -> Document:
        """The table [[variant]] of a version. Builds or installs its server. Raises Problem."""

    def title(self, name: str) -> str:
        """The version in the result."""
        return name


def choose_versions(document: Document, ends: Ends, builds: Path) -> Versions:
    """The versions of the options; `builds` is the folder for built commits. Raises Problem."""
    names = variant_names(document)
    has_both = ends.good in names and ends.bad in names
    apart = has_both and abs(names.index(ends.good) - names.index(ends.bad)) > 1
    over = ends.over or (Over.VARIANTS if apart else Over.VERSIONS)
    if ends.good == ends.bad:
        raise Problem(f"--good and --bad are both {ends.good}", "Name two different ones")
    if ends.candidates is not None and over is not Over.VERSIONS:
        raise Problem(f"--candidates has no effect with --over {over}", "Leave out one of them")
    if ends.build is not None and over is not Over.COMMITS:
        raise Problem(f"--build has no effect with --over {over}", "Add --over commits")
    if over is Over.VARIANTS:
        return _Variants(document, ends)
    template = find_template(document, ends.good)
    return _Releases(template, ends) if over is Over.VERSIONS else _Commits(template, ends, builds)


class _Variants(Versions):
    over, noun = Over.VARIANTS, "variant"

    def __init__(self, document: Document, ends: Ends) -> None:
        listed = variant_names(document)
        for option, name in (("--good", ends.good), ("--bad", ends.bad)):
            if name not in listed:
                raise Problem(
                    f"{option} {name}: the file has no such variant; it has {', '.join(listed)}",
                    "Name one of them, or choose --over versions",
                )
        first, last = listed.index(ends.good), listed.index(ends.bad)
        chosen = listed[first : last + 1] if first < last else listed[last : first + 1][::-1]
        super().__init__(chosen)
        self._tables = {one["name"]: one for one in document["variant"]}

    def variant(self, name: str) -> Document:
        """See `Versions`."""
        return dict(self._tables[name])


class _Releases(Versions):
    over = Over.VERSIONS

    def __init__(self, template: Document, ends: Ends) -> None:
        self._template = template
        self._server: Any = template.get("server", {})
        self._is_filled = has_placeholder(template, CANDIDATE)
        if not self._is_filled and self._server.get("kind", "local") != "local":
            raise Problem(
                f"server.version does not choose the version of a server of kind {self._server['kind']}",
                f"Write {CANDIDATE} in the variant where the version belongs, as in image = "
                f'"mariadb:{CANDIDATE}"',
            )
        product = self._server.get("product", "mariadb")
        # Version -> its source, if dbdyno has chosen the versions.
        self._sources: dict[str, str] = {}
        if ends.candidates is not None:
            between = [one.strip() for one in ends.candidates.split(",") if one.strip()]
            names = [ends.good, *between, ends.bad]
        else:
            releases = versions_between(product, ends.good, ends.bad)
            names = [one.version for one in releases]
            self._sources = {one.version: one.source for one in releases}
        if len(names) < 2:
            raise Problem(
                f"--good {ends.good} and --bad {ends.bad} are both {names[0]}", "Name two different ones"
            )
        if len(set(names)) < len(names):
            raise Problem(f"a version is there twice: {', '.join(names)}", "Name each version once")
        super().__init__(names)
        self._product = product

    def variant(self, name: str) -> Document:
        """See `Versions`."""
        filled = fill(self._template, name)
        if self._is_filled:
            return filled
        installed = install_missing(self._product, name, self._sources.get(name), announce)
        # Several sources may have this version.
        folder = {} if installed is None else {"basedir": str(installed.programs)}
        return with_server(filled, version=name, **folder)


class _Commits(Versions):
    over, noun = Over.COMMITS, "commit"

    def __init__(self, template: Document, ends: Ends, builds: Path) -> None:
        self._template, self._builds = template, builds
        self._repository = ends.repository
        self._how = None if ends.build is None else _parse_build(ends.build, ends.build_timeout)
        server: Any = template.get("server", {})
        kind = server.get("kind", "local")
        if has_placeholder(template, BUILD) and self._how is None:
            raise Problem(
                f"the variant contains {BUILD}, but no command builds a commit", "Add --build COMMAND"
            )
        if self._how is not None and kind == "local" and not has_placeholder(template, BUILD):
            self._template = with_server(template, basedir=BUILD)
        elif self._how is None and kind != "command" and not has_placeholder(template, CANDIDATE):
            raise Problem(
                "the variant is the same for every commit",
                f"Add --build COMMAND; or write {CANDIDATE} where the commit belongs; or use a server of "
                "kind command, whose commands get the commit in DBDYNO_VARIANT",
            )
        super().__init__(commits.list_commits(ends.repository, ends.good, ends.bad))

    def variant(self, name: str) -> Document:
        """See `Versions`."""
        folder = ""
        if self._how is not None:
            announce(f"building {self.title(name)}")
            folder = str(commits.build(self._repository, name, self._how, self._builds))
        return fill(self._template, name, folder)

    def title(self, name: str) -> str:
        """See `Versions`."""
        subject = commits.subject(self._repository, name)
        return f"{name} ({subject})" if subject else name


def _parse_build(command: str, timeout: str) -> commits.Build:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise Problem(f"--build {command}: {error}", "Close the quotation") from error
    if not argv:
        raise Problem("--build has no command", 'Write --build "make install", for example')
    try:
        seconds = parse_duration_s(timeout)
    except ValueError as error:
        raise Problem(f"--build-timeout {timeout}: {error}") from error
    return commits.Build(argv, seconds)
