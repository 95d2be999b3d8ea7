"""P10: whether the machine of the servers that dbdyno starts has changed between trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.finding import Finding
from dbdyno.judge.server_state import ServerState
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, join


def changed_hosts(trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]) -> Iterator[Finding]:
    """A warning if trials ran on machines with other kernels, processors or memory; `states` is by index of
    the trial.
    """
    values: dict[str, list[str]] = {}
    for trial in trials:
        for key, value in states.get(trial.index, ServerState()).host.items():
            of_key = values.setdefault(key, [])
            if value not in of_key:
                of_key.append(value)
    changed = {key: of_key for key, of_key in values.items() if len(of_key) > 1}
    if not changed:
        return
    listed = join("; ", (join("", (f"{key}: ", join(", ", of_key))) for key, of_key in changed.items()))
    yield Finding(
        "P10",
        "warn",
        compose(
            "trials ran on different machines, or their machine was changed: {listed}. Blocks that have "
            "trials of both do not compare the variants alone",
            listed=listed,
        ),
        {key: list(of_key) for key, of_key in changed.items()},
        fix=compose("Resume a run on the machine on which it began, and with the same kernel"),
    )
