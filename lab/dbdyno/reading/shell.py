"""The command lines in a document, with the values of a script's variables and loops.

A script is read, not run: a value from a command, an argument or the environment is not known, and its
`$NAME` stays.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbdyno.reading.document import Document
from dbdyno.reading.limits import (
    LINE_MAX,
    PASSES_CHARACTERS_MAX,
    PASSES_MAX,
    VALUE_MAX,
    VALUES_MAX,
)
from dbdyno.reading.loop_values import expand_assignment, expand_values, read_counter
from dbdyno.reading.patterns import linear
from dbdyno.text import Text, compose

_VARIABLE = linear(r"\$(?:\{(?P<braced>\w+)(?::?[-=](?P<default>[^}]{0,200}))?(?:\[[@*]\])?\}|(?P<bare>\w+))")
_ASSIGNMENT = linear(r"(?:^|[;&]|\bdo\b|\bexport|\blocal|\breadonly|\bdeclare(?:\s+-\w+)?)\s*+(\w+)=")
# A line that sets a variable, and one that sets it only for the call of a program.
_SET = linear(r"(?<!\s)\s*+(?:(?:export|local|readonly|declare(?:\s+-\w+)?)\s+)?(?<!\w)\w++=")
_SET_FOR_CALL = linear(r"(?<!\s)\s*+(?<!\w)\w++=[^\s\"'(]*+\s++(?:\S*/)?[a-z][\w\-]*+\s")
_LOOP = linear(r"\bfor\s++(\w++)\s++in\s++([^;\n]{0,10000})")
# The first line of a function, and what separates commands.
_FUNCTION = linear(r"(?<!\s)\s*+(?:function\s++([\w\-]+)|([\w\-]+)\s*+\(\))")
_COMMAND_END = re.compile(r";|&&|\|\||\bdo\b|\bthen\b")
# A list of texts, and what separates them.
_LIST = linear(
    r"[\[(,]\s*+[\"'](?:[^\"'\s,]{0,200}/)?(?:sysbench|pgbench|mysqlslap|"
    r"mariadb-slap)[\"']\s*+[,\]]"
)
_LIST_SEPARATOR = re.compile(r"(?<=[\"'])\s{0,20},\s{0,20}(?=[\"'])")
# An item of a list in YAML, and the keys of a container that have its command.
_ITEM = linear(r"(?<!\s)(\s*+)-\s++(.{1,1000})")
_ITEM_PROGRAM = linear(
    r"(?<!\s)\s*+-\s++[\"']?(?:\S{0,200}/)?(?:sysbench|pgbench|mysqlslap|"
    r"mariadb-slap)[\"']?\s*$"
)
_ARGUMENTS = linear(r"(?<!\s)\s*+args:\s*+(\[.{0,5000})?$")
_WORD = linear(r"(?<!\w)[A-Za-z_]\w*")
_PARTS_MAX = 50
_ARGUMENTS_MAX = 10
_VALUE = linear(r"\"((?:[^\"\\]|\\.){0,1000}+)\"|'([^']{0,1000}+)'|([^\s;&|)]{0,1000}+)")
_REDIRECTION = linear(r"\d{0,3}[<>]")
# Lines that one command line is wrapped over, at most.
_WRAPPED_MAX = 60
_OPTION = linear(r"(?<!\s)\s*+-{1,2}[a-zA-Z]")
_ENDS = ("|", "||", "&&", ";", "&")


# What has a meaning inside of words.
_QUOTING = re.compile(r"[\"'\\#]")


@dataclass(frozen=True)
class Command:
    """The words of one command, and the indexes of its first and last line."""

    words: tuple[str, ...]
    first: int
    last: int
    # The number of the loop's pass that gave these values; 0 outside of loops.
    number: int = 0


def commands(document: Document, programs: re.Pattern[str]) -> Iterator[Command]:
    """The commands whose line matches `programs`, once for each pass of the loops whose variables they
    use.
    """
    script = _Script(document, programs)
    functions = _functions(document, programs)
    for first, last, text in _logical_lines(document, programs):
        script.first = first
        if (arguments := functions.get(first)) is not None:
            for number, values in enumerate(arguments, start=1):
                script.set(str(number), iter(values))
        if text.lstrip().startswith("#") and not programs.search(text):
            continue
        script.begin_loops(text)
        if "=" in text and _SET.match(text) and not _SET_FOR_CALL.match(text):
            script.assign(text)
        elif script.may_call(text):
            for number, words in enumerate(script.passes(without_list(text))):
                yield Command(tuple(words), first, last, number)


def _functions(document: Document, programs: re.Pattern[str]) -> dict[int, list[list[str]]]:
    """The values of the arguments with which functions are called, by the index of each one's first line."""
    begins = {
        match[1] or match[2]: index
        for index, text in document.lines()
        if "{" in text or "function" in text
        if (match := _FUNCTION.match(text))
    }
    if not begins:
        return {}
    # What was left out here is left out again, and noted, when the commands are read.
    script = _Script(Document(document.name, document.texts, document.numbers), programs)
    arguments: dict[int, list[list[str]]] = {}
    for index, text in document.lines():
        script.begin_loops(text)
        if "=" in text and _SET.match(text) and not _SET_FOR_CALL.match(text):
            script.assign(text)
        for part in _COMMAND_END.split(text)[:_PARTS_MAX]:
            word = part.split(maxsplit=1)[:1]
            begin = begins.get(word[0]) if word else None
            if begin is None or begin == index:
                continue
            listed = arguments.setdefault(begin, [])
            for words in itertools.islice(script.expand(part), PASSES_MAX):
                for number, value in enumerate(until_end(tuple(words[1:_ARGUMENTS_MAX]))):
                    listed += [[]] * (number + 1 - len(listed))
                    if value not in listed[number]:
                        listed[number] = [*listed[number], value]
    return arguments


def _logical_lines(document: Document, programs: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """First and last index and text of each line, joined with the lines that it was wrapped over."""
    index = 0
    texts = document.texts
    while index < len(texts):
        first, text = index, texts[index]
        while _may_follow(document, first, index, text) and text.endswith("\\"):
            index += 1
            text = f"{text[:-1]} {texts[index]}"
        if "bench" in text or "slap" in text:
            index, text = _with_items(document, index, text)
        if programs.search(text):
            # Pages and editors wrap long commands without a backslash.
            while _may_follow(document, first, index, text) and _continues(texts[index + 1]):
                index += 1
                text = f"{text.removesuffix(chr(92))} {texts[index]}"
        yield first, index, text
        index += 1


def _with_items(document: Document, index: int, text: str) -> tuple[int, str]:
    """The command of a container whose words are items of a list in YAML, in one line, and its last line."""
    texts = document.texts
    first = index
    is_listed = _ITEM_PROGRAM.match(text) is not None
    is_command = "command:" in text and _LIST.search(text) is not None
    if not (is_listed or is_command):
        return index, text
    words = [text.strip().removeprefix("- ").strip("\"'")] if is_listed else [without_list(text)]
    while _may_follow(document, first, index, " ".join(words)):
        line = texts[index + 1]
        if (match := _ARGUMENTS.match(line)) is not None:
            words.append(without_list(match[1].strip()) if match[1] else "")
            words[-1] = _LIST_SEPARATOR.sub(" ", words[-1]).strip("[] ")
        elif (match := _ITEM.match(line)) is not None and "\n" not in line:
            words.append(match[2])
        else:
            break
        index += 1
    return index, " ".join(words)


def _may_follow(document: Document, first: int, index: int, text: str) -> bool:
    """Whether the next line may belong to the command that begins at `first`."""
    return index + 1 < len(document.texts) and index - first < _WRAPPED_MAX and len(text) < LINE_MAX


def _continues(text: str) -> bool:
    """Whether a line is the rest of the command above it: options, or the last word of a call of sysbench."""
    return bool(_OPTION.match(text)) or text.strip() in (
        *("prepare", "run", "cleanup"),
        *("oltp_read_only", "oltp_write_only", "oltp_read_write", "oltp_point_select"),
    )


class _Script:
    """The variables of a script, each with all values of its loop."""

    def __init__(self, document: Document, programs: re.Pattern[str]) -> None:
        self._document = document
        self._programs = programs
        self._values: dict[str, list[str]] = {}
        # The variables of which a value calls one of the programs.
        self._calling: set[str] = set()
        # What the passes after the first of each command may have together.
        self._characters = PASSES_CHARACTERS_MAX
        # Index of the line that is read.
        self.first = 0

    def set(self, name: str, values: Iterator[str]) -> None:
        """Keeps the values of a variable, as many as are followed."""
        kept = list(itertools.islice(values, VALUES_MAX + 1))
        if len(kept) > VALUES_MAX:
            text = compose(
                "{name} has more than {limit:,} values; the first {limit:,} are read",
                name=name,
                limit=VALUES_MAX,
            )
            self._leave_out("values", text)
        if any(len(value) > VALUE_MAX for value in kept):
            text = compose(
                "{name} has a value of more than {limit:,} characters; the first {limit:,} are read",
                name=name,
                limit=VALUE_MAX,
            )
            self._leave_out("value", text)
        self._values[name] = [value[:VALUE_MAX] for value in kept[:VALUES_MAX]]
        self._calling.discard(name)
        if any(self._programs.search(value) for value in self._values[name]):
            self._calling.add(name)

    def begin_loops(self, text: str) -> None:
        """Keeps the values of the variables of the loops that begin in a line."""
        if "for" not in text:
            return
        for name, values in _LOOP.findall(text):
            self.set(name, (word for one in self.expand(expand_values(values)) for word in one))
        if "((" in text:
            single = {name: values[0] for name, values in self._values.items() if len(values) == 1}
            # In arithmetic a variable needs no dollar.
            named = _WORD.sub(lambda match: single.get(match[0], match[0]), text[:LINE_MAX].replace("$", ""))
            if (loop := read_counter(named[:LINE_MAX])) is not None:
                self.set(*loop)

    def assign(self, text: str) -> None:
        """Keeps the value of each variable that the line sets; one from a command has none."""
        for match in _ASSIGNMENT.finditer(text):
            value = _first_word(expand_assignment(text[match.end() : match.end() + VALUE_MAX + 2]))
            if "$(" in value or "`" in value:
                self._values.pop(match[1], None)
                self._calling.discard(match[1])
            else:
                self.set(match[1], (one[0] for one in self.expand(value, quoted=False)))

    def may_call(self, text: str) -> bool:
        """Whether a line calls one of the programs, also as the value of a variable."""
        if self._programs.search(text):
            return True
        return bool(self._calling) and any(
            _name(match) in self._calling for match in _VARIABLE.finditer(text)
        )

    def passes(self, text: str) -> Iterator[list[str]]:
        """The words of a command for each pass of its loops that is followed."""
        for number, words in enumerate(self.expand(text)):
            if number >= PASSES_MAX:
                self._leave_out_passes()
                return
            yield words

    def expand(self, text: str, *, quoted: bool = True) -> Iterator[list[str]]:
        """The words of a text, once for each combination of its variables' values. Those of an unknown
        variable keep their dollar.
        """
        if "$" not in text:
            combinations: Iterator[tuple[str, ...]] = iter([()])
            names: list[str] = []
        else:
            # Values contain no variables: they were replaced when they were set.
            used = dict.fromkeys(_name(match) for match in _VARIABLE.finditer(text))
            names = [name for name in used if name in self._values]
            combinations = itertools.product(*(self._values[name] for name in names))
        for number, combination in enumerate(combinations):
            if number:
                self._characters -= len(text)
                if self._characters < 0:
                    self._leave_out_passes()
                    return
            replaced = self._replaced(text, dict(zip(names, combination, strict=True)))
            if not quoted:
                yield [replaced]
                continue
            if not _QUOTING.search(replaced):
                # The result of `shlex`, which is twenty times slower.
                yield replaced.split()
                continue
            try:
                yield shlex.split(replaced, comments=True)
            except ValueError:
                yield replaced.replace('"', " ").replace("'", " ").split()

    def _replaced(self, text: str, values: Mapping[str, str]) -> str:
        """The text with these values of its variables."""
        parts: list[str] = []
        size = end = 0
        for match in _VARIABLE.finditer(text) if "$" in text and self._characters > 0 else ():
            # ${NAME:-default} of an unknown variable is its default.
            default = match[0] if match["default"] is None else match["default"]
            parts += [text[end : match.start()], values.get(_name(match), default)]
            size += len(parts[-1]) + len(parts[-2])
            end = match.end()
            if size > LINE_MAX:
                break
        replaced = "".join([*parts, text[end:]])
        self._characters -= max(0, len(replaced) - len(text))
        if self._characters <= 0 and "$" in text:
            note = compose(
                "the values of variables add more than {limit:,} characters to the commands; later ones "
                "stay as they are written",
                limit=PASSES_CHARACTERS_MAX,
            )
            self._leave_out("characters", note)
        if len(replaced) > LINE_MAX:
            note = compose(
                "with the values of its variables the line has more than {limit:,} characters; the first "
                "{limit:,} are read",
                limit=LINE_MAX,
            )
            self._leave_out("expansion", note)
        return replaced[:LINE_MAX]

    def _leave_out_passes(self) -> None:
        note = compose(
            "the loops around the command have more than {limit:,} passes, or those of all commands "
            "more than {characters:,} characters; the first ones are read",
            limit=PASSES_MAX,
            characters=PASSES_CHARACTERS_MAX,
        )
        self._leave_out("passes", note)

    def _leave_out(self, kind: str, text: Text) -> None:
        self._document.left_out.add(kind, self._document.numbers[self.first], text)


def without_list(text: str) -> str:
    """A command that is a list of texts, as in JSON, YAML or Python, as words of a shell."""
    if not _LIST.search(text):
        return text
    return _LIST_SEPARATOR.sub(" ", text).replace("[", " ").replace("]", " ")


def _name(match: re.Match[str]) -> str:
    return match["braced"] or match["bare"]


def _first_word(text: str) -> str:
    """The first word of the shell, without its quotes; the elements of an array."""
    if text.startswith("("):
        return text[1:].partition(")")[0].replace('"', "").replace("'", "")
    match = _VALUE.match(text)
    assert match is not None, "the last alternative matches any text"
    return next((group for group in match.groups() if group is not None), "")


def until_end(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the first command of a pipe or list, without redirections."""
    kept = itertools.takewhile(lambda word: word not in _ENDS and not _REDIRECTION.match(word), words)
    return tuple(word.rstrip(";") for word in kept)
