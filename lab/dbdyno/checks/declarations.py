"""Declared settings of a server, for checks that run before it starts."""

from __future__ import annotations

from contextlib import suppress

from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import as_text, variable_name
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import ServerProblem


def settings(variant: Variant) -> dict[str, str]:
    """The declared settings of a variant, by variable. If dbdyno starts the server, they include `config` and
    `arguments` of the variant; the last value of a variable applies, as in the server.
    """
    if variant.server.is_private:
        # Errors in the declaration are reported later, when the server starts.
        with suppress(ServerProblem):
            return read_declaration(variant).options()
    return {variable_name(name): as_text(value) for name, value in variant.server.variables.items()}
