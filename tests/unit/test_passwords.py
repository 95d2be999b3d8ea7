"""No output of any command contains a password that the user wrote where none belongs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from dbdyno import commands
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.reading import read
from dbdyno.experiment.server import has_password
from dbdyno.problem import Problem
from dbdyno.servers.url import parse_url

# Passwords with the characters that end a part of a URL.
SECRETS = (
    "s3cr3t",
    "s3c/r3t",
    "s3c?r3t",
    "s3c#r3t",
    "s3c@r3t",
    "s3c:r3t",
    "s3c%r3t",
    "s3c;r3t",
    "s3cé r3t&x",
)
# Parts of them that no message may contain.
FRAGMENTS = ("s3c", "r3t")

FORMS = (
    "{scheme}{user}:{secret}@{host}/{db}",
    "{scheme}{user}%3A{secret}@{host}/{db}",
    "{scheme}{user}%253a{secret}@{host}/{db}",
    "{scheme}:{secret}@{host}/{db}",
    "{scheme}{user}@{secret}:{user}@{host}/{db}",
    "{scheme}{user}@{host}:{secret}/{db}",
    "{scheme}{user}:{secret}%40{host}/{db}",
    "{scheme}{user}@{host}/{db}?password={secret}",
    "{scheme}{host}/{db}?user={user}&PassWord={secret}",
    "{scheme}{user}@{host}/{db}?tls={secret}",
    "{scheme}{user}@{host}/{db}?{secret}=1",
    "{scheme}{user}@{host}/{db};password={secret}",
    "{scheme}{user}@{host}/{db}#{secret}",
    "{scheme}{user}@{host}/{db}/{secret}",
    "{scheme}{user}@{host} {secret}/{db}",
    "{scheme}{user}:{secret}",
)
SCHEMES = ("mysql://", "mysql:", "mysql:/", "//", "", "postgresql://", "oracle://", "MySQL://", " mysql://")


def malformed_urls() -> Iterator[str]:
    """URLs that no command accepts."""
    for form, scheme, secret in itertools.product(FORMS, SCHEMES, SECRETS):
        for written in {secret, quote(secret, safe=""), quote(secret, safe="").lower()}:
            for host in ("db1", "[::1]:3306", "[::1", "db1:99999", ""):
                yield form.format(scheme=scheme, user="load", secret=written, host=host, db="shop")


def is_quoted(text: str) -> bool:
    return any(fragment in text.lower() for fragment in FRAGMENTS)


def test_no_message_about_a_target_contains_its_password() -> None:
    count = 0
    for url in malformed_urls():
        count += 1
        with pytest.raises(Problem) as caught:
            parse_url(url)
        assert not is_quoted(caught.value.text + caught.value.fix), url
    assert count > 10_000


def test_no_message_about_an_experiment_contains_the_password_of_a_server(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    secrets = (
        'url = "mysql://load:s3cr3t@db1/shop"',
        'url = "load:s3cr3t@db1/shop"',
        'url = ["mysql://load:s3cr3t@db1/shop"]',
        'url = { user = "load", password = "s3cr3t" }',
        'url = "mysql://load@db1/shop"\npassword = "s3cr3t"',
        'url = "mysql://load@db1/shop"\npassword_env = "s3cr3t s3cr3t"',
        'kind = "local"\nurl = "mysql://load:s3cr3t@db1/shop"',
        'kind = 1\nurl = "mysql://load%3As3cr3t@db1/shop"',
    )
    text = '[experiment]\nname = "x"\n[[workload]]\nname = "oltp_point_select"\n'
    text += '[load]\nconnections = 1\nduration = "1s"\n'
    for lines in secrets:
        kind = "" if "kind" in lines else 'kind = "remote"\n'
        file.write_text(f'{text}[[variant]]\nname = "a"\n[variant.server]\n{kind}{lines}\n')
        with pytest.raises(InvalidExperiment) as caught:
            read(file)
        assert not is_quoted(caught.value.text), caught.value.text
        file.write_text(f'{text}[[variant]]\nname = "a"\nserver = "mysql://load:s3cr3t@db1/shop"\n')
        with pytest.raises(InvalidExperiment) as caught:
            read(file)
        assert not is_quoted(caught.value.text), caught.value.text


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "oltp_point_select", "--target", "{}"],
        ["run", "oltp_point_select", "--target={}"],
        ["run", "oltp_point_select", "--target", "mysql://h/db", "{}"],
        ["run", "{}"],
        ["run", "oltp_point_select", "{}", "--target", "{}", "--set", "variant.x.server.url={}"],
        ["compare", "{}"],
        ["compare", "--target", "{}"],
        ["compare", "--unknown={}", "x.toml"],
        ["check", "x.toml", "--set", "variant.a.server.url={}"],
        ["plan", "x.toml", "--set", "variant[a].server.url='{}'"],
        ["report", "{}"],
        ["{}"],
    ],
)
def test_no_command_prints_a_password(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("mysql://load:s3cr3t@db1/shop", "load:s3cr3t@db1/shop", "mysql://load%3As3cr3t@db1/shop"):
        monkeypatch.setattr(sys, "argv", ["dbdyno", *(argument.format(url) for argument in arguments)])
        with pytest.raises(SystemExit) as caught:
            commands.main()
        assert caught.value.code == 2
        printed = "".join(capsys.readouterr())
        assert printed
        assert not is_quoted(printed), printed


@pytest.mark.parametrize(
    "url",
    [
        "mysql://load@db1:3306/shop",
        "mysql://a%40b@[::1]:3306/x%20y",
        "mysql://sb@/shop?socket=/run/a@b:1/s.sock",
        "mysql://sb@A,[::1]:3307,c:3308/shop?tls=required",
        "postgresql://load@db1/shop?tls=verify-ca&tls-ca=/a:b@c.pem",
    ],
)
def test_a_url_without_a_password_is_accepted(url: str) -> None:
    assert not has_password(url)
    assert parse_url(url)
