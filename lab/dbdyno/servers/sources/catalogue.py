"""The list of all sources. A new source is a module of this package with a class, and an entry here."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.servers.sources.address import Address
from dbdyno.servers.sources.maven import Maven
from dbdyno.servers.sources.npm import Npm
from dbdyno.servers.sources.pypi import PyPI
from dbdyno.servers.sources.source import Source

# By name. If several have a version, the first is used, so that the versions of a comparison come from one.
SOURCES: Mapping[str, Source] = {source.name: source for source in (Maven(), Npm(), PyPI(), Address())}
