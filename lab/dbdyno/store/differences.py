"""Compares stored values key by key."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def describe_differences(was: Any, now: Any) -> str:
    """The first keys in which two stored values differ, as text; "" if none does."""
    differing = list(key_differences(was, now))
    shown = ", ".join(f"{key} was {_shown(old)} and is {_shown(new)}" for key, old, new in differing[:3])
    return shown + (f" and {len(differing) - 3} more" if len(differing) > 3 else "")


def key_differences(was: Any, now: Any, key_path: str = "") -> Iterable[tuple[str, Any, Any]]:
    """Key, old value and new value of each difference below the key `key_path`."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from key_differences(was.get(key), now.get(key), f"{key_path}.{key}" if key_path else key)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (before, after) in enumerate(zip(was, now, strict=True), start=1):
            yield from key_differences(before, after, f"{key_path}[{index}]")
    elif canonical(was) != canonical(now):
        # In Python 1, 1.0 and True are equal; as values of a server variable they are not.
        yield key_path, was, now


def canonical(value: Any) -> bytes:
    """A JSON value as bytes; equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _shown(value: Any) -> str:
    """A stored value in a message; null is a key that is not set."""
    return "not set" if value is None else "set" if isinstance(value, dict | list) else repr(value)
