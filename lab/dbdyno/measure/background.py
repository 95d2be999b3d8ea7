"""The figures of background loads within the windows of their trials.

Both engines give the wall time of their start, so the window of a trial is known in the time of the
background load. It counts in the intervals within that window, of which a measurement has 20 or more.
"""

from __future__ import annotations

from contextlib import suppress

from dbdyno.experiment.model import Experiment
from dbdyno.measure.figures import INCOMPLETE, figures
from dbdyno.measure.recording import Recording, read
from dbdyno.store import StoredTrial
from dbdyno.store.measured import BackgroundFigures, Window


def background_figures(
    trial: StoredTrial, experiment: Experiment, recording: Recording, window: Window
) -> dict[str, BackgroundFigures]:
    """Title -> figures of each background load of a trial, which has this `recording` and `window`."""
    variant = experiment.variant(str(trial.meta["variant"]))
    by_title = {}
    for one in experiment.backgrounds(variant, str(trial.meta["workload"])):
        own = read(trial.background(one.title))
        shift_us = recording.start_unix_us - own.start_unix_us
        inside = [
            i
            for i in own.intervals
            if i["start_us"] >= window.start_us + shift_us and i["end_us"] <= window.end_us + shift_us
        ]
        counted_us = inside[-1]["end_us"] - inside[0]["start_us"] if inside else 0
        events = sum(i["events"] for i in inside)
        of_load = None
        if inside:
            with suppress(*INCOMPLETE):
                # What was unfinished when the load was stopped was due after the window.
                own.measure["censored_us"] = own.measure["drained_us"] = ()
                of_load = figures(own, Window(inside[0]["start_us"], inside[-1]["end_us"], None))
        by_title[one.title] = BackgroundFigures(
            rate=one.rate,
            connections=one.connections,
            counted_us=counted_us,
            throughput=events * 1e6 / counted_us if counted_us else 0.0,
            figures=of_load,
        )
    return by_title
