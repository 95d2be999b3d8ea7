"""Runs the quick profile of every example, and prints the verdicts.

Examples with remote servers get two private MariaDB servers. Examples with Docker images get a private Docker
engine, in which every image contains the MySQL 9.7 of .servers/, so that no registry is needed; all variants
are then equal. All examples together take about 45 minutes. Names on the command line select examples, and
`--profile smoke` shows within minutes that they run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from tests.end_to_end.docker_engine import running

from dbdyno.experiment.model import Variant
from dbdyno.experiment.reading import read
from dbdyno.experiment.server import ServerSpec
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
RESULTS = ROOT / "results"
# The buffer pool holds the data of the quick profiles; the examples declare max_connections.
SETTINGS: dict[str, str | int | float | bool] = {"innodb_buffer_pool_size": "256M", "max_connections": 2000}


def main() -> int:
    examples = sorted(path.stem for path in EXAMPLES.glob("*.toml"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.examples", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="examples to run (default: all)")
    parser.add_argument("--profile", default="quick", help="quick or smoke")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(examples)):
        parser.error(f"there is no example {', '.join(unknown)}; there are: {', '.join(examples)}")
    worst = 0
    for name in options.names or examples:
        print(f"== {name}", flush=True)
        with prepared(name, options.profile) as (arguments, secrets):
            worst = max(worst, run(name, options.profile, arguments, secrets))
    return worst


def run(name: str, profile: str, arguments: list[str], secrets: dict[str, str]) -> int:
    command = [
        sys.executable,
        "-m",
        "dbdyno",
        "compare",
        str(EXAMPLES / f"{name}.toml"),
        "--profile",
        profile,
    ]
    return subprocess.run(
        [*command, "--results", str(RESULTS), *arguments], env={**os.environ, **secrets}, check=False
    ).returncode


@contextmanager
def prepared(name: str, profile: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Start the servers of an example; gives the command's options, and passwords for the environment."""
    variants = read(EXAMPLES / f"{name}.toml", profile).variants
    if any(variant.server.kind == "docker" for variant in variants):
        with running() as engine:
            yield engine.for_examples(), {}
        return
    remote = [variant.name for variant in variants if variant.server.kind == "remote"]
    if not remote:
        yield [], {}
        return
    arguments: list[str] = []
    secrets: dict[str, str] = {}
    with ExitStack() as stack:
        workspace = stack.enter_context(closing(Workspace.open(RESULTS)))
        for number, one in enumerate(remote):
            variant = Variant(
                name=f"endpoint {one}", server=ServerSpec(product="mariadb", variables=SETTINGS)
            )
            server = stack.enter_context(closing(LocalServer(variant, workspace, None)))
            server.start()
            address, password_env = server.address(), f"DBDYNO_ENDPOINT_{number}"
            secrets[password_env] = address.password
            url = f"mysql://{address.user}@{address.host}:{address.port}/{address.database}"
            arguments += ["--set", f'variant[{one}].server.url="{url}"']
            arguments += ["--set", f'variant[{one}].server.password_env="{password_env}"']
        yield arguments, secrets


if __name__ == "__main__":
    sys.exit(main())
