"""R16: files of the run were changed after they were measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.text import compose, join


def changed_files(changed: Sequence[str]) -> Iterator[Finding]:
    """A warning that names the files."""
    if changed:
        text = compose(
            "changed since it was measured: {listed}; the verdict is about the changed files",
            listed=join(", ", changed),
        )
        yield Finding("R16", "warn", text, {"files": list(changed)})
