"""The settings of servers that a document shows: configuration files, and what the server itself printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dbdyno.reading.document import Document
from dbdyno.reading.limits import linear

_SECTION = linear(r"(?<!\s)\s*+\[(mysqld|mysql\.conf|mariadb|server|mysqld[\w.\-]*)\]\s*+$")
_ASSIGNMENT = linear(
    r"(?<!\s)\s*+(?:[-*•+]\s++)?(?:set\s++global\s++)?(?<![\w\-])([a-zA-Z][\w\-]{2,63}+)\s*+=\s*+(.{0,10000}+)$",
    re.IGNORECASE,
)
# Where a comment begins, or a statement ends.
_END = re.compile(r"#|(?<=\s)--\s|;$")
_FLAG = linear(r"(?<!\s)\s*+(?<![\w\-])((?:skip|log|innodb)[\w\-]++)\s*+$")
_BOX = linear(r"(?<!\s)\s*+\|\s*+([a-z]\w*+)\s*+\|(.{0,10000}+)$")
_BOX_HEADING = linear(r"(?<!\s)\s*+\|\s*+Variable_name\s*+\|\s*+Value\s*+\|", re.IGNORECASE)
# What a client prints into a file: names and values with a tab, a comma or blanks between them.
_LIST_HEADING = linear(r"(?<!\s)\s*+[\"']?Variable_name[\"']?[\s,;]+[\"']?Value[\"']?\s*+$", re.IGNORECASE)
_LISTED = linear(r"(?<!\s)\s*+[\"']?([a-z]\w{2,63}+)[\"']?(?:\t|\s*+[,;]|\s++)(.{0,10000}+)$", re.IGNORECASE)
# The form of \G.
_VERTICAL = linear(r"(?<!\s)\s*+Variable_name:\s*+([a-z]\w++)\s*+$", re.IGNORECASE)
_VERTICAL_VALUE = linear(r"(?<!\s)\s*+Value:\s?(.{0,10000})$", re.IGNORECASE)
_BLOCK_END = linear(r"(?<!\s)\s*+(?:\[|EOF\b)")
_DASHES = re.compile(r"(?<![\s-])\s{0,64}+-{1,1000}+\s{0,64}+")
POSTGRESQL = linear(
    r"shared_buffers|effective_cache_size|work_mem|maintenance_work_mem|max_wal_size|checkpoint_\w+|wal_\w+|"
    r"synchronous_commit|max_connections|random_page_cost|fsync|full_page_writes|effective_io_concurrency|"
    r"max_worker_processes|max_parallel_\w+|huge_pages|jit|autovacuum\w*|listen_addresses"
)
# Settings of MySQL that are named without the section of a file.
_MYSQL = linear(r"innodb_\w+|sync_binlog", re.IGNORECASE)
# Settings on a command line, or in a row.
_INLINE = linear(r"(?:^|[\s`\"'])(?:-c\s+)?([a-z_]{4,40})=([\w.]+)")
# Lines in a row that are no settings, after which a block has ended.
_GAP_MAX = 3


@dataclass(frozen=True)
class Settings:
    """A block of settings."""

    product: str
    # Whether the server printed them, not a file that it may have ignored.
    is_shown: bool
    # Value and index of its line, by the variable's name with underscores.
    values: Mapping[str, tuple[str, int]]
    first: int
    last: int
    # Whether they are on a command line, in a sentence or in a list, and others may hold.
    is_inline: bool = False


def find_settings(document: Document) -> Iterator[Settings]:
    """The blocks of settings in a document."""
    index = 0
    while index < len(document.texts):
        text = document.texts[index]
        block: Settings | None = None
        if _SECTION.match(text):
            block = _file(document, index, "mysql", index + 1)
        elif _BOX_HEADING.match(text):
            block = _rows(document, index, _BOX)
        elif ("alue" in text or "ALUE" in text) and _LIST_HEADING.match(text):
            block = _rows(document, index, _LISTED)
        elif "ariable_name:" in text and _VERTICAL.match(text):
            block = _vertical(document, index)
        elif (shown := _shown(document, index)) is not None:
            block = shown
        elif "=" in text and len(assigned := dict(_INLINE.findall(text))) > 1:
            values = {
                _name(name): (value, index) for name, value in assigned.items() if POSTGRESQL.fullmatch(name)
            }
            block = Settings("postgresql", False, values, index, index, is_inline=True)
        elif (match := _ASSIGNMENT.match(text)) and POSTGRESQL.fullmatch(match[1].lower()):
            block = _file(document, index, "postgresql", index)
            block = block if len(block.values) > 1 else None
        elif match and _MYSQL.fullmatch(_name(match[1])):
            block = replace(_file(document, index, "mysql", index), is_inline=True)
        if block is not None and block.values:
            yield block
            index = block.last
        index += 1


def _file(document: Document, first: int, product: str, start: int) -> Settings:
    values: dict[str, tuple[str, int]] = {}
    last = first
    for index, text in document.lines(start):
        if index - last > _GAP_MAX or text.startswith("```") or _BLOCK_END.match(text):
            break
        if text.lstrip().startswith("#"):
            last = index
        elif match := _ASSIGNMENT.match(text):
            values[_name(match[1])] = (_value(match[2]).strip("'\""), index)
            last = index
        elif match := _FLAG.match(text):
            values[_name(match[1])] = ("ON", index)
            last = index
        elif text.strip():
            break
    return Settings(product, False, values, first, last)


def _rows(document: Document, first: int, pattern: re.Pattern[str]) -> Settings:
    """Rows of a box, or lines with a name and a value."""
    values: dict[str, tuple[str, int]] = {}
    last = first
    for index, text in document.lines(first + 1):
        if match := pattern.match(text):
            values[_name(match[1])] = (match[2].strip().removesuffix("|").strip(" \"'"), index)
        elif not text.lstrip().startswith("+-"):
            break
        last = index
    return Settings("mysql", True, values, first, last)


def _vertical(document: Document, first: int) -> Settings:
    values: dict[str, tuple[str, int]] = {}
    last, name = first, ""
    for index, text in document.lines(first):
        if match := _VERTICAL.match(text):
            name = _name(match[1])
        elif name and (match := _VERTICAL_VALUE.match(text)):
            values[name] = (match[1].strip(), index)
        elif "***" not in text:
            break
        last = index
    return Settings("mysql", True, values, first, last)


def _shown(document: Document, index: int) -> Settings | None:
    """What psql prints of SHOW: the name, a line of dashes, the value."""
    name = document.texts[index].strip()
    if not POSTGRESQL.fullmatch(name) or index + 2 >= len(document.texts):
        return None
    if not _DASHES.fullmatch(document.texts[index + 1]):
        return None
    return Settings(
        "postgresql", True, {name: (document.texts[index + 2].strip(), index + 2)}, index, index + 2
    )


def _value(text: str) -> str:
    """The value of a setting, without the comment after it."""
    end = _END.search(text)
    return text[: end.start()].strip() if end is not None else text.strip()


def _name(text: str) -> str:
    return text.lower().replace("-", "_")
