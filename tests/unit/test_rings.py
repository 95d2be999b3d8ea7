"""No files of one crate, and no modules of the lab, import each other in a ring.

Files in a ring cannot be read, tested or moved one at a time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.rust_modules import Crate, UnresolvedError

ROOT = Path(__file__).parents[2]
LAB = ROOT / "lab" / "dbdyno"
CRATES = sorted(
    root
    for part in ("engine", "compat")
    for name in ("lib.rs", "main.rs")
    for root in ROOT.glob(f"{part}/*/src/{name}")
)

Graph = dict[str, set[str]]


def rings(graph: Graph) -> list[set[str]]:
    """The groups of nodes each of which reaches every other."""
    reached = {node: reachable(graph, node) for node in graph}
    found: list[set[str]] = []
    for node in graph:
        ring = {other for other in reached[node] if node in reached[other]}
        if ring and ring not in found:
            found.append(ring)
    return found


def reachable(graph: Graph, start: str) -> set[str]:
    """Every node at the end of a path from `start`."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(graph[node])
    return found


def explained(graph: Graph) -> str:
    """Each ring with its imports, one a line; empty without rings."""
    return "\n\n".join(
        "\n".join(f"{node} imports {', '.join(sorted(graph[node] & ring))}" for node in sorted(ring))
        for ring in rings(graph)
    )


def python_imports(package: Path) -> dict[str, set[str]]:
    """By module of the package: the modules of it that it imports, in functions and for types too."""
    files = {
        ".".join([package.name, *path.relative_to(package).with_suffix("").parts]).removesuffix(
            ".__init__"
        ): path
        for path in package.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        parent = name if path.name == "__init__.py" else name.rpartition(".")[0]
        named = imported_names(ast.parse(path.read_text()), parent)
        # `from package import x` names the module x, or something that the package defines.
        found = {whole if whole in files else whole.rpartition(".")[0] for whole in named}
        graph[name] = (found & set(files)) - {name}
    return graph


def imported_names(node: ast.AST, parent: str) -> Iterator[str]:
    """Whole names of what is imported at or below `node`, in a module of the package `parent`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = parent.split(".")[: len(parent.split(".")) - (node.level - 1)] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from imported_names(child, parent)


@pytest.mark.parametrize("root", CRATES, ids=lambda root: str(root.relative_to(ROOT)))
def test_no_files_of_a_crate_import_each_other_in_a_ring(root: Path) -> None:
    found = explained(Crate(root).imports())
    assert not found, found


def test_no_modules_of_the_lab_import_each_other_in_a_ring() -> None:
    found = explained(python_imports(LAB))
    assert not found, found


def test_every_file_of_the_crates_is_read() -> None:
    read = {root.parent / file for root in CRATES for file in Crate(root).imports()}
    files = {file for root in CRATES for file in root.parent.rglob("*.rs")}
    assert {file.name for file in files - read} <= {"tests.rs", "testing.rs"}


def crate(folder: Path, **files: str) -> Crate:
    """A crate whose files are named by their modules, with `__` between the parts."""
    for name, text in files.items():
        path = folder / Path(*name.split("__")).with_suffix(".rs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Crate(folder / "lib.rs")


def test_a_ring_of_files_is_found(tmp_path: Path) -> None:
    read = crate(
        tmp_path,
        lib="mod a; mod b; mod c; pub use c::C;",
        a="use crate::b::B; pub struct A(B);",
        b="pub struct B; fn b() { crate::C::new() }",
        c="use super::a; pub struct C; impl C { fn new() { a::A::new(); } }",
    )
    assert rings(read.imports()) == [{"a.rs", "b.rs", "c.rs"}]
    assert explained(read.imports()).splitlines() == [
        "a.rs imports b.rs",
        "b.rs imports c.rs",
        "c.rs imports a.rs",
    ]


def test_a_child_that_uses_what_its_caller_defines_is_a_ring(tmp_path: Path) -> None:
    read = crate(
        tmp_path,
        lib="mod parent;",
        parent="mod child; pub struct Shared; fn call() { child::work(&Shared) }",
        parent__child="use super::Shared; pub fn work(_: &Shared) {}",
    )
    assert rings(read.imports()) == [{"parent.rs", "parent/child.rs"}]


def test_what_is_declared_passed_on_or_tested_is_no_import(tmp_path: Path) -> None:
    read = crate(
        tmp_path,
        lib="mod parent; pub use parent::work;",
        parent="""
            mod child; // child::work
            pub use child::{work, Unused as Other};
            pub struct Shared(&'static str, char);
            const TEXT: Shared = Shared("child::work \\" {", '{');
            #[cfg(test)]
            mod tests { fn test() { super::child::work(); if true { crate::work() } } }
            #[cfg(test)]
            use child::Unused;
        """,
        parent__child="use super::Shared; pub struct Unused; pub fn work() -> Shared { loop {} }",
    )
    assert read.imports() == {"lib.rs": set(), "parent.rs": set(), "parent/child.rs": {"parent.rs"}}
    # Used by the file itself, it is one.
    text = (tmp_path / "parent.rs").read_text()
    (tmp_path / "parent.rs").write_text(text + "fn call() { work(); }")
    assert Crate(tmp_path / "lib.rs").imports()["parent.rs"] == {"parent/child.rs"}


def test_a_path_that_leads_nowhere_is_no_silence(tmp_path: Path) -> None:
    read = crate(tmp_path, lib="mod a;", a="use crate::missing::Item;")
    with pytest.raises(UnresolvedError, match="crate::missing::Item"):
        read.imports()


def test_a_ring_of_modules_is_found(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "a.py": "import package.b\nfrom typing import TYPE_CHECKING",
        "b.py": "def late():\n    from package.inner import c",
        "inner/__init__.py": "",
        "inner/c.py": "from ..a import name",
        "inner/d.py": "if TYPE_CHECKING:\n    from . import e",
        "inner/e.py": "from .d import name",
        "inner/f.py": "from .d import name",
    }.items():
        (package / name).write_text(text)
    graph = python_imports(package)
    expected = [{"package.a", "package.b", "package.inner.c"}, {"package.inner.d", "package.inner.e"}]
    assert sorted(rings(graph), key=sorted) == expected
    assert graph["package.inner.f"] == {"package.inner.d"}
