"""Escape sequences in a server's errors, a hook's output and an experiment file do not reach the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Clears the terminal, sets its title, and reverses the text after it; as a TOML string and as it is printed.
EVIL = SHOWN = r"\u001b[2J\u001b]0;title\u202e"
# A statement that fails with this text.
SETUPS = {
    "mariadb": f"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'server {EVIL}'",
    "postgresql": f"DO $$ BEGIN RAISE EXCEPTION 'server {EVIL}'; END $$",
}
EXPERIMENT = """
[experiment]
name = "escapes"
question = "file EVIL"
[[workload]]
name = "sql"
setup = ["CREATE TABLE item (id INT PRIMARY KEY)", "SETUP"]
[[workload.transactions]]
name = "count"
statements = ["SELECT count(*) FROM item"]
[load]
connections = [1]
duration = "500ms"
warmup = "0s"
[design]
blocks = 1
[[variant]]
name = "a"
server.product = "PRODUCT"
"""


def run(command: list[str], *, terminal: bool) -> str:
    """What a command prints, on a terminal or into a pipe."""
    if not terminal:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return answer.stdout.decode()
    reader, writer = os.openpty()
    with subprocess.Popen(command, stdin=writer, stdout=writer, stderr=writer) as process:
        os.close(writer)
        content = b""
        # A terminal without writers is an error on Linux.
        while True:
            try:
                content += os.read(reader, 1 << 16)
            except OSError:
                break
        process.wait(60)
    os.close(reader)
    return content.decode()


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("product", SETUPS)
def test_they_are_visible(product: str, terminal: bool, results: Path, tmp_path: Path) -> None:
    text = EXPERIMENT.replace("SETUP", SETUPS[product]).replace("EVIL", EVIL).replace("PRODUCT", product)
    file = tmp_path / "escapes.toml"
    file.write_text(text)
    command = [sys.executable, "-m", "dbdyno", "compare", str(file), "--results", str(results)]
    printed = run([*command, "--no-report"], terminal=terminal)
    plain = " ".join(printed.split())
    assert f"file {SHOWN}" in plain
    assert f"server {SHOWN}" in plain
    for sequence in ("\x1b[2J", "\x1b]", "\u202e"):
        assert sequence not in printed
    assert ("\x1b[" in printed) == terminal
