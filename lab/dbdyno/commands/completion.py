"""`dbdyno completion SHELL`: prints the script with which a shell completes dbdyno's command line.

At each TAB the script calls dbdyno, and typer prints the candidates. The functions here find those that typer
cannot know, such as files and stored runs. This module imports nothing slow, because shells run the command
when they start.
"""

from __future__ import annotations

import os
import re
import tomllib
from glob import escape, glob
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

# A script asks for candidates by setting this variable; typer derives its name from that of the program.
COMPLETE_VARIABLE = "_DBDYNO_COMPLETE"
# In these variables it passes the words of the command line: bash in the first, zsh and fish in the second.
_WORDS_VARIABLES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
# The scripts insert candidates without quotes, so a name with other characters is left to the shell itself.
_UNQUOTED = re.compile(r"[\w./+,@%-]+")


# The shells that can complete.
Shell = Literal["bash", "zsh", "fish"]


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell.", metavar="bash|zsh|fish", show_default=False)],
) -> None:
    """Print the completion script of a shell."""
    print(get_completion_script(prog_name="dbdyno", complete_var=COMPLETE_VARIABLE, shell=shell))


def words_to_complete() -> list[str] | None:
    """The words of the command line after `dbdyno` if a script asks for candidates, otherwise None."""
    if COMPLETE_VARIABLE not in os.environ:
        return None
    completion_init()
    return " ".join(os.environ.get(name, "") for name in _WORDS_VARIABLES).split()[1:]


def experiment_files(incomplete: str) -> list[str]:
    """Candidates for an experiment file: TOML files with a table [experiment]."""
    return [path for path in matching_files(incomplete, ".toml") if "experiment" in _tables(path)]


def bundled_workloads(incomplete: str) -> list[str]:
    """Candidates for the name of a bundled workload."""
    from dbdyno.experiment import bundled
    from dbdyno.experiment.oltp_name import DESCRIPTIONS

    return [name for name in (*DESCRIPTIONS, *bundled.names()) if name.startswith(incomplete)]


def workloads(incomplete: str) -> list[str]:
    """Candidates for a workload: the bundled ones, SQL files and scripts."""
    return [*bundled_workloads(incomplete), *matching_files(incomplete, ".sql", ".lua")]


def profiles(context: typer.Context, incomplete: str) -> list[str]:
    """Candidates for --profile: the profiles of the experiment file that is already on the command line."""
    # While --profile has no value, typer leaves the arguments unassigned in `args`.
    words = [*map(str, context.params.values()), *context.args]
    tables = [_tables(word).get("profile") for word in words if word.endswith(".toml")]
    names = [name for table in tables if isinstance(table, dict) for name in table]
    return [name for name in names if name.startswith(incomplete) and _UNQUOTED.fullmatch(name)]


def stored_runs(incomplete: str) -> list[str]:
    """Candidates for the folder of a run: the runs in `results`, and those below the folder typed so far."""
    typed = escape(incomplete)
    end = "/experiment.json"
    paths = _candidates(incomplete, f"results/*/*{end}", f"{typed}*{end}", f"{typed}*/*{end}")
    return [path.removesuffix(end) for path in paths]


def matching_files(incomplete: str, *suffixes: str) -> list[str]:
    """The files with these suffixes whose path begins as typed, at most one folder deeper."""
    typed = escape(incomplete)
    return _candidates(
        incomplete, *(f"{typed}{stem}{suffix}" for stem in ("*", "*/*") for suffix in suffixes)
    )


def _candidates(incomplete: str, *patterns: str) -> list[str]:
    # pathlib would shorten "./file", which then does not begin as typed.
    paths = {path for pattern in patterns for path in glob(pattern)}  # noqa: PTH207
    return sorted(path for path in paths if path.startswith(incomplete) and _UNQUOTED.fullmatch(path))


def _tables(path: str) -> dict[str, object]:
    """The tables of a TOML file; nothing if it cannot be read, since a TAB must not print an error."""
    try:
        return tomllib.loads(Path(path).read_text()) if Path(path).is_file() else {}
    except (OSError, ValueError):
        return {}
