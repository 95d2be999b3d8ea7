"""Parses generators such as `zipfian(1, 1_000, exponent=0.9)`: a name and its arguments.

The syntax is that of a Python call: numbers with underscores, text in quotes, `null`, `true`, lists, names,
`name=value`, sums and products of integers. `rows(TABLE)` is the number of rows of a generated table. All
other syntax is an error.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
        node.args = [self.visit(one) for one in node.args]
        node.keywords = [self.visit(one) for one in node.keywords]
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
        known = ", ".join(rows) or "none"
        raise ValueError(f"rows({table}): there is no generated table {table}; there are: {known}")
    return rows[table]
