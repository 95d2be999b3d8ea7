"""Writes the JSON Schemas of the experiment and the judge's files: `python -m dbdyno.store.schemas DIR`."""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno.experiment.file_schema import schema_text
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
    texts = {"experiment": schema_text()} | {name: one.schema_text() for name, one in DOCUMENTS.items()}
    for name, text in texts.items():
        (Path(sys.argv[1]) / f"{name}.schema.json").write_text(text, encoding="utf-8")
