"""R16: files of the run were changed after they were measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding


def changed_files(changed: Sequence[str]) -> Iterator[Finding]:
    """A warning that names the files."""
    if changed:
        text = f"changed since it was measured: {', '.join(changed)}; the verdict is about the changed files"
        yield Finding("R16", "warn", text, {"files": list(changed)})
