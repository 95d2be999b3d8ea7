r"""Regular expressions that need a time in proportion to the text, whatever the text is; and numbers.

Python's `re` tries a repetition such as `\s*` again at each place of a run of blanks, which takes a time in
proportion to the square of its length. `linear` gives each repetition a limit.
"""

from __future__ import annotations

import re

from dbdyno.reading.limits import DIGITS_MAX, NUMBER_MAX, NUMBER_MIN

# Longer than any run of blanks, word or number that means something.
RUN_MAX = 64
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\]){0,200}+\]|[*+](?=[?+]?)|\{\d*,\d*\}|\(\?|.", re.DOTALL)


def linear(text: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern, in which `*` and `+` stop after RUN_MAX repetitions."""
    parts: list[str] = []
    for part in _PART.findall(text):
        # The plus of a possessive repetition stays.
        is_mode = part == "+" and bool(parts) and parts[-1][0] in "{?"
        is_repetition = part in ("*", "+") and not is_mode
        parts.append(f"{{{0 if part == '*' else 1},{RUN_MAX}}}" if is_repetition else part)
    return re.compile("".join(parts), flags)


def whole(text: str) -> int | None:
    """A whole number with or without commas; None if it has more digits than a count can have."""
    digits = text.replace(",", "")
    return int(digits) if digits.isdecimal() and len(digits) <= DIGITS_MAX else None


def decimal(text: str) -> float | None:
    """A figure with or without commas; None if it is no number, or one that no benchmark measures."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value == 0 or NUMBER_MIN <= abs(value) <= NUMBER_MAX else None
