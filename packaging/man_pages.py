"""Writes the man pages of dbdyno and its commands: python packaging/man_pages.py FOLDER

They come from the objects that print `--help`, so both say the same. click-man does not see the options: it
looks for classes of click, of which typer has copies.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from dbdyno import __version__
from dbdyno.binary import DROP_INS
from dbdyno.commands import COMMANDS, app
from dbdyno.problem import ExitCode

_ESCAPES = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
)


def main(folder: Path) -> None:
    """Write one page for dbdyno and one for each command."""
    folder.mkdir(parents=True, exist_ok=True)
    program: Any = typer.main.get_command(app(COMMANDS))
    context = program.make_context("dbdyno", [], resilient_parsing=True)
    pages = {"dbdyno": [*_page(context), *_commands()]}
    for name, command in program.commands.items():
        called = command.make_context(name, [], parent=context, resilient_parsing=True)
        own = _own_options(name) if name in DROP_INS else _exit_status()
        pages[f"dbdyno-{name}"] = [*_page(called), *own, ".SH SEE ALSO", ".BR dbdyno (1)"]
    for name, lines in pages.items():
        (folder / f"{name}.1").write_text("\n".join(lines) + "\n")


def _page(context: Any) -> list[str]:
    """The sections that every command has."""
    command = context.command
    name = context.command_path.replace(" ", "-")
    summary = command.help[:1].lower() + command.help[1:].rstrip(".")
    lines = [
        f'.TH {_text(name.upper())} 1 "" "dbdyno {__version__}" "dbdyno"',
        *(".SH NAME", f"{_text(name)} \\- {_text(summary)}"),
        *(".SH SYNOPSIS", f".B {_text(context.command_path)}"),
        _text(" ".join(command.collect_usage_pieces(context))),
        *(".SH DESCRIPTION", _text(command.help)),
    ]
    for title, kind in {"ARGUMENTS": "argument", "OPTIONS": "option"}.items():
        parameters = [p for p in command.get_params(context) if p.param_type_name == kind]
        records = [record for p in parameters if (record := p.get_help_record(context))]
        lines += [f".SH {title}"] if records else []
        for names, text in records:
            lines += [".TP", f".B {_text(names)}", _text(text)]
    return lines


def _commands() -> list[str]:
    lines = [".SH COMMANDS"]
    for name, text in COMMANDS.items():
        lines += [".TP", f".BR {_text(f'dbdyno-{name}')} (1)", _text(text)]
    return lines


def _own_options(name: str) -> list[str]:
    """The help of a drop-in, which its program prints."""
    command = [sys.executable, "-m", "dbdyno", name, "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [".SH HELP", ".nf", *(_text(line) for line in text.splitlines()), ".fi"]


def _exit_status() -> list[str]:
    lines = [".SH EXIT STATUS"]
    for code in ExitCode:
        lines += [".TP", f".B {code}", code.name.lower().replace("_", " ")]
    return lines


def _text(text: str) -> str:
    """A line of text, in which nothing is an instruction for roff."""
    line = text.translate(_ESCAPES)
    return rf"\&{line}" if line.startswith(".") else line


if __name__ == "__main__":
    main(Path(sys.argv[1]))
