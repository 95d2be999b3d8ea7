"""Whether the load's sessions were alike in all variants, by what the engine says that they had (P22)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.judge.findings import Finding, finding
from dbdyno.store import StoredTrial

# A difference in these costs or saves work in every statement; another login is paid for once a connection.
EVERY_STATEMENT = ("tls", "compression")


def differences(stored: Sequence[StoredTrial], experiment: Experiment) -> Iterator[Finding]:
    """P22: variants whose sessions had other encryption, compression or login than the baseline's."""
    sessions: dict[str, dict[str, Any]] = {}
    for trial in stored:
        name = str(trial.meta["variant"])
        if not sessions.get(name):
            sessions[name] = trial.session()
    baseline = experiment.variants[0].name
    theirs = sessions.get(baseline)
    for variant in experiment.variants[1:]:
        mine = sessions.get(variant.name)
        if not mine or not theirs:
            continue
        differing = [key for key in mine if mine[key] != theirs.get(key)]
        if differing:
            told = ", ".join(
                f"{key} {theirs.get(key) or 'none'} in {baseline} and {mine[key] or 'none'} in {variant.name}"
                for key in differing
            )
            heavy = any(key in EVERY_STATEMENT for key in differing)
            yield finding(
                "P22",
                "warn" if heavy else "note",
                f"the sessions of {variant.name} were not like those of {baseline}: {told}"
                + ("; a difference found may be that of the connections" if heavy else ""),
                variant.name,
                **{key: [theirs.get(key), mine[key]] for key in differing},
            )
