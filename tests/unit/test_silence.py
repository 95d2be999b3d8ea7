"""A server that answers no login: how many logins, and when."""

from __future__ import annotations

import threading
import time

import pytest

from dbdyno.servers.admin import connection
from dbdyno.servers.admin.connection import SilenceWatch, is_silent


@pytest.mark.parametrize(
    ("answers", "expected"), [([True], False), ([False, True], False), ([False, False], True)]
)
def test_one_login_without_an_answer_is_not_enough(answers: list[bool], expected: bool) -> None:
    logins = iter(answers)
    assert is_silent(lambda _limit_s: next(logins)) is expected
    assert list(logins) == []


def test_a_watch_reports_once_and_not_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOGIN_EVERY_S", 0.01)
    reports: list[float] = []
    reported = threading.Event()

    def report() -> None:
        reports.append(time.monotonic())
        reported.set()

    with SilenceWatch(lambda _limit_s: False, report):
        assert reported.wait(10.0)
        # Time for many more logins.
        time.sleep(0.2)
    assert len(reports) == 1
    reported.clear()
    asked = threading.Event()

    def answer_late(_limit_s: int) -> bool:
        asked.set()
        time.sleep(0.2)
        return False

    with SilenceWatch(answer_late, reported.set):
        assert asked.wait(10.0)
    assert not reported.wait(0.6)
