"""`[factor]`: the factors and their levels; every combination of levels becomes a variant.

::

    [factor.version]                            [factor.threads]
    "8.0" = { server.basedir = "mysql-8.0" }    per-connection = {}
    "8.4" = { server.basedir = "mysql-8.4" }    pool = { server.arguments = ["--plugin-load-add=…"] }

    -> 8.0+per-connection (the baseline: the first level of each), 8.0+pool, 8.4+per-connection, 8.4+pool

A full factorial (Fisher 1935, The Design of Experiments, ch. 6) answers more than one question with the same
trials: the effect of each factor, averaged over the levels of the others, and whether factors interact. A
level has the keys of a `[[variant]]`; one `[[variant]]` without a name has the settings that all combinations
share. Lists of several factors are concatenated; any other key that two factors set is an error.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.experiment.errors import InputError

# Separates the factor levels in a variant's name.
JOINT = "+"
# Maximum number of combinations; each one starts a server in every block.
VARIANTS_MAX = 64


def expand(document: dict[str, Any]) -> list[InputError]:
    """Replace the [factor] section of `document` by its [[variant]] tables, in place; does nothing without
    one.

    The factors stay in the document as a list of names and levels.
    """
    factors = document.get("factor")
    if factors is None:
        return list(_stray_levels(document.get("variant")))
    errors = [*_shape_errors(factors), *_common_errors(document.get("variant", []))]
    if not errors:
        errors = list(_count_errors(factors))
    if errors:
        return errors
    common = {key: value for entry in document.get("variant", []) for key, value in entry.items()}
    variants: list[dict[str, Any]] = []
    clashes: dict[str, InputError] = {}
    for combination in itertools.product(*(levels.items() for levels in factors.values())):
        chosen = dict(zip(factors, (level for level, _ in combination), strict=True))
        variant = copy.deepcopy(common)
        for clash in _combined(variant, chosen, [settings for _, settings in combination]):
            clashes.setdefault(clash.key, clash)
        variants.append({"name": JOINT.join(chosen.values()), "levels": chosen, **variant})
    document["variant"] = variants
    document["factor"] = [{"name": name, "levels": list(levels)} for name, levels in factors.items()]
    return list(clashes.values())


def _stray_levels(variants: Any) -> Iterator[InputError]:
    for entry in variants if isinstance(variants, list) else ():
        if isinstance(entry, dict) and "levels" in entry:
            key, fix = f"variant[{entry.get('name', '?')}].levels", "Levels belong under [factor.NAME]"
            yield InputError(key, entry["levels"], "there is no such key", fix)


def _shape_errors(factors: Any) -> Iterator[InputError]:
    example = "Write [factor.NAME] and a line like level = { server.variables.innodb_io_capacity = 2000 }"
    if not isinstance(factors, dict) or not factors:
        yield InputError("factor", factors, "this must be a table of factors", example)
        return
    for name, levels in factors.items():
        full_key = f"factor.{name}"
        if not isinstance(levels, dict):
            yield InputError(full_key, levels, "this must be a table of levels", example)
            continue
        if len(levels) < 2:
            problem = f"it has {len(levels)} level; a factor needs at least two"
            yield InputError(full_key, None, problem, "Add a level")
        for level, settings in levels.items():
            if not isinstance(settings, dict):
                problem = "this must be a table like a [[variant]]"
                yield InputError(f"{full_key}.{level}", settings, problem, example)
                continue
            for key in sorted(settings.keys() & {"name", "levels"}):
                fix = "Leave it out: the variants are named by their levels"
                yield InputError(f"{full_key}.{level}.{key}", settings[key], "a level has no such key", fix)
            if not level.strip() or JOINT in level or "]" in level:
                problem = f"a level's name is text without {JOINT} and ]"
                yield InputError(f"{full_key}.{level}", None, problem, "Give it another name")


def _common_errors(variants: Any) -> Iterator[InputError]:
    if isinstance(variants, dict):
        problem = "this is one table and must be a list"
        yield InputError("variant", None, problem, "Write [[variant]], and [variant.server] below it")
        return
    if not isinstance(variants, list) or not all(isinstance(entry, dict) for entry in variants):
        yield InputError("variant", variants, "this must be a list of tables", "Write [[variant]]")
        return
    if len(variants) > 1:
        fix = (
            "Keep one, with the settings that all variants share, and write the others as levels of a factor"
        )
        yield InputError("variant", None, f"there are {len(variants)} of them in addition to [factor]", fix)
    for entry in variants[:1]:
        for key in sorted(entry.keys() & {"name", "levels"}):
            problem = "with [factor] this table has the settings that all variants share"
            fix = "Leave it out: the variants are named by their levels"
            yield InputError(f"variant.{key}", entry[key], problem, fix)


def _count_errors(factors: Mapping[str, Mapping[str, Any]]) -> Iterator[InputError]:
    count = math.prod(map(len, factors.values()))
    if count > VARIANTS_MAX:
        product = " x ".join(str(len(levels)) for levels in factors.values())
        problem = f"{product} levels make {count} variants, and an experiment has at most {VARIANTS_MAX}"
        yield InputError("factor", None, problem, "Remove levels, or split the experiment")


def _combined(
    variant: dict[str, Any], chosen: Mapping[str, str], settings: Sequence[Mapping[str, Any]]
) -> Iterator[InputError]:
    """Merge the settings of one level of each factor into `variant`, in place."""
    owners: dict[str, str] = {}
    for (factor, level), table in zip(chosen.items(), settings, strict=True):
        yield from _merge(variant, table, "", (factor, level), owners)


# Lists to which several factors may add.
_CONCATENATED = ("server.arguments", "server.init_sql", "data.after", "session.sql")


def _merge(
    variant: dict[str, Any],
    table: Mapping[str, Any],
    prefix: str,
    factor_and_level: tuple[str, str],
    owners: dict[str, str],
) -> Iterator[InputError]:
    """Merge `table` into `variant`, in place; `owners` maps each key to the factor that has set it."""
    factor, level = factor_and_level
    for key, value in table.items():
        full_key = f"{prefix}{key}"
        if isinstance(value, dict):
            inner = variant.setdefault(key, {})
            if isinstance(inner, dict):
                yield from _merge(inner, value, f"{full_key}.", factor_and_level, owners)
                continue
        if full_key in _CONCATENATED and isinstance(value, list) and isinstance(variant.get(key), list):
            variant[key] = [*variant[key], *value]
            continue
        if full_key in owners:
            problem = f"factor.{owners[full_key]} sets the same key, so the variant's value is ambiguous"
            yield InputError(f"factor.{factor}.{level}.{full_key}", value, problem, "Set it in one factor")
        owners[full_key] = factor
        variant[key] = copy.deepcopy(value)
