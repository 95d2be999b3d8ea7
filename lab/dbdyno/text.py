"""Texts that can be translated: English strings that keep the pattern and the values they are made of.

A text is composed in English, compared, stored and tested in English. Where a reader sees it,
`dbdyno.languages` translates its pattern, and puts the values in their places. A value that is a text
itself is translated too; any other value (a name, a number, a statement) stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from string import Formatter
from typing import Annotated, Any


class Text(str):
    """An English text with the pattern and the values it was composed of."""

    __slots__ = ("pattern", "plural", "values")

    pattern: str
    values: Mapping[str, Any]
    # The pattern for other numbers than 1, for texts of `compose_count`; else None.
    plural: str | None

    def __new__(
        cls, english: str, pattern: str, values: Mapping[str, Any], plural: str | None = None
    ) -> Text:
        """A text whose English form is known."""
        text = super().__new__(cls, english)
        text.pattern, text.values, text.plural = pattern, values, plural
        return text

    def __copy__(self) -> Text:
        return self

    def __deepcopy__(self, memo: object) -> Text:
        return self

    def __add__(self, text: str) -> Text:
        return join("", (self, text))

    def __radd__(self, text: str) -> Text:
        return join("", (text, self))


# The texts of this process and of the runs it has read, by their English form: a text that was written to a
# file comes back as a plain string.
_KNOWN: dict[str, Text] = {}


def compose(pattern: str, /, **values: Any) -> Text:
    """A text from a pattern with named places, such as "{name} has no result", as of `str.format`.

    The pattern is the key of the translation, so it must be a literal.
    """
    return _known(Text(pattern.format(**values), pattern, values))


def compose_form(pattern: str, values: Mapping[str, Any]) -> Text:
    """A text from a pattern of a table, whose forms need different ones of the values."""
    names = {name for _, name, _, _ in Formatter().parse(pattern)}
    return compose(pattern, **{name: value for name, value in values.items() if name in names})


def compose_count(number: int, single: str, many: str, /, **values: Any) -> Text:
    """A text whose pattern depends on a number, such as "{number} block" and "{number} blocks"."""
    values = {"number": number, **values}
    return _known(Text((single if number == 1 else many).format(**values), single, values, many))


def mark(pattern: str) -> str:
    """The pattern, which something else composes later: marks it for the catalogues of translations."""
    return pattern


def join(separator: str, parts: Iterable[str]) -> Text:
    """Parts with a separator between them, which is not translated."""
    listed = list(parts)
    pattern = separator.replace("{", "{{").replace("}", "}}").join(f"{{p{i}}}" for i in range(len(listed)))
    return _known(Text(separator.join(listed), pattern, {f"p{i}": part for i, part in enumerate(listed)}))


def join_some(parts: Sequence[str], limit: int) -> Text:
    """The first parts, and how many more there are: a, b and 3 more."""
    shown = join(", ", parts[:limit])
    if len(parts) <= limit:
        return shown
    return compose("{shown} and {number} more", shown=shown, number=len(parts) - limit)


def recall(text: str) -> str:
    """The text whose English form this is; the string itself if none is known."""
    return text if isinstance(text, Text) else _KNOWN.get(text, text)


def compose_line(pattern: str, /, **values: Any) -> Text:
    """`compose` for templates, where a pattern may have several lines: they become one."""
    return compose(" ".join(pattern.split()), **values)


def _known(text: Text) -> Text:
    return _KNOWN.setdefault(str(text), text)


class _Recalled:
    """How pydantic reads a composed text. Commands import this module, and most do not need pydantic."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415

        return core_schema.no_info_after_validator_function(recall, handler(source))


# A field of a stored document that holds a composed text.
Composed = Annotated[str, _Recalled()]


# A name in a stored pattern. Dots and brackets would read attributes of the values, and through them the
# environment of this process.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What a stored pattern may contain: names, and formats of numbers such as ",", "g", ".1f" and ",.0f".
_FORMAT = re.compile(r"[+]?,?(\.\d\d?)?[a-z%]?")


def as_json(text: Text) -> list[Any]:
    """Pattern, plural pattern or null, and values; a value that is a text is such a list."""
    return [text.pattern, text.plural, {name: _value_json(value) for name, value in text.values.items()}]


def _value_json(value: Any) -> Any:
    match value:
        case Text():
            return as_json(value)
        case Integral():
            return int(value)
        case Real():
            # JSON has no infinity.
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
    return str(value)


def _value(entry: Any) -> Any:
    match entry:
        case str() | int() | float():
            return entry
        case {"float": str(text)} if len(entry) == 1:
            return float(text)
    return from_json(entry)


def from_json(entry: Any) -> Text:
    """The text that `as_json` has made. Raises ValueError if the entry is something else."""
    match entry:
        case [str(pattern), None | str() as plural, dict(values)]:
            for form_of_text in (pattern, plural or ""):
                for _, name, form, conversion in Formatter().parse(form_of_text):
                    is_known = name is None or bool(
                        name in values and _NAME.fullmatch(name) and not conversion
                    )
                    if not is_known or not _FORMAT.fullmatch(form or ""):
                        raise ValueError(f"{form_of_text!r} is no pattern of these values")
            read = {name: _value(value) for name, value in values.items()}
            if plural is None:
                return compose(pattern, **read)
            number = read.pop("number", None)
            if type(number) is int:
                return compose_count(number, pattern, plural, **read)
    raise ValueError("a text is a list of pattern, plural and values")
