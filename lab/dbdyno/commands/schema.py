"""`dbdyno schema`: prints the JSON Schema of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

# Links to schema/ in the repository, files in a wheel.
_SCHEMAS = Path(__file__).parents[1] / "schemas"


# The files with a schema.
SchemaName = Literal["experiment", "verdict", "measured", "explained"]


def schema(
    name: Annotated[
        SchemaName, typer.Argument(help="The experiment file, or a file of a run.")
    ] = "experiment",
) -> None:
    """Print the JSON Schema of the experiment file or a result file."""
    print((_SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"), end="")
