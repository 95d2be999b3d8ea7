"""Writes what is generated from registers and models: `python -m dbdyno.generate schema docs/reading.md`.

codes.json of all checks and rules; the JSON Schemas of the experiment and the judge's files, in a folder;
and the table of the checks of documents, which follows `<!-- document checks -->` in a page and comes from
the docstring of each check.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path

import dbdyno
from dbdyno.checks import CHECKS
from dbdyno.experiment.file_schema import schema_text
from dbdyno.finding import Caveat
from dbdyno.reading.checks import all_checks
from dbdyno.rules import RULES
from dbdyno.store.document import Document
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import VerdictFile

CODES_FILE = Path(dbdyno.__file__).with_name("codes.json")
DOCUMENTS: dict[str, type[Document]] = {
    "verdict": VerdictFile,
    "measured": MeasuredFile,
    "explained": ExplainedFile,
}
_TABLE = re.compile(r"(<!-- document checks -->\n\n).*?(\n<!-- end -->\n)", re.DOTALL)


def codes_text() -> str:
    """The text of codes.json: every code in order, with the short form of a check."""
    known: dict[str, Caveat] = {code: None for each in RULES for code in each.codes}
    # About an author's conclusion.
    known["Q02"] = None
    known |= {check.code: check.caveat for check in CHECKS}
    return json.dumps(dict(sorted(known.items())), indent=2) + "\n"


def with_table(page: str) -> str:
    """The page with the table of today: code, rule, what a check looks at and a published mistake."""
    rows = ["| code | rule | how, and an example |", "|---|---|---|"]
    for check in all_checks():
        how, _, rule = " ".join((inspect.getdoc(check.find) or "").split()).partition(" Rule: ")
        rows.append(f"| {check.code} | {rule[:1].upper()}{rule[1:]} | {how} |")
    table = "\n".join(rows) + "\n"
    return _TABLE.sub(lambda match: match[1] + table + match[2], page)


def main(schemas: Path, page: Path) -> None:
    """Write all of them."""
    CODES_FILE.write_text(codes_text(), encoding="utf-8")
    texts = {"experiment": schema_text()} | {name: one.schema_text() for name, one in DOCUMENTS.items()}
    for name, text in texts.items():
        (schemas / f"{name}.schema.json").write_text(text, encoding="utf-8")
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
