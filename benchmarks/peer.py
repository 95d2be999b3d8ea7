"""Builds sysbench's command line for a server; the password is in a file, never in argv."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbdyno.servers.server import Address


@contextmanager
def sysbench(address: Address, *arguments: str, program: str = "sysbench") -> Iterator[list[str]]:
    """`sysbench OPTIONS ARGUMENTS` as argv, over TCP; deletes the password file at the end.

    `program` is started instead of sysbench: a path, or a drop-in.
    """
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "sysbench.cfg"
        config.touch(mode=0o600)
        driver = "pgsql" if address.protocol == "postgresql" else "mysql"
        config.write_text(f"{driver}-password={address.password}\n")
        yield [
            program,
            f"--config-file={config}",
            f"--db-driver={driver}",
            f"--{driver}-host={address.host}",
            f"--{driver}-port={address.port}",
            f"--{driver}-user={address.user}",
            f"--{driver}-db={address.database}",
            *arguments,
        ]
