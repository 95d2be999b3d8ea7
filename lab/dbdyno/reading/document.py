"""A document as lines of plain text that know their place in the file."""

from __future__ import annotations

import html
import os
import re
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from dbdyno.problem import Problem
from dbdyno.reading.html_text import lines_of_html
from dbdyno.reading.limits import (
    BLANK_LINES_MAX,
    DOCUMENT_BYTES_MAX,
    FOLDED_MAX,
    LINE_MAX,
    LINES_MAX,
    LeftOut,
    linear,
)
from dbdyno.redaction import redact, redact_document
from dbdyno.text import compose

# Tags that a page has and plain text or Markdown with a picture in it does not.
_PAGE = re.compile(rb"<(?:!doctype html|html|body|table|pre|div|p)[\s>]", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
# Spaces that pages use to align text, and characters without width.
_SPACES = str.maketrans({"\u00a0": " ", "\u3000": " ", "\u200b": None, "\ufeff": None, "\0": None})
# Where sysbench and pgbench begin a line.
_LABEL = linear(
    r"(?<!\s)\s+(?=(?:SQL statistics|queries performed|read|write|other|total|transactions|queries|ignored "
    r"errors|reconnects|General statistics|"
    r"Throughput|total time|time elapsed|total number of events|Latency \(ms\)|min|avg|max|95th "
    r"percentile|99th percentile|sum|Threads "
    r"fairness|events \(avg/stddev\)|execution time \(avg/stddev\)|Number of threads|scaling factor|query "
    r"mode|number of clients|"
    r"number of threads|duration|number of transactions actually processed|latency average)\s?[:=]|tps =|\[ "
    r"?\d+s ?\] th)"
)
_LINE_END = re.compile(r"\r\n|\n|\r")
# A pipe that nobody writes has no end.
_WRITER_TIMEOUT_S = 10.0
# Characters of the shortest line with a name and a password: "pwd: x".
_SECRET_MIN = 6
_CHUNK = 1 << 20
_SMALLER = "Leave out the lines of intervals, or split the file"


# Files that are programs.
_SCRIPTS = (
    ".sh",
    ".bash",
    ".zsh",
    ".ksh",
    ".py",
    ".pl",
    ".rb",
    ".ps1",
    ".bat",
    ".cmd",
    ".js",
    ".lua",
    ".awk",
    ".mk",
)
_SCRIPT_LINES = 20
# Lines of an SQL statement.
_STATEMENT_LINES = 60
# A command or an expression that takes or prints a text.
_CODE = linear(
    r"(?:^|[\s|;&(`])(?:[ef]?grep|awk|gawk|sed|perl|cut|tr|rg|echo|printf|print|ack|findstr|"
    r"Select-String)\s*[\s('\"]|"
    r"\bre\.\w+\(|\b(?:search|match|split|find|startswith|includes|indexOf|contains)\(|=~|\bcase\s.*\bin\b|\$\("
)


@dataclass(frozen=True)
class Document:
    """The lines of a file; `numbers` are their places in the file, from 1. No line has a password."""

    name: str
    texts: Sequence[str]
    numbers: Sequence[int] = field(default=())
    # The file's text, without passwords.
    source: str = ""
    left_out: LeftOut = field(default_factory=LeftOut)

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", range(1, len(self.texts) + 1))

    @cached_property
    def is_script(self) -> bool:
        """Whether it is a program: a result in it is a pattern, a comment or a text to print."""
        first = next((text for text in self.texts[:_SCRIPT_LINES] if text), "")
        return first.startswith("#!") or self.name.lower().endswith(_SCRIPTS)

    def is_code(self, index: int) -> bool:
        """Whether a line is a command that searches or prints a text, or a comment in a script."""
        text = self.texts[index]
        return bool(_CODE.search(text)) or (self.is_script and text.lstrip().startswith(("#", "//", "--")))

    def statement(self, first: int) -> Sequence[str]:
        """The lines from one to that with the semicolon; () if none of the next ones has it."""
        for last in range(first, min(len(self.texts), first + _STATEMENT_LINES)):
            if self.texts[last].rstrip().endswith(";"):
                return self.texts[first : last + 1]
        return ()

    def lines(self, start: int = 0) -> Iterator[tuple[int, str]]:
        """Index and text of each line from an index on."""
        if not start:
            return enumerate(self.texts)
        return ((index, self.texts[index]) for index in range(start, len(self.texts)))


def load(path: Path) -> Document:
    """Reads a file. Raises Problem if it is not readable text of at most 256 MiB."""
    name = os.fsencode(path).decode("utf-8", errors="replace")
    try:
        with _opened(path) as file:
            return parse(read_bytes(file, name), name)
    except OSError as error:
        raise Problem(f"{name}: {error.strerror or error}", "Name a file that you may read") from None
    except ValueError:
        raise Problem(f"{name!r} is no name of a file", "Name a file that you may read") from None


def _opened(path: Path) -> BinaryIO:
    """The open file. Raises OSError, also for a pipe that nobody writes."""
    # A pipe is not waited for in `open`, which has no time limit.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if path.is_fifo():
        end = time.monotonic() + _WRITER_TIMEOUT_S
        while not _has_writer(file):
            if time.monotonic() > end:
                file.close()
                raise OSError(None, f"a pipe that nobody writes to within {_WRITER_TIMEOUT_S:.0f} s")
            time.sleep(0.01)
    os.set_blocking(descriptor, True)
    return file


def _has_writer(file: BinaryIO) -> bool:
    """Whether a pipe that does not block has a writer, or bytes that one has left."""
    try:
        return bool(file.peek(1))  # type: ignore[attr-defined]  # a BufferedReader
    except BlockingIOError:
        return True


def read_bytes(file: BinaryIO, name: str) -> bytes:
    """The bytes of an open file. Raises Problem if they are no text, or more than a document may have."""
    parts: list[bytes] = []
    size = 0
    if (whole := _size(file)) > DOCUMENT_BYTES_MAX:
        raise Problem(
            f"{name} has {whole / (1 << 20):,.0f} MiB; "
            f"dbdyno read reads at most {DOCUMENT_BYTES_MAX >> 20} MiB",
            _SMALLER,
        )
    while part := file.read(_CHUNK):
        if not parts and b"\0" in part[:4096] and part[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            raise Problem(f"{name} is no text: it has NUL bytes", "Name a file of text, Markdown or HTML")
        parts.append(part)
        size += len(part)
        if size > DOCUMENT_BYTES_MAX:
            raise Problem(
                f"{name} has more than {DOCUMENT_BYTES_MAX >> 20} MiB; dbdyno read reads at most "
                f"{DOCUMENT_BYTES_MAX >> 20} MiB",
                _SMALLER,
            )
    return b"".join(parts)


def _size(file: BinaryIO) -> int:
    """The size of a file; 0 of a pipe or a device, which does not know it."""
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:
        return 0


def parse(content: bytes, name: str) -> Document:
    """The document in these bytes: UTF-8, UTF-16 with a mark, or the encodings of older Korean, Japanese and
    Western pages.
    """
    source = redact_document(_decode(content))
    left_out = LeftOut()
    # A page begins with a tag, or has many; Markdown has a few.
    start = content[: 64 << 10]
    is_page = (
        name.lower().endswith((".html", ".htm"))
        or _PAGE.match(start.lstrip()) is not None
        or len(_PAGE.findall(start)) >= 8
    )
    numbered = lines_of_html(source, left_out) if is_page else enumerate(_LINE_END.split(source), start=1)
    texts: list[str] = []
    # Compact, because a document may have millions of lines.
    numbers = array("l")
    blank = 0
    secrets: list[str] = []
    for number, raw in numbered:
        if len(texts) >= LINES_MAX:
            left_out.add("lines", number, compose("only the first {limit:,} lines are read", limit=LINES_MAX))
            break
        text = _clean(raw)
        if (is_page and len(text) >= _SECRET_MIN) or (len(text) != len(raw) and "&" in raw):
            text = redact(text, secrets)
        blank = 0 if text else blank + 1
        if blank > BLANK_LINES_MAX:
            # More of them separate nothing more.
            continue
        for part in _parts(text, number, left_out):
            texts.append(part)
            numbers.append(number)
    for secret in secrets:
        # What only the text of a page shows as a password.
        source = source.replace(secret, "…") if len(secret) > 2 else source
    return Document(name, texts, numbers, source, left_out)


def _parts(text: str, number: int, left_out: LeftOut) -> Iterator[str]:
    """The line, or the lines of an output that a page has put into one, none of them too long."""
    is_folded = 200 < len(text) <= FOLDED_MAX and len(_LABEL.findall(text)) > 3
    for part in _LABEL.split(text) if is_folded else [text]:
        if len(part) > LINE_MAX:
            left_out.add(
                "line",
                number,
                compose(
                    "the line has {length:,} characters; the first {limit:,} are read",
                    length=len(part),
                    limit=LINE_MAX,
                ),
            )
        yield part[:LINE_MAX]


def _decode(content: bytes) -> str:
    for encoding in ("utf-8-sig", "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "cp949"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("utf-8", errors="replace")


def _clean(text: str) -> str:
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return text.rstrip() if text.isascii() and "\0" not in text else text.translate(_SPACES).rstrip()
