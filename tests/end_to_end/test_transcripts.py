"""The transcripts of tests/transcripts: what is typed there says what stands there. See README.md there."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.end_to_end.differential import Database, drop_in

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
TRANSCRIPTS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
# Set, the outputs of the transcripts are written anew, for somebody to read before a commit.
WRITE = "DBDYNO_WRITE_TRANSCRIPTS"
TIMEOUT_S = 30

FENCE = re.compile(r"```(console|file (\S+))\n(.*?)^```$", re.M | re.S)
EXIT_CODE = re.compile(r"\[(\d+)\]")
# What stands in the place of text that differs from run to run.
PLACES = {"<num>": r" *-?\d+(?:\.\d+)?(?:e-?\d+)?", "<any>": r".*", "...": r"(?:.*\n)*?"}
PLACE = re.compile(r"<num>|<any>")
FIGURE = re.compile(r" *(?<![\w.])\d+\.\d+(?:e-?\d+)?(?=s$|(?![\w.]))")


@dataclass
class Typed:
    """A command and what it is to say."""

    command: str
    output: list[str] = field(default_factory=list)
    exit_code: int = 0


def typed(block: str) -> list[Typed]:
    """The commands of a console block; a line that ends in a backslash goes on in the next."""
    commands: list[Typed] = []
    goes_on = False
    for line in block.splitlines():
        code = EXIT_CODE.fullmatch(line)
        if goes_on:
            commands[-1].command += f"\n{line}"
        elif line.startswith("$ "):
            commands.append(Typed(line[2:]))
        elif code:
            commands[-1].exit_code = int(code[1])
        else:
            commands[-1].output.append(line)
        goes_on = line.endswith("\\") and (goes_on or line.startswith("$ "))
    return commands


def pattern(lines: list[str]) -> str:
    """The lines as a regular expression."""

    def one(line: str) -> str:
        if line == "...":
            return PLACES[line]
        words = PLACE.split(line)
        places = [PLACES[place] for place in PLACE.findall(line)]
        # A figure's place begins where its padding does.
        escaped = [re.escape(word) for word in words]
        return "".join(word + place for word, place in zip(escaped, [*places, ""], strict=True)) + "\n"

    return "".join(map(one, lines))


def run(command: str, folder: str, environment: dict[str, str]) -> tuple[str, int]:
    """What a shell says of it, both streams as they come, and its exit code."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stdout, done.returncode


def difference(step: Typed, output: str, exit_code: int) -> str:
    """What is other than it should be; empty where nothing is."""
    ended = output if output.endswith("\n") or not output else output + "\n"
    if exit_code == step.exit_code and re.fullmatch(pattern(step.output), ended):
        return ""
    wanted, found = [*step.output, f"[{step.exit_code}]"], [*output.splitlines(), f"[{exit_code}]"]
    shown = "\n".join(difflib.unified_diff(wanted, found, "transcript", "said", lineterm="", n=30))
    return f"$ {step.command}\n{shown}"


def written(step: Typed, output: str, exit_code: int) -> str:
    """The step as it went, figures hidden."""
    lines = [FIGURE.sub("<num>", line) for line in output.splitlines()]
    return "\n".join([f"$ {step.command}", *lines, *([f"[{exit_code}]"] if exit_code else [])]) + "\n"


def steps(text: str, folder: Path) -> Iterator[tuple[re.Match[str], list[Typed]]]:
    """The console blocks in their order; files are laid down where they stand."""
    for fence in FENCE.finditer(text):
        if fence[2]:
            path = folder / fence[2]
            path.write_text(fence[3])
            path.chmod(0o755 if fence[3].startswith("#!") else 0o644)
        else:
            yield fence, typed(fence[3])


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript(sbtest: Database, path: Path) -> None:
    sbtest.empty()
    text, found, renewed, at = path.read_text(), [], "", 0
    with tempfile.TemporaryDirectory(prefix="dbdyno-transcript-") as folder:
        environment = {
            "PATH": f"{drop_in(sbtest.folder).folder}:/usr/bin:/bin",
            "HOME": folder,
            "LC_ALL": "C.UTF-8",
            "DB": sbtest.options(),
        }
        for fence, commands in steps(text, Path(folder)):
            said = [(step, *run(step.command, folder, environment)) for step in commands]
            found += [difference(*each) for each in said]
            renewed += text[at : fence.start(3)] + "".join(written(*each) for each in said)
            at = fence.end(3)
    if WRITE in os.environ:
        path.write_text(renewed + text[at:])
        return
    wrong = [each for each in found if each]
    assert not wrong, "\n\n".join(wrong)


def test_a_transcript_is_held_to_the_letter() -> None:
    step = typed("$ echo one \\\n  two\none two\n...\ntotal: <num>s\n[3]\n")[0]
    assert step.command == "echo one \\\n  two"
    assert not difference(step, "one two\nand\nmore\ntotal:   1.50s\n", 3)
    for output, code in [
        ("one two\ntotal: 1.50s\n", 0),
        ("one two\ntotal: 1.50s\nmore\n", 3),
        ("one two\ntotal: manys\n", 3),
        ("one  two\ntotal: 1.50s\n", 3),
    ]:
        assert difference(step, output, code)
