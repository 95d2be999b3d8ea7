"""Generators of the columns of generated tables: their models, and their form in an engine plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dbdyno.experiment.calls import Call, parse
from dbdyno.experiment.generators import (
    INTEGERS,
    Distribution,
    Generator,
    Integer,
    OneOf,
    Text,
    Uniform,
    Value,
    build_generator,
    split_words,
)
from dbdyno.experiment.keys import Keys


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
        return {"text": {**super().plan()["text"], **word, **suffix}}


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


COLUMNS: Mapping[str, type[Generator]] = {
    **INTEGERS,
    "sequence": RowSequence,
    "cycle": Cycle,
    "shuffle": Shuffle,
    "parent": Parent,
    "child_number": ChildNumber,
    "below": Below,
    "words": ColumnWords,
    "decimal": Decimal,
    "timestamp": Timestamp,
    "date": Date,
    "text": ColumnText,
    "foreign_key": ForeignKey,
    "one_of": OneOf,
    "constant": Constant,
}


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
