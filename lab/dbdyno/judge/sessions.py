"""P22: differences between variants in encryption, compression and authentication of the load's
connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.experiment.differences import list_differences
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.store import StoredTrial
from dbdyno.store.trial import Session
from dbdyno.text import compose, join

# Properties that affect the cost of every statement. Authentication affects only the start of a connection.
AFFECTING_STATEMENTS = ("tls", "compression")


def session_differences(stored: Sequence[StoredTrial], experiment: Experiment) -> Iterator[Finding]:
    """Variants whose connections differ from those of the baseline in one of these properties. A difference
    that the experiment declares is a note.
    """
    sessions: dict[str, Session] = {}
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
            listed = join(
                ", ",
                (
                    compose(
                        "{key} {first} in {baseline} and {second} in {name}",
                        key=key,
                        first=first or compose("none"),
                        baseline=baseline,
                        second=second or compose("none"),
                        name=variant.name,
                    )
                    for key, (first, second) in differing.items()
                ),
            )
            declared = list_differences(experiment, variant)
            is_warning = any(
                key in AFFECTING_STATEMENTS and f"session.{key}" not in declared for key in differing
            )
            yield Finding(
                "P22",
                "warn" if is_warning else "note",
                compose(
                    "the connections of {name} differ from those of {baseline}: {listed}",
                    name=variant.name,
                    baseline=baseline,
                    listed=listed,
                )
                + (compose("; this may be the cause of a measured difference") if is_warning else ""),
                differing,
                variant.name,
            )
