"""The commands that measure or start servers run one after the other, unless --share-machine is given."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from dbdyno.run import machine_lock


def only_measurement(command: str, *, share: bool) -> AbstractContextManager[None]:
    """Wait until no other dbdyno of this user measures on this machine; others then wait for `command`."""

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    return machine_lock.only_measurement(f"dbdyno {command}", tell, share=share)
