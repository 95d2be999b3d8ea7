"""Experiment files that are no files, or that no parser likes; and many mistakes at once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from dbdyno.experiment import reading
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.finding import codes

BASE = """
[experiment]
name = "it"
[[workload]]
name = "oltp_read_only"
[load]
connections = [2]
duration = "1s"
[design]
blocks = 6
[[variant]]
name = "a"
[[variant]]
name = "b"
[variant.server]
variables = { innodb_io_capacity = 1000 }
"""


def errors(text: str | bytes, tmp_path: Path, *assignments: str) -> list[str]:
    """What is wrong with a file; nothing if it is valid."""
    path = tmp_path / "it.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        assert isinstance(reading.read(path, None, assignments), Experiment)
    except InvalidExperiment as invalid:
        return [str(error) for error in invalid.errors]
    return []


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InvalidExperiment, match=r"not an ordinary file|Is a directory"):
            reading.read(path)
    # Not a module of the script.
    os.mkfifo(tmp_path / "other.lua")
    (tmp_path / "it.lua").write_text("function event() end")
    assert errors(BASE.replace('name = "oltp_read_only"', 'script = "it.lua"'), tmp_path) == []
    for workload in ('script = "other.lua"', 'name = "sql"\nfile = "pipe"'):
        first, *_ = errors(BASE.replace('name = "oltp_read_only"', workload), tmp_path)
        assert "cannot be read: it is a pipe" in first
    (tmp_path / "long.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(InvalidExperiment, match="more than 1,000,000 bytes"):
        reading.read(tmp_path / "long.toml")


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    assert errors(b"\xef\xbb\xbf" + BASE.encode(), tmp_path) == []
    assert errors(BASE.encode("utf-16"), tmp_path) == ["invalid TOML: it is not text in UTF-8 (at byte 1)."]


@pytest.mark.parametrize(
    "text",
    [
        "[override]\n" + ".".join(["a"] * 20_000) + " = 1",
        "[profile." + ".".join(['"a"'] * 20_000) + "]\nx = 1",
        "[override]\nP15 = " + "[" * 60 + "]" * 60,
        "[override]\nP15 = " + "[" * 20_000 + "]" * 20_000,
        "[override]\nP15 = " + "{a = " * 60 + "1" + "}" * 60,
    ],
    ids=["key", "table", "lists", "very deep", "tables"],
)
def test_what_is_nested_too_deep_is_an_error_at_once(text: str, tmp_path: Path) -> None:
    (one,) = errors(BASE + text, tmp_path)
    assert re.search(r"more than 50 (parts \(at line 1[78]\)|deep)", one)


def test_an_option_has_no_endless_key(tmp_path: Path) -> None:
    (one,) = errors(BASE, tmp_path, ".".join(["load"] * 20_000) + "=1")
    assert one.endswith("the key has more than 50 parts.")


def test_codes_are_those_of_the_catalogue(tmp_path: Path) -> None:
    catalogue = (Path(__file__).parents[2] / "docs" / "checks.md").read_text()
    assert set(re.findall(r"^## ([A-Z]\d\d)\b", catalogue, re.MULTILINE)) == codes().keys()
    assert errors(BASE + '[override]\nP15 = "why"\nD06 = "why"', tmp_path) == []
    (one,) = errors(BASE + '[override]\nZ99 = "why"', tmp_path)
    assert one.startswith('override.Z99 = "why": no check has this code.')


def test_unknown_keys_of_profiles_that_are_not_chosen_are_errors(tmp_path: Path) -> None:
    profiles = """
[profile.right]
load.duration = "2s"
variant.server.basedir = "/of/another/machine"
[profile.wrong]
load.durration = "2s"
variant.server.variabels.x = 1
"variant[c]".server.variables.x = 1
lod.duration = "2s"
"""
    assert errors(BASE + profiles.partition("[profile.wrong]")[0], tmp_path) == []
    found = [one.partition(" = ")[0] for one in errors(BASE + profiles, tmp_path)]
    assert found == [
        "profile.wrong.variant[c].server.variables.x",
        "profile.wrong.lod.duration",
        "profile.wrong.load.durration",
        "profile.wrong.variant[a].server.variabels",
        "profile.wrong.variant[b].server.variabels",
    ]


MISTAKES = {
    "lod": ("[lod]\nx = 1", "there is no such section"),
    "profile.p": ("[profile.p]\nload.durration = 1", "there is no such key"),
    "override.Z99": ('[override]\nZ99 = "x"', "no check has this code"),
    "client.cpu": ('[client]\ncpu = "0"', "there is no such key"),
    "variant[b]:": ('[[variant]]\nname = "b"', "2 of them have this name"),
    "loading": ("loading = 1", "this must be a table"),
    "design.max_loss_percent:": ("", "no variant differs from the baseline"),
}


def test_mistakes_of_all_layers_come_at_once(tmp_path: Path) -> None:
    same = BASE.replace("innodb_io_capacity = 1000", "").replace("blocks = 6", "max_loss_percent = 3.0")
    text = same + "\n".join(text for text, _ in reversed(MISTAKES.values()) if text.startswith("["))
    found = errors("loading = 1\n" + text, tmp_path)
    assert len(found) == len(MISTAKES)
    for key, (_, problem) in MISTAKES.items():
        assert any(one.startswith(key) and problem in one for one in found), (key, found)


def test_a_mistake_has_no_consequences_in_other_sections(tmp_path: Path) -> None:
    for mistake, key in (
        (BASE.replace("[[variant]]", "[[varriant]]").replace("[variant.", "[varriant."), "varriant"),
        (BASE.replace("connections = [2]", 'connections = "2"'), "load.connections"),
        (BASE.replace("oltp_read_only", "oltp_reed_only"), "workload[1].name"),
    ):
        found = errors(mistake, tmp_path)
        # A section that is missing because its name is misspelt is one more error.
        assert next(one for one in found if not one.startswith("variant:")).startswith(key)
        assert len(found) == 1 + key.startswith("varriant")
