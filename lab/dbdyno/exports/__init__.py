"""A judged run in the formats of other programs. A writer is a function here, and an entry in WRITERS."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from dbdyno.exports.trackers import as_bencher, as_benchstat, as_otava
from dbdyno.problem import Problem
from dbdyno.store import Run


def require_client(what: str) -> None:
    """Raises Problem if prometheus_client is missing, which `what` needs."""
    if find_spec("prometheus_client") is None:
        raise Problem(
            f"{what} needs the Python package prometheus_client, which is not installed",
            "pip install 'dbdyno[metrics]'",
        )


def _as_openmetrics(run: Run) -> str:
    require_client("the format openmetrics")
    from dbdyno.exports.openmetrics import as_openmetrics  # noqa: PLC0415 — an optional dependency.

    return as_openmetrics(run)


# Name of a format -> its writer. A writer raises Problem if the run was not judged.
WRITERS: Mapping[str, Callable[[Run], str]] = {
    "benchstat": as_benchstat,
    "bencher": as_bencher,
    "openmetrics": _as_openmetrics,
    "otava": as_otava,
}

__all__ = ["WRITERS", "require_client"]
