"""`dbdyno bisect` on a real MariaDB: ten commits of its configuration. The seventh makes it 20 % slower, and
the fifth does not build.

`python -m benchmarks.bisection` takes some 5 minutes, and prints what `bisect` prints. The planted setting is
the time for which a commit waits for others (`binlog_commit_wait_usec`), so that the effect hardly depends on
the machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMITS, SLOWER_FROM, BROKEN = 10, 6, 4
# Microseconds for which a commit of a transaction waits, before and after.
WAIT_US, LONGER_US = 16_000, 20_200
EXPERIMENT = """
[experiment]
name = "planted"
[[workload]]
name = "oltp_update_non_index"
table_size = 10_000
[load]
connections = [8]
duration = "1s"
warmup = "300ms"
[client]
workers = 1
[design]
repeat_disturbed = false
[override]
D06 = "transactions wait, and hardly need a CPU"
[[variant]]
name = "template"
server = { product = "mariadb", config = "{build}/my.cnf", arguments = ["--log-bin"] }
"""
CONFIGURATION = """[mysqld]
innodb_buffer_pool_size = 64M
innodb_flush_log_at_trx_commit = 0
sync_binlog = 0
max_error_count = {number}
binlog_commit_wait_count = 1000
binlog_commit_wait_usec = {wait_us}
"""
BUILD = """#!/bin/sh -e
# A build of a configuration: it is copied, and readable for the server's user.
cp my.cnf "$DBDYNO_BUILD"
chmod -R a+rX "$DBDYNO_BUILD"
"""


def make_repository(folder: Path) -> None:
    """Make the repository with its commits."""
    folder.mkdir()
    _git(folder, "init", "--quiet")
    (folder / "build").write_text(BUILD)
    (folder / "build").chmod(0o755)
    for number in range(COMMITS):
        wait_us = LONGER_US if number >= SLOWER_FROM else WAIT_US
        configuration = folder / "my.cnf"
        configuration.unlink(missing_ok=True)
        if number != BROKEN:
            configuration.write_text(CONFIGURATION.format(number=64 + number, wait_us=wait_us))
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", f"change {number}")


def _git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com"]
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True)


def main() -> int:
    """Bisect the commits."""
    folder = Path(tempfile.mkdtemp(prefix="dbdyno-bisection-", dir="/var/tmp"))
    # The servers' user reads the configurations in it.
    folder.chmod(0o711)
    try:
        make_repository(folder / "repository")
        (folder / "planted.toml").write_text(EXPERIMENT)
        ends = ["--good", f"HEAD~{COMMITS - 1}", "--bad", "HEAD", "--over", "commits", "--build", "./build"]
        words = [sys.executable, "-m", "dbdyno", "bisect", "planted.toml", *ends, *sys.argv[1:]]
        return subprocess.run([*words, "--repository", "repository"], cwd=folder, check=False).returncode
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
