"""Says why a trial failed, and whether its server caused this.

A trial that failed because of its server is a result and counts as 0 transactions/s. One that failed because
of dbdyno, the disk or a command of the user says nothing about a variant (`repeating`).
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

from dbdyno.problem import Problem
from dbdyno.run.background import BackgroundEnded
from dbdyno.run.engine import EngineResult
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.server import MachineProblem, Server, ServerProblem
from dbdyno.store.trial import FailedBy

# Reasons why an engine run ended that count as a failure of the server: it refused or lost connections,
# returned an error that is not retried, or did not answer. The network may also fail the first two.
CONNECTION_FAILURES = frozenset({"connect-failed", "connection-lost"})
SERVER_FAILURES = CONNECTION_FAILURES | {"server-error", "forced-shutdown", "queue-full"}
# The class of the server errors that are caused by the workload's own keys.
DUPLICATE_KEY = "duplicate-key"

# Errors of this machine that prevent a connection although the server runs: no free local port or file
# handle, or no memory. The engine's text has their number.
LOCAL_LIMITS = frozenset({errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Maximum seconds for a server to show that it answers.
ALIVE_TIMEOUT_S = 10.0
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


class HookProblem(ServerProblem):
    """The user's `before_trial` command failed."""


@dataclass(frozen=True)
class StartFailure:
    """Why the server of a group did not get ready, and what caused this."""

    reason: str
    failed_by: FailedBy

    @classmethod
    def of(cls, problem: Problem, server: Server) -> StartFailure:
        """The failure that `problem` describes; a server that answers is not its cause."""
        is_around = isinstance(problem, MachineProblem)
        is_by_server = not is_around and bool(unreachable_reason(server))
        return cls(problem.text, "server" if is_by_server else "harness")


def unreachable_reason(server: Server) -> str:
    """The error of a server that no longer answers; empty if it answers."""
    try:
        with answers_within(ALIVE_TIMEOUT_S):
            server.query("SELECT 1")
    except ServerProblem as problem:
        return f"the server no longer answers: {problem.text}"
    return ""


def describe_failure(result: EngineResult, server: Server) -> dict[str, str]:
    """Why an engine run did not complete, and whether the server or dbdyno ("harness") caused this.

    In the format of trial.json; {} if the run completed.
    """
    if result.done:
        return {}
    if result.end is None:
        is_by_server = bool(unreachable_reason(server))
    else:
        failure = result.end.get("failure") or {}
        reason = result.end["reason"]
        is_by_server = reason in SERVER_FAILURES and failure.get("class") != DUPLICATE_KEY
        if result.is_of_fleet and reason in CONNECTION_FAILURES:
            # The network of one host may be the cause.
            is_by_server = bool(unreachable_reason(server))
        if reason == "script-error":
            # A script reports a refused connection, but not a lost server.
            is_by_server = failure.get("class") == "refused" or bool(unreachable_reason(server))
        numbers = _OS_ERROR.findall(str(failure.get("text", "")))
        is_by_server = is_by_server and LOCAL_LIMITS.isdisjoint(map(int, numbers))
    return {"reason": result.failure(), "failed_by": "server" if is_by_server else "harness"}


def describe_idle(result: EngineResult) -> dict[str, str]:
    """As `describe_failure`, for a run that completed: a point without a transaction has no result."""
    measured = result.end["phases"].get("measure") if result.end is not None else None
    if measured is None or measured["events"]:
        return {}
    errors = ", ".join(f"{count} x {code}" for code, count in measured["errors"].items())
    reason = "no transaction ended in the measurement" + (f" (errors: {errors})" if errors else "")
    return {"reason": reason, "failed_by": "server"}


def describe_problem(problem: Problem, result: EngineResult | None, server: Server) -> dict[str, str]:
    """The failure of a trial because of a problem outside the engine, in the format of trial.json."""
    if isinstance(problem, MachineProblem):
        return {"reason": problem.text, "failed_by": "harness"}
    if isinstance(problem, BackgroundEnded) and problem.result is not None:
        return describe_failure(problem.result, server) | {"reason": problem.text}
    # The engine's reason is closer to the cause than "the server no longer answers".
    if result is not None and (failure := describe_failure(result, server)):
        return failure
    if isinstance(problem, HookProblem) or not unreachable_reason(server):
        # A complete run stays valid when the counters after it cannot be read.
        is_complete = result is not None and isinstance(problem, ServerProblem)
        return {} if is_complete else {"reason": problem.text, "failed_by": "harness"}
    return {"reason": problem.text, "failed_by": "server"}
