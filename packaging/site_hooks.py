"""Hooks of mkdocs: documents and files outside docs/ become part of the site.

The documents can be read in the repository as well, so their links are paths in it. A link to a missing file
or heading stays unchanged, and `strict` in mkdocs.yml makes it an error.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

# mkdocs imports a hook by its path, without its folder.
sys.path.insert(0, str(Path(__file__).parent))
import site_reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Pages that are not in docs/ -> the document or folder of the repository that they show.
PAGES = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "examples.md": "examples",
    "reference/commands.md": "lab/dbdyno/commands",
    "reference/files.md": "schema",
}
# A link or a picture in Markdown: its path and its anchor.
_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds PAGES, and a copy of each file that a page links to."""
    texts = {
        posixpath.join("docs", page.src_uri): page.content_string for page in files.documentation_pages()
    }
    for uri, source in PAGES.items():
        text = _page(source)
        texts[source] = text
        files.append(File.generated(config, uri, content=_with_site_links(text, source, uri)))
    targets = {_target(source, link) for source, text in texts.items() for _, link, _ in _LINK.findall(text)}
    for target in sorted(targets):
        if _uri(target) == _copy_of(target):
            files.append(File.generated(config, _copy_of(target), content=(ROOT / target).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Points the links of a page in docs/ at the pages and copies in the site."""
    uri = page.file.src_uri
    return markdown if uri in PAGES else _with_site_links(markdown, posixpath.join("docs", uri), uri)


def _page(source: str) -> str:
    """The text of one of PAGES; its links are relative to `source`."""
    match source:
        case "examples":
            return _examples()
        case "lab/dbdyno/commands":
            return site_reference.commands()
        case "schema":
            return site_reference.files()
    text = (ROOT / source).read_text()
    # The output at the top of the README needs the width of the table of contents.
    return f"---\nhide: [toc]\n---\n{text}" if source == "README.md" else text


def _with_site_links(markdown: str, source: str, page: str) -> str:
    """A document's text with the links that it has in the site."""

    def replace(match: re.Match[str]) -> str:
        uri = _uri(_target(source, match[2]))
        return match[0] if uri is None else match[1] + _relative(uri, page) + match[3]

    return _LINK.sub(replace, markdown)


def _target(source: str, link: str) -> str:
    """A link of a document as a path in the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _uri(target: str) -> str | None:
    """Where the site has a file of the repository; None if it is missing."""
    if page := next((uri for uri, source in PAGES.items() if source == target), None):
        return page
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return _copy_of(target) if (ROOT / target).is_file() else None


def _copy_of(target: str) -> str:
    # As text: mkdocs would render Markdown, and a browser downloads a file whose type it does not know.
    return f"source/{target}.txt"


def _relative(uri: str, page: str) -> str:
    return posixpath.relpath(uri, posixpath.dirname(page) or ".")


def _examples() -> str:
    """A page with every example file."""
    files = sorted(path for path in (ROOT / "examples").rglob("*.*") if path.is_file())
    return "# Examples\n" + "".join(
        f"\n## {path.name}\n\n```{path.suffix[1:]}\n{path.read_text().strip()}\n```\n" for path in files
    )
