"""Translates texts.

A language is one file here, such as ko.po: a gettext catalogue whose keys are the English patterns of
`dbdyno.text`. A pattern that it lacks stays English. `make texts` adds new patterns to every
catalogue.
"""

from __future__ import annotations

import gettext
from collections.abc import Callable
from functools import cache
from importlib import resources
from io import BytesIO
from typing import Any

from markupsafe import Markup, escape

from dbdyno.text import Text

ENGLISH = "en"
Translate = Callable[[str], str]


def languages() -> list[str]:
    """The codes of the languages, English first."""
    folder = resources.files("dbdyno.languages")
    others = sorted(file.name.removesuffix(".po") for file in folder.iterdir() if file.name.endswith(".po"))
    return [ENGLISH, *others]


class Translator:
    """Translates texts into one language; a string that is no text stays as it is."""

    def __init__(self, catalogue: gettext.NullTranslations) -> None:
        self._catalogue = catalogue

    def __call__(self, text: str) -> str:
        """The text in this language."""
        if not isinstance(text, Text):
            return text
        values = {
            name: self(value) if isinstance(value, str) else value for name, value in text.values.items()
        }
        return self._pattern(text).format(**values)

    def markup(self, text: str) -> Markup:
        """The text as HTML: its pattern and its values are escaped, except values that are markup."""
        if not isinstance(text, Text):
            return escape(text)
        values = {
            name: self.markup(value) if isinstance(value, str) else value
            for name, value in text.values.items()
        }
        return Markup(escape(self._pattern(text)).format(**values))  # noqa: S704 — escaped.

    def inside(self, value: Any) -> Any:
        """Lists and dictionaries with the texts in them translated."""
        if isinstance(value, Text):
            return self(value)
        if isinstance(value, dict):
            return {self.inside(key): self.inside(entry) for key, entry in value.items()}
        return [self.inside(entry) for entry in value] if isinstance(value, list) else value

    def pattern(self, english: str) -> str:
        """The translation of a pattern without values."""
        return self._catalogue.gettext(english)

    def _pattern(self, text: Text) -> str:
        if text.plural is None:
            # The empty key is the header of a catalogue.
            return self._catalogue.gettext(text.pattern) if text.pattern else ""
        return self._catalogue.ngettext(text.pattern, text.plural, text.values["number"])


@cache
def translator(language: str) -> Translator:
    """The translator to a language of `languages()`."""
    if language == ENGLISH:
        return Translator(gettext.NullTranslations())
    # Only other languages need the parser of catalogues.
    import polib  # noqa: PLC0415

    path = resources.files("dbdyno.languages").joinpath(f"{language}.po")
    catalogue = polib.pofile(path.read_text(encoding="utf-8")).to_binary()
    return Translator(gettext.GNUTranslations(BytesIO(catalogue)))


IN_ENGLISH = translator(ENGLISH)
