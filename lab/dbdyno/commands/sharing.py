"""The option --share-machine of the commands that measure or start servers: they run one after the other."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Annotated

import typer

from dbdyno.run import machine_lock

ShareMachine = Annotated[
    bool,
    typer.Option("--share-machine", help="Do not wait for other dbdyno commands on this machine."),
]


def only_measurement(command: str, *, share: bool) -> AbstractContextManager[None]:
    """Wait until no other dbdyno of this user measures on this machine; others then wait for `command`."""

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    return machine_lock.only_measurement(f"dbdyno {command}", tell, share=share)
