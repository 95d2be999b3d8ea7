"""A vendor's tarball by URL or path, and files of a mirror. An interrupted download is resumed."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dbdyno.servers.server import MachineProblem, ServerProblem
from dbdyno.servers.sources.release import Release
from dbdyno.servers.sources.source import Report, Source

# Seconds without any data.
_TIMEOUT_S = 60.0
_CHUNK_BYTES = 1 << 20


class Address(Source):
    """`item` is a URL (https, http, file) or a path."""

    name = "url"

    def file_name(self, release: Release) -> str:
        """See `Source`."""
        return Path(unquote(urlsplit(release.item).path)).name

    def fetch(self, release: Release, folder: Path, report: Report) -> Path:
        """See `Source`."""
        return download(release.item, folder / self.file_name(release), report)


def download(address: str, target: Path, report: Report) -> Path:
    """Download a URL, or copy a path, to `target`. A part that an earlier download has left is kept, if the
    server can send the rest. Raises ServerProblem.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("https", "http", "file", ""):
        raise ServerProblem(f"{address} cannot be downloaded: the scheme is {parts.scheme}", "use https")
    if parts.scheme in ("file", ""):
        path = Path(unquote(parts.path))
        try:
            shutil.copyfile(path, target)
        except OSError as error:
            raise ServerProblem(f"{path} cannot be read: {error.strerror}", "correct the path") from error
        return target
    part = target.with_name(f"{target.name}.part")
    try:
        _download_rest(address, part, report)
    except (OSError, urllib.error.URLError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        size = part.stat().st_size if part.exists() else 0
        raise MachineProblem(
            f"{address} could not be downloaded: {reason}",
            f"repeat the command; the first {size:,} bytes are kept" if size else "check the address",
        ) from error
    part.rename(target)
    return target


def _download_rest(address: str, part: Path, report: Report) -> None:
    present = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address)  # noqa: S310 — the caller has checked the scheme.
    if present:
        request.add_header("Range", f"bytes={present}-")
    report(f"downloading {address}" + (f" from byte {present:,}" if present else ""))
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            # The part is complete already. The caller verifies it, and removes it if it is another file.
            return
        raise
    with answer, part.open("ab") as file:
        if answer.status != HTTPStatus.PARTIAL_CONTENT:
            file.truncate(0)
            present = 0
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)
            present += len(chunk)
        # read() returns the end also if the connection was closed too early.
        if answer.length:
            raise ConnectionError(f"the connection ended {answer.length:,} bytes too early")
