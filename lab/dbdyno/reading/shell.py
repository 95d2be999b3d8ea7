"""The command lines in a document, with the values of a script's variables and loops.

A script is read, not run: a value from a command, an argument or the environment is not known, and its
`$NAME` stays.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dbdyno.reading.document import Document

_VARIABLE = re.compile(r"\$\{?(\w+)(?::?[-=]([^}]*))?(?:\[[@*]\])?\}?")
_ASSIGNMENT = re.compile(r"(?:^|[;&]|\bdo\b|\bexport|\blocal|\breadonly|\bdeclare(?:\s+-\w+)?)\s*(\w+)=")
# A line that sets a variable, and one that sets it only for the call of a program.
_SET = re.compile(r"\s*(?:(?:export|local|readonly|declare(?:\s+-\w+)?)\s+)?\w+=")
_SET_FOR_CALL = re.compile(r"\s*\w+=[^\s\"'(]*\s+(?:\S*/)?[a-z][\w\-]*\s")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;\n]*)")
# A loop that gives more commands than this is not followed further.
_COMMANDS_MAX = 500
# Lines that one command line is wrapped over, at most.
_WRAPPED_MAX = 60
_OPTION = re.compile(r"\s*-{1,2}[a-zA-Z]")
_ENDS = ("|", "||", "&&", ";", "&")


@dataclass(frozen=True)
class Command:
    """The words of one command, and the indexes of its first and last line."""

    words: tuple[str, ...]
    first: int
    last: int
    # The number of the loop's pass that gave these values; 0 outside of loops.
    number: int = 0


@dataclass
class _Variables:
    """The values of variables, each with all values of its loop."""

    values: dict[str, list[str]] = field(default_factory=dict)


def commands(document: Document, programs: re.Pattern[str]) -> Iterator[Command]:
    """The commands whose line matches `programs`, once for each pass of the loops whose variables they
    use.
    """
    variables = _Variables()
    for first, last, text in _logical_lines(document, programs):
        if text.lstrip().startswith("#") and not programs.search(text):
            continue
        for name, values in _LOOP.findall(text):
            variables.values[name] = [word for one in expand(values, variables.values) for word in one]
        if _SET.match(text) and not _SET_FOR_CALL.match(text):
            assign(text, variables.values)
        elif _may_call(text, programs, variables.values):
            calls = itertools.islice(expand(text, variables.values), _COMMANDS_MAX)
            for number, words in enumerate(calls):
                yield Command(tuple(words), first, last, number)


def _logical_lines(document: Document, programs: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """First and last index and text of each line, joined with the lines that it was wrapped over."""
    index = 0
    texts = document.texts
    while index < len(texts):
        first, text = index, texts[index]
        while text.endswith("\\") and index + 1 < len(texts) and index - first < _WRAPPED_MAX:
            index += 1
            text = f"{text[:-1]} {texts[index]}"
        if programs.search(text):
            # Pages and editors wrap long commands without a backslash.
            while index + 1 < len(texts) and index - first < _WRAPPED_MAX and _continues(texts[index + 1]):
                index += 1
                text = f"{text.removesuffix(chr(92))} {texts[index]}"
        yield first, index, text
        index += 1


def _continues(text: str) -> bool:
    """Whether a line is the rest of the command above it: options, or the last word of a call of sysbench."""
    return bool(_OPTION.match(text)) or text.strip() in (
        *("prepare", "run", "cleanup"),
        *("oltp_read_only", "oltp_write_only", "oltp_read_write", "oltp_point_select"),
    )


def _may_call(text: str, programs: re.Pattern[str], values: Mapping[str, list[str]]) -> bool:
    """Whether a line calls one of the programs, also as the value of a variable."""
    names = (match[1] for match in _VARIABLE.finditer(text))
    return bool(programs.search(text)) or any(
        programs.search(value) for name in names for value in values.get(name, [])
    )


def assign(text: str, values: dict[str, list[str]]) -> None:
    """Keeps the value of each variable that the line sets; one from a command has none."""
    for match in _ASSIGNMENT.finditer(text):
        value = _first_word(text[match.end() :])
        if "$(" in value or "`" in value:
            values.pop(match[1], None)
        else:
            values[match[1]] = [" ".join(words) for words in expand(value, values, quoted=False)]


def _first_word(text: str) -> str:
    """The first word of the shell, without its quotes; the elements of an array."""
    if text.startswith("("):
        return text[1:].partition(")")[0].replace('"', "").replace("'", "")
    match = re.match(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;&|)]*)", text)
    assert match is not None, "the last alternative matches any text"
    return next((group for group in match.groups() if group is not None), "")


def expand(text: str, values: Mapping[str, list[str]], *, quoted: bool = True) -> Iterator[list[str]]:
    """The words of a text, once for each combination of its variables' values. Those of an unknown variable
    keep their dollar.
    """
    # Values contain no variables: they were replaced when they were set.
    names = list(dict.fromkeys(m[1] for m in _VARIABLE.finditer(text) if m[1] in values))
    for combination in itertools.product(*(values[name] for name in names)):
        chosen = dict(zip(names, combination, strict=True))

        def value(match: re.Match[str], chosen: Mapping[str, str] = chosen) -> str:
            # ${NAME:-default} of an unknown variable is its default.
            return chosen.get(match[1], match[2] if match[2] is not None else match[0])

        replaced = _VARIABLE.sub(value, text)
        if not quoted:
            yield [replaced]
            continue
        try:
            yield shlex.split(replaced, comments=True)
        except ValueError:
            yield replaced.replace('"', " ").replace("'", " ").split()


def until_end(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the first command of a pipe or list, without redirections."""
    kept = itertools.takewhile(lambda word: word not in _ENDS and not re.match(r"\d*[<>]", word), words)
    return tuple(word.rstrip(";") for word in kept)
