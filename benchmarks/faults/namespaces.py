"""Gives this process a network and mounts that no other process sees, where the machine allows it (root).

Faults can then fill a small disk and narrow the range of ports without any effect outside. Namespaces end
with the last process in them, so nothing is left after a crash.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from functools import cache
from pathlib import Path

_NEW_MOUNTS, _NEW_NETWORK = 0x0002_0000, 0x4000_0000
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


@cache
def enter() -> str:
    """Move this process into namespaces of its own, once; why this is impossible, or an empty text."""
    if os.geteuid() != 0:
        return "needs root"
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | _NEW_NETWORK) != 0:
        return f"needs namespaces ({os.strerror(ctypes.get_errno())})"
    _call("mount", "--make-rprivate", "/")
    _call("ip", "link", "set", "lo", "up")
    return ""


def mount_memory(folder: Path, size: str) -> None:
    """Mount an empty file system of that size, such as "4m", in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "none", str(folder))


def mount_image(folder: Path, image: Path, size: int) -> None:
    """Mount an empty ext4 file system of `size` bytes, whose blocks are in the sparse file `image`."""
    folder.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(size)
    _call("mkfs.ext4", "-q", "-m", "0", str(image))
    _call("mount", "-o", "loop", str(image), str(folder))
    folder.chmod(0o711)


def unmount(folder: Path) -> None:
    """Unmount, even if a process still uses a file."""
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)


def _call(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
