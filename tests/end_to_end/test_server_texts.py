"""Texts of a server that are HTML, SVG, Markdown or escape sequences: harmless in all that dbdyno writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import markdown_it
import pytest
from playwright.sync_api import Browser
from tests.end_to_end.browser import chromium, watch
from tests.end_to_end.comparing import environment
from tests.end_to_end.test_run_command import url

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

# Each sets window.hit, or loads or links something, if a browser takes it for more than a text. At most 128
# characters, as MariaDB's errors.
PAYLOADS = (
    "<script>window.hit=1</script>",
    "</td></table></style></script><script>window.hit=2</script>",
    "<img src=http://127.0.0.1:9/x onerror=window.hit=3>",
    "\"><svg onload=window.hit=4><a href='javascript:window.hit=4'>a</a></svg>",
    "' onmouseover='window.hit=5' x='",
    "]]><script xmlns='http://www.w3.org/2000/svg'>window.hit=6</script><![CDATA[",
    "&lt;script&gt;window.hit=7&lt;/script&gt; &#60;b&#62; &undefined;",
    "[a](javascript:window.hit=8) ![i](http://127.0.0.1:9/i) <http://127.0.0.1:9/> | cell | `",
    "\\n\\n# heading\\n\\n<iframe src=javascript:window.hit=9></iframe>\\n```",
    "--><!--<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "{{ 7*7 }} {% raw %} ${7*7} <template><base href=//127.0.0.1:9/>",
    "<style>@import 'http://127.0.0.1:9/s'</style><link rel=stylesheet href=http://127.0.0.1:9/>",
    "\x1b[2J\x1b]8;;http://127.0.0.1:9/\x07link\x1b]0;title\x07\u202e\x9b31m",
)
# MariaDB's number of an error, and PostgreSQL's SQLSTATE, after which the connection is of no use.
FATAL = {"mariadb": "1053", "postgresql": "57P01"}
FUNCTIONS = {
    "mariadb": "CREATE FUNCTION fail{n}(x BIGINT) RETURNS BIGINT BEGIN IF x = 1 THEN "
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {text}{number}; END IF; RETURN x; END",
    "postgresql": "CREATE FUNCTION fail{n}(x BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $f$ BEGIN "
    "IF x = 1 THEN RAISE EXCEPTION USING MESSAGE = {text}, DETAIL = {text}, HINT = {text}{number}; END IF; "
    "RETURN x; END $f$",
}
SPECS = {
    "mariadb": ServerSpec(product="mariadb", variables={"innodb_buffer_pool_size": "64M"}),
    "postgresql": ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"}),
}
EXPERIMENT = """
[experiment]
name = "texts"
[[workload]]
name = "sql"
setup = ["CREATE TABLE item (id INT PRIMARY KEY)"]
parameters = { id = "uniform(1, LAST)" }
transactions = [
TRANSACTIONS
]
[load]
connections = [2]
duration = "500ms"
warmup = "0s"
[client]
workers = 1
[design]
blocks = 1
state = "reset"
repeat_disturbed = false
"""
VARIANT = """
[[variant]]
name = "NAME"
server = { kind = "remote", url = "URL", password_file = "FILE" }
"""
# What makes a document more than texts: elements, attributes and addresses.
DANGER = """() => [...document.querySelectorAll("*")].flatMap(one => {
  const found = [];
  if (["script", "iframe", "object", "embed", "base", "link"].includes(one.localName))
    found.push(one.outerHTML.slice(0, 200));
  if (one.localName === "meta" && one.httpEquiv && one.httpEquiv !== "Content-Security-Policy")
    found.push(one.outerHTML.slice(0, 200));
  for (const attribute of one.attributes) {
    const value = attribute.value.trim();
    if (attribute.localName.startsWith("on")) found.push(attribute.name + "=" + value);
    if (["href", "src", "action", "data"].includes(attribute.localName)
        && /^(javascript:|[a-z]*:?\\/\\/)/i.test(value))
      found.push(attribute.name + "=" + value);
  }
  return found;
})"""


def literal(product: str, text: str) -> str:
    quoted = text.replace("'", "''")
    return "'" + (quoted.replace("\\", "\\\\") if product == "mariadb" else quoted) + "'"


class Target:
    """A server whose functions fail with the texts."""

    def __init__(self, product: str, server: LocalServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        (folder / "password").write_text(server.address().password)
        (folder / "password").chmod(0o600)
        schema = "" if product == "postgresql" else "dbdyno."
        for number, text in enumerate(PAYLOADS):
            number_sql = {
                "mariadb": f", MYSQL_ERRNO = {FATAL[product]}",
                "postgresql": f", ERRCODE = '{FATAL[product]}'",
            }
            for name, extra in ((str(number), ""), (f"{number}_fatal", number_sql[product])):
                sql = FUNCTIONS[product].format(n=name, text=literal(product, text), number=extra)
                server.query(sql.replace("FUNCTION fail", f"FUNCTION {schema}fail"))

    def experiment(self, suffix: str, last: int) -> Path:
        transactions = ",\n".join(
            f'  {{ name = "t{number}", sql = "SELECT fail{number}{suffix}(:id)", rows = 1 }}'
            for number in range(len(PAYLOADS))
        )
        text = EXPERIMENT.replace("TRANSACTIONS", transactions).replace("LAST", str(last))
        for name in ("a", "b"):
            variant = VARIANT.replace("NAME", name).replace("URL", url(self.server.address()))
            text += variant.replace("FILE", str(self.folder / "password"))
        path = self.folder / f"texts{suffix}.toml"
        path.write_text(text)
        return path


def dbdyno(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *words],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def held(browser: Browser, path: Path) -> None:
    """Hold that a file, opened by a browser that runs scripts, is nothing but texts and drawings."""
    watched = watch(browser.new_page())
    watched.page.goto(path.resolve().as_uri())
    assert watched.page.evaluate(DANGER) == [], path
    assert watched.page.evaluate("window.hit === undefined"), path
    assert watched.requests == [path.resolve().as_uri()]
    watched.page.close()


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in (*value, *value.values()):
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


@pytest.mark.parametrize(
    ("product", "suffix"),
    [
        ("mariadb", ""),
        pytest.param("mariadb", "_fatal", marks=pytest.mark.long),
        pytest.param("postgresql", "", marks=pytest.mark.long),
        pytest.param("postgresql", "_fatal", marks=pytest.mark.long),
    ],
)
def test_texts_of_a_server_stay_texts(
    product: str, suffix: str, browser: Browser, workspace: Workspace, tmp_path: Path
) -> None:
    with closing(LocalServer(Variant(name="texts", server=SPECS[product]), workspace, None)) as server:
        server.start()
        file = Target(product, server, tmp_path).experiment(suffix, 1 if suffix else 20)
        results = tmp_path / "results"
        answers = [dbdyno("compare", str(file), "--results", str(results), "--share-machine")]
    run = next(results.glob("texts/*/experiment.json")).parent
    for format_ in ("md", "svg", "csv", "json"):
        answers.append(dbdyno("report", str(run), "--format", format_, "--output", str(tmp_path / "out")))
    answers += [
        dbdyno("report", str(run), "--lang", "ko", "--output", str(tmp_path / "ko")),
        dbdyno("site", str(results), "--out", str(tmp_path / "site")),
        dbdyno("show", str(run)),
    ]
    for answer in answers:
        printed = answer.stdout + answer.stderr
        assert "Traceback" not in printed
        assert not set("\x1b\x07\x9b\u202e") & set(printed)
    pages = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".svg")]
    for page in pages:
        held(browser, page)
    for path in tmp_path.rglob("*.md"):
        html = tmp_path / "rendered.html"
        html.write_text(
            markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").render(path.read_text())
        )
        held(browser, html)
    for path in run.rglob("*.json"):
        json.loads(path.read_text())
    # The texts were there to be shown.
    shown = [
        text
        for text in ("window.hit=1<", "window.hit=3>")
        if any(text.replace("<", "&lt;").replace(">", "&gt;") in path.read_text() for path in pages)
    ]
    assert shown
