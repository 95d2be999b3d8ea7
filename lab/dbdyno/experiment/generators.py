"""Generators of parameters and of generated columns: their models, and their form in an engine plan.

Each generator is one model, and its fields in order are the generator's arguments. To add a generator, add a
class and an entry of `PARAMETERS` or `COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from dbdyno.experiment.base import Model
from dbdyno.experiment.calls import Call, parse
from dbdyno.experiment.errors import did_you_mean
from dbdyno.experiment.keys import Keys
from dbdyno.experiment.limits import LIMITS

BIGINT_MAX = 2**63 - 1

Integer = Annotated[int, Field(ge=-BIGINT_MAX, le=BIGINT_MAX)]
# None is NULL.
Value = int | float | str | None
Weights = Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None, Field(default=None)]


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

    # Its key in an engine plan.
    key: ClassVar[str]

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


class Gaussian(IntegerRange):
    """A bell-shaped distribution: the mean of several uniform numbers."""

    iterations: int = Field(default=12, ge=1, le=1000)


class Special(Gaussian):
    """A range of frequent values in the middle, and a bell-shaped distribution for the rest."""

    percent: int = Field(default=1, ge=0, le=100)
    hot_percent: int = Field(default=75, ge=0, le=100)


class Pareto(IntegerRange):
    """Low values are the most frequent: a fraction h of the values gets a fraction 1 - h of the accesses."""

    h: float = Field(default=0.2, gt=0, lt=1)


class Zipfian(IntegerRange):
    """Low values are the most frequent, by Zipf's law; with `scattered`, values all over the range."""

    exponent: float = Field(default=0.8, ge=0, le=100)
    scattered: bool = False


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


def _parse_range(value: Any) -> Any:
    """Convert a call such as `uniform(1, 10)` to its generator."""
    return _build_generator(value, _INTEGERS) if isinstance(value, Call) else value


class ParameterList(Generator):
    """A list of random integers, for `IN (:name)`; each of them is a parameter of the engine."""

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
        return [Uniform(low=one, high=other - 1) for one, other in pairwise(bounds)]


class Latest(Generator):
    """A row that the same connection inserted recently, by Zipf's law; after its own rows the loaded ones,
    from `high` down.
    """

    # The parameter that numbers the inserted rows: a sequence without `last`.
    sequence: str = Field(min_length=1)
    low: Integer
    high: Integer
    exponent: float = Field(default=0.8, ge=0, le=100)

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        keys = Keys(distribution="zipfian", exponent=self.exponent)
        return {"latest": {**self.model_dump(exclude={"exponent"}), "distribution": keys.plan()}}


class OneOf(Generator):
    """A value from a list."""

    values: list[Value] = Field(min_length=1)
    weights: Weights = None

    @model_validator(mode="after")
    def _check_weights(self) -> OneOf:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError(
                f"it has {len(self.values)} values and {len(self.weights)} weights: each needs one"
            )
        if self.weights is not None and not any(self.weights):
            raise ValueError("its weights are all 0: at least one must be above 0")
        return self

    def plan(self) -> dict[str, Any]:
        """See `Generator`. Without `weights` all values are equally likely."""
        return {"one_of": self.model_dump(exclude_none=self.weights is None, include={"values", "weights"})}


class Csv(Generator):
    """A column of a CSV file whose first line names the columns."""

    file: str = Field(min_length=1)
    column: str = Field(min_length=1)
    order: Literal["random", "in-order"] = "random"

    def plan(self) -> dict[str, Any]:
        """See `Generator`. The engine itself reads the file."""
        return {"csv": {"from": {"path": self.file}, "column": self.column, "order": self.order}}


class StatementResult(Generator):
    """A column of the first row that an earlier statement of the transaction returned."""

    key = "result"
    statement: str = Field(min_length=1)
    # Number of the column, from 1.
    column: int = Field(default=1, ge=1, le=4096)


class RowSequence(Generator):
    """`first`, `first + step`, and so on, in the order of the rows; after `last` it continues at `first`."""

    key = "sequence"
    first: Integer = 1
    step: Integer = 1
    last: Integer | None = None

    def plan(self) -> dict[str, Any]:
        """See `Generator`."""
        return {self.key: self.model_dump(exclude_none=True)}


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


class Text(Generator):
    """Random letters and digits. With two lengths, the length is random between them."""

    length: int = Field(ge=0, le=LIMITS["text_length"])
    longest: int | None = Field(default=None, ge=0, le=LIMITS["text_length"])
    alphabet: str | None = Field(default=None, min_length=1)

    def plan(self) -> dict[str, Any]:
        """See `Generator`. With `longest`, the length is a range."""
        length = self.length if self.longest is None else {"low": self.length, "high": self.longest}
        alphabet = {} if self.alphabet is None else {"alphabet": self.alphabet}
        return {"text": {"length": length, **alphabet}}


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


_INTEGERS: Mapping[str, type[Generator]] = {
    one.__name__.lower(): one for one in (Uniform, Zipfian, Pareto, Gaussian, Special)
}

PARAMETERS: Mapping[str, type[Generator]] = {
    **_INTEGERS,
    "sequence": Sequence,
    "list": ParameterList,
    "latest": Latest,
    "text": Text,
    "one_of": OneOf,
    "csv": Csv,
    "result": StatementResult,
}

COLUMNS: Mapping[str, type[Generator]] = {
    **_INTEGERS,
    "sequence": RowSequence,
    "decimal": Decimal,
    "timestamp": Timestamp,
    "date": Date,
    "text": Text,
    "foreign_key": ForeignKey,
    "one_of": OneOf,
    "constant": Constant,
}


def parameter(text: str, rows: Mapping[str, int]) -> Generator:
    """The generator of a parameter. Raises ValueError, whose text says what to write."""
    return _build_generator(parse(text, rows), PARAMETERS)


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
    values = _build_generator(Call(call.name, call.arguments, named), COLUMNS).plan()
    return {"name": name, "values": values, **({"nulls": float(nulls)} if nulls else {})}


def _build_generator(call: Call, known: Mapping[str, type[Generator]]) -> Generator:
    kind = known.get(call.name)
    if kind is None:
        raise ValueError(f"there is no generator {call.name}. {did_you_mean(call.name, known)}")
    fields = list(kind.model_fields)
    if kind is OneOf:
        arguments: dict[str, Any] = {"values": list(call.arguments), **call.named}
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
    if kind is OneOf:
        return "one_of('a', 'b', weights=[9, 1])"
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
