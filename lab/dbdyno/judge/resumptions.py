"""R15: blocks that were measured partly before and partly after a run was resumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from dbdyno.finding import Finding
from dbdyno.judge.wording import join_words
from dbdyno.store.endings import Resumption


def resumptions(resumed: Sequence[Resumption]) -> Iterator[Finding]:
    """A note for each time that a run was resumed."""
    for one in resumed:
        time = datetime.fromtimestamp(one.unix_us / 1e6, UTC)
        text = f"the run was resumed at {time:%Y-%m-%d %H:%M:%S} UTC, after {one.trials} trials"
        if one.blocks:
            numbers = join_words([str(block + 1) for block in one.blocks])
            noun, other = ("block", "its") if len(one.blocks) == 1 else ("blocks", "their")
            text += (
                f"; {noun} {numbers} began before that and ended after it, so {other} variants may have met "
                "different conditions"
            )
        evidence = {"unix_us": one.unix_us, "trials": one.trials, "blocks": list(one.blocks)}
        yield Finding("R15", "note", text, evidence)
