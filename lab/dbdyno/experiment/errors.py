"""Errors in an experiment file or in options. All errors are reported together, each with its fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dbdyno.problem import Problem

VALUE_LENGTH_MAX = 60
# Words of version 0.2.0 -> those of this version: keys of experiments and of verdict.json, and values.
RENAMED = {
    "headline": "main_statement",
    "promise": "latency_objective",
    "second_lines": "secondary_metrics",
    "sure": "decided",
    "twin": "identical_copy",
}
# Words of sysbench, pgbench and mysqlslap -> those of this version.
OF_OTHER_TOOLS = {
    "clients": "connections",
    "concurrency": "connections",
    "threads": "connections",
    "time": "duration",
    "iterations": "blocks",
    "repetitions": "blocks",
    "table-size": "table_size",
    "rows": "table_size",
}
# A key or a value that may hold a password; messages do not quote its value.
_SECRET = re.compile(r"pass|pwd|secret|url\b|://", re.IGNORECASE)


@dataclass(frozen=True)
class InputError:
    """One error in the user's input. `InvalidExperiment` is the exception with all of them."""

    # The key in the file: "variant[pool].server.cpus". Empty if the error concerns the whole file.
    key: str
    # Its value; None without one.
    value: Any
    # What is wrong, in words that follow "KEY = VALUE: ".
    problem: str
    fix: str = ""

    def __str__(self) -> str:
        hidden = self.value is None or _SECRET.search(f"{self.key} {self.value}")
        shown = "" if hidden else f" = {_shorten(self.value)}"
        place = f"{self.key}{shown}: " if self.key else ""
        return place + _sentence(self.problem) + (" " + _sentence(self.fix) if self.fix else "")


class InvalidExperiment(Problem):
    """The exception with all errors of one experiment file; there is at least one."""

    def __init__(self, source: str, errors: list[InputError]) -> None:
        assert errors, "raised only if there are errors"
        self.source = source
        self.errors = errors
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__("\n".join([f"{source}: {count}", *(f"  {error}" for error in errors)]))


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """The fix for an unknown word, or for a dotted key: its name today, its name here, the most similar known
    word, or a list of all known words.
    """
    candidates = sorted(candidates)
    table, dot, name = word.rpartition(".")
    if (renamed := f"{table}{dot}{RENAMED.get(name, name)}") != word and renamed in candidates:
        return f"It is called {renamed} since version 0.3"
    if (called := f"{table}{dot}{OF_OTHER_TOOLS.get(name, name)}") != word and called in candidates:
        return f"Its name here is {called}"
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Known here: {', '.join(candidates)}" if candidates else ""


def _sentence(text: str) -> str:
    return text if text.endswith(("?", ".")) else text + "."


def _shorten(value: Any) -> str:
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = f'"{value}"'
    else:
        text = repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 3] + "..."
