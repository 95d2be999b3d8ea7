"""A file that knows whether anybody opened it, by the kernel's word (inotify(7))."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
# <sys/inotify.h>
IN_ACCESS, IN_OPEN, IN_NONBLOCK = 0x01, 0x20, 0o4000


class WatchedFile:
    """A file with a secret in it; `opened()` tells whether any process has opened or read it since."""

    SECRET = b"this file is nobody's business"

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(self.SECRET)
        self._descriptor = _LIBC.inotify_init1(IN_NONBLOCK)
        watch = _LIBC.inotify_add_watch(self._descriptor, os.fsencode(path), IN_OPEN | IN_ACCESS)
        assert self._descriptor >= 0, os.strerror(ctypes.get_errno())
        assert watch >= 0, os.strerror(ctypes.get_errno())

    def opened(self) -> bool:
        """Whether it was opened since the last call."""
        try:
            return bool(os.read(self._descriptor, 4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Stop watching."""
        os.close(self._descriptor)
