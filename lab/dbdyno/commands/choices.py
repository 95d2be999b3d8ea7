"""The words that options accept. This module imports nothing slow, because `--help` needs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dbdyno.problem import Problem


class Format(StrEnum):
    """The output formats of `dbdyno report`."""

    HTML = "html"
    MD = "md"
    PNG = "png"
    SVG = "svg"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    BENCHER = "bencher"
    BENCHSTAT = "benchstat"
    OPENMETRICS = "openmetrics"
    OTAVA = "otava"


class TextFormat(StrEnum):
    """The output formats of `dbdyno compare`, `list` and `show`."""

    TEXT = "text"
    JSON = "json"


class ReadFormat(StrEnum):
    """The output formats of `dbdyno read`."""

    TEXT = "text"
    JSON = "json"
    MD = "md"


class Undecided(StrEnum):
    """What an undecided gate counts as."""

    PASS = "pass"  # noqa: S105 — not a password.
    FAIL = "fail"


class Action(StrEnum):
    """What `dbdyno data` does."""

    LIST = "list"
    DROP = "drop"
    RESTORE = "restore"


class FleetAction(StrEnum):
    """What `dbdyno fleet` does."""

    UP = "up"
    DOWN = "down"
    DOCTOR = "doctor"


class ServersAction(StrEnum):
    """What `dbdyno servers` does."""

    LIST = "list"
    INSTALL = "install"
    REMOVE = "remove"
    PATH = "path"


class Over(StrEnum):
    """What `dbdyno bisect` searches."""

    VARIANTS = "variants"
    VERSIONS = "versions"
    COMMITS = "commits"


def require_language(code: str) -> str:
    """The code of a language. Raises Problem if there are no texts in it."""
    # Imported here, because `--help` needs this module.
    from dbdyno.languages import languages  # noqa: PLC0415

    if code not in languages():
        raise Problem(
            f"there are no texts in the language {code!r}", f"Choose one of {', '.join(languages())}"
        )
    return code


@dataclass(frozen=True)
class Output:
    """What a command prints of a result, and whether it shows progress."""

    # The verdict alone, and on standard error only errors.
    quiet: bool = False
    # verdict.json on standard output.
    as_json: bool = False
    # The language of the result, of `dbdyno.languages`.
    language: str = "en"
    # Open report.html in a browser.
    opens_report: bool = False
    writes_report: bool = True
    # Where the report is written; None: into the run's folder.
    report_folder: Path | None = None

    def __post_init__(self) -> None:
        options = {"--open": self.opens_report, "--output": self.report_folder is not None}
        if not self.writes_report and any(options.values()):
            wrong = " and ".join(name for name, is_given in options.items() if is_given)
            raise Problem(f"{wrong}: --no-report was given too", "Leave out one of them")
