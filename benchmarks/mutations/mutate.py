"""Changes a document at random places, by a seeded generator: equal seeds give equal documents."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

# Values and syntax that readers often get wrong.
NUMBERS = ("0", "-1", "1e308", "-1e-320", "9223372036854775808", "1_000", "nan", "-inf", "0x1F", "00", "1.5")
TOKENS = (
    *NUMBERS,
    '""',
    "''",
    "true",
    "[]",
    "{}",
    "[[",
    "]]",
    "{",
    "=",
    ".",
    '"""',
    "\\u0000",
    "\\ud800",
    "\x00",
    "\x1b[2J",
    "\ufeff",
    "\u202e",
    "é" * 50,
    "A" * 5_000,
    "[" * 300,
    "a." * 300 + "a = 1\n",
    "1979-05-27T07:32:00Z",
    "<script>alert(1)</script>",
    "%s%n",
    "../../../x",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    2**63,
    10**40,
    "",
    "x",
    "\x00",
    "\x1b]0;x\x07",
    "A" * 5_000,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    ["a", "a"],
)
CHANGES_MAX = 4
NESTED = 2_000


def mutate_text(source: bytes, generator: random.Random) -> bytes:
    """One to four changes of bytes, words or lines."""
    content = source
    for _ in range(generator.randint(1, CHANGES_MAX)):
        content = generator.choice(_TEXT_CHANGES)(content, generator)
    return content


def mutate_json(document: Any, generator: random.Random) -> Any:
    """One to four values replaced, removed, repeated or moved."""
    changed = copy.deepcopy(document)
    for _ in range(generator.randint(1, CHANGES_MAX)):
        places = list(_places(changed))
        if not places:
            return generator.choice(VALUES)
        generator.choice(_JSON_CHANGES)(*generator.choice(places), generator)
    return changed


def mutate_json_text(source: bytes, generator: random.Random) -> bytes:
    """A JSON document, changed as values or as text; NaN and infinity are written as Python reads them."""
    if generator.random() < 0.3:
        return mutate_text(source, generator)
    try:
        document = json.loads(source)
    except ValueError:
        return mutate_text(source, generator)
    return json.dumps(mutate_json(document, generator)).encode()


def _span(content: bytes, generator: random.Random, longest: int) -> tuple[int, int]:
    begin = generator.randrange(len(content) + 1)
    return begin, min(len(content), begin + generator.randint(1, longest))


def _flip(content: bytes, generator: random.Random) -> bytes:
    if not content:
        return b"\xff"
    at = generator.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << generator.randrange(8))]) + content[at + 1 :]


def _remove(content: bytes, generator: random.Random) -> bytes:
    begin, end = _span(content, generator, 40)
    return content[:begin] + content[end:]


def _repeat(content: bytes, generator: random.Random) -> bytes:
    begin, end = _span(content, generator, 200)
    return content[:end] + content[begin:end] * generator.choice((1, 2, 50)) + content[end:]


def _truncate(content: bytes, generator: random.Random) -> bytes:
    return content[: generator.randrange(len(content) + 1)]


def _insert(content: bytes, generator: random.Random) -> bytes:
    at = generator.randrange(len(content) + 1)
    token = generator.choice(TOKENS).encode("utf-8", "surrogatepass")
    return content[:at] + token + content[at:]


def _replace_value(content: bytes, generator: random.Random) -> bytes:
    """Replace what is between `=` and the end of a line."""
    lines = content.split(b"\n")
    with_value = [number for number, line in enumerate(lines) if b"=" in line]
    if not with_value:
        return _insert(content, generator)
    number = generator.choice(with_value)
    key, _, _ = lines[number].partition(b"=")
    lines[number] = key + b"= " + generator.choice(TOKENS).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _move_line(content: bytes, generator: random.Random) -> bytes:
    lines = content.split(b"\n")
    lines.insert(generator.randrange(len(lines)), lines.pop(generator.randrange(len(lines))))
    return b"\n".join(lines)


def _remove_line(content: bytes, generator: random.Random) -> bytes:
    lines = content.split(b"\n")
    del lines[generator.randrange(len(lines))]
    return b"\n".join(lines)


_TEXT_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _remove,
    _repeat,
    _truncate,
    _insert,
    _replace_value,
    _replace_value,
    _replace_value,
    _move_line,
    _remove_line,
)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Container and key of every value."""
    if isinstance(document, dict | list):
        entries = list(document.items()) if isinstance(document, dict) else list(enumerate(document))
        for key, value in entries:
            yield document, key
            yield from _places(value)


def _put(container: Any, key: Any, generator: random.Random) -> None:
    container[key] = copy.deepcopy(generator.choice(VALUES))


def _drop(container: Any, key: Any, _generator: random.Random) -> None:
    del container[key]


def _rename(container: Any, key: Any, generator: random.Random) -> None:
    if isinstance(container, dict):
        container[generator.choice(("", "x", "__class__", str(key) * 2))] = container.pop(key)
    else:
        container.insert(key, copy.deepcopy(container[key]))


def _nest(container: Any, key: Any, _generator: random.Random) -> None:
    value: Any = container[key]
    for _ in range(NESTED // 20):
        value = [value]
    container[key] = value


def _scale(container: Any, key: Any, generator: random.Random) -> None:
    value = container[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        container[key] = value * generator.choice((-1, 0, 1000, 1e-9)) + generator.choice((0, 1))
    elif isinstance(value, str):
        container[key] = value[::-1] + generator.choice(TOKENS)
    else:
        _put(container, key, generator)


_JSON_CHANGES: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    _put,
    _put,
    _drop,
    _rename,
    _scale,
    _nest,
)
