"""What all products have alike when the words of a server that does not start are put into the user's terms.

A product brings its patterns, and how its log tells errors from the rest (`ErrorLines`).
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Callable, Collection, Sequence

from dbdyno.servers import ports
from dbdyno.servers.account import ServerUser
from dbdyno.servers.product import Failure
from dbdyno.servers.server import ServerProblem

Explanation = Callable[[re.Match[str], Failure, ServerUser], ServerProblem]
# The first that is found in the log explains it.
Patterns = Sequence[tuple[re.Pattern[str], Explanation]]
# A log's own lines about errors, without time stamps, in order.
ErrorLines = Callable[[str], list[str]]

LINES_QUOTED = 6
WORDS_QUOTED = 400
# What a program may take to list its options.
LIST_S_MAX = 30


def explain(failure: Failure, user: ServerUser, patterns: Patterns, error_lines: ErrorLines) -> ServerProblem:
    """Why the server did not start or died; what no pattern knows is quoted as it is."""
    for pattern, explanation in patterns:
        if match := pattern.search(failure.log):
            return explanation(match, failure, user)
    quoted = "; ".join(error_lines(failure.log)[-LINES_QUOTED:])
    if not quoted:
        words = " / ".join(line for line in failure.log.splitlines() if line.strip())[-WORDS_QUOTED:]
        quoted = f"it told no error but said: {words}" if words else "it said nothing"
    ended = "" if failure.exit_status is None else f" (exit status {failure.exit_status})"
    return ServerProblem(
        f"the {failure.title} server ended{ended}: {quoted}", "mend what it says", exit_code=4
    )


def unknown(names: Sequence[str], known: Collection[str], failure: Failure) -> ServerProblem:
    """Names that the server does not know, each with a near one of the known if there is one."""
    parts = []
    for name in names:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        parts.append(f"{name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    word = "variable" if len(parts) == 1 else "variables"
    return ServerProblem(
        f"this {failure.title} server does not know the {word} {', '.join(parts)}",
        "correct or remove it in the variant's variables, config or arguments",
    )


def listed(failure: Failure, *arguments: str) -> str:
    """What the server's program says when it is asked to list its options; empty when it does not say."""
    if not failure.binaries.here:
        return ""
    try:
        answer = subprocess.run(
            [*failure.binaries.command(), *arguments],
            capture_output=True,
            text=True,
            timeout=LIST_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout


def port_taken(_: re.Match[str], failure: Failure, __: ServerUser) -> ServerProblem:
    """Somebody else has the port."""
    return ports.taken(failure.place.port)


def disk_full(error_lines: ErrorLines) -> Explanation:
    """There is no room for its files."""

    def explanation(_: re.Match[str], failure: Failure, __: ServerUser) -> ServerProblem:
        return ServerProblem(
            f"no space left for the {failure.title} server's files in {failure.place.directory}: "
            + "; ".join(error_lines(failure.log)[:2]),
            "free some space or choose another results directory",
            exit_code=4,
        )

    return explanation


def denied(error_lines: ErrorLines) -> Explanation:
    """Its user may not read or write what it was told to."""

    def explanation(_: re.Match[str], failure: Failure, user: ServerUser) -> ServerProblem:
        return ServerProblem(
            f"the {failure.title} server, which runs as {user.name}, may not read or write a file: "
            + "; ".join(error_lines(failure.log)[:2]),
            "let that user read what the experiment names, or choose another results directory",
        )

    return explanation
