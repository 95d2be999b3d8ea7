"""Documents that older versions stored or published, in the words of this version.

The files stay as they are, because a run has a hash of its experiment. They are translated when they are
read. What is not as that version wrote it stays, so that the model that the document must fit reports it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbdyno.experiment.errors import RENAMED
from dbdyno.experiment.variant import move_connection_settings


def current_experiment(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored experiment in the words of this version."""
    tables = {name: _renamed(stored[name]) for name in ("design", "load", "workloads") if name in stored}
    variants = stored.get("variants")
    if isinstance(variants, list):
        tables["variants"] = [
            _renamed_below(move_connection_settings(variant), "workloads")
            if isinstance(variant, dict)
            else variant
            for variant in variants
        ]
    return {**stored, **tables}


def current_file(document: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of an experiment file, with the keys of its profiles, in the words of this version."""
    tables = {name: _renamed(document[name]) for name in ("design", "load", "workload") if name in document}
    if isinstance(variants := document.get("variant"), list):
        tables["variant"] = [_renamed_below(variant, "workload") for variant in variants]
    if isinstance(profiles := document.get("profile"), dict):
        tables["profile"] = {name: _renamed(current_file(profile)) for name, profile in profiles.items()}
    return {**document, **tables}


def current_assignment(text: str) -> str:
    """An assignment of `--set` in the words of this version."""
    key, equals, value = text.partition("=")
    if key.endswith(".when"):
        value = re.sub(r"\w+", lambda word: RENAMED.get(word[0], word[0]), value)
    return f"{_current_key(key)}{equals}{value}"


def current_verdict(stored: Mapping[str, Any]) -> dict[str, Any] | None:
    """verdict.json of version 2 in the words of version 3; None for older ones, which have other verdicts."""
    if stored.get("schema") != 2:
        return None
    changed: dict[str, Any] = {"schema": 3, "comparisons": _renamed(stored.get("comparisons"))}
    if "stopping" in stored:
        changed["stopping"] = _current_ending(stored["stopping"])
    return {**stored, **changed}


def current_endings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """endings.json of version 1 in the words of version 2."""
    calls = stored.get("calls", [])
    is_list = isinstance(calls, list)
    return {**stored, "schema": 2, "calls": [_current_ending(call) for call in calls] if is_list else calls}


def _current_ending(stored: Any) -> Any:
    """A call, or the rule by which calls end, with the word of today for why it ended."""
    if isinstance(stored, dict) and isinstance(why := stored.get("why"), str):
        return {**stored, "why": RENAMED.get(why, why)}
    return stored


def _renamed_below(table: Any, key: str) -> Any:
    return {**table, key: _renamed(table[key])} if isinstance(table, dict) and key in table else table


def _renamed(value: Any) -> Any:
    """A table, or each table of a list, with the keys of today, and `design.stop` with its rule of today."""
    if isinstance(value, list):
        return [_renamed(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {_current_key(key): _current_rule(key, entry) for key, entry in value.items()}


def _current_rule(key: str, value: Any) -> Any:
    name = key.rpartition(".")[2]
    if name == "stop":
        return _renamed(value)
    return RENAMED.get(value, value) if name == "when" and isinstance(value, str) else value


def _current_key(key: str) -> str:
    """A key of a table, or a dotted key; those of other sections, such as names of variables, stay."""
    section = re.match(r"\w+", key)
    if "." in key and (section is None or section[0] not in {"design", "load", "workload"}):
        return key
    return ".".join(RENAMED.get(part, part) for part in key.split("."))
