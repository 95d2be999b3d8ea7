"""endings.json: when each call of `compare` began and ended, in order, and when it resumed the run.

The judge's sentence says why a run stopped; `compare` and the report say how much of the time each step took,
and which blocks were measured partly before and partly after the run was resumed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.store.document import Document, DocumentPart, Optional, Why
from dbdyno.store.older_versions import current_endings
from dbdyno.store.run import Run
from dbdyno.text import Text, compose, join

FILE = "endings.json"
# Steps: measurements, warm-up (with the trials that determine it), trials that failed or were interrupted,
# and the rest.
MEASURING, WARMUP, FAILED, INTERRUPTED, OTHER = (
    "measuring",
    "warm-up",
    "failed trials",
    "interrupted trials",
    "other",
)
# Step -> its name as text.
_NAMES = {
    WARMUP: compose("warm-up"),
    FAILED: compose("failed trials"),
    INTERRUPTED: compose("interrupted trials"),
    OTHER: compose("other"),
    "checking": compose("checking"),
    "connecting": compose("connecting"),
    "dropping the tables": compose("dropping the tables"),
    "judging": compose("judging"),
    "loading": compose("loading"),
    "pilot": compose("pilot"),
    "starting and restoring": compose("starting and restoring"),
}
# Steps that are shown as one -> its name.
_SHOWN_AS = dict.fromkeys(("restoring", "starting", "stopping"), "starting and restoring")
# Why a call of dbdyno ended.
_WHY: Mapping[Why, Text] = {
    "decided": compose("every comparison is decided"),
    "blocks": compose("all blocks are measured"),
    "time": compose("the time is used up"),
    "interrupted": compose("it was interrupted; compare --resume continues it"),
    "check": compose("a check stopped it"),
    "failed": compose("it failed; compare --resume continues it"),
}
# Steps with a smaller share of the time are shown as `OTHER`.
SHARE_MIN = 0.005


class Ending(DocumentPart):
    """One call of `compare`."""

    began_unix_us: int
    """When it began."""
    ended_unix_us: int
    """When it ended."""
    why: Why
    """Why it ended."""
    interrupted: Optional[int] = None
    """Number of the block that was interrupted when the time was over; absent if none was."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Step -> the time that it took; empty in runs of version 0.2.0."""
    error: str = ""
    """The error that ended it; empty without one, and in runs of version 0.2.0."""


class Resumption(DocumentPart):
    """A call of `compare` that resumed the run and measured more trials."""

    unix_us: int
    """When the first server was ready."""
    trials: int
    """Number of trials that were measured before."""
    blocks: list[int]
    """Numbers of the blocks that have trials from before and from after this."""


class EndingsFile(Document):
    """The content of endings.json."""

    schema_version: Annotated[Literal[2], Field(alias="schema")] = 2
    """The version of this file's schema."""
    calls: list[Ending] = Field(default_factory=list)
    """The calls, oldest first. A call that was killed is missing."""
    resumed: list[Resumption] = Field(default_factory=list)
    """The calls that resumed the run, oldest first, also those that were killed."""


def _read(run: Run) -> EndingsFile:
    return EndingsFile.read(run.path / FILE, current_endings) or EndingsFile()


def read_endings(run: Run) -> list[Ending]:
    """The calls of `compare` on a run, oldest first; none in runs of version 0.2.0. Raises StoreProblem."""
    return _read(run).calls


def ended_text(ending: Ending | None, findings: Iterable[Finding]) -> Text:
    """Why the last call of dbdyno ended, which may be unknown; `findings` are those of the run."""
    stop = next((finding for finding in findings if finding.is_blocking), None)
    if stop is not None and (ending is None or ending.why == "check"):
        return compose("stopped by {code}: {text}", code=stop.code, text=stop.clause)
    if ending is None:
        return compose("dbdyno was ended; compare --resume continues it")
    if ending.why == "failed" and ending.error:
        return compose("it failed: {error}; compare --resume continues it", error=ending.error)
    return _WHY[ending.why]


def add_ending(run: Run, ending: Ending) -> None:
    """Store how a call has ended. Raises StoreProblem."""
    file = _read(run)
    EndingsFile(calls=[*file.calls, ending], resumed=file.resumed).write(run.path / FILE)


def read_resumptions(run: Run) -> list[Resumption]:
    """When a run was resumed, oldest first; none in runs of version 0.2.0. Raises StoreProblem."""
    return _read(run).resumed


def add_resumption(run: Run, resumption: Resumption) -> None:
    """Store that a call resumes the run. Raises StoreProblem."""
    file = _read(run)
    EndingsFile(calls=file.calls, resumed=[*file.resumed, resumption]).write(run.path / FILE)


def record_resumption(run: Run, todo: Iterable[Trial]) -> None:
    """If other calls have measured trials of the run, store which blocks they left unfinished; `todo` are the
    trials of this call. Raises StoreProblem.
    """
    open_blocks = {trial.index: trial.block for trial in todo}
    measured = [trial for trial in run.trials() if trial.index not in open_blocks]
    if measured and open_blocks:
        blocks = set(open_blocks.values()).intersection(int(trial.meta["block"]) for trial in measured)
        now_us = time.time_ns() // 1000
        add_resumption(run, Resumption(unix_us=now_us, trials=len(measured), blocks=sorted(blocks)))


@dataclass(frozen=True)
class Shares:
    """The shares of the steps in the time of a comparison."""

    # Step -> seconds.
    seconds: Mapping[str, float]

    @property
    def total_s(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.values())

    @property
    def measuring(self) -> float:
        """The share of the measurements."""
        return self.seconds.get(MEASURING, 0.0) / self.total_s

    def text(self) -> str:
        """For example "measuring 64 % of the time, warm-up 27 %, starting and restoring 7 %, other 2 %"."""
        shares: dict[str, float] = {}
        for step, seconds in self.seconds.items():
            name = _SHOWN_AS.get(step, step)
            shares[name] = shares.get(name, 0.0) + seconds / self.total_s
        named = [
            name for name in shares if name not in (MEASURING, WARMUP, OTHER) and shares[name] >= SHARE_MIN
        ]
        named = [WARMUP, *sorted(named, key=lambda name: -shares[name])]
        rest = 1.0 - self.measuring - sum(shares.get(name, 0.0) for name in named)
        parts = [
            join(" ", (_NAMES.get(entry, entry), f"{shares.get(entry, 0.0) * 100:.0f} %")) for entry in named
        ]
        parts += [join(" ", (_NAMES[OTHER], f"{rest * 100:.0f} %"))] if rest >= SHARE_MIN else []
        measured = compose("measuring {percent:.0f} % of the time", percent=self.measuring * 100)
        return join(", ", [measured, *parts])


def time_shares(calls: Sequence[Ending]) -> Shares | None:
    """The shares of the steps in the time of these calls; None if no trial of them completed, or if it is not
    known (calls of version 0.2.0).
    """
    return shares_of([call.seconds for call in calls])


def shares_of(calls: Sequence[Mapping[str, float]]) -> Shares | None:
    """The same for the seconds of each step in each call."""
    seconds: dict[str, float] = {}
    for call in calls:
        for name, each_s in call.items():
            seconds[name] = seconds.get(name, 0.0) + each_s
    return Shares(seconds) if seconds.get(MEASURING) else None
