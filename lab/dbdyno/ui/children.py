"""The commands of dbdyno that the pages run: as processes, whose output is shown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbdyno import passwords
from dbdyno.experiment.effects import CSV_FILE, FILE_KEYS, named_files
from dbdyno.experiment.file_reading import parse_toml
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read_bytes
from dbdyno.problem import Problem
from dbdyno.store import files

# Seconds that a check or a comparison of two runs may take.
LIMIT_S = 120.0
OUTPUT_BYTES_MAX = 1 << 20
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}\.toml"


async def run_command(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command that reads, such as `check`; it is ended after LIMIT_S seconds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dbdyno", *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=passwords.whole_environment(),
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return 4, f"dbdyno {arguments[0]} did not end within {LIMIT_S:g} s"
    return process.returncode or 0, output[:OUTPUT_BYTES_MAX].decode(errors="replace")


def read_text(source: str, folder: Path, *, is_confined: bool) -> Experiment:
    """The experiment of a text. Raises Problem with all errors; if it `is_confined`, also for a file outside
    of `folder`, whose lines errors could show to everyone who may use the pages.
    """
    if is_confined:
        # An invalid text names no file yet.
        with contextlib.suppress(ValueError):
            _require_within(folder, _file_keys(parse_toml(source.encode())))
    experiment = read_bytes(source.encode(), folder / "experiment.toml")
    if is_confined:
        _require_within(folder, named_files(experiment))
    return experiment


def _file_keys(value: Any) -> Iterator[tuple[str, str]]:
    """Key and path wherever a document names a file, also by the end of a dotted key."""
    if isinstance(value, list):
        for entry in value:
            yield from _file_keys(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, str):
                is_file = key.rpartition(".")[2] in FILE_KEYS
                yield from ((key, path) for path in ([entry] if is_file else CSV_FILE.findall(entry)))
            yield from _file_keys(entry)


def _require_within(folder: Path, named: Iterator[tuple[str, str]]) -> None:
    for key, text in named:
        path = (folder / Path(text).expanduser()).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise Problem(
                f"{key} is {text}, which is not below the current folder of dbdyno ui",
                "Copy the file there; with --allow-run the pages read any file",
            )


async def check(source: str, folder: Path, results: Path) -> tuple[int, str]:
    """What `dbdyno check` says of a text, whose relative paths begin at `folder`. Executes nothing of it."""
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".dbdyno-ui-", suffix=".toml") as file:
        file.write(source)
        file.flush()
        code, output = await run_command("check", file.name, "--static", "--results", str(results))
        return code, output.replace(file.name, "the experiment")


def save(source: str, folder: Path, name: str) -> Path:
    """Write a new experiment file. Raises Problem if there is one with another content."""
    path = folder / name
    try:
        files.create(path, source.encode())
    except FileExistsError as error:
        if path.read_text(encoding="utf-8", errors="replace") != source:
            raise Problem(f"{path} exists, with another content", "Choose another name") from error
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from error
    return path


class Comparison:
    """A `dbdyno compare` that this process has started."""

    def __init__(self, file: Path, results: Path) -> None:
        self._output: list[str] = []
        self._command = [sys.executable, "-m", "dbdyno", "compare", str(file), "--results", str(results)]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; its output is read until it ends."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env=passwords.whole_environment(),
        )
        self._reader = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._output = [*self._output[-199:], line.decode(errors="replace").rstrip("\n")]
        await process.wait()

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self._process is None else self._process.returncode

    @property
    def output(self) -> str:
        """The last lines that it has printed."""
        return "\n".join(self._output)

    async def wait(self) -> None:
        """Wait until it has ended."""
        if self._process is not None:
            await self._process.wait()

    def stop(self) -> None:
        """Interrupt it, as Ctrl-C does: finished trials stay, and --resume continues."""
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, signal.SIGINT)
