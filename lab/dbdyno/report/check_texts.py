"""The explanations of the checks, for the report: the title and two paragraphs of docs/checks.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from markupsafe import Markup, escape

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


def check_texts(codes: Iterable[str]) -> list[CheckText]:
    """The explanations of these checks, by code; without those that the documentation does not have."""
    page = resources.files("dbdyno.report").joinpath("templates/checks.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(page)
    sections = {
        code: (title, text) for code, title, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }
    return [_text(code, *sections[code]) for code in sorted(set(codes)) if code in sections]


def _text(code: str, title: str, section: str) -> CheckText:
    paragraphs = [" ".join(one.split()) for one in section.split("\n\n") if one.strip()]
    # The first paragraph may end before a table, which the documentation alone has.
    first = paragraphs[0].removesuffix(":") + ("." if paragraphs[0].endswith(":") else "")
    fixes = [one for one in paragraphs[1:] if one.startswith("Fix:")]
    return CheckText(code, _markup(title), tuple(map(_markup, [first, *fixes[:1]])))


def _markup(text: str) -> Markup:
    """The text as HTML: code as code, emphasis and links as plain text."""
    text = _LINK.sub(r"\1", text)
    parts = _CODE.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(_EMPHASIS.sub(r"\1", part))
        for number, part in enumerate(parts)
    )
