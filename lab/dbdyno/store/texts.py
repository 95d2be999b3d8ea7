"""texts.json: the patterns and values of the texts in a run's files, for reports in other languages.

The other files have the texts in English. A run of an older version has no texts.json; what it says is shown
in English.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbdyno.store import files
from dbdyno.text import Text, as_json, from_json, recall

FILE = "texts.json"


def read_texts(folder: Path) -> None:
    """Make the texts of a run known to `dbdyno.text.recall`. Raises StoreProblem."""
    path = folder / FILE
    if not path.exists():
        return
    value = files.read_json(path)
    try:
        for entry in value["texts"]:
            from_json(entry)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise files.StoreProblem(f"{path} is damaged: {error}", files.RESTORE) from error


def write_texts(folder: Path, *values: Any) -> None:
    """Store the texts that occur in these JSON values. Raises StoreProblem."""
    texts = {text: None for value in values for text in _texts(value)}
    files.write_json(folder / FILE, {"schema": 1, "texts": [as_json(text) for text in texts]})


def _texts(value: Any) -> Iterator[Text]:
    match value:
        case str():
            known = recall(value)
            if isinstance(known, Text):
                yield known
        case dict():
            for one in value.values():
                yield from _texts(one)
        case list() | tuple():
            for one in value:
                yield from _texts(one)
