"""Generators of parameters and of the columns of generated tables: their models, and their form in an engine
plan.

Each generator is one model, and its fields in order are the generator's arguments. To add a generator, add a
class and an entry of `PARAMETERS` or `COLUMNS`. `Keys` is the distribution of those that choose rows.

A generator is written as `zipfian(1, 1_000, exponent=0.9)`, in the syntax of a Python call: numbers with
underscores, text in quotes, `null`, `true`, lists, names, `name=value`, sums and products of integers.
`rows(TABLE)` is the number of rows of a generated table. All other syntax is an error.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, create_model, model_validator

from dbdyno.experiment.base import LIMITS, Model
from dbdyno.experiment.errors import did_you_mean

# Longer than any list of values that a person writes.
TEXT_LENGTH_MAX = 100_000

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True)
class Call:
    """One generator."""

    name: str
    # Positional arguments: numbers, text, None, truth values, lists of these, and calls.
    arguments: tuple[Any, ...]
    # Arguments with names.
    named: Mapping[str, Any]


def parse(text: str, rows: Mapping[str, int]) -> Call:
    """Parse a generator; `rows` has the row count of each generated table. Raises ValueError, whose text says
    what to write.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise ValueError(f"it has {len(text)} characters; the maximum is {TEXT_LENGTH_MAX}")
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError('a generator is a name and its arguments, as in "uniform(1, 1_000_000)"') from None
    value = _value(node, rows)
    if not isinstance(value, Call):
        raise ValueError('a generator is a name and its arguments, as in "uniform(1, 1_000_000)"')
    return value


def replace_names(text: str, values: Mapping[str, int | float]) -> str:
    """`text` with numbers in place of the names of `values`; names of functions and arguments stay. Text
    that is no expression stays as it is.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    replacer = _NameReplacer(values)
    replaced = replacer.visit(tree)
    return ast.unparse(replaced) if replacer.count else text


def parse_number(text: str, values: Mapping[str, int | float]) -> int | float | None:
    """The number that an expression such as `100_000 * scale` has; None if it has none."""
    try:
        value = _value(ast.parse(replace_names(text, values).strip(), mode="eval").body, {})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, int | float) else None


class _NameReplacer(ast.NodeTransformer):
    """Replaces names by numbers, except names of functions."""

    def __init__(self, values: Mapping[str, int | float]) -> None:
        self._values = values
        # How many names were replaced.
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave the function's name."""
        node.args = [self.visit(arg) for arg in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace the name if it has a value."""
        if node.id not in self._values:
            return node
        self.count += 1
        return ast.Constant(self._values[node.id])


def _value(node: ast.expr, rows: Mapping[str, int]) -> Any:
    """The value of an argument. Raises ValueError."""
    match node:
        case ast.Constant(value=str() | int() | float() as constant) if not isinstance(constant, bool):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Name(id="null" | "NULL") | ast.Constant(value=None):
            return None
        case ast.Name(id="true" | "false" as word):
            return word == "true"
        case ast.Name(id=word):
            return word
        case ast.List(elts=elements):
            return [_value(element, rows) for element in elements]
        case ast.BinOp(left=left, op=how, right=right) if type(how) in _OPERATORS:
            numbers = (_value(left, rows), _value(right, rows))
            if all(isinstance(number, int) for number in numbers):
                return _OPERATORS[type(how)](*numbers)
        case ast.Call(func=ast.Name(id="rows"), args=[table], keywords=[]):
            return _rows(_value(table, rows), rows)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=named):
            if all(keyword.arg for keyword in named):
                return Call(
                    name,
                    tuple(_value(argument, rows) for argument in arguments),
                    {str(keyword.arg): _value(keyword.value, rows) for keyword in named},
                )
        case _:
            pass
    raise ValueError(
        f"{ast.unparse(node)} is not an argument; write a number, text in quotes, null, a list or name=value"
    )


def _rows(table: Any, rows: Mapping[str, int]) -> int:
    if table not in rows:
        row_names = ", ".join(rows) or "none"
        raise ValueError(f"rows({table}): there is no generated table {table}; there are: {row_names}")
    return rows[table]


BIGINT_MAX = 2**63 - 1

Integer = Annotated[int, Field(ge=-BIGINT_MAX, le=BIGINT_MAX)]
# None is NULL.
Value = int | float | str | None
Weights = Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None, Field(default=None)]


DistributionName = Literal["uniform", "gaussian", "special", "pareto", "zipfian", "nurand"]


class Keys(Model):
    """Which rows are accessed: sysbench's distributions, with its parameters and their defaults."""

    distribution: DistributionName = "uniform"
    """Name of the distribution."""
    iterations: int = Field(default=12, ge=1, le=1000)
    """gaussian, special: how many uniform numbers are averaged to give the bell curve."""
    percent: int = Field(default=1, ge=0, le=100)
    """special: width of the hot range, in percent of the rows."""
    hot_percent: int = Field(default=75, ge=0, le=100)
    """special: share of the accesses that the hot range gets, in percent."""
    h: float = Field(default=0.2, gt=0, lt=1)
    """pareto: a fraction h of the rows gets a fraction 1 - h of the accesses."""
    exponent: float = Field(default=0.8, ge=0, le=100)
    """zipfian: row k is chosen in proportion to 1 / k^exponent."""
    scattered: bool = False
    """zipfian: the hottest rows are scattered over the table, as in YCSB, instead of its first ones."""

    a: int = Field(default=8191, ge=0, le=2**40)
    """nurand (TPC-C): largest number that is combined with a uniform one by a bitwise OR."""
    c: int = Field(default=0, ge=0, le=2**40)
    """nurand: a constant that moves the frequent values, at most `a`."""

    def plan(self) -> str | dict[str, Any]:
        """The `workload.keys` of an engine plan: the distribution with its own parameters only."""
        parameters = {name: getattr(self, name) for name in _KEY_PARAMETERS[self.distribution]}
        if not self.scattered:
            # Plans and data of version 0.2.0, which does not know this key, stay as they were.
            parameters.pop("scattered", None)
        return {self.distribution: parameters} if parameters else "uniform"


def _from_name(value: Any) -> Any:
    return {"distribution": value} if isinstance(value, str) else value


KeysOrName = Annotated[Keys, BeforeValidator(_from_name, json_schema_input_type=DistributionName | Keys)]
_KEY_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "gaussian": ("iterations",),
    "special": ("iterations", "percent", "hot_percent"),
    "pareto": ("h",),
    "zipfian": ("exponent", "scattered"),
    "nurand": ("a", "c"),
}


def _parse_distribution(value: Any) -> Any:
    """Convert a distribution such as `zipfian` or `zipfian(exponent=1.1)` to `Keys`."""
    if isinstance(value, Call):
        if value.arguments:
            raise ValueError(f"write its parameters by name, as in {value.name}(exponent=1.1)")
        return Keys.model_validate({"distribution": value.name, **value.named})
    return Keys.model_validate({"distribution": value}) if isinstance(value, str) else value


Distribution = Annotated[Keys, BeforeValidator(_parse_distribution), PlainSerializer(Keys.plan)]


class Generator(Model):
    """A generator of values."""

    # Its name, which is its key in an engine plan too.
    key: ClassVar[str]
    # The field that gets all arguments without a name, if there is one, and an example.
    rest: ClassVar[str] = ""
    usage: ClassVar[str] = ""

    def plan(self) -> dict[str, Any]:
        """The generator in an engine plan."""
        return {self.key: self.model_dump(by_alias=True)}


class IntegerRange(Generator):
    """A random integer; the other fields are the parameters of its distribution."""

    low: Integer
    high: Integer

    @model_validator(mode="after")
    def _check_order(self) -> IntegerRange:
        if self.low > self.high:
            raise ValueError(f"it goes from {self.low} to {self.high}: write the lower value first")
        if self.high - self.low >= 2**62:
            raise ValueError(f"it goes from {self.low} to {self.high}, which is more than 2^62 values")
        return self

    def plan(self) -> dict[str, Any]:
        """See `Generator`. The parameters of a distribution are nested under its name."""
        parameters = self.model_dump(exclude={"low", "high"})
        keys = Keys.model_validate({"distribution": type(self).__name__.lower(), **parameters})
        return {"integer": {"low": self.low, "high": self.high, "distribution": keys.plan()}}


class Uniform(IntegerRange):
    """All values are equally likely."""

    # A parameter whose value is left out.
    other_than: str | None = None

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        integer = {"low": self.low, "high": self.high, "distribution": Keys().plan()}
        return {"integer": {**integer, **({"other_than": self.other_than} if self.other_than else {})}}


def _integer_range(name: str) -> type[IntegerRange]:
    """The integers of a distribution, whose parameters are those of `Keys`."""
    keys = {parameter: Keys.model_fields[parameter] for parameter in _KEY_PARAMETERS[name]}
    fields: Any = {parameter: (field.annotation, field) for parameter, field in keys.items()}
    return create_model(name, __base__=IntegerRange, **fields)


class Nurand(IntegerRange):
    """The non-uniform random numbers of TPC-C, clause 2.1.6."""

    a: int = Field(ge=0, le=2**40)
    c: int = Field(default=0, ge=0, le=2**40)

    @model_validator(mode="after")
    def _check_constant(self) -> Nurand:
        if self.c > self.a:
            raise ValueError(f"its constant c is {self.c}: it must not be above a, which is {self.a}")
        if self.low < 0:
            raise ValueError(f"it begins at {self.low}: the lowest value must not be below 0")
        return self


class Connection(Generator):
    """An integer that is constant on each connection."""

    key = "connection"
    low: Integer
    high: Integer
    # Number of consecutive connections with the same value.
    every: int = Field(default=1, ge=1)


class Repetition(Generator):
    """The number of the current repetition of a loop, from 1."""

    key = "repetition"


class Sequence(Generator):
    """Consecutive integers; no two users get the same one."""

    key = "sequence"
    first: Integer = 1
    # The sequence restarts after this value. None: it never ends.
    last: Integer | None = None
    # `random`: scattered evenly over the range, each number once before any comes again.
    order: Literal["rising", "random"] = "rising"

    @model_validator(mode="after")
    def _check_order(self) -> Sequence:
        if self.last is None and self.order == "random":
            raise ValueError("order='random' needs a last number, as in sequence(1, rows(t), order='random')")
        if self.last is not None and self.last < self.first:
            raise ValueError(f"it goes from {self.first} to {self.last}: write the lower value first")
        return self

    def plan(self) -> dict[str, Any]:
        """See `Generator`. Without an order it is rising."""
        return {self.key: self.model_dump(exclude={"order"} if self.order == "rising" else set())}


def split_words(value: Any) -> Any:
    """Convert words with spaces between them to a list."""
    return value.split() if isinstance(value, str) else value


def _parse_range(value: Any) -> Any:
    """Convert a call such as `uniform(1, 10)` to its generator."""
    return build_generator(value, INTEGERS) if isinstance(value, Call) else value


class ParameterList(Generator):
    """A list of random integers, for `IN (:name)`; each of them is a parameter of the engine."""

    key = "list"
    count: int = Field(ge=1, le=LIMITS["parameters"])
    values: Annotated[IntegerRange, BeforeValidator(_parse_range)]
    # `distinct`: one value from each of `count` equal parts of the range, so that all of them differ.
    pick: Literal["random", "distinct"] = "random"

    @model_validator(mode="after")
    def _check_distinct(self) -> ParameterList:
        if self.pick == "random":
            return self
        if type(self.values) is not Uniform:
            raise ValueError("pick='distinct' is for uniform(low, high)")
        if self.values.high - self.values.low + 1 < self.count:
            raise ValueError(f"its range has fewer than {self.count} values, so they cannot be distinct")
        return self

    def members(self) -> list[IntegerRange]:
        """The generators of the list's values."""
        if self.pick == "random":
            return [self.values] * self.count
        low, size = self.values.low, self.values.high - self.values.low + 1
        bounds = [low + size * number // self.count for number in range(self.count + 1)]
        return [Uniform(low=entry, high=end - 1) for entry, end in pairwise(bounds)]


class Latest(Generator):
    """A row that the same connection inserted recently, by Zipf's law; after its own rows the loaded ones,
    from `high` down.
    """

    key = "latest"
    # The parameter that numbers the inserted rows: a sequence without `last`.
    sequence: str = Field(min_length=1)
    low: Integer
    high: Integer
    exponent: float = Field(default=0.8, ge=0, le=100)

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        keys = Keys(distribution="zipfian", exponent=self.exponent)
        return {self.key: {**self.model_dump(exclude={"exponent"}), "distribution": keys.plan()}}


class Choice(Generator):
    """The value of one of several parameters with integers."""

    key = "choice"
    rest = "parameters"
    usage = "choice(home, elsewhere, weights=[99, 1])"
    parameters: list[str] = Field(min_length=1)
    weights: Weights = None


class Words(Generator):
    """A text of words that the digits of a random number select."""

    key = "words"
    words: Annotated[list[str], BeforeValidator(split_words)] = Field(min_length=2)
    numbers: Annotated[IntegerRange, BeforeValidator(_parse_range)]

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        return {self.key: {"words": self.words, **self.numbers.plan()["integer"]}}


def write_words(words: list[str], numbers: IntegerRange, number: int) -> str:
    """The words of a number, as many as the largest number has digits."""
    digits, rest = 1, numbers.high
    while rest := rest // len(words):
        digits += 1
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, len(words))
        text = words[digit] + text
    return text


class Text(Generator):
    """Random letters and digits. With two lengths, the length is random between them."""

    key = "text"
    length: int = Field(ge=0, le=LIMITS["text_length"])
    longest: int | None = Field(default=None, ge=0, le=LIMITS["text_length"])
    alphabet: str | None = Field(default=None, min_length=1)

    def plan(self) -> dict[str, Any]:
        """See `Generator`. With `longest`, the length is a range."""
        length = self.length if self.longest is None else {"low": self.length, "high": self.longest}
        alphabet = {} if self.alphabet is None else {"alphabet": self.alphabet}
        return {self.key: {"length": length, **alphabet}}


class OneOf(Generator):
    """A value from a list."""

    key = "one_of"
    rest = "values"
    usage = "one_of('a', 'b', weights=[9, 1])"
    values: list[Value] = Field(min_length=1)
    weights: Weights = None

    @model_validator(mode="after")
    def _check_weights(self) -> OneOf:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError(
                f"it has values: {len(self.values)}, and weights: {len(self.weights)}; each value needs one"
            )
        if self.weights is not None and not any(self.weights):
            raise ValueError("its weights are all 0: at least one must be above 0")
        return self

    def plan(self) -> dict[str, Any]:
        """See `Generator`. Without `weights` all values are equally likely."""
        return {self.key: self.model_dump(exclude_none=self.weights is None, include={"values", "weights"})}


class Csv(Generator):
    """A column of a CSV file whose first line names the columns."""

    key = "csv"
    file: str = Field(min_length=1)
    column: str = Field(min_length=1)
    order: Literal["random", "in-order"] = "random"

    def plan(self) -> dict[str, Any]:
        """See `Generator`. The engine itself reads the file."""
        return {self.key: {"from": {"path": self.file}, "column": self.column, "order": self.order}}


class StatementResult(Generator):
    """A column of the first row that an earlier statement of the transaction returned."""

    key = "result"
    statement: str = Field(min_length=1)
    # Number of the column, from 1.
    column: int = Field(default=1, ge=1, le=4096)
    type: Literal["text", "integer"] = "text"

    def plan(self) -> dict[str, Any]:
        """See `Generator`. Without a type it is text."""
        return {self.key: self.model_dump(exclude={"type"} if self.type == "text" else set())}


INTEGERS: Mapping[str, type[Generator]] = {
    "uniform": Uniform,
    **{name: _integer_range(name) for name in ("zipfian", "pareto", "gaussian", "special")},
    "nurand": Nurand,
}


def _with_integers(*kinds: type[Generator]) -> Mapping[str, type[Generator]]:
    return {**INTEGERS, **{kind.key: kind for kind in kinds}}


PARAMETERS = _with_integers(
    Sequence, Connection, Repetition, Choice, Words, ParameterList, Latest, Text, OneOf, Csv, StatementResult
)


def parameter(text: str, rows: Mapping[str, int]) -> Generator:
    """The generator of a parameter. Raises ValueError, whose text says what to write."""
    return build_generator(parse(text, rows), PARAMETERS)


def build_generator(call: Call, table: Mapping[str, type[Generator]]) -> Generator:
    """The generator of a call, of those in `known`. Raises ValueError that says what to write."""
    kind = table.get(call.name)
    if kind is None:
        raise ValueError(f"there is no generator {call.name}. {did_you_mean(call.name, table)}")
    fields = list(kind.model_fields)
    if kind.rest:
        arguments: dict[str, Any] = {kind.rest: list(call.arguments), **call.named}
    elif len(call.arguments) > len(fields):
        raise ValueError(f"{call.name} has at most {len(fields)} arguments: {_usage(call.name, kind)}")
    else:
        arguments = dict(zip(fields, call.arguments, strict=False))
        if twice := sorted(arguments.keys() & call.named.keys()):
            raise ValueError(f"{twice[0]} occurs twice: {_usage(call.name, kind)}")
        arguments |= call.named
    try:
        return kind(**arguments)
    except ValidationError as error:
        raise ValueError(_error_text(error, call.name, kind)) from None


def _usage(name: str, kind: type[Generator]) -> str:
    """The syntax of a generator: its arguments, and the defaults of the optional ones."""
    if kind.usage:
        return kind.usage
    parts = [
        field
        if info.is_required()
        else f"{field}={_format_default(info.get_default(call_default_factory=True))}"
        for field, info in kind.model_fields.items()
    ]
    return f"{name}({', '.join(parts)})"


def _format_default(default: Any) -> str:
    if default is None or isinstance(default, bool):
        return str(default).lower()
    return str(default.distribution) if isinstance(default, Keys) else str(default)


def _error_text(error: ValidationError, name: str, kind: type[Generator]) -> str:
    """The first error in a generator's arguments, and the generator's syntax."""
    detail = error.errors()[0]
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    place = str(detail["loc"][0]) if detail["loc"] else name
    if detail["type"] == "extra_forbidden":
        what = f"{name} has no {place}"
    elif detail["type"] == "missing":
        what = f"{name} needs {place}"
    else:
        what = f"{place} = {detail['input']!r} is invalid: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return f"{what}. Write {_usage(name, kind)}"


class RowSequence(Generator):
    """`first`, `first + step`, and so on, in the order of the rows; after `last` it continues at `first`."""

    key = "sequence"
    first: Integer = 1
    step: Integer = 1
    last: Integer | None = None

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        return {self.key: self.model_dump(exclude_none=True)}


class Cycle(Generator):
    """Every value of a range in turn, each for `every` rows."""

    key = "cycle"
    low: Integer
    high: Integer
    every: int = Field(default=1, ge=1)


class Shuffle(Generator):
    """Every value of a range equally often in each run of `of` rows, in random order."""

    key = "shuffle"
    low: Integer
    high: Integer
    of: int = Field(ge=1)


class Parent(Generator):
    """The value of a column in the parent's row."""

    key = "parent"
    column: str = Field(min_length=1)


class ChildNumber(Generator):
    """The number of the row among those of its parent's row, from 1."""

    key = "child_number"


def _plan_source(value: Any) -> Any:
    """The generator of a call, or of a constant value, in an engine plan."""
    if isinstance(value, Call):
        return build_generator(value, COLUMNS).plan()
    return {"constant": {"value": value}} if value is not None else {"one_of": {"values": [None]}}


Source = Annotated[dict[str, Any], BeforeValidator(_plan_source)]


class Below(Generator):
    """One of two generators, depending on another column of the row."""

    key = "below"
    column: str = Field(min_length=1)
    bound: Integer
    then: Source
    otherwise: Source


class ColumnWords(Generator):
    """A text of words that the digits of a number select."""

    key = "words"
    words: Annotated[list[str], BeforeValidator(split_words)] = Field(min_length=2)
    numbers: Source


class Decimal(Generator):
    """A random number from `low` to `high` with `scale` decimal places."""

    key = "decimal"
    low: float
    high: float
    scale: int = Field(default=2, ge=0, le=18)
    distribution: Distribution = Field(default_factory=Keys)


class Timestamp(Generator):
    """A random time between two times, as `2024-01-31 12:00:00`."""

    key = "timestamp"
    begin: str = Field(serialization_alias="from")
    end: str = Field(serialization_alias="to")
    # Number of decimal places of the seconds.
    digits: int = Field(default=0, ge=0, le=6)
    order: Literal["random", "rising"] = "random"
    distribution: Distribution = Field(default_factory=Keys)


class Date(Generator):
    """A random day between two days, as `2024-01-31`."""

    key = "date"
    begin: str = Field(serialization_alias="from")
    end: str = Field(serialization_alias="to")
    order: Literal["random", "rising"] = "random"
    distribution: Distribution = Field(default_factory=Keys)


class ColumnText(Text):
    """As `Text`, with a word in some of the texts and a suffix after each."""

    # A word at a random place of a share of the texts.
    word: str | None = Field(default=None, min_length=1)
    share: float = Field(default=1.0, ge=0, le=1)
    suffix: str = ""

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        word = {} if self.word is None else {"word": {"text": self.word, "share": self.share}}
        suffix = {"suffix": self.suffix} if self.suffix else {}
        return {self.key: {**super().plan()[self.key], **word, **suffix}}


class ForeignKey(Generator):
    """A value from a column of another generated table."""

    key = "foreign_key"
    table: str = Field(min_length=1)
    column: str = Field(min_length=1)
    distribution: Distribution = Field(default_factory=Keys)


class Constant(Generator):
    """The same value in every row."""

    key = "constant"
    value: Value


COLUMNS = _with_integers(
    RowSequence, Cycle, Shuffle, Parent, ChildNumber, Below, ColumnWords, Decimal, Timestamp, Date,
    ColumnText, ForeignKey, OneOf, Constant,
)  # fmt: skip


def column(name: str, text: str, rows: Mapping[str, int]) -> dict[str, Any]:
    """The column `name` of a generated table, in an engine plan.

    Every generator accepts `nulls`, the share of rows in which the column is NULL. Raises ValueError that
    says what to write.
    """
    call = parse(text, rows)
    named = dict(call.named)
    nulls = named.pop("nulls", 0.0)
    if not isinstance(nulls, int | float) or not 0 <= nulls <= 1:
        raise ValueError("nulls is a share of the rows, from 0 to 1")
    generator = build_generator(Call(call.name, call.arguments, named), COLUMNS)
    if isinstance(generator, Uniform) and generator.other_than:
        raise ValueError("other_than names a parameter; columns have none")
    values = generator.plan()
    return {"name": name, "values": values, **({"nulls": float(nulls)} if nulls else {})}
