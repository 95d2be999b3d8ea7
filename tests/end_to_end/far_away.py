"""A server that is not on loopback, and is nowhere else either: in a network of this process alone.

Run by `test_hostile_login` inside `unshare --net`. Gives that network's device an address that is no loopback
address, has a hostile server ask for the whole password there, and writes what the engine did as JSON.

Argument: "allowed" or "refused", whether the engine may ask the server for its key.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import sys

from tests.end_to_end.attacks import attack
from tests.end_to_end.hostile_server import CACHING_SHA2, Peer, hostile, more_data

# One of the addresses that are kept for examples (RFC 5737).
FAR = "192.0.2.1"

# A key that openssl made for tests; nobody has its other half.
KEY = b"""-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwpA8f0nwzkmgTy0PBOUi
L3ZhDrqRokcfSEUxQ87QZDFasTiSK8+7ER8AOXYmwrOVEftPfExcNwtDg/XtGfPa
9HOf7GGgbuEVm0EOP9wVcplq65Dd78VT9GRBK6UwflzhC51PK0P1YzJvaj/4jBB8
mjexss7/bWLMYm1DO34Gq7LlIwkTPX181HWQbO2eSkJR3UrkBSnjc8UG2Uj97LAB
yfPJT0DYR4xNg7TGoOvbHD9FVgXkAPJ956zyfwZwPyhQqErfZmzGw3/T+FjyxjwN
1suL2/D9wDnLpxQnnL1h6MwRt6zOFSeiEuQcJmgT9rib7GIL0pKNSe9wUo8eyIcr
5wIDAQAB
-----END PUBLIC KEY-----
"""

# <linux/sockios.h>, <linux/if.h>
SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8914, 0x8916, 1


def give_address() -> None:
    """Raise the loopback device of this network and give it `FAR` beside its own address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        for name in (b"lo", b"lo:1"):
            if name == b"lo:1":
                address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(FAR))
                fcntl.ioctl(channel, SIOCSIFADDR, struct.pack("16s16s", name, address))
            fcntl.ioctl(channel, SIOCSIFFLAGS, struct.pack("16sH14x", name, IFF_UP))


def main(may: str) -> None:
    """Run the engine once and write what happened."""
    messages: list[bytes] = []

    def ask(peer: Peer, _asked: bytes) -> None:
        peer.send(more_data(b"\x04"))
        messages.append(peer.read())
        peer.send(more_data(KEY))
        messages.append(peer.read())

    give_address()
    with hostile({"login": ask}, host=FAR, plugin=CACHING_SHA2) as server:
        target = {"allow_public_key_retrieval": may == "allowed"}
        done = attack(server, host=FAR, target=target).held(3)
    told = {"exit": done.exit_code, "words": done.words, "messages": [message.hex() for message in messages]}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
