"""Finds out during a long wait whether the server has stopped: then it does not answer another login either.

A statement such as VACUUM, or loading a table, may take hours without an answer, so a time limit cannot tell
a slow server from one that is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

# Seconds without an answer before the first login, and between two logins that were answered.
LOGIN_EVERY_S = 5.0
# Time limits, in seconds, of the logins in succession that a stopped server leaves without an answer. One is
# not enough: it may get lost, and a pause of the server's machine may end just after its time limit.
LOGIN_TIMEOUTS_S = (10, 2)


class SilenceWatch:
    """A context: calls `on_silence` in a thread of its own when the server answers no login any more.

    `answers_login` tries a login within some seconds.
    """

    def __init__(self, answers_login: Callable[[int], bool], on_silence: Callable[[], None]) -> None:
        self._answers_login, self._on_silence = answers_login, on_silence
        self._is_over = threading.Event()
        # Held by what must not happen after the end of the context, and by that end.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="silence", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A login in progress ends by its time limit; nobody waits for it.
        with self._lock:
            self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(LOGIN_EVERY_S):
            if is_silent(self._answers_login):
                with self._lock:
                    if not self._is_over.is_set():
                        self._on_silence()
                return


def is_silent(answers_login: Callable[[int], bool]) -> bool:
    """Whether the server leaves all logins in succession without an answer."""
    return not any(map(answers_login, LOGIN_TIMEOUTS_S))
