"""Whom `dbdyno ui` lets in, what its pages may do in a browser, and what it never executes."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from tests.end_to_end.browser import chromium
from tests.end_to_end.comparing import EXPERIMENT
from tests.end_to_end.serving import COOKIES, QUERIES, opened, request, runs_of, serving, two_runs

from dbdyno.store import files


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_runs(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def address(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(results, tmp_path_factory.mktemp("folder")) as address:
        yield address


def test_everything_needs_the_token(address: str, results: Path) -> None:
    name = runs_of(results)[0].path.name
    paths = [
        "/",
        f"/run/made/{name}",
        f"/report/made/{name}",
        "/new",
        "/compare",
        "/_nicegui/3/static/nicegui.css",
    ]
    port = urlsplit(address).port
    for path in paths:
        for headers in (
            {},
            {"Cookie": f"dbdyno-{port}=wrong"},
            {"Cookie": COOKIES[address].replace(str(port), "1")},
            {"Authorization": f"Bearer {QUERIES[address].partition('=')[2]}"},
        ):
            status, _, body = request(address + path, **headers)
            assert (status, "made" in body) == (401, False), (path, headers)
        assert request(f"{address}{path}?token=wrong")[0] == 401
    assert request(f"{address}/login", "POST", "token=wrong")[0] == 401
    assert request(f"{address}/_nicegui_ws/socket.io/?EIO=4&transport=polling")[0] == 401
    # The token is changed into a cookie, and leaves the address.
    status, headers, _ = request(f"{address}/run/made/{name}?{QUERIES[address]}&x=1")
    assert (status, headers["location"]) == (303, f"/enter?to=%2Frun%2Fmade%2F{name}%3Fx%3D1")
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["set-cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert QUERIES[address].partition("=")[2] not in headers["set-cookie"]
    for to in (
        "//other.example/",
        "/\\other.example",
        "http://other.example",
        "javascript:alert(1)",
        '/"><script>',
    ):
        _, _, body = request(f"{address}/enter?{urlencode({'to': to})}")
        assert "other.example" not in body
        assert "script" not in body.replace("&lt;script", "")


def test_the_token_is_not_left_in_the_address(browser: Browser, address: str) -> None:
    page = opened(browser, f"{address}/").page
    assert page.url == f"{address}/"
    page.go_back()
    assert "token" not in page.url
    page.context.close()


def test_two_servers_of_one_machine_do_not_disturb_each_other(
    browser: Browser, address: str, results: Path, tmp_path: Path
) -> None:
    with serving(results, tmp_path) as second:
        assert QUERIES[second] != QUERIES[address]
        page = opened(browser, address).page
        page.goto(f"{second}/?{QUERIES[second]}")
        for one in (address, second):
            page.goto(one)
            expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert len(page.context.cookies()) == 2
        assert request(second, Cookie=COOKIES[address])[0] == 401
        page.context.close()


def test_a_browser_is_opened_without_the_token_in_its_arguments(
    browser: Browser, results: Path, tmp_path: Path
) -> None:
    program, seen = tmp_path / "browser", tmp_path / "seen"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.new\ncp "${{1#file://}}" {seen}.html\n'
        f'stat -c %a "${{1#file://}}" > {seen}.mode\nmv {seen}.new {seen}\n'
    )
    program.chmod(0o755)
    with serving(results, tmp_path, "--open", BROWSER=str(program)) as address:
        began = time.monotonic()
        while not seen.exists():
            assert time.monotonic() - began < 60
            time.sleep(0.05)
        token = QUERIES[address].partition("=")[2]
        assert len(token) > 40
        assert token not in seen.read_text()
        assert f"url={address}/?token={token}" in (tmp_path / "seen.html").read_text().replace(" ", "")
        assert (tmp_path / "seen.mode").read_text() == "600\n"
        # A page of another origin leads to the pages, although the cookie is not sent from other sites.
        page = browser.new_page()
        page.goto((tmp_path / "seen.html").as_uri())
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert page.url == f"{address}/"
        page.close()
    assert not Path(seen.read_text().strip().removeprefix("file://")).exists()


def test_all_answers_have_the_headers_that_browsers_enforce(address: str, results: Path) -> None:
    name = runs_of(results)[0].path.name
    for path in ("/", "/new", f"/report/made/{name}", "/_nicegui/none", "/nothing"):
        _, headers, _ = request(address + path, Cookie=COOKIES[address])
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "script-src 'unsafe-inline'" not in policy
    _, first, body = request(address, Cookie=COOKIES[address])
    _, second, _ = request(address, Cookie=COOKIES[address])
    (nonce,) = re.findall("'nonce-([^']+)'", first["content-security-policy"])
    assert nonce not in second["content-security-policy"]
    assert re.findall("<script(?! nonce)", body) == []
    _, headers, body = request(f"{address}/report/made/{name}", Cookie=COOKIES[address])
    assert headers["content-security-policy"].startswith("sandbox; ")
    assert "<script" not in body


def test_markup_in_a_page_runs_no_script(browser: Browser, address: str) -> None:
    """Even if a text was not escaped."""
    watched = opened(browser, address)
    page = watched.page
    page.evaluate("""() => { const one = document.createElement('div');
        one.innerHTML = '<img src="data:," onerror="window.xss = 1">' +
            '<a id="link" href="javascript:window.xss = 1">x</a>';
        document.body.append(one); document.getElementById('link').click();
        const two = document.createElement('script');
        two.textContent = 'window.xss = 1'; document.body.append(two); }""")
    page.wait_for_timeout(500)
    assert page.evaluate("window.xss") is None
    assert any("Content Security Policy" in text for text in watched.console)
    page.context.close()


def test_a_stored_page_of_another_person_is_not_served(
    browser: Browser, results: Path, tmp_path: Path
) -> None:
    """Neither one with a right digest, which has a script that uses the pages, nor a changed one."""
    stored = tmp_path / "results"
    shutil.copytree(results, stored)
    run = runs_of(stored)[0]
    files.write(run.path / "report.html", b"<script>fetch('/new')</script>stored")
    files.make_folder(run.path / "ko")
    files.write(run.path / "ko" / "report.html", b"<script>fetch('/new')</script>stored")
    assert run.changed_files() == []
    with serving(stored, tmp_path) as address:
        watched = opened(browser, f"{address}/report/made/{run.path.name}")
        watched.page.wait_for_timeout(500)
        assert watched.page.locator(".verdict .sentence").first.is_visible()
        assert "stored" not in watched.page.content()
        # The origin of the report is no page's.
        assert watched.page.evaluate("window.origin") == "null"
        watched.page.context.close()
        (run.path / "report.html").write_text("changed")
        status, _, body = request(f"{address}/report/made/{run.path.name}", Cookie=COOKIES[address])
        assert (status, "changed since it was measured: report.html" in body) == (409, True)


def test_the_cost_is_told_without_executing_anything(browser: Browser, results: Path, tmp_path: Path) -> None:
    """Not even `mariadbd --version`."""
    trap = tmp_path / "trap"
    (trap / "bin").mkdir(parents=True)
    for name in ("mariadbd", "mariadb-install-db"):
        (trap / "bin" / name).write_text(f"#!/bin/sh\ntouch {trap}/ran\necho mariadbd Ver 11.4.2-MariaDB\n")
        (trap / "bin" / name).chmod(0o755)
    with serving(results, tmp_path) as address:
        page = opened(browser, f"{address}/new").page
        keys = f'[variant.server]\nbasedir = "{trap}"\nbefore_trial = ["rm", "x"]\n'
        hostile = EXPERIMENT.replace("[variant.server]\n", keys)
        page.get_by_label("Experiment file (TOML)").fill(hostile)
        expect(page.get_by_text("The experiment is valid.")).to_be_visible()
        page.get_by_role("button", name="What does it cost?").click()
        answer = page.locator("pre.answer")
        expect(answer).to_contain_text(f"server.basedir = {trap}")
        expect(answer).to_contain_text("server.before_trial = rm x")
        assert not (trap / "ran").exists()
        secret = tmp_path.parent / "secret.sql"
        secret.write_text("canary-4711\n")
        page.get_by_label("Experiment file (TOML)").fill(
            hostile + f'[[workload]]\nname = "sql"\nfile = "{secret}"\n'
        )
        expect(page.get_by_text("is not below the current folder")).to_be_visible()
        page.get_by_role("button", name="What does it cost?").click()
        page.wait_for_timeout(300)
        assert "canary" not in page.content()
        page.context.close()
