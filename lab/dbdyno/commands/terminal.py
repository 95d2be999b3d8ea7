"""What reaches a terminal.

Text of servers, hooks, files and stored runs may contain escape sequences, which could clear or forge what
the user sees. All printed text passes `visible`; only the sequences of `console.SafeConsole` do not.
"""

from __future__ import annotations

import io
import re

# The control characters of ASCII and Latin-1 except tab and the end of a line; what changes the direction of
# the text; Unicode's separators of lines and paragraphs.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)


def visible(text: str) -> str:
    r"""The text with `\u001b` and the like for its control characters. Valid JSON stays valid and equal."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeText(io.TextIOWrapper):
    """A text stream that makes control characters visible."""

    def write(self, text: str, /) -> int:
        """Write the text. Returns its length, as the callers of a text stream expect."""
        super().write(visible(text))
        return len(text)

    def write_raw(self, text: str) -> int:
        """Write the text unchanged."""
        return super().write(text)
