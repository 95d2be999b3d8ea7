"""P19: a container may be emulated, and may have less memory than the server is set to use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.experiment.quantities import number
from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.checks.p14_cache import cache_bytes
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_PLATFORM = linear(r"(?:--platform[= ]|\bplatform:\s*)[\"']?(linux/\w+)")
_MEMORY = linear(r"(?:--memory[= ]|(?<!\S)-m |\bmem_limit:\s*)[\"']?(\d+(?:\.\d+)?[kmg])b?\b", re.IGNORECASE)
_CONTAINER = linear(r"\b(?:docker|podman|nerdctl) run\b|\bmem_limit:", re.IGNORECASE)
# Above this share of the limit the server has too little memory for everything but its cache.
_SHARE_MAX = 0.8
_GIB = 1 << 30


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at the platform and the memory of containers.

    Catches figures of an emulated server. A published benchmark starts its server with --platform linux/amd64
    and does not say on which processor.
    """
    for index, text in reading.document.lines():
        if match := _PLATFORM.search(text):
            yield finding(
                reading,
                "P19",
                "warn",
                compose(
                    "the container is made for {platform}: a machine with another processor emulates it, "
                    "several times slower",
                    platform=match[1],
                ),
                [index],
                fix=compose("Say which processor the machine has, and use an image for it"),
            )
            break
    limit = next(
        (
            (number(match[1].upper()), index)
            for index, text in reading.document.lines()
            if _CONTAINER.search(text) and (match := _MEMORY.search(text))
        ),
        None,
    )
    cache = cache_bytes(reading)
    if limit is not None and limit[0] and cache is not None and cache[0] > _SHARE_MAX * float(limit[0]):
        yield finding(
            reading,
            "P19",
            "stop",
            compose(
                "the cache has {cache:.3g} GiB, and the container {limit:.3g} GiB of memory",
                cache=cache[0] / _GIB,
                limit=float(limit[0]) / _GIB,
            ),
            (limit[1], cache[1]),
            fix=compose("Give the container more memory, or the server a smaller cache"),
        )


CHECK = DocumentCheck("P19", find)
