"""`dbdyno init [FILE]`: writes a first experiment file, with comments, from five questions, from a command
line or a script of sysbench, pgbench or mysqlslap, or from a stored run.

A file that exists is not changed. The file that is written can be read: `dbdyno check` accepts it.
"""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem

if TYPE_CHECKING:
    from dbdyno.reading.translation import Translation

_COMMENTS = {
    "[[workload]]": "What each connection does, again and again: a bundled workload, own SQL, or Lua.",
    "[load]": "How many connections do it, and how long; rate = [500] would offer 500 transactions/s.",
    "[design]": "Where the data come from, and how often each variant is measured.",
    "[[variant]]": "What is compared; the first variant is the baseline.",
}
# Characters of the name of a file or a run.
_NAME_MAX = 250
_KEYS = "# All keys: dbdyno docs experiment. dbdyno check says what is wrong and how long it takes."
_ALONE = """
# A second variant makes this a comparison, which dbdyno compare runs; then remove blocks = 1 above:
# [[variant]]
# name = "changed"
# [variant.server]
# kind = "remote"
# url = "{scheme}://user@other-host:{port}/sbtest"
"""


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Experiment file to write.")] = Path(
        "experiment.toml"
    ),
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TEXT",
            help="Instead of questions: a command line or shell script of sysbench, pgbench or mysqlslap, "
            "or a stored run (its folder, number or experiment).",
        ),
    ] = None,
    results: options.Results = options.RESULTS,
) -> None:
    """Write an experiment file from questions, commands or a run."""
    from dbdyno.experiment.reading import read
    from dbdyno.reading.document import load, parse
    from dbdyno.reading.translation import is_command, translate_document
    from dbdyno.redaction import redact
    from dbdyno.servers.disclosure import disclosure
    from dbdyno.store.listing import find_run

    if file.exists() or file.is_symlink():
        raise Problem(
            f"{file} exists already", f"Name another file: dbdyno init {shlex.quote(file.stem)}-2.toml"
        )
    is_stored = False
    if origin is None:
        source = _ask()
    elif is_command(origin):
        document = parse(origin.encode(errors="replace"), "the command line")
        source = _translated(translate_document(document, Path()))
    elif os.path.exists(origin) and not os.path.isdir(origin):  # noqa: PTH110, PTH112 — any text is allowed.
        path = Path(origin)
        if path.suffix == ".toml":
            raise Problem(f"--from {path}: this is an experiment file already", f"Copy it: cp {path} {file}")
        source = _translated(translate_document(load(path), path.parent))
    elif (shown := redact(origin)) != origin:
        raise Problem(
            f"--from {shown}: this is no call of a benchmark program, no file and no stored run",
            'Give a call as text: --from "sysbench … run"',
        )
    elif len(origin) > _NAME_MAX or "\0" in origin:
        raise Problem(
            f"--from {origin[:40]!r}…: this is no call of a benchmark program, "
            f"and a name has at most {_NAME_MAX:,} characters",
            'Give a call as text: --from "sysbench … run"',
        )
    else:
        run = find_run(results, Path(origin))
        source = run.source()
        print(
            f"note: the file is that of {run.path}; paths in it are relative to its folder", file=sys.stderr
        )
        is_stored = True
    _write(file, source)
    experiment = read(file, None, [])
    if is_stored:
        print(*disclosure(experiment), sep="\n", file=sys.stderr)
    command = "compare" if len(experiment.variants) > 1 else "run"
    name = shlex.quote(str(file))
    print(f"{file} is written. Next: dbdyno check {name}, then dbdyno {command} {name}")


def write_translation(file: Path, translation: Translation, command: str) -> None:
    """Write the experiment of a translation, and print what a user must know. Raises Problem; then nothing is
    written.
    """
    if file.exists() or file.is_symlink():
        raise Problem(f"{file} exists already", "Name another file")
    _write(file, _translated(translation, command))
    print(f"{file} is written. Next: dbdyno check {shlex.quote(str(file))}", file=sys.stderr)


def _translated(translation: Translation, command: str = "dbdyno init") -> str:
    """The text of a translated command line; what has no counterpart is printed, too."""
    notes = translation.notes
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    comment = "".join(f"# - {_wrapped(note)}\n" for note in notes)
    head = f"# Written by {command} from the commands of another tool.\n{comment}{_KEYS}\n"
    text = _with_comments(translation.document, head)
    variants = translation.document["variant"]
    return text + _alone(variants[0]) if len(variants) == 1 else text


def _alone(variant: Mapping[str, Any]) -> str:
    """The comment with a second variant, of the same protocol as the only one."""
    from dbdyno.experiment.server import SCHEMES
    from dbdyno.experiment.sql_reading import dialect_of

    protocol = dialect_of(variant["server"]).protocol
    return _ALONE.format(scheme=protocol, port=SCHEMES[protocol][1])


def _wrapped(note: str) -> str:
    return "\n#   ".join(textwrap.wrap(note, 96, break_long_words=False, break_on_hyphens=False))


def _with_comments(document: Mapping[str, Any], head: str) -> str:
    """The document as TOML, with a comment before the first table of each kind."""
    from dbdyno.commands.option_document import as_toml

    lines = [head]
    seen: set[str] = set()
    for line in as_toml(document).splitlines():
        if line.startswith("[") and not line.startswith(("[workload.", "[variant.")):
            lines += [""] if line in seen or seen else []
            if line in _COMMENTS and line not in seen:
                lines.append(f"# {_COMMENTS[line]}")
            seen.add(line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def example() -> str:
    """An experiment for a start: a MariaDB against one with another setting."""
    default_change = "mariadb:innodb_flush_log_at_trx_commit=2"
    answers = {
        "a": "mariadb",
        "b": [default_change],
        "workload": "oltp_read_write",
        "connections": "4,16",
        "time": "10s",
    }
    return _of_answers(answers, "dbdyno ui")


def _of_answers(answers: Mapping[str, Any], command: str) -> str:
    from dbdyno.commands.option_document import make_document

    head = f"# Written by {command}.\n{_KEYS}\n"
    return _with_comments(make_document(answers, [], Path(), command), head)


def _ask() -> str:
    """The experiment of five questions on the terminal. Raises Problem without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Problem(
            "dbdyno init asks questions, and there is no terminal",
            'Say where the experiment comes from: --from "sysbench oltp_read_write --threads=16 run", --from '
            "sweep.sh or --from RUN; dbdyno compare --a mariadb --b mariadb:NAME=VALUE writes a file, too",
        )
    print(
        "Five questions; Enter takes the answer in brackets. A server is mariadb, mysql or\n"
        "postgresql; one with settings, such as mariadb:innodb_io_capacity=2000; an image, such as\n"
        "mysql:8.4; or the URL of a server that runs: mysql://user@host:3306/database.",
        file=sys.stderr,
    )
    a = _answer("1. Which server is the baseline?", "mariadb")
    b = _answer("2. With which server, or which settings NAME=VALUE, is it compared?", a)
    if "=" in b and ":" not in b.partition("=")[0] and "://" not in b:
        # Settings alone are those of the same server.
        b = f"{a}{',' if '=' in a else ':'}{b}"
    workload = _answer("3. Which workload (oltp_read_write, oltp_read_only, FILE.sql, …)?", "oltp_read_write")
    connections = _answer("4. How many connections?", "4,16")
    time = _answer("5. How long is one measurement?", "10s")
    answers = {"a": a, "b": [b], "workload": workload, "connections": connections, "time": time}
    return _of_answers(answers, "dbdyno init")


def _answer(question: str, default: str) -> str:
    print(f"{question} [{default}] ", end="", file=sys.stderr, flush=True)
    try:
        return input().strip() or default
    except EOFError:
        raise Problem("the questions were not answered: nothing is written") from None


def _write(file: Path, source: str) -> None:
    """Write a file that does not exist; it is removed if it is no valid experiment. Raises Problem."""
    from dbdyno.experiment.errors import InvalidExperiment
    from dbdyno.experiment.reading import read
    from dbdyno.store import files

    tomllib.loads(source)
    try:
        files.create(file, source.encode())
    except OSError as error:
        raise Problem(f"{file} cannot be written: {error.strerror}", "Name another file") from error
    try:
        read(file, None, [])
    except InvalidExperiment:
        file.unlink()
        raise
