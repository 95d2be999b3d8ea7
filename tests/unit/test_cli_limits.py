"""Limits of the machine that dbdyno itself reaches are reported in one sentence, not as internal errors."""

from __future__ import annotations

import errno
import os

import pytest

from dbdyno import commands
from dbdyno.problem import ExitCode

NO_HANDLES = OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/proc")
NO_THREADS = RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NO_HANDLES, "dbdyno: no more file handles (ulimit -n): [Errno 24] Too many open files: '/proc'"),
        (NO_THREADS, "dbdyno: no more memory or threads (ulimit -v, ulimit -u): can't start new thread"),
        (MemoryError(), "dbdyno: no more memory or threads (ulimit -v, ulimit -u): the limit is reached"),
        (RuntimeError("x"), "dbdyno: internal error: RuntimeError: x"),
    ],
)
def test_limits_are_no_internal_errors(
    error: Exception,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_called: object) -> None:
        raise error

    monkeypatch.setattr(commands, "app", fail)
    with pytest.raises(SystemExit) as end:
        commands.main()
    assert end.value.code == ExitCode.NOT_COMPARABLE
    assert capsys.readouterr().err.startswith(message)
