"""`dbdyno docs [TOPIC]`: prints a page of the documentation, or what it says about the code of a check.

A wheel contains the pages but not the repository, so generated files and messages refer to this command.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.problem import Problem

# A link to docs/ in the repository, files in a wheel.
_PAGES = Path(__file__).parents[1] / "docs"
# Columns of a terminal: a longer line is hard to read.
_WIDTH = 110
_COMMENT = re.compile(r'<!--.*?-->\n?|<a id="[^"]*"></a>\n*', re.DOTALL)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
# A block of code, which the group makes `re.split` keep.
_BLOCK = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## ([A-Z]\d\d) .*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_ROW = re.compile(r"^\| ([A-Z]\d\d) \| (.*?) \| (.*) \|$", re.MULTILINE)


def pages(incomplete: str = "") -> list[str]:
    """The names of the pages, of which some have a folder before their name."""
    names = (str(path.relative_to(_PAGES).with_suffix("")) for path in _PAGES.rglob("*.md"))
    return sorted(name for name in names if name.startswith(incomplete))


def docs(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="A page, such as experiment, or the code of a check, such as P07 (default: list the pages).",
            metavar="TOPIC",
            show_default=False,
            autocompletion=pages,
        ),
    ] = None,
) -> None:
    """Print a page of the documentation; list the pages."""
    from dbdyno.experiment.errors import did_you_mean
    from dbdyno.terminal.console import Column, table_lines

    names = pages()
    if topic is None:
        rows = [[name, _text(name).partition("\n")[0].removeprefix("# ")] for name in names]
        print(*table_lines([Column("topic"), Column("title")], rows), sep="\n")
        return
    if topic in names:
        text, folder = _text(topic), posixpath.dirname(topic)
    elif section := _codes().get(topic.upper()):
        text, folder = section, ""
    else:
        raise Problem(f"the documentation has no page {topic!r}", did_you_mean(topic, names))
    _show(_with_topics(text, folder))


def _text(name: str) -> str:
    return _COMMENT.sub("", (_PAGES / f"{name}.md").read_text(encoding="utf-8"))


def _codes() -> dict[str, str]:
    """The code of a check -> its section, and what it examines in documents of others."""
    sections = {match[1]: match[0] for match in _SECTION.finditer(_text("checks"))}
    for code, rule, how in _ROW.findall(_text("reading")):
        sections[code] = sections.get(code, f"## {code} {rule}\n\n") + f"`dbdyno read`: {how}\n"
    return sections


def _with_topics(text: str, folder: str) -> str:
    """Markdown of a page in that folder which names the topics that it links to."""
    topics = {*pages(), *_codes()}

    def reference(link: re.Match[str]) -> str:
        words, target, anchor = link.groups(default="")
        if "://" in target:
            return link[0]
        topic = posixpath.normpath(posixpath.join(folder, target)).removesuffix(".md")
        if topic == "checks" and anchor.upper() in topics:
            topic = anchor.upper()
        # Headings of the same page, pictures, and files of the repository are no topics.
        return f"{words} (`dbdyno docs {topic}`)" if topic in topics - {words} else words

    parts = _BLOCK.split(text)
    return "".join(part if number % 2 else _LINK.sub(reference, part) for number, part in enumerate(parts))


def _show(text: str) -> None:
    """Print Markdown. A terminal shows it formatted, in the pager."""
    if not sys.stdout.isatty():
        print(text.strip())
        return
    from rich.markdown import Markdown

    from dbdyno.terminal.console import SafeConsole

    console = SafeConsole()
    width = min(console.width, _WIDTH)
    page = Markdown(text, hyperlinks=False)
    with console.capture() as captured:
        console.print(page, width=width)
    if sys.stdin.isatty():
        # As with git, the pager shows colours, and only prints what fits on the screen.
        environment = {"LESS": "-FRX", **os.environ}
        pager = shlex.split(os.environ.get("PAGER", "less"))
        with contextlib.suppress(OSError):
            subprocess.run(pager, input=captured.get(), text=True, check=False, env=environment)
            return
    console.print(page, width=width)
