"""Writes what is generated from the code: `python -m dbdyno.generate schema docs/reading.md`.

codes.json of all checks and rules; the JSON Schemas of the experiment and the judge's files, in a folder;
the table of the checks of documents, which follows `<!-- document checks -->` in a page and comes from
the docstring of each check; and the catalogues of all languages. New patterns are added to them without a
translation, and patterns that no code has any more are removed. The patterns are those of `compose`,
`compose_count` and `mark` in the code, `_` in the templates, and the paragraphs of the checks' documentation.
Needs Babel, which the tests install.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polib
from babel.messages.extract import extract

import dbdyno
from dbdyno.checks import CHECKS
from dbdyno.experiment.file_schema import schema_text
from dbdyno.finding import Caveat
from dbdyno.reading.checks import all_checks
from dbdyno.report.page import documented_checks
from dbdyno.rules import RULES
from dbdyno.store.document import Document
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import VerdictFile

PACKAGE = Path(dbdyno.__file__).parent
_KEYWORDS = {"compose": None, "compose_count": (2, 3), "mark": None, "_": None}
# Columns of a line in a catalogue.
_WIDTH = 110
CODES_FILE = PACKAGE / "codes.json"
DOCUMENTS: dict[str, type[Document]] = {
    "verdict": VerdictFile,
    "measured": MeasuredFile,
    "explained": ExplainedFile,
}
_TABLE = re.compile(r"(<!-- document checks -->\n\n).*?(\n<!-- end -->\n)", re.DOTALL)


def codes_text() -> str:
    """The text of codes.json: every code in order, with the short form of a check."""
    caveats: dict[str, Caveat] = {code: None for each in RULES for code in each.codes}
    # About an author's conclusion.
    caveats["Q02"] = None
    caveats |= {check.code: check.caveat for check in CHECKS}
    return json.dumps(dict(sorted(caveats.items())), indent=2) + "\n"


def with_table(page: str) -> str:
    """The page with the table of today: code, rule, what a check looks at and a published mistake."""
    rows = ["| code | rule | how, and an example |", "|---|---|---|"]
    for check in all_checks():
        how, _, rule = " ".join((inspect.getdoc(check.find) or "").split()).partition(" Rule: ")
        rows.append(f"| {check.code} | {rule[:1].upper()}{rule[1:]} | {how} |")
    table = "\n".join(rows) + "\n"
    return _TABLE.sub(lambda match: match[1] + table + match[2], page)


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
            single, many = (" ".join(text.split()) if method != "python" else text for text in pair)
            if single:
                yield single, many


def update(path: Path) -> list[polib.POEntry]:
    """Update a catalogue; returns the entries without a translation."""
    old = polib.pofile(path.read_text(encoding="utf-8"), wrapwidth=_WIDTH)
    old_entries = {(entry.msgid, entry.msgid_plural): entry for entry in old}
    new = polib.POFile(wrapwidth=_WIDTH)
    new.metadata = old.metadata
    for (single, many), place in patterns().items():
        entry = old_entries.get((single, many)) or polib.POEntry(msgid=single, msgid_plural=many)
        entry.occurrences = [(place, "")]
        new.append(entry)
    path.write_text(str(new), encoding="utf-8")
    untranslated: list[polib.POEntry] = new.untranslated_entries()
    return untranslated


def main(schemas: Path, page: Path) -> None:
    """Write all of them, and print the patterns that lack a translation."""
    CODES_FILE.write_text(codes_text(), encoding="utf-8")
    texts = {"experiment": schema_text()} | {name: model.schema_text() for name, model in DOCUMENTS.items()}
    for name, text in texts.items():
        (schemas / f"{name}.schema.json").write_text(text, encoding="utf-8")
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
    for catalogue in sorted(PACKAGE.glob("languages/*.po")):
        untranslated = update(catalogue)
        sys.stdout.write(f"{catalogue.name}: {len(untranslated)} patterns without a translation\n")
        for entry in untranslated:
            sys.stdout.write(f"  {entry.occurrences[0][0]}: {entry.msgid}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
