"""`dbdyno bisect` on a real server: over variants of a file, and over the commits of a repository."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import Comparing, environment, refused

from dbdyno.servers.kinds.local import LocalServer
from dbdyno.store import Run

# The statement sleeps, so that how busy the machine is hardly matters.
HEAD = """
[experiment]
name = "planted"
[load]
connections = [4]
duration = "500ms"
warmup = "100ms"
[client]
workers = 1
[design]
repeat_disturbed = false
state = "preserve"
[override]
D06 = "the statement waits, and needs no CPU"
[[workload]]
name = "sql"
transactions = [{ name = "wait", sql = "SELECT SLEEP(0.010)" }]
"""
SLOWER = '[variant.workload]\ntransactions = [{ name = "wait", sql = "SELECT SLEEP(0.017)" }]\n'
# Applies the function of a commit, as a migration does.
APPLY = """
import os, pymysql, subprocess, sys
repository, port, user, secret = sys.argv[1:]
commit = os.environ["DBDYNO_VARIANT"]
show = ["git", "-C", repository, "show", commit + ":function.sql"]
text = subprocess.run(show, check=True, capture_output=True, text=True).stdout
password = open(secret).read()
server = dict(host="127.0.0.1", port=int(port), user=user, password=password)
with pymysql.connect(**server, database="dbdyno") as connection:
    for statement in text.split(";;"):
        connection.cursor().execute(statement)
"""


class Bisecting(Comparing):
    """The command on one experiment file and one results directory."""

    def command(self, *arguments: str, file: Path | None = None) -> list[str]:
        """The argv of `dbdyno bisect`."""
        place = ["--results", str(self.results), "--share-machine"]
        return [sys.executable, "-m", "dbdyno", "bisect", str(file or self.file), *place, *arguments]


def server(mariadb: LocalServer, folder: Path, kind: str = "remote", more: str = "") -> str:
    """The table of a server that runs."""
    address = mariadb.address()
    secret = folder / "password"
    secret.write_text(address.password)
    url = f"mysql://{address.user}@127.0.0.1:{address.port}/{address.database}"
    return f'[variant.server]\nkind = "{kind}"\nurl = "{url}"\npassword_file = "{secret}"\n{more}\n'


def report(results: Path, run: str) -> str:
    """A step's run as `dbdyno report` renders it."""
    words = [sys.executable, "-m", "dbdyno", "report", run, "--results", str(results), "--format", "md"]
    answer = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_first_slower_variant_is_found_also_after_an_interruption(
    mariadb: LocalServer, results: Path, tmp_path: Path
) -> None:
    tables = [
        f'[[variant]]\nname = "{name}"\n{server(mariadb, tmp_path)}{SLOWER if name == "three" else ""}'
        for name in ("one", "two", "three")
    ]
    bisecting = Bisecting(results, HEAD + "".join(tables))
    words = ("--good", "one", "--bad", "three", "--max-blocks", "8")
    before = len(bisecting.runs())
    code, lines = bisecting.interrupt("[5/", signal.SIGINT, *words)
    assert code == 130
    assert "--resume" in lines
    refused(bisecting.run(*words[:-1], "9", "--resume"), 2, "another bisection")
    answer = bisecting.run(*words, "--resume")
    assert answer.returncode == 0, answer.stderr
    *steps, sentence = answer.stdout.splitlines()
    assert steps[0].startswith("good and bad: one and three differ: throughput -")
    assert steps[1].startswith("step 1: two is like one: throughput ")
    assert sentence.startswith("three is the first variant that is slower: throughput -")
    assert sentence.endswith("1 step, 16 blocks; the chance that this is the wrong variant is at most 5 %.")
    record = newest_record(results)
    assert [step["outcome"] for step in record["steps"]] == ["like-bad", "like-good"]
    effects = record["steps"][1]["effects"]
    assert effects[1]["effect_percent"] == pytest.approx(70.0, abs=35.0)
    assert len({step["run"] for step in record["steps"]}) == 2 == len(bisecting.runs()) - before
    for step in record["steps"]:
        assert len(Run.open(Path(step["run"])).trials()) == 8 * (2 if step["candidate"] is None else 3)
        assert "three" in report(results, step["run"])
    # Nothing is left to do.
    assert bisecting.run(*words, "--resume", "--quiet").stdout.strip() == sentence


def newest_record(results: Path) -> dict[str, Any]:
    """The record of the newest bisection."""
    path = max(results.glob("planted-bisect/bisect-*.json"))
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def make_repository(folder: Path, first_slow: int, broken: int) -> list[str]:
    """A repository with six commits of a stored function, which sleeps longer from one of them on; and the
    commits.
    """
    folder.mkdir()

    def git(*words: str) -> str:
        author = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
        done = subprocess.run(
            ["git", "-C", str(folder), *author, *words], check=True, capture_output=True, text=True
        )
        return done.stdout

    git("init", "--quiet")
    for number in range(6):
        seconds = 0.017 if number >= first_slow else 0.010
        (folder / "function.sql").write_text(
            "DROP FUNCTION IF EXISTS wait_a_little;;"
            f"CREATE FUNCTION wait_a_little() RETURNS INT RETURN SLEEP({seconds}) /* {number} */"
        )
        (folder / "build").write_text(f"#!/bin/sh\nexit {int(number == broken)}\n")
        (folder / "build").chmod(0o755)
        git("add", "--all")
        git("commit", "--quiet", "--message", f"change {number}")
    return git("log", "--reverse", "--format=%H").split()


@pytest.mark.long
def test_the_first_slower_commit_is_found_by_commands_and_one_that_does_not_build_is_skipped(
    mariadb: LocalServer, results: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    made = make_repository(repository, first_slow=4, broken=2)
    script = tmp_path / "apply.py"
    script.write_text(APPLY)
    address = mariadb.address()
    login = f'"{address.port}", "{address.user}", "{tmp_path}/password"'
    start = f'start = ["{sys.executable}", "{script}", "{repository}", {login}]\nstop = ["true"]'
    table = f'[[variant]]\nname = "any"\n{server(mariadb, tmp_path, "command", start)}'
    bisecting = Bisecting(results, (HEAD + table).replace("SELECT SLEEP(0.010)", "SELECT wait_a_little()"))
    words = ["--over", "commits", "--repository", str(repository), "--build", "./build", "--good", made[0]]
    answer = bisecting.run(*words, "--bad", "HEAD", "--max-blocks", "12", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    record = json.loads(answer.stdout)
    assert record == newest_record(results)
    names = [commit[:12] for commit in made]
    assert record["versions"] == names
    assert record["first_bad"] == names[4]
    assert f"{names[4]} (change 4) is the first commit that is slower" in record["sentence"]
    outcomes = {step["candidate"]: step["outcome"] for step in record["steps"]}
    assert outcomes[names[2]] == "skipped"
    assert outcomes[names[3]] == "like-good"
    assert outcomes[names[4]] == "like-bad"
