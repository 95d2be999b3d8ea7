"""Checks the answers to administrative statements: number of rows and columns, and what is in them.

A server is not trusted: another product, a proxy or a faulty server may answer in another form, or with the
answer to another statement. `rows`, `row` and `value` then raise `UnexpectedAnswer`, which names the
statement and the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from dbdyno.redaction import until_password
from dbdyno.servers.server import ServerProblem

# Characters of an answer in a message.
_SHOWN_MAX = 100
_One = TypeVar("_One")
_Two = TypeVar("_Two")
_Three = TypeVar("_Three")
# Executes a statement and returns its rows.
Query = Callable[[str], list[tuple[Any, ...]]]
# Turns a value of the driver into one of the expected type; raises TypeError or ValueError.
Reader = Callable[[Any], _One]


class UnexpectedAnswer(ServerProblem):
    """An answer in another form than the statement has."""

    def __init__(self, sql: str, expected: str, answer: object) -> None:
        shown = repr(answer)
        shown = shown if len(shown) <= _SHOWN_MAX else shown[: _SHOWN_MAX - 1] + "…"
        super().__init__(
            f"the server answered {shorten_statement(sql)!r} with {shown} instead of {expected}",
            "check that the address is that of a server of this protocol, and what is between it and dbdyno",
            exit_code=4,
        )


def text(value: Any) -> str:
    """A text, also from bytes; a number becomes its digits. Raises ValueError for NULL."""
    if value is None:
        raise ValueError("NULL")
    return value.decode(errors="replace") if isinstance(value, bytes | bytearray) else str(value)


def text_or_empty(value: Any) -> str:
    """A text; NULL becomes an empty one."""
    return "" if value is None else text(value)


def integer(value: Any) -> int:
    """An integer of at most 64 bits. Raises ValueError."""
    digits = text(value)
    if len(digits) > len(str(1 << 64)):
        raise ValueError("too large")
    return int(digits)


def integer_or_none(value: Any) -> int | None:
    """An integer; NULL becomes None."""
    return None if value is None else integer(value)


_NAMES: dict[Reader[Any], str] = {
    text: "a text",
    text_or_empty: "a text",
    integer: "an integer",
    integer_or_none: "an integer",
}


@overload
def rows(query: Query, sql: str, first: Reader[_One], /) -> list[tuple[_One]]: ...
@overload
def rows(query: Query, sql: str, first: Reader[_One], second: Reader[_Two], /) -> list[tuple[_One, _Two]]: ...
@overload
def rows(
    query: Query, sql: str, first: Reader[_One], second: Reader[_Two], third: Reader[_Three], /
) -> list[tuple[_One, _Two, _Three]]: ...
@overload
def rows(query: Query, sql: str, /, *readers: Reader[Any]) -> list[tuple[Any, ...]]: ...
def rows(query: Query, sql: str, /, *readers: Reader[Any]) -> list[Any]:
    """The rows of a statement, with a reader for each column. Raises ServerProblem."""
    expected = "rows of " + ", ".join(_NAMES.get(read, "a value") for read in readers)
    answer = []
    for entry in query(sql):
        if len(entry) != len(readers):
            raise UnexpectedAnswer(sql, expected, entry)
        try:
            answer.append(tuple(read(cell) for read, cell in zip(readers, entry, strict=True)))
        except (TypeError, ValueError) as error:
            raise UnexpectedAnswer(sql, expected, entry) from error
    return answer


def row(query: Query, sql: str, /, *readers: Reader[Any]) -> tuple[Any, ...]:
    """The only row of a statement. Raises ServerProblem."""
    answer: list[tuple[Any, ...]] = rows(query, sql, *readers)
    if len(answer) != 1:
        raise UnexpectedAnswer(sql, "one row", answer)
    return answer[0]


def value(query: Query, sql: str, read: Reader[_One], /) -> _One:
    """The only value of a statement. Raises ServerProblem."""
    (answer,) = row(query, sql, read)
    return answer  # type: ignore[no-any-return]


def shorten_statement(sql: str, length: int = 100) -> str:
    """A statement for a message: on one line, without a password, truncated to `length` characters."""
    line = " ".join(until_password(sql).split())
    return line if len(line) <= length else line[: length - 1] + "…"
