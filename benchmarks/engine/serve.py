"""Runs a private server in its own process: prints its address, and stops it when standard input ends.

With `--reachable` it listens on all addresses, and the load's account may connect from any of them. This is
safe only in a network namespace that contains nothing but server and client.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.products import declaration
from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.product import Place
from dbdyno.servers.server import Address

# Large enough for the redo of a complete run, so that no checkpoint disturbs one run of a pair.
VARIABLES: dict[str, dict[str, str | int | float | bool]] = {
    "mariadb": {
        "innodb_buffer_pool_size": "1G",
        "innodb_flush_log_at_trx_commit": 2,
        "innodb_log_file_size": "1G",
    },
    "postgresql": {
        "shared_buffers": "1GB",
        "synchronous_commit": False,
        "max_wal_size": "4GB",
        "checkpoint_timeout": "1h",
        "autovacuum": False,
        "max_connections": 1100,
    },
}


class Reachable(MariaDB):
    """MariaDB that listens on every address of its network namespace."""

    def placement(self, place: Place) -> dict[str, str]:
        """The settings of MariaDB, with all addresses as bind_address."""
        return {**super().placement(place), "bind_address": "0.0.0.0"}

    def start_statements(self, place: Place, load: Address, admin_password: str) -> Sequence[str]:
        """Also permits the load's account from any address."""
        return [
            *super().start_statements(place, load, admin_password),
            f"CREATE OR REPLACE USER '{load.user}'@'%' IDENTIFIED BY '{load.password}'",
            f"GRANT ALL ON `{load.database}`.* TO '{load.user}'@'%'",
        ]


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--product", choices=VARIABLES, default="mariadb")
    parser.add_argument("--cpus")
    parser.add_argument("--reachable", action="store_true")
    options = parser.parse_args()
    if options.reachable:
        declaration.PRODUCTS = {"mariadb": Reachable()}
    spec = ServerSpec(product=options.product, variables=VARIABLES[options.product], cpus=options.cpus)
    variant = Variant(name="bench", server=spec)
    workspace = Workspace.open(options.scratch)
    with closing(workspace), closing(open_server(variant, workspace, None)) as server:
        server.restore()
        server.start()
        address = server.address()
        description = {
            "host": address.host,
            "port": address.port,
            "user": address.user,
            "database": address.database,
            "protocol": address.protocol,
            # Standard output is a pipe to the parent process.
            "password": address.password,
            "version": server.describe().version,
        }
        print(json.dumps(description), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
