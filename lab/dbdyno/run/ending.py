"""How a server is given up.

Where something else has ended its part, that is the thing to hear about, and what fails then is told beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbdyno.problem import Problem
from dbdyno.run import progress
from dbdyno.run.loading import Tell
from dbdyno.servers.server import Server


@contextmanager
def closing(server: Server, tell: Tell) -> Iterator[Server]:
    """Close the server at the end. Raises Problem where that fails; beside another exception it is told."""
    try:
        yield server
    except BaseException:
        with beside(tell):
            server.close()
        raise
    server.close()


@contextmanager
def beside(tell: Tell) -> Iterator[None]:
    """A Problem in here is told and goes no further, since another one is on its way."""
    try:
        yield
    except Problem as problem:
        tell(progress.Trouble(problem.text + (f" ({problem.fix})" if problem.fix else "")))
