"""Decides how the variants of a block alternate: `design.pairing = "auto"`.

Slices are more precise, but all servers run at the same time: they need memory together, and what an idle
server still writes slows the others down. So they are chosen for loads that only read data in the cache, on
servers that dbdyno starts and that fit into the memory together.
"""

from __future__ import annotations

from typing import Literal

from dbdyno.checks.host import (
    CACHE_SHARE,
    cache_bytes,
    data_bytes,
    data_fit_into_cache,
    memory_bytes,
)
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.slices import can_alternate

# Memory of a server besides its cache and data. MariaDB 10.11 takes 220 MB with a cache of 128 MiB.
PROCESS_BYTES = 128e6


def choose_pairing(experiment: Experiment) -> Experiment:
    """The experiment with "trials" or "slices" instead of "auto"; the same on the same machine."""
    if experiment.design.pairing != "auto":
        return experiment
    pairing: Literal["trials", "slices"] = "trials"
    fit = all(data_fit_into_cache(experiment, variant) for variant in experiment.variants)
    if can_alternate(experiment) and fit and _memory_bytes(experiment) <= CACHE_SHARE * memory_bytes():
        pairing = "slices"
    return experiment.model_copy(update={"design": experiment.design.model_copy(update={"pairing": pairing})})


def _memory_bytes(experiment: Experiment) -> float:
    """What all servers and their largest data need together: a page cache holds the data of each server."""
    return sum(
        PROCESS_BYTES + cache_bytes(variant) + data_bytes(experiment, variant)
        for variant in experiment.variants
    )
