"""Plain words as a test: idioms that readers stumbled over, and paths that name no file.

The words to use instead are in docs/glossary.md. Held over everything that people read outside the tests:
engine, compat, lab, examples and the documents.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNREAD = r"(^|/)(tests?/|test_|tests\.rs|testing\.rs)|^(CHANGELOG|benchmarks|fuzz|pyproject)"
READ = (".rs", ".py", ".lua", ".md", ".toml", ".j2", "Makefile")

# Each with what to write instead.
IDIOMS = {
    r"\banew\b": "again",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bwhoever\b": "the subject itself: the caller, the user",
    r"\bbeside\b": "next to, besides, with",
    r"\bway out\b": "fix",
    r"\b(?:come|comes|came) to (?:its|their|an|the) end\b": "end",
    r"\b(?:come|comes|came) to nothing\b": "fail",
    r"\btold\b|_told\b|\btelling\b": "reported, shown, named",
    r"\bset-ups?\b": "variant, setup",
    r"\bsomebody\b": "a user, another process",
    r"\bone's own\b": "your own",
    r"\btheirs\b|\bours\b": "the noun itself",
    r"\boff contract\b|\bcontracts?\b": "expected row count",
    r"\bcarry the sentence\b|\bcannot carry\b": "support the claim",
    r"\bheld against\b": "checked against",
    r"\bwhat stands\b|\bstands? (?:in|there|above|below|at|behind|alone|again|under)\b|\bstood\b": "is",
    r"\bmoved surely\b": "changed significantly",
    r"\bacts? alone\b": "additive, no interaction",
    r"\bdrawn anew\b": "evaluated per row",
    r"\bmishaps?\b": "error",
    r"\bfarewells?\b": "close, quit",
    r"\bdesks?\b|\bseats?\b": "worker state, user id",
    r"\bfared\b": "usage",
    r"\bat_once\b": "block_on",
    r"\bcomplaints?\b": "error, message",
    r"\bremed(?:y|ies)\b": "fix",
    r"\bwhose turn\b": "the current user",
    r"\bheard\b": "received",
    r"\blook-ups?\b": "lookup",
    r"\bno TOML\b": "invalid TOML",
    r"\bto be like\b": "to emulate",
    r"\bby hand\b": "manually, directly",
    r"\bunasked\b": "unsolicited",
}
IDIOM = re.compile("|".join(f"(?:{pattern})" for pattern in IDIOMS), re.IGNORECASE)
# A participle is no name for a value.
PARTICIPLE = "told|found|said|given|wanted|made|asked"
NAME = re.compile(
    rf"\b(?:let|let mut|for|fn|def|struct|enum|trait|class|mod) (?:{PARTICIPLE})\b", re.IGNORECASE
)
ASSIGNMENT = re.compile(rf"^\s*(?:{PARTICIPLE})(?:: [^=]+)? = ")
# Nor is a pronoun. Tests may have them, whose values are seen where they are used.
PRONOUN = re.compile(
    r"\b(?:for|lambda) (?:one|other|own|known)(?: in\b|[:,] )|^\s*(?:one|other|own|known)(?:: [^=]+)? = "
)
MENTION = re.compile(
    r"`((?:engine|compat|lab|docs|examples|tests|schema|scripts|benchmarks|fuzz|wire|runner|workload|metrics|load)"
    r"/[\w./-]+)`"
)


@cache
def lines() -> list[tuple[str, int, str]]:
    """Path, number and text of every line that is held to these rules."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    read = []
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        is_read = name.endswith(READ) and not re.search(UNREAD, name)
        if not is_read or not path.is_file():
            continue
        text = path.read_text().partition("#[cfg(test)]\nmod tests {")[0]
        read += [(name, number, line) for number, line in enumerate(text.splitlines(), start=1)]
    return read


def places(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern matches."""
    return [f"{name}:{number}: {line.strip()}" for name, number, line in lines() if pattern.search(line)]


@pytest.mark.parametrize("pattern", [IDIOM, NAME, ASSIGNMENT], ids=["idioms", "names", "assignments"])
def test_words_are_plain(pattern: re.Pattern[str]) -> None:
    hits = places(pattern)
    assert not hits, f"{len(hits)} places; tests/unit/test_language.py names what to write instead"


def test_the_lab_names_values_by_nouns() -> None:
    hits = [place for place in places(PRONOUN) if place.startswith("lab/") and ".py:" in place]
    assert not hits, f"{len(hits)} places: a pronoun is the name of a value"


def exists(name: str, path: str) -> bool:
    """Whether a path that the file `name` mentions exists: from the root, from the file's folder, in
    `engine`, or in a crate whose `src` it leaves out; modules may be without their ending.
    """
    crate, _, rest = path.partition("/")
    inside, _, last = rest.partition("/")
    starts = [path, f"{Path(name).parent}/{path}", f"engine/{path}"]
    starts += [f"engine/{crate}/src/{rest}", f"{crate}/{inside}/src/{last}"]
    endings = ("", ".rs", "/mod.rs", ".py")
    return any(any(ROOT.glob(start.rstrip("/") + ending)) for start in starts for ending in endings)


def test_every_path_that_is_named_exists() -> None:
    lost = [
        f"{name}:{number}: {path}"
        for name, number, line in lines()
        for path in MENTION.findall(line)
        if not exists(name, path)
    ]
    assert not lost


def test_the_rules_see_what_they_forbid() -> None:
    assert IDIOM.search("the server is told anew")
    assert NAME.search("    let mut found = 1;")
    assert ASSIGNMENT.search("    wanted: set[str] = set()")
    assert MENTION.findall("see `engine/wire/nowhere.rs`") == ["engine/wire/nowhere.rs"]
    assert not IDIOM.search("The server refused the variable.")
