"""Explains from its log why a server did not start or why it died.

Each product has its own patterns (`Product.patterns`); this file has the explanations that all products
share.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Collection, Sequence

from dbdyno.servers import ports
from dbdyno.servers.products.product import Explanation, Failure, Patterns
from dbdyno.servers.server import MachineProblem, ServerProblem

LINES_QUOTED = 6
CHARACTERS_QUOTED = 400
# Maximum seconds for a program to list its options.
LIST_S_MAX = 30


def diagnose(failure: Failure, patterns: Patterns) -> ServerProblem:
    """The explanation of the first pattern that matches the log; without a match, the log's errors."""
    for pattern, explanation in patterns:
        if match := pattern.search(failure.log):
            return explanation(match, failure)
    quoted = "; ".join(failure.errors[-LINES_QUOTED:])
    if not quoted:
        text = " / ".join(line for line in failure.log.splitlines() if line.strip())[-CHARACTERS_QUOTED:]
        quoted = f"its log has no error and ends with: {text}" if text else "its log is empty"
    status = "" if failure.exit_status is None else f" (exit status {failure.exit_status})"
    return ServerProblem(
        f"the {failure.title} server ended{status}: {quoted}", "fix the reported problem", exit_code=4
    )


def unknown_names(names: Sequence[str], known: Collection[str], failure: Failure) -> ServerProblem:
    """Names that the server does not know, each with the most similar known name, if any."""
    parts = []
    for name in names:
        similar = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        parts.append(f"{name!r}" + (f" (did you mean {similar[0]!r}?)" if similar else ""))
    word = "variable" if len(parts) == 1 else "variables"
    return ServerProblem(
        f"this {failure.title} server does not know the {word} {', '.join(parts)}",
        "correct or remove the setting in the variant's variables, config or arguments",
    )


def refused_value(failure: Failure, name: str, value: str, fix: str = "") -> ServerProblem:
    """A value that the server does not accept for a variable."""
    return ServerProblem(
        f"this {failure.title} server refuses the value {value!r} for {name!r}",
        fix or "see the server's manual for the accepted values",
    )


def list_options(failure: Failure, *arguments: str) -> str:
    """The options that the server's program lists when called with `arguments`; empty if the call fails."""
    if not failure.binaries.runnable:
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


def explanation(text: str, fix: str) -> Explanation:
    """An explanation whose text needs only the groups of its pattern, and {title}, the product's name."""

    def explain(match: re.Match[str], failure: Failure) -> ServerProblem:
        return ServerProblem(text.format(title=failure.title, **match.groupdict()), fix)

    return explain


def port_in_use(_: re.Match[str], failure: Failure) -> ServerProblem:
    """Another program uses the port."""
    return ports.port_in_use(failure.place.port)


def disk_full(_: re.Match[str], failure: Failure) -> ServerProblem:
    """The file system is full."""
    return MachineProblem(
        f"no space left for the {failure.title} server's files in {failure.place.directory}: "
        + "; ".join(failure.errors[:2]),
        "free some space or choose another results directory",
        exit_code=4,
    )


def permission_denied(_: re.Match[str], failure: Failure) -> ServerProblem:
    """The server's user has no permission for a file."""
    return ServerProblem(
        f"the {failure.title} server, which runs as {failure.user}, may not read or write a file: "
        + "; ".join(failure.errors[:2]),
        "give that user access to the files that the experiment names, or choose another results directory",
    )
