"""The SQL statements of a document, and how many statements a call of sysbench prepares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.reading import from_document
from dbdyno.reading.call import Call
from dbdyno.reading.document import Document
from dbdyno.reading.patterns import linear
from dbdyno.run.description import describe

_BEGIN = linear(r"(?<!\s)\s*+(?:CREATE\s+(?:TABLE|INDEX|UNIQUE)|INSERT\s+INTO)\b", re.IGNORECASE)
_LINES_MAX = 60


def sql_statements(document: Document) -> list[str]:
    """The statements that make tables and rows, in order, without the semicolon; those that do not end are
    left out.
    """
    statements: list[str] = []
    index = 0
    while index < len(document.texts):
        if _BEGIN.match(document.texts[index]):
            lines: list[str] = []
            for text in document.texts[index : index + _LINES_MAX]:
                lines.append(text.strip())
                if text.rstrip().endswith(";"):
                    statements.append(" ".join(lines).rstrip("; "))
                    break
            index += len(lines) if statements else 1
            continue
        index += 1
    return statements


def prepared_statements(call: Call) -> int | None:
    """Prepared statements of one connection to a MySQL server; None for a test that dbdyno does not know.

    Raises Problem if the load generator rejects the options.
    """
    if call.test not in get_args(OltpName):
        return None
    workload: dict[str, Any] = {"name": call.test, "tables": call.number("tables") or 1}
    if call.options.get("skip-trx", "off") in ("1", "on", ""):
        workload["skip_trx"] = True
    document = {
        "experiment": {"name": "reading"},
        "workload": [workload],
        "load": {"connections": [1], "duration": "1s"},
        "variant": [{"name": "server"}],
    }
    experiment = from_document(document, "the call", Path())
    described = describe(experiment, experiment.workloads[0], "mysql")
    # MySQL does not prepare BEGIN: sysbench sends it as text there.
    begins = sum(one.kind == "begin" and one.prepared for one in described.statements)
    return described.prepared_per_connection - begins
