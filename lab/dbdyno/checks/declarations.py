"""Declared settings of a server, for checks before it runs."""

from __future__ import annotations

from contextlib import suppress

from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import as_text, variable_name
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import ServerProblem


def settings(variant: Variant) -> dict[str, str]:
    """Declared settings by variable. Of a server that dbdyno starts also those of its `config` and its
    `arguments`: the last of a name wins, as with the server.
    """
    if variant.server.started:
        # Opening the server reports errors of the declaration.
        with suppress(ServerProblem):
            return read_declaration(variant).by_name()
    return {variable_name(name): as_text(value) for name, value in variant.server.variables.items()}
