"""`dbdyno metrics [RUN]`: serves the values of a run in progress for Prometheus and other monitoring."""

from __future__ import annotations

from pathlib import Path

from dbdyno.metrics.server import serve


def metrics(results: Path, name: Path | None, listen: str, token_file: Path | None) -> None:
    """Serve until interrupted; print the address. Raises Problem."""
    serve(results, name, listen, token_file, lambda address: print(address, flush=True))
