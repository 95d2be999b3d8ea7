"""Applies the changes of a profile and of `--set` to an experiment before it is validated.

`workload.x` and `variant.x` change all workloads and variants, `variant[NAME].x` and `workload[NAME].x` one.
Tables are merged key by key; everything else is replaced.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any

from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.file_reading import DEPTH_MAX, parse_toml
from dbdyno.experiment.workload import workload_title

LISTED = ("workload", "variant")
SECTIONS = ("experiment", "load", "design", "client", "fleet", "loading", "override", *LISTED)
_KEY = re.compile(r"(?P<section>[a-z_]+)(?:\[(?P<name>[^\]]*)\])?\.(?P<rest>.+)")


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: {"load": {"rate": [1]}} -> {"load.rate": [1]}."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def parse_assignment(text: str) -> tuple[str, Any] | InputError:
    """Parse one `key=value` of the command line. The value is TOML, or text if it is not valid TOML."""
    # The first "=" outside a variant's name in brackets.
    match = re.fullmatch(r"((?:[^=\[]|\[[^\]]*\])+)=(.*)", text, re.DOTALL)
    if match is None:
        return InputError(
            f"--set {text}", None, "it has no =", "Write --set key=value, as in load.duration=10s"
        )
    key, value = match[1].strip(), match[2].strip()
    if key.count(".") >= DEPTH_MAX:
        return InputError(f"--set {key[:60]}...", None, f"the key has more than {DEPTH_MAX} parts")
    try:
        return key, parse_toml(f"value = {value}".encode())["value"]
    except ValueError:
        return key, value


def change_overrides(override: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """A table [override] with changed reasons; None removes an override."""
    changed = {**override, **changes}
    return {code: reason for code, reason in changed.items() if reason is not None}


def is_workload_name(key: str) -> bool:
    """Whether a change sets the name of workloads."""
    match = _KEY.fullmatch(key)
    return match is not None and (match["section"], match["rest"]) == ("workload", "name")


def apply(document: dict[str, Any], changes: Iterable[tuple[str, Any]]) -> list[InputError]:
    """Change `document` in place. Returns an error for each change that cannot be applied.

    A number of blocks replaces `design.stop`, and the reverse.
    """
    changes = list(changes)
    errors = [error for key, value in changes if (error := _apply_one(document, key, value))]
    keys = [key for key, _ in changes if key.startswith("design.")]
    design = document.get("design", {})
    of_stop = [key for key in keys if key == "design.stop" or key.startswith("design.stop.")]
    if not isinstance(design, dict) or (of_stop and "design.blocks" in keys):
        # Two plans at once, which `resolving` reports.
        return errors
    if of_stop:
        design.pop("blocks", None)
    elif "design.blocks" in keys:
        design.pop("stop", None)
    return errors


def _apply_one(document: dict[str, Any], key: str, value: Any) -> InputError | None:
    match = _KEY.fullmatch(key)
    if match is None:
        return InputError(
            key, value, "this is not a key of an experiment", "Write section.key, as in load.duration"
        )
    section, name, rest = match["section"], match["name"], match["rest"]
    if section not in SECTIONS:
        return InputError(key, value, f"there is no section {section}", did_you_mean(section, SECTIONS))
    if section == "variant" and rest.split(".")[0] == "levels":
        return InputError(key, value, "there is no such key", "Levels belong under [factor.NAME]")
    if section not in LISTED:
        if name is not None:
            return InputError(
                key, value, f"{section} is one table and takes no [{name}]", f"Write {section}.{rest}"
            )
        return _set_value(document.setdefault(section, {}), rest, key, value)
    titled = [(entry, workload_title(entry)) for entry in _entries(document, section)]
    entries = [entry for entry, title in titled if name is None or _is_selected(title, name)]
    if not entries:
        names = [title for _, title in titled]
        return InputError(key, value, f"there is no {section} named {name}", did_you_mean(str(name), names))
    errors = [error for entry in entries if (error := _set_value(entry, rest, key, value))]
    return errors[0] if errors else None


def _is_selected(title: str, name: str) -> bool:
    """Whether a name in brackets means an entry: its title, or a pattern of bundled workloads."""
    return name == title or ("/" in title and fnmatch.fnmatchcase(title, name))


def _entries(document: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    entries = document.get(section)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _set_value(table: Any, path: str, key: str, value: Any) -> InputError | None:
    *parents, last = path.split(".")
    for parent in parents:
        table = table.setdefault(parent, {}) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        return InputError(key, value, "a part of the key before the last dot is not a table")
    table[last] = value
    return None
