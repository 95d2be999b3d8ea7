"""Writes codes.json from the registers of checks and rules: `python -m dbdyno.rules.codes`."""

from __future__ import annotations

import json
from pathlib import Path

import dbdyno
from dbdyno.checks import CHECKS
from dbdyno.codes import Caveat
from dbdyno.rules import RULES

PATH = Path(dbdyno.__file__).with_name("codes.json")


def content() -> str:
    """The text of codes.json: every code in order, with the short form of a check."""
    known: dict[str, Caveat] = {code: None for each in RULES for code in each.codes}
    # About an author's conclusion.
    known["Q02"] = None
    known |= {check.code: check.caveat for check in CHECKS}
    return json.dumps(dict(sorted(known.items())), indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(content(), encoding="utf-8")
