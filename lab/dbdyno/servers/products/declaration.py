"""Reads and validates the settings that a variant declares (`variables`, `config`, `arguments`)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.experiment import server
from dbdyno.experiment.file_reading import ServerConfig, read_server_config
from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import is_loose, variable_name
from dbdyno.servers.products.product import Product, Value
from dbdyno.servers.server import ServerProblem, combine_problems


def _product(name: str) -> Product:
    """The product of that name, from the module of that name."""
    module = importlib.import_module(f"dbdyno.servers.products.{name}")
    classes = (
        entry for entry in vars(module).values() if isinstance(entry, type) and issubclass(entry, Product)
    )
    product: Product = next(entry for entry in classes if getattr(entry, "name", "") == name)()
    return product


# The products that dbdyno can run, by name.
PRODUCTS: Mapping[str, Product] = {name: _product(name) for name in server.PRODUCTS}

_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.]*$")


@dataclass(frozen=True)
class Declaration:
    """The declared settings of a variant.

    `variables` have normalized names and values in the server's syntax; `config` is the text of the user's
    file and of the files that it includes.
    """

    product: Product
    variables: Mapping[str, str]
    config: str
    arguments: tuple[str, ...]
    # The files that the user's file includes.
    included: tuple[Path, ...] = ()
    # The options that the server ignores if it does not know them (`loose-`), by normalized name.
    loose: frozenset[str] = frozenset()

    def options(self) -> dict[str, str]:
        """Every declared option with its value, by normalized name. If an option occurs more than once, the
        last one wins, as in the server.
        """
        from_file = {
            name: value
            for name, value in self.product.file_options(self.config).items()
            if name not in self.product.reserved_options and name != "port"
        }
        return {**from_file, **self.variables, **_argument_options(self.arguments)}

    def file_variables(self) -> dict[str, str]:
        """The declared variables that dbdyno writes into the generated configuration."""
        return {
            f"loose_{name}" if name in self.loose else name: value
            for name, value in self.product.file_variables(self.variables).items()
        }

    def init_options(self) -> dict[str, str]:
        """The declared options that determine the file format."""
        return {name: value for name, value in self.options().items() if name in self.product.init_options}

    @property
    def port(self) -> int | None:
        """The port that the experiment requests; None for any free port."""
        text = self.variables.get("port")
        return None if text is None else int(text)


def read_declaration(variant: Variant) -> Declaration:
    """Read and validate the declarations of `variant`. Raises one ServerProblem with all errors."""
    spec = variant.server
    assert spec.product is not None, "a server that dbdyno starts has a product"
    product = PRODUCTS[spec.product]
    problems = _find_problems(spec.variables, product.reserved_options)
    for argument in spec.arguments:
        name = variable_name(argument.partition("=")[0])
        if not argument.startswith("-"):
            problems.append(
                ServerProblem(f"arguments contains {argument!r}; an argument must begin with a dash")
            )
        elif reason := product.reserved_options.get(name):
            problems.append(ServerProblem(f"arguments must not contain {argument!r}: {reason}", "remove it"))
    config = ServerConfig("")
    if spec.config is not None:
        try:
            config = read_server_config(spec.config)
        except OSError as error:
            includes = f"; it includes {error.filename!r}" if error.filename != str(spec.config) else ""
            problems.append(
                ServerProblem(
                    f"config is {str(spec.config)!r}{includes}, which cannot be read: {error.strerror}"
                )
            )
    variables: dict[str, str] = {}
    for name, value in spec.variables.items():
        try:
            variables[variable_name(name)] = product.format_value(name, value)
        except ServerProblem as problem:
            problems.append(problem)
    port = variables.get("port", "1")
    if not (port.isdecimal() and 1 <= int(port) <= 65535):
        problems.append(ServerProblem(f"variables.port is {port!r}; a port is a number from 1 to 65535"))
    if problems:
        raise combine_problems(problems, f"variant {variant.name!r}")
    arguments = (argument.partition("=")[0] for argument in spec.arguments)
    loose = [*filter(is_loose, (*spec.variables, *arguments)), *product.loose_options(config.text)]
    return Declaration(
        product,
        variables,
        config.text,
        spec.arguments,
        config.included,
        frozenset(map(variable_name, loose)),
    )


def _find_problems(variables: Mapping[str, Value], reserved: Mapping[str, str]) -> list[ServerProblem]:
    """All errors in declared variables that dbdyno can find without a server.

    `reserved` has the options that only dbdyno may set, each with the reason.
    """
    problems = []
    names: dict[str, str] = {}
    for name in variables:
        key = variable_name(name)
        if not _NAME.match(key):
            problems.append(ServerProblem(f"variables contains {name!r}, which is not a valid variable name"))
        elif key in reserved:
            problems.append(
                ServerProblem(
                    f"variables.{name} cannot be declared: {reserved[key]}", "remove it from the experiment"
                )
            )
        elif key in names:
            problems.append(
                ServerProblem(
                    f"variables contains {names[key]!r} and {name!r}, which are the same variable",
                    "keep one of them",
                )
            )
        names[key] = name
    return problems


def _argument_options(arguments: Iterable[str]) -> dict[str, str]:
    """The options `--name=value` of a command line, by normalized name. Without a value it is ""."""
    options: dict[str, str] = {}
    for argument in arguments:
        if argument.startswith("--"):
            name, _, value = argument.partition("=")
            options[variable_name(name)] = value
    return options
