"""Declared settings of a server, for checks that run before it starts."""

from __future__ import annotations

from contextlib import suppress

from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import as_text, variable_name
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import ServerProblem


def settings(variant: Variant) -> dict[str, str]:
    """Declared settings by variable. For a server that dbdyno starts they include its `config` and its
    `arguments`; as in the server, the last value of a name wins.
    """
    if variant.server.is_private:
        # Opening the server later reports errors in the declaration.
        with suppress(ServerProblem):
            return read_declaration(variant).options()
    return {variable_name(name): as_text(value) for name, value in variant.server.variables.items()}
