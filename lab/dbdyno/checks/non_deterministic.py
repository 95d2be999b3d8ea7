"""Finds non-deterministic conditions in WHERE, ON and HAVING: random numbers and the current time.

The module searches the syntax tree that sqlglot parses from a statement, and needs no server.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.dialect import POSTGRESQL, Dialect
from dbdyno.experiment.sql_text import parse_statement, sqlglot

# Functions that the server evaluates once per statement.
_PER_STATEMENT = frozenset(
    {
        *("NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURDATE", "CURTIME", "LOCALTIME"),
        *("LOCALTIMESTAMP", "UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME", "STATEMENT_TIMESTAMP"),
        "TRANSACTION_TIMESTAMP",
    }
)


@dataclass(frozen=True)
class Condition:
    """One non-deterministic condition."""

    # "row" or "statement".
    evaluated_per: str
    function: str
    # The condition as SQL, formatted by sqlglot.
    text: str
    # The condition with a parameter in place of the function; empty if it compares no column.
    parameterized: str = ""
    parameter: str = ""
    # The generator with the distribution of the expression; empty if unknown.
    generator: str = ""


def find_conditions(sql: str, dialect: Dialect) -> Iterator[Condition]:
    """The non-deterministic conditions of a statement; none if sqlglot cannot parse it, or if it has more
    levels of nesting than Python follows.
    """
    try:
        yield from _find_conditions(sql, dialect)
    except RecursionError:
        return


def _find_conditions(sql: str, dialect: Dialect) -> Iterator[Condition]:
    tree = parse_statement(sql, dialect)
    if tree is None:
        return
    exp = sqlglot().exp
    clauses = [*tree.find_all(exp.Where, exp.Having), *tree.find_all(exp.Join)]
    seen: set[int] = set()
    for clause in clauses:
        for function in clause.find_all(exp.Func, exp.Anonymous):
            name = _name(function)
            is_per_row = name in dialect.per_row_functions
            # PostgreSQL evaluates an uncorrelated subquery once; MySQL may evaluate it per row.
            is_nested = dialect is POSTGRESQL and function.find_ancestor(exp.Subquery, exp.Where) is not None
            is_evaluated_once = is_nested and isinstance(
                function.find_ancestor(exp.Subquery, exp.Where), exp.Subquery
            )
            if id(function) in seen or not (is_per_row or name in _PER_STATEMENT) or is_evaluated_once:
                continue
            if isinstance(clause, exp.Join) and function.find_ancestor(exp.Subquery) is not None:
                continue  # A derived table is evaluated once.
            seen.add(id(function))
            written = function.sql(dialect=dialect.sqlglot).partition("(")[0]
            yield _describe_condition(
                function, written, dialect, evaluated_per="row" if is_per_row else "statement"
            )


def _name(function: Any) -> str:
    exp = sqlglot().exp
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return str(name).upper()


def _describe_condition(function: Any, name: str, dialect: Dialect, *, evaluated_per: str) -> Condition:
    exp = sqlglot().exp
    comparison = function.find_ancestor(exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
    if comparison is None:
        within = function.find_ancestor(exp.Predicate) or function.parent
        return Condition(evaluated_per, name, within.sql(dialect=dialect.sqlglot))
    left, right = comparison.this, comparison.expression
    random = right if right is function or function in right.find_all(type(function)) else left
    operand = left if random is right else right
    text = comparison.sql(dialect=dialect.sqlglot)
    if not isinstance(operand, exp.Column):
        return Condition(evaluated_per, name, text)
    parameterized = comparison.copy()
    side = parameterized.expression if random is right else parameterized.this
    side.replace(exp.Var(this=f":{operand.name}"))
    return Condition(
        evaluated_per,
        name,
        text,
        parameterized.sql(dialect=dialect.sqlglot),
        operand.name,
        _generator(random),
    )


def _generator(expression: Any) -> str:
    """The generator whose values have the distribution of an expression over one random number from [0, 1);
    empty if unknown.
    """
    try:
        low, high = _value(expression, 0.0), _value(expression, math.nextafter(1.0, 0.0))
    except (TypeError, ValueError, ArithmeticError):
        return ""
    if low != int(low) or high != int(high):
        return ""
    return f"uniform({min(int(low), int(high))}, {max(int(low), int(high))})"


def _value(node: Any, random: float) -> float:
    """The value of arithmetic over one random number. Raises ValueError for any other expression."""
    exp = sqlglot().exp
    if isinstance(node, exp.Rand) and node.this is None:
        return random
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.this)
    if isinstance(node, exp.Paren | exp.Cast | exp.Neg):
        inner = _value(node.this, random)
        if isinstance(node, exp.Cast):
            return float(math.floor(inner + 0.5))
        return -inner if isinstance(node, exp.Neg) else inner
    if isinstance(node, exp.Floor | exp.Ceil | exp.Round):
        inner = _value(node.this, random)
        how = {exp.Floor: math.floor, exp.Ceil: math.ceil, exp.Round: lambda entry: math.floor(entry + 0.5)}
        return float(how[type(node)](inner))
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = _value(node.this, random), _value(node.expression, random)
        return {exp.Add: left + right, exp.Sub: left - right, exp.Mul: left * right}[type(node)]
    raise ValueError(f"{node!r} is not arithmetic")
