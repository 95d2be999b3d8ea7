"""Chooses the carrier of a fleet by its address."""

from __future__ import annotations

import os

from dbdyno.experiment.model import FLEET_LOCAL
from dbdyno.fleet.carrier import Carrier, FleetProblem
from dbdyno.fleet.cluster import MISSING_EXTRA, ray_environment
from dbdyno.fleet.local_carrier import LocalCarrier
from dbdyno.problem import ExitCode


def open_carrier(address: str) -> Carrier:
    """What places the engines of a fleet with that address. Raises FleetProblem."""
    if address == FLEET_LOCAL:
        return LocalCarrier()
    # Ray reads them when it is imported.
    os.environ.update(ray_environment())
    try:
        from dbdyno.fleet.ray_carrier import RayCarrier  # noqa: PLC0415 — Ray is optional, and takes seconds.
    except ImportError as error:
        raise FleetProblem(*MISSING_EXTRA, ExitCode.USAGE) from error
    return RayCarrier(address)
