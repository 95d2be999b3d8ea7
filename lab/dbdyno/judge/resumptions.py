"""R15: blocks that were measured partly before and partly after a run was resumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from dbdyno.finding import Finding
from dbdyno.judge.wording import join_words
from dbdyno.store.endings import Resumption
from dbdyno.text import compose, compose_count


def resumptions(resumed: Sequence[Resumption]) -> Iterator[Finding]:
    """A note for each time that a run was resumed."""
    for one in resumed:
        time = datetime.fromtimestamp(one.unix_us / 1e6, UTC)
        text = compose(
            "the run was resumed at {time} UTC, after {trials} trials",
            time=f"{time:%Y-%m-%d %H:%M:%S}",
            trials=one.trials,
        )
        if one.blocks:
            numbers = join_words([str(block + 1) for block in one.blocks])
            text += compose_count(
                len(one.blocks),
                "; block {numbers} began before that and ended after it, so its variants may have met "
                "different conditions",
                "; blocks {numbers} began before that and ended after it, so their variants may have met "
                "different conditions",
                numbers=numbers,
            )
        evidence = {"unix_us": one.unix_us, "trials": one.trials, "blocks": list(one.blocks)}
        yield Finding("R15", "note", text, evidence)
