"""P27 in a stored run: transactions that the load generator counted and the server did not commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.finding import Finding
from dbdyno.judge.server_state import ServerState
from dbdyno.judge.wording import trials_count
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# PostgreSQL ends at least one transaction for each that the load generator counts; other sessions add some.
ENDED_SHARE = 0.9
# So few transactions may be in the counters of a later moment.
COUNTED_MIN = 100


def open_transactions(
    trials: Sequence[MeasuredTrial], states: Mapping[int, ServerState]
) -> Iterator[Finding]:
    """Variants whose server rolled back transactions that the load left open, or ended fewer than counted."""
    by_variant: dict[str, list[int]] = {}
    for trial in trials:
        if trial.figures is not None and _leaves_open(trial, states.get(trial.index)):
            by_variant.setdefault(trial.variant, []).append(trial.index)
    for variant, indexes in by_variant.items():
        yield Finding(
            "P27",
            "warn",
            compose(
                "the load left transactions of {variant} open in {count}: by the server's counters they were "
                "rolled back, or never ended, so transactions count that were not committed",
                variant=variant,
                count=trials_count(len(indexes)),
            ),
            {"trials": indexes},
            variant,
            fix=compose("Set autocommit = ON, or end the transactions with COMMIT"),
        )


def _leaves_open(trial: MeasuredTrial, state: ServerState | None) -> bool:
    figures = trial.figures
    if state is None or figures is None:
        return False
    ended = [state.ends[name] for name in state.ends if name.startswith("pg_stat_database.")]
    if ended:
        return figures.events >= COUNTED_MIN and sum(ended) < ENDED_SHARE * figures.events
    # A transaction that failed or was cancelled is rolled back too, and so is one that asks for it.
    is_explained = bool(
        figures.errors or figures.backlog or figures.dropped or state.ends.get("Com_rollback")
    )
    return state.ends.get("Handler_rollback", 0.0) > 0 and not is_explained
