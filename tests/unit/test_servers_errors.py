"""MariaDB's own words, as it wrote them into its log, and what a user is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.product import Binaries, Failure, Place, diagnose

STAMP = "2026-01-02  3:04:05 0 "


def explained(log: str, declared: dict[str, str] | None = None) -> tuple[str, int]:
    place = Place(Path("/data/v"), Path("/data/v/s"), 20001, 20002)
    # A program that knows no option, so that only what the log says can be told.
    binaries = Binaries(Path("/bin/false"), Path("/bin/false"), None)
    problem = diagnose(Failure(log, 1, place, declared or {}, binaries, MariaDB(), user="nobody"))
    return problem.text, problem.exit_code


@pytest.mark.parametrize(
    ("log", "told", "exit_code"),
    [
        ("[ERROR] mariadbd: unknown variable 'foo-bar=1'", "does not know the variable 'foo_bar'", 2),
        ("[ERROR] mariadbd: unknown option '--foo'", "does not know the variable 'foo'", 2),
        (
            "[ERROR] mariadbd: Error while setting value 'blah' to 'thread-handling'",
            "refuses the value 'blah' for 'thread_handling'",
            2,
        ),
        (
            "[ERROR] mariadbd: ambiguous option '--innodb_buffer_pool=1G' (innodb-buffer-pool-size, x)",
            "'--innodb_buffer_pool' begins several options of this MariaDB server: innodb-buffer-pool-size",
            2,
        ),
        (
            "[ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use",
            "port 20001 on 127.0.0.1 is in use",
            3,
        ),
        ("[ERROR] mariadbd: Disk is full writing './ibdata1' (Errcode: 28 \"x\")", "no space left", 4),
        ("[ERROR] InnoDB: Cannot map innodb_buffer_pool_size_max=8388608m", "a buffer pool of 900G", 2),
        (
            "[ERROR] InnoDB: Data file './ibdata1' uses page size 16384, but the innodb_page_size start-up "
            "parameter is 8192",
            "pages of 16384 bytes, but the variant declares 8192",
            2,
        ),
        (
            "[ERROR] mariadbd: Can't read dir of '/x' (Errcode: 13 \"Permission denied\")",
            "runs as nobody, may not",
            2,
        ),
        ("FATAL ERROR: Could not find my_print_defaults", "needs the program my_print_defaults", 2),
        ("[ERROR] something new", "[ERROR] something new", 4),
    ],
)
def test_known_complaints_become_the_users_terms(log: str, told: str, exit_code: int) -> None:
    text, code = explained(STAMP + log + f"\n{STAMP}[ERROR] Aborting", {"innodb_buffer_pool_size": "900G"})
    assert told in text
    assert code == exit_code


def test_all_options_that_the_log_calls_unknown_are_named_and_no_others() -> None:
    log = (
        f"{STAMP}[Warning] mariadbd: unknown variable 'loose-thread_pool=1'\n"
        f"{STAMP}[ERROR] mariadbd: unknown option '--skip-archive'\n"
        f"{STAMP}[ERROR] mariadbd: unknown variable 'innodb_x=2'\n"
    )
    text, _ = explained(log, {"sort_buffer": "1M", "skip_archive": "", "innodb_x": "2"})
    assert "does not know the variables 'skip_archive', 'innodb_x'" in text
    assert "sort_buffer" not in text


def test_an_option_that_the_server_may_ignore_is_not_the_cause() -> None:
    log = f"{STAMP}[Warning] mariadbd: unknown variable 'loose-x=1'\n{STAMP}[ERROR] InnoDB: cause"
    assert explained(log) == ("the MariaDB server ended (exit status 1): [ERROR] InnoDB: cause", 4)


def test_consequences_do_not_hide_the_cause() -> None:
    said = ("InnoDB: cause", "Unknown/unsupported storage engine: InnoDB", "Aborting")
    log = "\n".join(f"{STAMP}[ERROR] {text}" for text in said)
    assert MariaDB().error_lines(log) == ["[ERROR] InnoDB: cause"]


def test_a_server_that_died_without_a_word_is_told_as_such() -> None:
    assert "exit status 1" in explained("")[0]
    assert "its log is empty" in explained("")[0]


def test_a_plugin_that_could_not_be_loaded_is_a_complaint() -> None:
    assert (
        MariaDB().startup_error(f"{STAMP}[ERROR] Couldn't load plugins from 'nosuch.so'.")
        == "[ERROR] Couldn't load plugins from 'nosuch.so'."
    )
    assert MariaDB().startup_error(f"{STAMP}[Warning] a plugin is old\n{STAMP}[ERROR] other") == ""
