"""Writes the pages of docs/what-works: what servers of other products, and proxies, can do for a benchmark.

    python -m benchmarks.what_works              all that are here: `make foreign`, `make packages-proxies`
    python -m benchmarks.what_works seekdb odyssey

Each server runs for the time of its page, on loopback. The pages are what `dbdyno probe` prints.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.end_to_end.foreign import SERVERS, running

from dbdyno.experiment.variant import PROXY_TITLES

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "what-works"
PROXIES = ROOT / ".servers" / "proxies"
EXPERIMENT = """
[experiment]
name = "what-works"
[[workload]]
name = "oltp_point_select"
[load]
connections = [2]
duration = "1s"
"""
# Poolers whose connections to the server change between transactions run in both modes.
_MODES = {
    "pgbouncer": {
        "sessions": {"pool_mode": "session"},
        "transactions": {"pool_mode": "transaction", "max_prepared_statements": "200"},
    },
    "odyssey": {
        "sessions": {"pool": "session"},
        "transactions": {"pool": "transaction", "pool_reserve_prepared_statement": "yes"},
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.what_works", description=__doc__)
    names = [*SERVERS, *PROXY_TITLES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(names)):
        parser.error(f"{', '.join(unknown)} is not one of {', '.join(names)}")
    PAGES.mkdir(exist_ok=True)
    for name in options.names or names:
        page = server_page(name) if name in SERVERS else proxy_page(name)
        (PAGES / f"{name}.md").write_text(page)
        print(f"docs/what-works/{name}.md")
    return 0


def server_page(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder, running(name, Path(folder)) as (url, password):
        return _titled(SERVERS[name].title, probe("--target", url, password=password))


def proxy_page(name: str) -> str:
    variants = [
        f"""
[[variant]]
name = "{PROXY_TITLES[name]}{mode and ", " + mode}"
server = {{ product = "postgresql" }}
[variant.proxy]
program = "{name}"
basedir = "{PROXIES}"
[variant.proxy.settings]
{"".join(f'{key} = "{value}"' + chr(10) for key, value in settings.items())}"""
        for mode, settings in _MODES.get(name, {"": {}}).items()
    ]
    text = EXPERIMENT + "".join(variants)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.toml"
        file.write_text(text)
        return _titled(PROXY_TITLES[name], probe(str(file), "--results", folder))


def probe(*arguments: str, password: str = "") -> str:
    """What `dbdyno probe` prints."""
    answer = subprocess.run(
        [sys.executable, "-m", "dbdyno", "probe", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DBDYNO_PASSWORD": password},
        check=True,
    )
    return answer.stdout


def _titled(title: str, pages: str) -> str:
    """The pages under one heading, their own headings one level lower."""
    lines = [f"#{line}" if line.startswith("#") else line for line in pages.strip().splitlines()]
    return f"# {title}\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
