"""The records of a series as one small file, so that the tests judge real noise again after every change.

Kept are the experiment, the schedule, the checks, and every trial's records. Dropped are statistics of single
statements, which no verdict reads, and everything about the machine: its paths, its host and its variables.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# Files of a run that are kept as they are.
WHOLE = ("experiment.json", "schedule.json", "checks.json")
# Of the counters at the edges of a measurement, what costs and foreign load are computed from.
EDGE = ("unix_us", "process", "host", "foreign")


def pack(runs: Iterable[Path], target: Path) -> None:
    """Write the records of these runs into `target`, a .tar.xz; each under the name of its experiment."""
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for run in runs:
            for name, content in _kept(run):
                entry = tarfile.TarInfo(f"{run.parent.name}/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def unpack(source: Path, folder: Path) -> list[Path]:
    """The folders of the runs in an archive, below `folder`, in the order of their names."""
    with tarfile.open(source, "r:xz") as archive:
        archive.extractall(folder, filter="data")
    return sorted(path.parent for path in folder.glob("*/experiment.json"))


def _kept(run: Path) -> Iterator[tuple[str, bytes]]:
    for name in WHOLE:
        yield name, (run / name).read_bytes()
    for trial in sorted((run / "trials").iterdir()):
        yield f"trials/{trial.name}/trial.json", (trial / "trial.json").read_bytes()
        server = json.loads((trial / "server.json").read_text())
        yield f"trials/{trial.name}/server.json", json.dumps(_server(server)).encode()
        with gzip.open(trial / "events.jsonl.gz", "rt") as records:
            lines = [line for line in records if json.loads(line)["type"] != "statements"]
        yield f"trials/{trial.name}/events.jsonl", "".join(lines).encode()


def _server(server: Mapping[str, Any]) -> dict[str, Any]:
    """server.json without what belongs to one machine."""
    edges = server.get("edges")
    return {
        "product": server["product"],
        "version": server["version"],
        "edges": edges and {name: _edge(value) for name, value in edges.items()},
        "edges_unread": server.get("edges_unread", ""),
    }


def _edge(value: Any) -> Any:
    if not isinstance(value, dict) or "unix_us" not in value:
        return value
    return {key: value[key] for key in EDGE if key in value} | {"status": {}, "waits": {}}


def main() -> int:
    """Pack the newest run of every experiment of a series."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth.archive", description=__doc__)
    parser.add_argument("kind", help="the series: aa or planted")
    parser.add_argument(
        "target", type=Path, help="the archive to write, as in tests/fixtures/series/aa.tar.xz"
    )
    parser.add_argument("--results", type=Path, default=Path("results/truth"))
    options = parser.parse_args()
    folders = sorted(options.results.glob(f"{options.kind}-*/"))
    runs = [sorted(folder.glob("*/verdict.json"))[-1].parent for folder in folders]
    options.target.parent.mkdir(parents=True, exist_ok=True)
    pack(runs, options.target)
    print(f"{len(runs)} runs in {options.target}, {options.target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
