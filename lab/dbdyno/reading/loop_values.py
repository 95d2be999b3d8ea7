"""The values of a loop of a shell script: of `seq`, of braces, and of a loop that counts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.reading.limits import VALUES_MAX
from dbdyno.reading.patterns import linear

# "${THREADS[@]}" is a word for each element.
_ARRAY = re.compile(r"\"(\$\{\w{1,64}\[[@*]\]\})\"")
_SEQUENCE = linear(
    r"(?:\$\(|"
    r"`)\s*+seq\s++(?:-\w\s++\S++\s++)?(-?\d+)(?:\s++(-?\d+))?(?:\s++(-?\d+))?\s*+[)`]"
)
_RANGE = linear(r"\{(\d+)\.\.(\d+)(?:\.\.(\d+))?\}")
_BRACES = re.compile(r"(?<!\$)\{(\w{1,20}(?:,\w{1,20}){1,100})\}")
_COUNTER = linear(
    r"\bfor\s*+\(\(\s*+(\w+)\s*+=\s*+(\d+)\s*+;\s*+\w+\s*+(<=?|!=)\s*+(\d+)\s*+;\s*+"
    r"(?:\w+\s*+(\+\+)|\+\+\w+|\w+\s*+(\+|\*|<<)=\s*+(\d+)|\w+\s*+=\s*+\w+\s*+(\+|\*)\s*+(\d+))"
)

_WHILE = linear(
    r"(?:while|until)\s++(?:\[\[?|\(\(|test)\s*+\"?\$?\{?(\w+)\}?\"?\s*+(-le|-lt|<=|<|-gt|-ge)\s*+\"?(\d{1,9})\b"
)
_STEP = linear(
    r"(?<!\w)(\w+)=(?:\$\(\(\s*|\$\[\s*)\$?\{?(\w+)\}?\s*([*+])\s*(\d{1,9})\s*[)\]]|"
    r"\(\(\s*(\w+)\s*(?:(\+\+)|([*+])=\s*(\d{1,9}))\s*\)\)"
)


def expand_values(text: str) -> str:
    """The values of a loop with those of arrays, `seq` and braces as words."""
    if '"' in text:
        text = _ARRAY.sub(r"\1", text)
    if "seq" in text:
        text = _SEQUENCE.sub(lambda match: _words(*_sequence(match)), text)
    if "{" in text:
        text = _RANGE.sub(lambda match: _words(int(match[1]), int(match[3] or 1), int(match[2])), text)
        text = _BRACES.sub(lambda match: match[1].replace(",", " "), text)
    return text


def expand_assignment(text: str) -> str:
    """A value that is assigned: an array or a `seq` with all of its words."""
    if text.startswith("("):
        return expand_values(text)
    match = _SEQUENCE.match(text.lstrip('"'))
    return text if match is None else f'"{_words(*_sequence(match))}"'


def read_counter(text: str) -> tuple[str, Iterator[str]] | None:
    """The variable and the values of a loop that counts, such as `for ((n = 1; n <= 64; n *= 2))`; None if
    the line begins none.
    """
    match = _COUNTER.search(text)
    if match is None:
        return None
    sign = match[6] or match[8] or "+"
    step = int(match[7] or match[9] or 1)
    last = int(match[4]) if match[3] == "<=" else int(match[4]) - 1
    return match[1], _count(int(match[2]), sign, step, last)


def read_while(lines: Sequence[str], values: Mapping[str, str]) -> tuple[str, Iterator[str]] | None:
    """The variable and the values of a `while` that counts, by the lines from its first one on and the values
    before it; no values if they are not known. None if the first line begins none.
    """
    match = _WHILE.search(lines[0])
    if match is None:
        return None
    name, sign, last = match[1], match[2], int(match[3])
    for text in itertools.takewhile(lambda line: line.strip() != "done", lines[1:]):
        step = _STEP.search(text)
        if step is None or name not in (step[1], step[5]):
            continue
        start = values.get(name, "")
        is_known = start.isdecimal() and len(start) < 10 and step[2] in (name, None)
        if not is_known or sign not in ("-le", "-lt", "<=", "<"):
            return name, iter(())
        operator, amount = step[3] or step[7] or "+", int(step[4] or step[8] or 1)
        return name, _count(int(start), operator, amount, last if sign in ("-le", "<=") else last - 1)
    return None


def _count(number: int, sign: str, step: int, last: int) -> Iterator[str]:
    for _ in range(VALUES_MAX + 1):
        if number > last:
            return
        yield str(number)
        number = number + step if sign == "+" else number * step if sign == "*" else number << min(step, 64)


def _sequence(match: re.Match[str]) -> tuple[int, int, int]:
    """The first number of a `seq`, its step and its last number."""
    numbers = [int(number) for number in match.groups() if number]
    if len(numbers) == 3:
        return numbers[0], numbers[1], numbers[2]
    return (numbers[0], 1, numbers[1]) if len(numbers) == 2 else (1, 1, numbers[0])


def _words(first: int, step: int, last: int) -> str:
    numbers = range(first, last + (1 if step > 0 else -1), step or 1)
    return " ".join(map(str, itertools.islice(numbers, VALUES_MAX + 1)))
