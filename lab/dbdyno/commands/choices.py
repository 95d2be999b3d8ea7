"""The words that options accept. This module imports nothing slow, because `--help` needs it."""

from __future__ import annotations

from enum import StrEnum

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
