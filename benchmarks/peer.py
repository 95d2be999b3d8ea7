"""sysbench as a peer: its command line for a server, with the password in a file and never in argv."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbdyno.servers.server import Address


@contextmanager
def sysbench(address: Address, *arguments: str, program: str = "sysbench") -> Iterator[list[str]]:
    """`sysbench OPTIONS ARGUMENTS` as argv, over TCP; the password's file is gone at the end.

    `program` is what to start instead: a path, or a drop-in.
    """
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "sysbench.cfg"
        config.touch(mode=0o600)
        config.write_text(f"mysql-password={address.password}\n")
        yield [
            program,
            f"--config-file={config}",
            "--db-driver=mysql",
            f"--mysql-host={address.host}",
            f"--mysql-port={address.port}",
            f"--mysql-user={address.user}",
            f"--mysql-db={address.database}",
            *arguments,
        ]
