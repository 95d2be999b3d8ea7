"""`dbdyno schema NAME`: prints a JSON Schema, with which an editor completes and checks experiment files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

# Links to schema/ in the repository, files in a wheel.
_FOLDER = Path(__file__).parents[1] / "schemas"


class Name(StrEnum):
    """The files with a schema."""

    EXPERIMENT = "experiment"
    VERDICT = "verdict"
    MEASURED = "measured"
    EXPLAINED = "explained"


def schema(
    name: Annotated[Name, typer.Argument(help="The experiment file, or a file of a run.")] = Name.EXPERIMENT,
) -> None:
    """Print the JSON Schema of the experiment file or a result file."""
    print((_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"), end="")
