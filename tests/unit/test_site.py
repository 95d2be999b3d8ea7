"""The documentation as a site, and the experiments that its pages show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.commands import COMMANDS
from dbdyno.experiment.reading import read

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = {
    match[1]: block
    for page in ("README.md", "docs/tutorial.md", "docs/recipes.md")
    for block in re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    if (match := re.match(r"# ([\w-]+\.toml)", block))
}


@pytest.mark.long
def test_the_site_builds_without_a_dead_link_and_needs_no_network(tmp_path: Path) -> None:
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "--quiet", "build", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={"PATH": "", "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert build.returncode == 0, build.stdout + build.stderr
    pages = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.html")}
    for command in COMMANDS:
        assert f'id="{command}"' in pages["reference/commands.html"], command
    for key in ("interval_percent", "row_count_mismatches"):
        assert f"<code>{key}</code>" in pages["reference/files.html"], key
    for name, text in pages.items():
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', text)
        assert not loaded, name


@pytest.mark.long
def test_a_dead_link_is_an_error(tmp_path: Path) -> None:
    for name in (
        "docs",
        "packaging",
        "schema",
        "examples",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text())
    (tmp_path / "docs").unlink()
    (tmp_path / "docs").mkdir()
    for page in (ROOT / "docs").iterdir():
        (tmp_path / "docs" / page.name).symlink_to(page)
    (tmp_path / "docs" / "faq.md").unlink()
    (tmp_path / "docs" / "faq.md").write_text("# FAQ\n\n[gone](glossary.md#no-such-heading)\n")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert build.returncode == 1, build.stderr
    assert "no-such-heading" in build.stderr


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_of_the_documents_are_valid(name: str, tmp_path: Path) -> None:
    for file, text in {"general.log": "", "shop.lua": "function event() end\n"}.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "shop.sql").write_text((ROOT / "examples/shop.sql").read_text())
    path = tmp_path / name
    # The folders of an unpacked server are the reader's.
    path.write_text(re.sub(r'basedir = "[^"]+"', f'basedir = "{tmp_path}"', EXPERIMENTS[name]))
    assert len(read(path).variants) > 1
