"""Control characters in printed text: made visible, except those of dbdyno's own colours."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.text import Text

from dbdyno.terminal.console import SafeConsole
from dbdyno.terminal.streams import SafeText, visible

CLEAR, TITLE, REVERSED = "\x1b[2J", "\x1b]0;title\x07", "\u202e"


def redirect(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Replace standard error; returns what it gets. pytest replaces the streams after its fixtures."""
    content = io.BytesIO()
    monkeypatch.setattr("sys.stderr", SafeText(content, encoding="utf-8", write_through=True))
    return content


@pytest.mark.parametrize("code", [0, 7, 8, 11, 12, 13, 27, 127, 0x85, 0x9B, 0x200F, 0x2028, 0x202E, 0x2066])
def test_a_control_character_is_visible(code: int) -> None:
    assert visible(f"a{chr(code)}b") == f"a\\u{code:04x}b"


@pytest.mark.parametrize("text", ["plain", "tab\tline\n", "line of CSV\r\n", "größer ≥ 한국어 …"])
def test_other_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


def test_json_stays_equal() -> None:
    value = {"name": f"{REVERSED}\x85{CLEAR}"}
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


def test_a_stream_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    written = redirect(monkeypatch)
    print(f"name {CLEAR}{TITLE}", file=sys.stderr)  # noqa: T201
    assert written.getvalue() == b"name \\u001b[2J\\u001b]0;title\\u0007\n"


def test_a_console_has_colours_of_its_own_only(monkeypatch: pytest.MonkeyPatch) -> None:
    written = redirect(monkeypatch)
    console = SafeConsole(stderr=True, force_terminal=True, color_system="standard", highlight=False)
    console.print(Text(f"name {CLEAR}", style="red"), f"markup {TITLE}", soft_wrap=True)
    text = written.getvalue().decode()
    assert "\x1b[31m" in text
    assert "\\u001b[2J" in text
    assert CLEAR not in text
    assert "\x1b]0" not in text
    assert "\x07" not in text
