"""CPU sets in the syntax of Linux ("0-3,8"), as in taskset, cpusets and /proc."""

from __future__ import annotations

HIGHEST_CPU = 8191


def parse_cpus(text: str) -> frozenset[int]:
    """The CPU numbers of a list such as "0", "0-3" or "0,2-5". Raises ValueError with the wrong part."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part.strip()!r} is not a CPU number or range")
        low, high = int(first), int(last) if dash else int(first)
        if low > high:
            raise ValueError(f"the range {part.strip()!r} is in descending order")
        if high > HIGHEST_CPU:
            raise ValueError(f"{high} is above the highest CPU number, {HIGHEST_CPU}")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)


def format_cpus(numbers: frozenset[int]) -> str:
    """The shortest list that `parse_cpus` reads back: {0, 1, 2, 5} -> "0-2,5"."""
    parts: list[str] = []
    ordered = sorted(numbers)
    while ordered:
        length = 1
        while length < len(ordered) and ordered[length] == ordered[0] + length:
            length += 1
        parts.append(str(ordered[0]) if length == 1 else f"{ordered[0]}-{ordered[length - 1]}")
        ordered = ordered[length:]
    return ",".join(parts)
