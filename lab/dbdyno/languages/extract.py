"""Brings the catalogues of all languages up to date: python -m dbdyno.languages.extract

New patterns are added without a translation, patterns that no code has any more are removed. The patterns are
those of `compose`, `compose_count` and `mark` in the code, `_` in the templates, and the paragraphs of the
checks' documentation. Needs Babel, which the tests install.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import polib
from babel.messages.extract import extract

from dbdyno.report.page import documented_checks

PACKAGE = Path(str(resources.files("dbdyno")))
_KEYWORDS = {"compose": None, "compose_count": (2, 3), "mark": None, "_": None}
# Columns of a line in a catalogue.
_WIDTH = 110


def patterns() -> dict[tuple[str, str], str]:
    """Pattern and plural pattern ("" without one) -> a file with them, in the order of the files."""
    places: dict[tuple[str, str], str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for key in _messages(path, "python"):
            places.setdefault(key, str(path.relative_to(PACKAGE)))
    for path in sorted(PACKAGE.glob("*/templates/*.j2")):
        for key in _messages(path, "jinja2.ext:babel_extract"):
            places.setdefault(key, str(path.relative_to(PACKAGE)))
    for _code, *texts in documented_checks():
        for text in texts:
            places.setdefault((text, ""), "report/templates/checks.md")
    return places


def _messages(path: Path, method: str) -> Iterator[tuple[str, str]]:
    with path.open("rb") as file:
        for _line, message, _comments, _context in extract(method, file, _KEYWORDS):
            pair = (message, "") if isinstance(message, str) else message
            one, many = (" ".join(text.split()) if method != "python" else text for text in pair)
            if one:
                yield one, many


def update(path: Path) -> int:
    """Update a catalogue; returns the number of patterns without a translation."""
    old = polib.pofile(path.read_text(encoding="utf-8"), wrapwidth=_WIDTH)
    known = {(entry.msgid, entry.msgid_plural): entry for entry in old}
    new = polib.POFile(wrapwidth=_WIDTH)
    new.metadata = old.metadata
    for (one, many), place in patterns().items():
        entry = known.get((one, many)) or polib.POEntry(msgid=one, msgid_plural=many)
        entry.occurrences = [(place, "")]
        new.append(entry)
    path.write_text(str(new), encoding="utf-8")
    return len(new.untranslated_entries())


if __name__ == "__main__":
    for catalogue in sorted(PACKAGE.glob("languages/*.po")):
        sys.stdout.write(f"{catalogue.name}: {update(catalogue)} patterns without a translation\n")
