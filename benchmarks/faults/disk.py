"""Disks that are full from a phase on: the one of the results, or the one of the servers' data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .experiment import NAME
from .fault import URL, Fault
from .namespaces import enter, mount_image, mount_memory, unmount
from .scene import Scene

RESULTS_SIZE, DATA_BYTES = "16m", 2 << 30
FILLER = "filler"


def _results_folder(scene: Scene) -> Path:
    return scene.results / NAME


def _data_folder(scene: Scene) -> Path:
    return scene.results / ".servers"


def _mount_results(scene: Scene) -> None:
    folder = _results_folder(scene)
    mount_memory(folder, RESULTS_SIZE)
    scene.undo.append(lambda: unmount(folder))


def _mount_data(scene: Scene) -> None:
    scene.results = scene.results.with_name(f"{scene.results.name}-small-disk")
    scene.results.mkdir(exist_ok=True)
    scene.results.chmod(0o711)
    folder, image = _data_folder(scene), scene.results / "disk.img"
    mount_image(folder, image, DATA_BYTES)

    def undo() -> None:
        unmount(folder)
        image.unlink(missing_ok=True)

    scene.undo.append(undo)


def _fill(folder: Callable[[Scene], Path]) -> Callable[[Scene], None]:
    def inject(scene: Scene) -> None:
        path = folder(scene)
        # Blocks are reserved, so that the last byte is gone within milliseconds.
        with (path / FILLER).open("wb") as file:
            for size in (1 << 26, 1 << 20, 1 << 14, 1 << 12):
                try:
                    while True:
                        end = file.seek(0, os.SEEK_END)
                        os.posix_fallocate(file.fileno(), end, size)
                except OSError:
                    continue

    return inject


def _make_room(scene: Scene) -> None:
    """Remove the filler, before the run is resumed."""
    (_results_folder(scene) / FILLER).unlink(missing_ok=True)


FAULTS = [
    Fault(
        "results-full",
        "no space is left for results",
        _fill(_results_folder),
        before=_mount_results,
        missing=enter,
    ),
    Fault(
        "data-full",
        "no space is left for the data of servers",
        _fill(_data_folder),
        before=_mount_data,
        never=dict.fromkeys(URL, "dbdyno does not own the disk of a server that it does not start")
        | {"docker": "the same directories as those of local servers"},
        missing=enter,
    ),
]
