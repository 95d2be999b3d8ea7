"""`dbdyno site RESULTS --out DIR`: the reports of all stored runs, and a page that lists them."""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno.commands.choices import require_language
from dbdyno.problem import Problem
from dbdyno.report.site import write_site


def site(results: Path, out: Path, language: str) -> None:
    """Write the folder, and print the path of its page. Raises Problem if there is no folder of runs."""
    if not results.is_dir():
        raise Problem(f"{results} is not a folder", "Name the folder in which runs are stored")
    index, entries = write_site(results, out, _warn, require_language(language))
    print(index)
    without = sum(not entry.link for entry in entries)
    if without:
        print(f"{without} of {len(entries)} runs are listed without a report", file=sys.stderr)


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
