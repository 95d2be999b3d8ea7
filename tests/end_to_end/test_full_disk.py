"""Commands that write files onto a full disk: exit code 4, one message, and no half file.

Each command writes into a small file system of its own, in a mount namespace.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.end_to_end.comparing import environment
from tests.unit.stored_run import Making, make

from dbdyno.report import writing as report
from dbdyno.store import Run
from dbdyno.verdict import judge

# Those whose files are in a folder; the others go to standard output, whose end is tested elsewhere.
FORMATS = ("html", "svg", "png", "parquet")
# Shares of the space that the files need; 0: not one block.
SHARES = (0.0, 0.3, 0.7)
BLOCK = 4096
# Mounts a file system of $1 bytes at $2, leaves no space in it if $3 is full, and runs the rest.
SCRIPT = """
mount -t tmpfs -o size=$1 none "$2" || exit 99
cd "$2" || exit 99
if [ "$3" = full ]; then head -c 1M /dev/zero >filler 2>/dev/null; fi
shift 3
timeout 100 "$@"
code=$?
rm -f filler
cp -r . "$KEEP"
exit $code
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A judged run with a report."""
    run = make(tmp_path_factory.mktemp("results") / "results", Making(names=("a", "b")))
    judge(run)
    report.write(run)
    return run


def write(words: list[str], size: int, folder: Path, *, full: bool) -> subprocess.CompletedProcess[str]:
    """Run a command in a file system of `size` bytes; what it wrote is in `folder`/kept afterwards."""
    disk, kept = folder / "disk", folder / "kept"
    disk.mkdir(parents=True)
    kept.mkdir()
    dbdyno = [sys.executable, "-m", "dbdyno", *words]
    shell = ["sh", "-c", SCRIPT, "sh", str(size), str(disk), "full" if full else "free", *dbdyno]
    return subprocess.run(
        ["unshare", "--mount", *shell],
        capture_output=True,
        text=True,
        timeout=120,
        env={**environment(), "KEEP": str(kept), "TMPDIR": str(folder)},
        check=False,
    )


def contents(folder: Path) -> Mapping[str, bytes]:
    kept = folder / "kept"
    return {str(path.relative_to(kept)): path.read_bytes() for path in kept.rglob("*") if path.is_file()}


INIT = ["init", "new.toml", "--from", "sysbench oltp_read_only --threads=4 run"]


def commands(run: Run) -> dict[str, list[str]]:
    """The commands that write files of a run."""
    reports = {one: ["report", str(run.path), "--format", one, "--output", "out"] for one in FORMATS}
    return {
        **reports,
        "site": ["site", str(run.path.parent.parent), "--out", "out"],
    }


@pytest.mark.parametrize(
    "name", ["init", *(pytest.param(one, marks=pytest.mark.long) for one in (*FORMATS, "site"))]
)
def test_a_full_disk_is_named_and_leaves_no_half_file(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    words = INIT if name == "init" else commands(request.getfixturevalue("run"))[name]
    answer = write(words, 64 << 20, tmp_path / "whole", full=False)
    assert answer.returncode == 0, answer.stderr
    whole = contents(tmp_path / "whole")
    assert whole
    space = sum(-(-len(content) // BLOCK) * BLOCK for content in whole.values())
    for share in SHARES if len(whole) > 1 else SHARES[:1]:
        folder = tmp_path / f"{share}"
        # A directory needs a block too.
        answer = write(words, max(2 * BLOCK, int(space * share)), folder, full=not share)
        assert answer.returncode == 4, answer.stderr
        assert "no space left for" in answer.stderr
        assert "Make room" in answer.stderr
        assert "Traceback" not in answer.stderr
        left = contents(folder)
        assert {name: len(content) for name, content in left.items()}.items() <= {
            name: len(content) for name, content in whole.items()
        }.items()
        assert len(left) < len(whole)
