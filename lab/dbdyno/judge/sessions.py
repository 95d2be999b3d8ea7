"""P22: encryption, compression and authentication of the load's connections, as the engine recorded them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.store import StoredTrial

# These differences affect every statement; authentication affects only the start of a connection.
EVERY_STATEMENT = ("tls", "compression")


def differences(stored: Sequence[StoredTrial], experiment: Experiment) -> Iterator[Finding]:
    """Variants whose encryption, compression or login differs from the baseline's."""
    sessions: dict[str, dict[str, Any]] = {}
    for trial in stored:
        name = str(trial.meta["variant"])
        if not sessions.get(name):
            sessions[name] = trial.session()
    baseline = experiment.variants[0].name
    base = sessions.get(baseline)
    for variant in experiment.variants[1:]:
        session = sessions.get(variant.name)
        if not session or not base:
            continue
        differing = {key: [base.get(key), value] for key, value in session.items() if value != base.get(key)}
        if differing:
            listed = ", ".join(
                f"{key} {first or 'none'} in {baseline} and {second or 'none'} in {variant.name}"
                for key, (first, second) in differing.items()
            )
            heavy = any(key in EVERY_STATEMENT for key in differing)
            yield Finding(
                "P22",
                "warn" if heavy else "note",
                f"the sessions of {variant.name} were not like those of {baseline}: {listed}"
                + ("; a difference found may be that of the connections" if heavy else ""),
                differing,
                variant.name,
            )
