"""A document as lines of plain text that know their place in the file."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.problem import Problem
from dbdyno.reading.html_text import lines_of_html

# More than the largest output that people keep; a limit, because a reading keeps the text in memory.
BYTES_MAX = 256 << 20
# Tags that a page has and plain text or Markdown with a picture in it does not.
_PAGE = re.compile(rb"<(?:!doctype html|html|body|table|pre|div|p)[\s>]", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
# Spaces that pages use to align text, and characters without width.
_SPACES = str.maketrans({"\u00a0": " ", "\u3000": " ", "\u200b": None, "\ufeff": None})
# Where sysbench and pgbench begin a line.
_LABEL = re.compile(
    r"\s+(?=(?:SQL statistics|queries performed|read|write|other|total|transactions|queries|ignored "
    r"errors|reconnects|General statistics|"
    r"Throughput|total time|time elapsed|total number of events|Latency \(ms\)|min|avg|max|95th "
    r"percentile|99th percentile|sum|Threads "
    r"fairness|events \(avg/stddev\)|execution time \(avg/stddev\)|Number of threads|scaling factor|query "
    r"mode|number of clients|"
    r"number of threads|duration|number of transactions actually processed|latency average)\s*[:=]|tps =|\[ "
    r"?\d+s ?\] th)"
)
_FOLDED_MAX = 100_000
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Document:
    """The lines of a file; `numbers` are their places in the file, from 1."""

    name: str
    texts: Sequence[str]
    numbers: Sequence[int] = field(default=())

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", range(1, len(self.texts) + 1))

    def lines(self, start: int = 0) -> Iterator[tuple[int, str]]:
        """Index and text of each line from an index on."""
        for index in range(start, len(self.texts)):
            yield index, self.texts[index]


def load(path: Path) -> Document:
    """Reads a file. Raises Problem if it is not readable text of at most 256 MiB."""
    try:
        size = path.stat().st_size
        if size > BYTES_MAX:
            raise Problem(
                f"{path} has {size / (1 << 20):,.0f} MiB; dbdyno read reads at most {BYTES_MAX >> 20} MiB",
                "Leave out the lines of intervals, or split the file",
            )
        content = path.read_bytes()
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}", "Name a file that you may read") from None
    if b"\0" in content[:4096] and content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise Problem(f"{path} is no text: it has NUL bytes", "Name a file of text, Markdown or HTML")
    return parse(content, str(path))


def parse(content: bytes, name: str) -> Document:
    """The document in these bytes: UTF-8, UTF-16 with a mark, or the encodings of older Korean, Japanese and
    Western pages.
    """
    text = _decode(content)
    if name.lower().endswith((".html", ".htm")) or _is_page(content):
        numbered = list(lines_of_html(text))
        return _unfolded(
            Document(name, [_clean(one) for _, one in numbered], [number for number, _ in numbered])
        )
    return _unfolded(Document(name, [_clean(line) for line in _LINE_END.split(text)]))


def _unfolded(document: Document) -> Document:
    """The document with outputs on several lines that a page has put into one."""
    if not any(_is_folded(text) for text in document.texts):
        return document
    texts: list[str] = []
    numbers: list[int] = []
    for number, text in zip(document.numbers, document.texts, strict=True):
        parts = _LABEL.split(text) if _is_folded(text) else [text]
        texts += [part for part in parts if part is not None]
        numbers += [number] * len(parts)
    return Document(document.name, texts, numbers)


def _is_folded(text: str) -> bool:
    return len(text) > 200 and len(text) < _FOLDED_MAX and len(_LABEL.findall(text)) > 3


def _is_page(content: bytes) -> bool:
    """Whether these bytes are a page, not Markdown with a few tags: a page begins with a tag, or has many."""
    start = content[: 64 << 10]
    return bool(_PAGE.match(start.lstrip())) or len(_PAGE.findall(start)) >= 8


def _decode(content: bytes) -> str:
    for encoding in ("utf-8-sig", "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "cp949"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("utf-8", errors="replace")


def _clean(text: str) -> str:
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    return text.translate(_SPACES).rstrip() if not text.isascii() else text.rstrip()
