"""The command lines in a document, with the values of a script's variables and loops.

A script is read, not run: a value from a command, an argument or the environment is not known, and its
`$NAME` stays.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.reading.document import Document
from dbdyno.reading.limits import LINE_MAX, PASSES_CHARACTERS_MAX, PASSES_MAX, VALUE_MAX, VALUES_MAX, linear
from dbdyno.text import Text, compose

_VARIABLE = linear(
    r"\$(?:\{(?P<braced>\w+|[@*])(?::?[-=](?P<default>[^}]{0,200}))?(?:\[[@*]\])?\}|(?P<bare>\w+|[@*]))"
)
# All arguments of a function are as many words in quotes; a value that has an argument.
_ALL_ARGUMENTS = re.compile(r"\"(\$(?:\{@\}|@))\"")
_ARGUMENT = re.compile(r"\$(?:[\d@*]|\{[\d@*]\})")
# Where a command begins whose output is taken, or that is all of a line.
_SUBSTITUTED_MAX = 5
_SUBSTITUTION = linear(r"\$\((?!\()|=\"?`|^[\s*+\-]{0,20}`(?!`)")
# What begins, continues and ends branches, and the pattern of a branch of `case`.
_BRANCH = linear(
    r"(?<!\s)\s*+(if\s(?=.{0,1000}(?:\[|\btest\b|\bthen\b))(?!.{0,1000}\bfi\b)|case\s(?=.{0,1000}\bin\s*$)|elif\b|else\b|"
    r"fi\b|esac\b)"
)
_PATTERN = linear(r"(?<!\s)\s*+\(?([\w\"'*|.\- ]{1,100})\)\s*+")
_ASSIGNMENT = linear(r"(?:^|[;&]|\bdo\b|\bexport|\blocal|\breadonly|\bdeclare(?:\s+-\w+)?)\s*+(\w+)=")
# A line that declares variables, several of which it may set.
_DECLARES = linear(r"(?<!\s)\s*+(?:export|local|readonly|declare)\s")
_DECLARED = linear(r"\s(\w+)=")
# A line that sets a variable, and one that sets it only for the call of a program.
_SET = linear(r"(?<!\s)\s*+(?:(?:export|local|readonly|declare(?:\s+-\w+)?)\s+)?(?<!\w)\w++=")
_SET_FOR_CALL = linear(
    r"(?<!\s)\s*+(?<!\w)\w++=[^\s\"'(]*+\s++(?:(?:\S*/)?[a-z][\w\-]*+|\"?\$\{?\w++\}?\"?)\s"
)
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
# Lines of a loop in which its variable is counted.
_LOOP_LINES = 60
_VALUE = linear(
    r"(\$\{\w{1,64}:?[-=][^}]{0,1000}\})|\"((?:[^\"\\]|\\.){0,1000}+)\"|'([^']{0,1000}+)'|([^\s;&|)]{0,1000}+)"
)
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
    # Whether it depends on a branch with which values it runs.
    is_alternative: bool = False


def commands(document: Document, programs: re.Pattern[str]) -> Iterator[Command]:
    """The commands whose line matches `programs`, once for each pass of the loops whose variables they
    use.
    """
    script = _Script(document, programs)
    functions = _functions(document, programs)
    for first, last, text in _logical_lines(document, programs):
        script.first = first
        if functions and (first in functions or text.startswith("}")):
            script.call_function(functions.get(first, []))
        if text.lstrip().startswith("#") and not programs.search(text):
            continue
        rest = script.begin(text)
        calls = (
            [entry for entry in _substituted(rest) if script.may_call(entry)] if script.may_call(rest) else []
        )
        if "=" in rest and _SET.match(rest) and not _SET_FOR_CALL.match(rest):
            script.assign(rest)
        elif not calls and script.may_call(rest):
            calls = [rest]
        for call in calls:
            is_alternative = script.is_alternative(call)
            for words in script.passes(_without_list(call)):
                yield Command(tuple(words), first, last, is_alternative)


def _substituted(text: str) -> Iterator[str]:
    """The first commands of a line whose output is taken, as in `X=$(command)`, or that are all of it."""
    for match in itertools.islice(_SUBSTITUTION.finditer(text), _SUBSTITUTED_MAX):
        depth = 1
        for place in range(match.end(), len(text)):
            depth += (text[place] == "(") - (text[place] == ")")
            if (text[place] == "`") if match[0].endswith("`") else not depth:
                yield text[match.end() : place]
                break
        else:
            yield text[match.end() :]


def _functions(document: Document, programs: re.Pattern[str]) -> dict[int, list[dict[str, str]]]:
    """The arguments of each call of a function by their numbers, by the index of its first line."""
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
    calls: dict[int, list[dict[str, str]]] = {}
    for index, text in document.lines():
        script.first = index
        rest = script.begin(text)
        if "=" in rest and _SET.match(rest) and not _SET_FOR_CALL.match(rest):
            script.assign(rest)
        for part in _COMMAND_END.split(rest)[:_PARTS_MAX]:
            word = part.split(maxsplit=1)[:1]
            begin = begins.get(word[0]) if word else None
            if begin is None or begin == index:
                continue
            listed = calls.setdefault(begin, [])
            for words in itertools.islice(script.expand(part), max(0, PASSES_MAX - len(listed))):
                arguments = until_end(tuple(words[1:]))
                numbered = dict(zip(map(str, range(1, _ARGUMENTS_MAX)), arguments, strict=False))
                listed.append({**numbered, "@": shlex.join(arguments), "*": shlex.join(arguments)})
    return calls


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
    words = [text.strip().removeprefix("- ").strip("\"'")] if is_listed else [_without_list(text)]
    while _may_follow(document, first, index, " ".join(words)):
        line = texts[index + 1]
        if (match := _ARGUMENTS.match(line)) is not None:
            words.append(_without_list(match[1].strip()) if match[1] else "")
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
    """The variables of a script: those with one value, and those whose value depends on a loop's pass, a
    function's call or a branch.
    """

    def __init__(self, document: Document, programs: re.Pattern[str]) -> None:
        self._document = document
        self._programs = programs
        # Values have no names of other variables than those that vary, so they follow these.
        self._values: dict[str, str] = {}
        # The passes of each loop by its variable, the calls of a function by "()", and the branches of an
        # `if` or `case`: in each, the values of its variables.
        self._passes: dict[str, list[dict[str, str]]] = {}
        # The variables that vary, and with which of the passes.
        self._varies: dict[str, str] = {}
        # The keys of the open `if` and `case`, the innermost last.
        self._open: list[str] = []
        # The variables of which a value calls one of the programs.
        self._calling: set[str] = set()
        # What the passes after the first of each command may have together.
        self._characters = PASSES_CHARACTERS_MAX
        # Index of the line that is read.
        self.first = 0

    def call_function(self, calls: list[dict[str, str]]) -> None:
        """Keeps the arguments of the calls of the function that begins here; none where it ends."""
        if "()" in self._passes:
            self._varies = {name: key for name, key in self._varies.items() if key != "()"}
            self._values = {
                name: value for name, value in self._values.items() if not _ARGUMENT.search(value)
            }
        self._passes["()"] = calls
        self._varies |= {name: "()" for call in calls for name in call}

    def begin(self, text: str) -> str:
        """Keeps what begins or ends in a line: loops with the values of their variables, and branches. The
        line without the pattern of a `case`.
        """
        if (pattern := _PATTERN.match(text)) is not None and self._open and self._open[-1].startswith("case"):
            self._branch(is_other=pattern[1] == "*")
            text = text[pattern.end() :]
        elif (branch := _BRANCH.match(text)) is not None:
            self._begin_branch(branch[1])
        if "while" in text or "until" in text:
            lines = self._document.texts[self.first : self.first + _LOOP_LINES]
            if (loop := _read_while([text, *lines[1:]], self._values)) is not None:
                self._loop(*loop)
        if "for" not in text:
            return text
        for name, values in _LOOP.findall(text):
            listed = _expand_values(values)
            is_known = "$(" not in listed and "`" not in listed
            self._loop(
                name, (word for entry in self.expand(listed) for word in entry) if is_known else iter(())
            )
        if "((" in text:
            # In arithmetic a variable needs no dollar.
            bare = text[:LINE_MAX].replace("$", "")
            named = _WORD.sub(lambda match: self._values.get(match[0], match[0]), bare)
            if (loop := _read_counter(named[:LINE_MAX])) is not None:
                self._loop(*loop)
        return text

    def _begin_branch(self, word: str) -> None:
        """Opens or closes an `if` or `case`, or begins its next branch."""
        if word in ("fi", "esac"):
            self._open = self._open[:-1]
        elif word.startswith(("if", "case")):
            self._open.append(f"{word[:4].strip()} {self.first}")
            # Without `else` none of the branches may be taken.
            self._passes[self._open[-1]] = [{}, {}]
        elif self._open:
            self._branch(is_other=word == "else")

    def _branch(self, *, is_other: bool) -> None:
        branches = self._passes[self._open[-1]]
        if len(branches) < VALUES_MAX:
            branches.append({})
        if is_other:
            del branches[0]

    def _loop(self, name: str, values: Iterator[str]) -> None:
        """Keeps the values of a loop's variable, as many as are followed; without any they are not known."""
        kept = list(itertools.islice(values, VALUES_MAX + 1))
        if len(kept) > VALUES_MAX:
            text = compose(
                "{name} has more than {limit:,} values; the first {limit:,} are read",
                name=name,
                limit=VALUES_MAX,
            )
            self._leave_out("values", text)
        self._passes[name] = [{name: self._keep(name, value)} for value in kept[:VALUES_MAX]]
        self._varies[name] = name
        if not kept:
            del self._varies[name]
            self._values.pop(name, None)

    def _keep(self, name: str, value: str) -> str:
        """The characters of a value that are read."""
        if len(value) > VALUE_MAX:
            text = compose(
                "{name} has a value of more than {limit:,} characters; the first {limit:,} are read",
                name=name,
                limit=VALUE_MAX,
            )
            self._leave_out("value", text)
        if self._programs.search(value):
            self._calling.add(name)
        return value[:VALUE_MAX]

    def assign(self, text: str) -> None:
        """Keeps the value of each variable that the line sets; one from a command has none."""
        for match in (_DECLARED if _DECLARES.match(text) else _ASSIGNMENT).finditer(text):
            name = match[1]
            value = _first_word(_expand_assignment(text[match.end() : match.end() + VALUE_MAX + 2]))
            if not self._passes.get("()"):
                # The script's own arguments are not those of its functions.
                value = _ARGUMENT.sub(f"${name}", value)
            is_known = "$(" not in value and "`" not in value and value != f"${name}"
            value = self._replaced(value, self._values) if is_known else ""
            if self._open and is_known and "$" not in value:
                self._passes[self._open[-1]][-1][name] = self._keep(name, value)
                self._varies[name] = self._open[-1]
            elif not self._open or name not in self._values.keys() | self._varies.keys():
                self._calling.discard(name)
                self._varies.pop(name, None)
                if is_known:
                    self._values[name] = self._keep(name, value)
                else:
                    self._values.pop(name, None)

    def may_call(self, text: str) -> bool:
        """Whether a line calls one of the programs, also as the value of a variable."""
        if self._programs.search(text):
            return True
        return bool(self._calling) and any(
            _name(match) in self._calling for match in _VARIABLE.finditer(text)
        )

    def is_alternative(self, text: str) -> bool:
        """Whether the values of a line's variables depend on a branch."""
        text = self._replaced(text, self._values)
        keys = {self._varies.get(_name(match), "") for match in _VARIABLE.finditer(text)}
        return any(" " in key for key in keys)

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
        text = self._replaced(_ALL_ARGUMENTS.sub(r"\1", text), self._values)
        names = dict.fromkeys(_name(match) for match in _VARIABLE.finditer(text)) if "$" in text else {}
        keys = dict.fromkeys(self._varies[name] for name in names if name in self._varies)
        combinations = itertools.product(*(self._passes_of(key, names) for key in keys))
        for number, combination in enumerate(combinations):
            if number:
                self._characters -= len(text)
                if self._characters < 0:
                    self._leave_out_passes()
                    return
            replaced = self._replaced(
                text, {name: value for entry in combination for name, value in entry.items()}
            )
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

    def _passes_of(self, key: str, names: Iterable[str]) -> list[dict[str, str]]:
        """The values of names in each pass that has them; those of calls and branches once if equal."""
        used = [name for name in names if self._varies.get(name) == key]
        # Later passes would be left out.
        listed = self._passes[key] if self._characters > 0 else self._passes[key][:1]
        passes = [
            {name: entry.get(name, self._values.get(name, "")) for name in used}
            for entry in listed
            if all(name in entry or name in self._values for name in used)
        ]
        if key in self._varies:
            return passes
        return list({tuple(entry.values()): entry for entry in passes}.values())

    def _replaced(self, text: str, values: Mapping[str, str]) -> str:
        """The text with these values of its variables; those that vary and have no value here stay."""
        parts: list[str] = []
        size = end = 0
        for match in _VARIABLE.finditer(text) if "$" in text and self._characters > 0 else ():
            # ${NAME:-default} of an unknown variable is its default.
            name, default = _name(match), match["default"]
            is_varied = values is self._values and name in self._varies
            value = match[0] if is_varied or default is None else default.strip("\"'")
            parts += [text[end : match.start()], value if is_varied else values.get(name, value)]
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


def _without_list(text: str) -> str:
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


def _expand_values(text: str) -> str:
    """The values of a loop with those of arrays, `seq` and braces as words."""
    if '"' in text:
        text = _ARRAY.sub(r"\1", text)
    if "seq" in text:
        text = _SEQUENCE.sub(lambda match: _words(*_sequence(match)), text)
    if "{" in text:
        text = _RANGE.sub(lambda match: _words(int(match[1]), int(match[3] or 1), int(match[2])), text)
        text = _BRACES.sub(lambda match: match[1].replace(",", " "), text)
    return text


def _expand_assignment(text: str) -> str:
    """A value that is assigned: an array or a `seq` with all of its words."""
    if text.startswith("("):
        return _expand_values(text)
    match = _SEQUENCE.match(text.lstrip('"'))
    return text if match is None else f'"{_words(*_sequence(match))}"'


def _read_counter(text: str) -> tuple[str, Iterator[str]] | None:
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


def _read_while(lines: Sequence[str], values: Mapping[str, str]) -> tuple[str, Iterator[str]] | None:
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
