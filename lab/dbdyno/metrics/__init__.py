"""The values of a run in progress for monitoring: reads the store, and serves OpenMetrics text over HTTP."""

from importlib.util import find_spec

from dbdyno.problem import Problem


def require_client(what: str) -> None:
    """Raises Problem if prometheus_client is missing, which `what` needs."""
    if find_spec("prometheus_client") is None:
        raise Problem(
            f"{what} needs the Python package prometheus_client, which is not installed",
            "pip install 'dbdyno[metrics]'",
        )
