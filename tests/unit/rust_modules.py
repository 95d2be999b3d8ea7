"""Reads which files of a Rust crate import which, from their text.

An import counts for the file that defines the item, found by following `use`. What a file only declares
(`mod`) or passes on (`pub use`, unused in the file itself) is no import, and tests are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Comments, and strings and characters with their quotes.
WORDS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']+|\\'|[^\\'])'""",
    re.DOTALL,
)
TEST_ONLY = re.compile(r"#\[cfg\(test\)\]")
DEFINITION = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const(?!\s+(?:unsafe\s+)?fn)|static|mod|macro_rules!)\s+(?:mut\s+)?(\w+)\s*([;{]?)|[{}]"
)
USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
# From a lower-case word on: a module, or something in scope.
EXPRESSION = re.compile(r"(?<![\w:.])([a-z_]\w*(?:\s*::\s*\w+)+)")
ROOTS = ("crate", "self", "super")


class UnresolvedError(Exception):
    """A path inside the crate that leads nowhere: the reader does not understand the source."""


@dataclass
class Module:
    """One file of a crate."""

    path: tuple[str, ...]
    file: Path
    code: str
    children: set[str] = field(default_factory=set)
    items: set[str] = field(default_factory=set)
    # By the name in scope: the path that it stands for.
    uses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    globs: bool = False


def without_words(text: str) -> str:
    """The code without comments and without what strings hold."""
    return WORDS.sub(lambda found: "" if found[0].startswith("/") else '""', text)


def without_tests(code: str) -> str:
    """The code without the items that only tests compile."""
    while found := TEST_ONLY.search(code):
        end, depth = found.end(), 0
        while True:
            end = re.compile(r"[{};]").search(code, end).end()  # type: ignore[union-attr]
            depth += {"{": 1, "}": -1, ";": 0}[code[end - 1]]
            if depth == 0:
                break
        code = code[: found.start()] + code[end:]
    return code


def leaves(tree: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every path of a `use`, with the name under which it is in scope (`*` for all names)."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        names, _, alias = re.sub(r"\s+", " ", tree).partition(" as ")
        parts = tuple(part.strip() for part in names.split("::"))
        if parts[-1] == "self":
            parts = parts[:-1]
        yield parts, alias or (parts[-1] if parts else "")
        return
    prefix = tuple(part.strip() for part in head.split("::") if part.strip())
    for part in split_list(rest[: rest.rindex("}")]):
        for path, name in leaves(part):
            yield prefix + path, name or prefix[-1]


def split_list(text: str) -> Iterator[str]:
    """The elements between the outer commas."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


class Crate:
    """The files of one crate that are compiled without its tests, from `lib.rs` or `main.rs` on."""

    def __init__(self, root: Path) -> None:
        self.modules: dict[tuple[str, ...], Module] = {}
        self._read((), root, root.parent)

    def _read(self, path: tuple[str, ...], file: Path, folder: Path) -> None:
        code = without_tests(without_words(file.read_text()))
        module = self.modules[path] = Module(path, file, code)
        depth = 0
        for found in DEFINITION.finditer(code):
            if found[0] in "{}":
                depth += 1 if found[0] == "{" else -1
                continue
            name, end = found.groups()
            declares_file = end == ";" and re.match(r"mod\b", found[0])
            if depth == 0:
                (module.children if declares_file else module.items).add(name)
            depth += end == "{"
        for found in USE.finditer(code):
            for target, name in leaves(found["tree"]):
                if name == "*":
                    module.globs = True
                else:
                    module.uses.setdefault(name, target)
        for child in module.children:
            flat, nested = folder / f"{child}.rs", folder / child / "mod.rs"
            self._read((*path, child), flat if flat.is_file() else nested, folder / child)

    def definition(self, module: Module, path: tuple[str, ...]) -> Module | None:
        """The file with the item that `path` names in `module`; none for other crates and for modules."""
        found = self._resolve(module, path, frozenset())
        return found[0] if found and found[1] else None

    def _resolve(
        self, module: Module, path: tuple[str, ...], seen: frozenset[tuple[Path, str]]
    ) -> tuple[Module, bool] | None:
        """Where `path` leads: a module, and whether to an item of it; none for another crate."""
        here, rest = module, path
        while rest and rest[0] in ROOTS:
            above = {"crate": (), "self": here.path, "super": here.path[:-1]}[rest[0]]
            here, rest = self.modules[above], rest[1:]
        if not rest:
            return here, False
        name, rest = rest[0], rest[1:]
        if name in here.items and not (rest and name in here.children):
            return here, True
        if name in here.children:
            return self._resolve(self.modules[(*here.path, name)], ("self", *rest), seen)
        if name in here.uses and (here.file, name) not in seen:
            found = self._resolve(here, here.uses[name], seen | {(here.file, name)})
            if found is None or found[1] or not rest:
                return found
            return self._resolve(found[0], ("self", *rest), seen)
        if path[0] in ROOTS and not here.globs:
            raise UnresolvedError(f"{module.file}: {'::'.join(path)}")
        return None

    def _paths(self, module: Module) -> Iterator[tuple[str, ...]]:
        """Every path through which the module takes something for itself."""
        body = USE.sub("", module.code)
        for found in USE.finditer(module.code):
            for target, name in leaves(found["tree"]):
                if not found["public"] or re.search(rf"\b{re.escape(name)}\b", body):
                    yield target
        for found in EXPRESSION.finditer(body):
            yield tuple(re.split(r"\s*::\s*", found[1]))

    def imports(self) -> dict[str, set[str]]:
        """By file, named from the crate's root on: the files whose items it uses."""
        folder = self.modules[()].file.parent
        names = {path: str(module.file.relative_to(folder)) for path, module in self.modules.items()}
        graph: dict[str, set[str]] = {name: set() for name in names.values()}
        for module in self.modules.values():
            for path in self._paths(module):
                if path[-1] == "*":
                    # Whatever it takes, it is from there.
                    found = self._resolve(module, path[:-1], frozenset())
                    defined = found[0] if found else None
                else:
                    defined = self.definition(module, path)
                if defined is not None and defined is not module:
                    graph[names[module.path]].add(names[defined.path])
        return graph
