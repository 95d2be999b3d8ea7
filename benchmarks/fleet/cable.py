"""A network cable that delays or loses frames: a process that copies frames between two devices.

Not every kernel has the queueing discipline netem. The process runs in the namespace of the switch; the rule
is in a file that may change at any time: seconds of delay, and the share of frames that are lost.

    python cable.py DEVICE DEVICE RULE
"""

from __future__ import annotations

import heapq
import random
import selectors
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

# <linux/if_packet.h>: frames come with the header of their offloads, so that unfinished checksums stay valid.
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
ETH_P_ALL = 3
FRAME_BYTES_MAX = 1 << 17


def open_device(name: str) -> socket.socket:
    """A socket that receives and sends whole frames of a device."""
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    device.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    device.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    device.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    device.bind((name, ETH_P_ALL))
    device.setblocking(False)
    return device


def relay(one: socket.socket, other: socket.socket, rule: Path) -> None:
    """Copy frames both ways until the process is killed."""
    selector = selectors.DefaultSelector()
    selector.register(one, selectors.EVENT_READ, other)
    selector.register(other, selectors.EVENT_READ, one)
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    number, read_at, delay_s, loss = 0, 0.0, 0.0, 0.0
    while True:
        now = time.monotonic()
        if now > read_at:
            with suppress(OSError, ValueError):
                delay_s, loss = map(float, rule.read_text().split())
            read_at = now + 0.2
        while waiting and waiting[0][0] <= now:
            _, _, target, frame = heapq.heappop(waiting)
            with suppress(OSError):
                target.send(frame)
        timeout = min(0.2, waiting[0][0] - now) if waiting else 0.2
        for key, _ in selector.select(max(0.0, timeout)):
            # A device that is down has an error instead of frames.
            with suppress(OSError):
                for _ in range(64):
                    frame = key.fileobj.recv(FRAME_BYTES_MAX)  # type: ignore[union-attr]
                    if random.random() >= loss:
                        number += 1
                        heapq.heappush(waiting, (time.monotonic() + delay_s, number, key.data, frame))


if __name__ == "__main__":
    relay(open_device(sys.argv[1]), open_device(sys.argv[2]), Path(sys.argv[3]))
