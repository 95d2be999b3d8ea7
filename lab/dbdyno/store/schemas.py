"""Writes the JSON Schemas of the judge's files: `python -m dbdyno.store.schemas DIR`."""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno.store.document import Document
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import VerdictFile

DOCUMENTS: dict[str, type[Document]] = {
    "verdict": VerdictFile,
    "measured": MeasuredFile,
    "explained": ExplainedFile,
}


if __name__ == "__main__":
    for name, document in DOCUMENTS.items():
        (Path(sys.argv[1]) / f"{name}.schema.json").write_text(document.schema_text(), encoding="utf-8")
