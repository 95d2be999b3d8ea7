"""`dbdyno replicate`: what a report carries, and what is refused before anything runs."""

from __future__ import annotations

import hashlib
import html
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pages import page_of
from tests.unit.stored_run import Making, judged

from dbdyno.commands.replicate import replicate
from dbdyno.experiment.reading import read
from dbdyno.problem import ExitCode, Problem
from dbdyno.report.replication import BEGIN, END, Published, embedded, read_published
from dbdyno.store import Run
from dbdyno.store.verdict import VerdictFile

HOSTILE = "</template><script>alert(1)</script> & <!-- ]]> \N{ESCAPE}[2J"
FILE = """
[experiment]
name = "made"
[[workload]]
name = "oltp_read_write"
table_size = 1_000
[load]
connections = [10, 20]
duration = "10s"
[design]
blocks = 8
[[variant]]
name = "a"
[[variant]]
name = "b"
server.variables = { join_buffer_size = "8M" }
[profile.quick]
"load.duration" = "5s"
"""


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> VerdictFile:
    """The verdict of a made run."""
    made = judged(tmp_path_factory.mktemp("judged"), Making(connections=(10, 20)))
    found = VerdictFile.read(made["path"] / "verdict.json")
    assert found is not None
    return found


@pytest.fixture
def publish(tmp_path: Path, verdict: VerdictFile, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a page of a run of an experiment file; the test runs in an empty folder, without a terminal."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def make(text: str = FILE, profile: str | None = None, *assignments: str) -> Path:
        file = tmp_path / "made.toml"
        file.write_text(text)
        experiment = read(file, profile, assignments)
        run = Run.create(
            tmp_path / "results", experiment, text.encode(), profile, {}, assignments=list(assignments)
        )
        page = tmp_path / "report.html"
        page.write_text(f"<!doctype html>\n{BEGIN}{embedded(run, verdict, {})}{END}\n")
        return page

    return make


def changed(page: Path, **changes: Any) -> Path:
    """The page with other values."""
    before, _, rest = page.read_text().partition(BEGIN)
    content, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{json.dumps({**json.loads(content), **changes})}{END}{after}")
    return page


def test_the_page_of_a_run_carries_its_experiment_and_effects(tmp_path: Path) -> None:
    path = judged(tmp_path, Making(question=HOSTILE, names=("a", HOSTILE.replace("\N{ESCAPE}", ""))))["path"]
    run = Run.open(path)
    page = page_of(run)
    assert "script" not in page.tags
    published = read_published(path / "report.html")
    assert (published.hash, published.run) == (run.hash, path.name)
    assert published.source == (path / "experiment.toml").read_text()
    assert published.experiment == json.loads((path / "experiment.json").read_text())["experiment"]
    stored = json.loads((path / "verdict.json").read_text())["comparisons"][0]["curve"]
    assert published.verdict.comparisons[0].curve.effect_percent == stored["effect_percent"]
    assert published.servers == {
        "a": "mariadb 11.4.2-MariaDB",
        published.verdict.comparisons[0].variant: "mariadb 11.4.2-MariaDB",
    }
    assert run.hash in page.text


def test_it_asks_before_it_runs(publish: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    hook = FILE.replace("server.variables", 'server.before_trial = ["rm", "-r", "x"]\nserver.variables')
    page = publish(hook, "quick", "design.blocks=6")
    with pytest.raises(Problem, match="runs only if you agree") as refused:
        replicate(page)
    assert refused.value.exit_code == ExitCode.USAGE
    assert (Path("made.toml")).read_text() == hook
    printed = capsys.readouterr().err
    assert "with --profile quick --set design.blocks=6" in printed
    assert "b: server.before_trial = rm -r x" in printed


def test_changes_of_what_is_measured_are_refused(publish: Callable[..., Path]) -> None:
    page = publish()
    with pytest.raises(
        Problem, match=r"load\.duration is 10 in the report and 20 in the file here"
    ) as refused:
        replicate(page, assignments=["load.duration=20s"])
    assert refused.value.exit_code == ExitCode.NOT_COMPARABLE
    assert not list(Path().iterdir())
    with pytest.raises(Problem, match="runs only if you agree"):
        replicate(page, assignments=["design.blocks=20"])


def test_statements_of_a_file_are_written_into_the_experiment(
    publish: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "shop.sql").write_text(
        "-- @parameter id = uniform(1, 100)\n-- @table item rows=100\n-- @column name = text(5, 10)\n"
        '-- @setup\nCREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40) DEFAULT "é\\\\");\n'
        "-- @transaction look weight=3\nSELECT name FROM item WHERE id = :id;\n-- @statement rows=1\n"
        "SELECT 1;\n"
    )
    page = publish(
        FILE.replace('name = "oltp_read_write"\ntable_size = 1_000', 'name = "sql"\nfile = "shop.sql"')
    )
    (tmp_path / "shop.sql").unlink()
    with pytest.raises(Problem, match="runs only if you agree"):
        replicate(page)
    text = Path("made.toml").read_text()
    assert "shop.sql" not in text
    (workload,) = read(Path("made.toml")).workloads
    (resolved,) = read_published(page).experiment["workloads"]
    assert workload.model_dump(mode="json") == resolved


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('name = "oltp_read_write"\ntable_size = 1_000', 'script = "own/missing.lua"'),
        ("server.variables", 'server.config = "own/missing.cnf"\nserver.variables'),
        ("server.variables", 'session.server_public_key = "own/missing.pem"\nserver.variables'),
    ],
)
def test_files_that_the_report_does_not_have_are_named(
    publish: Callable[..., Path], tmp_path: Path, before: str, after: str
) -> None:
    name = after.partition('"')[2].partition('"')[0]
    (tmp_path / "own").mkdir()
    (tmp_path / name).write_text("")
    page = publish(FILE.replace(before, after))
    with pytest.raises(Problem, match="needs files that the report does not have") as refused:
        replicate(page, yes=True)
    assert Path(name).name in refused.value.text


@pytest.mark.parametrize("where", ["key", "comment"])
def test_urls_with_an_account_do_not_leave_the_machine(publish: Callable[..., Path], where: str) -> None:
    text = FILE + "# mysql://root:canary@db1/x\n"
    if where == "key":
        url = 'server.kind = "remote"\nserver.url = "mysql://canary@db1:3306/x"'
        text = FILE.replace('server.variables = { join_buffer_size = "8M" }', url)
        text = text.replace("blocks = 8", 'blocks = 8\nstate = "reset"').replace(
            'name = "a"', 'name = "a"\nserver.kind = "remote"\nserver.url = "mysql://db2:3306/x"'
        )
    page = publish(text)
    assert "canary" not in page.read_text()
    with pytest.raises(Problem, match="cannot be repeated: its servers are named by URLs with an account"):
        replicate(page, yes=True)


def test_a_changed_experiment_is_refused(publish: Callable[..., Path]) -> None:
    page = publish()
    published = read_published(page)
    with pytest.raises(Problem, match="not the one whose hash the page has") as refused:
        replicate(changed(page, source=published.source.replace("1_000", "2_000")), yes=True)
    assert refused.value.exit_code == ExitCode.NOT_COMPARABLE
    other = {**published.experiment, "question": "another one"}
    with pytest.raises(Problem, match="hash was taken before the first trial") as refused:
        replicate(changed(publish(), experiment=other), yes=True)
    assert refused.value.exit_code == ExitCode.NOT_COMPARABLE


def test_a_file_that_is_not_that_experiment_is_refused(publish: Callable[..., Path]) -> None:
    """File and experiment of the page each have their hash, but do not belong together."""
    page = publish()
    source = read_published(page).source.replace("1_000", "2_000")
    digest = hashlib.sha256(source.encode()).hexdigest()
    with pytest.raises(Problem, match=r"table_size is 1000 in the report and 2000 in the file here"):
        replicate(changed(page, source=source, source_sha256=digest), yes=True)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hello", "carries no experiment"),
        (BEGIN, "was changed or damaged: its experiment is cut off"),
        (f"{BEGIN}{{}}{END}{BEGIN}{{}}{END}", "cut off, or there more than once"),
        (f"{BEGIN}{{}}{END}", "was changed or damaged"),
        (f"{BEGIN}NaN{END}", "NaN is no number of JSON"),
        (f"{BEGIN}{'[' * 100_000}{END}", "was changed or damaged"),
        (f"{BEGIN}[1]{END}", "was changed or damaged"),
        (f"{BEGIN}{html.escape('{}')} x{END}", "was changed or damaged"),
    ],
)
def test_another_page_is_one_sentence(tmp_path: Path, content: str, text: str) -> None:
    page = tmp_path / "x.html"
    page.write_text(content)
    with pytest.raises(Problem) as refused:
        replicate(page)
    assert text in refused.value.text
    assert len(refused.value.text) < 400


@pytest.mark.parametrize("place", ["missing.html", ".", "/dev/zero"])
def test_what_is_no_file_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(Problem, match="cannot be read"):
        replicate(tmp_path / place)


def test_a_page_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.report.replication.PAGE_BYTES_MAX", 1000)
    page = tmp_path / "x.html"
    page.write_bytes(b" " * 1001)
    with pytest.raises(Problem, match="cannot be read"):
        replicate(page)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_pages_are_problems(publish: Callable[..., Path], seed: int) -> None:
    page = publish()
    content = page.read_bytes()
    chance = random.Random(seed)
    refused = 0
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        page.write_bytes(bytes(damaged))
        try:
            replicate(page)
        except Problem:
            refused += 1
    # Without a terminal, an intact page is a problem too.
    assert refused == 60


@pytest.mark.parametrize(
    "key", [name for name in Published.model_fields if name not in ("format_version", "run")]
)
@pytest.mark.parametrize("value", [None, 1e400, "x", [], {}, {"a": [[]]}, -5])
def test_values_of_another_kind_are_problems(publish: Callable[..., Path], key: str, value: Any) -> None:
    with pytest.raises(Problem):
        replicate(changed(publish(), **{key: value}))
