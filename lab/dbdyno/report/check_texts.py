"""The explanations of the checks, for the report: the title and two paragraphs of docs/checks.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from markupsafe import Markup, escape

from dbdyno.languages import IN_ENGLISH, Translator

# A heading of a check: "## D01 The load generator keeps up".
_SECTION = re.compile(r"^## ([PDRQ]\d\d) (.*)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_CODE = re.compile(r"`([^`]+)`")
_EMPHASIS = re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True)
class CheckText:
    """What a check examines, and how to fix what it reports."""

    code: str
    title: Markup
    paragraphs: tuple[Markup, ...]


def check_texts(codes: Iterable[str], translate: Translator = IN_ENGLISH) -> list[CheckText]:
    """The explanations of these checks, by code; without those that the documentation does not have."""
    needed = frozenset(codes)
    return [
        CheckText(
            code,
            _markup(translate.pattern(title)),
            tuple(_markup(translate.pattern(one)) for one in paragraphs),
        )
        for code, title, *paragraphs in documented_checks()
        if code in needed
    ]


def documented_checks() -> list[tuple[str, ...]]:
    """Code, title and paragraphs of every check in the documentation, in Markdown."""
    page = resources.files("dbdyno.report").joinpath("templates/checks.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(page)
    sections = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return sorted((code, title, *_paragraphs(section)) for code, title, section in sections)


def _paragraphs(section: str) -> list[str]:
    """What the check examines, and how to fix what it reports."""
    paragraphs = [" ".join(one.split()) for one in section.split("\n\n") if one.strip()]
    # The first paragraph may end before a table, which the documentation alone has.
    first = paragraphs[0].removesuffix(":") + ("." if paragraphs[0].endswith(":") else "")
    fixes = [one for one in paragraphs[1:] if one.startswith("Fix:")]
    return [first, *fixes[:1]]


def _markup(text: str) -> Markup:
    """The text as HTML: code as code, emphasis and links as plain text."""
    text = _LINK.sub(r"\1", text)
    parts = _CODE.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(_EMPHASIS.sub(r"\1", part))
        for number, part in enumerate(parts)
    )
