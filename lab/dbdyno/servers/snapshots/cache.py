"""The cache of loaded data directories (snapshots). Variants that can open the same snapshot share it.

To create a snapshot, dbdyno starts a server with the settings `Product.loading_options`, loads the data,
finishes all background work and stops the server cleanly, so that every restored copy starts from the same
bytes. The key of a snapshot is a hash of its inputs: product, version, options that determine the file
format, the data's specification and seed. An incomplete snapshot has another name, so that no server uses
the result of an interrupted build. A snapshot whose files were changed since is created again.

::

    snapshots/<key>/.dbdyno          the mark of dbdyno (`owned_folder`)
    snapshots/<key>/snapshot.json    the inputs of the key, the size, and a fingerprint of the files
    snapshots/<key>/data/            the data directory
    snapshots/<key>.lock             shared lock: the snapshot is in use; exclusive: it is created or removed
    snapshots/<key>.unfinished/      a snapshot under construction
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dbdyno
from dbdyno.experiment.model import Experiment, ScriptWorkload, ServerSpec, Variant, Workload
from dbdyno.servers import owned_folder
from dbdyno.servers.kinds.docker import DockerServer, find_image
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.products.declaration import PRODUCTS, read_declaration
from dbdyno.servers.server import MachineProblem, Server, ServerProblem
from dbdyno.servers.snapshots.copying import METHOD, fingerprint, require_no_link, sync_tree, tree_bytes
from dbdyno.servers.snapshots.directories import Snapshot, remove_unused_snapshots
from dbdyno.servers.sources.installed import programs_folder
from dbdyno.servers.workspace import Lock, Workspace

# Incremented when the content of snapshots changes.
FORMAT = 2

# Number of most recently used snapshots that dbdyno keeps; it also keeps those in use.
SNAPSHOTS_MAX = 4

# Number of times that dbdyno creates a snapshot that something else removes or changes at once.
_ATTEMPTS = 3

# Upper estimates in bytes: a row of the OLTP tables with its index entries, and an empty data directory with
# its logs.
ROW_BYTES = 300
EMPTY_BYTES = 300_000_000

# The kinds of servers that dbdyno starts, which can create snapshots.
PRIVATE_KINDS: Mapping[str, type[LocalServer]] = {"local": LocalServer, "docker": DockerServer}

Report = Callable[[str], None]


class Snapshots:
    """The cache of snapshots in a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def obtain(
        self,
        experiment: Experiment,
        workload: Workload,
        variant: Variant,
        load: Callable[[Server], None],
        report: Report = lambda _: None,
    ) -> Snapshot:
        """The snapshot that `variant` uses for `workload`; it is created if the cache does not have it.

        To create a snapshot, dbdyno starts a server, and `load(server)` fills its schema. If
        `load` raises an exception, it is passed on and the snapshot is discarded. `report` receives a short
        text for each slow step. Raises ServerProblem.
        """
        inputs = self._list_inputs(experiment, workload, variant)
        key = _key(inputs)
        try:
            lock = Lock(self._workspace.snapshots / f"{key}.lock")
        except OSError as error:
            raise MachineProblem(
                f"{self._workspace.snapshots / key}.lock cannot be opened: {error.strerror}",
                "free some space, or remove it if it is a symbolic link",
                exit_code=4,
            ) from error
        try:
            if not lock.acquire(shared=True, wait=False):
                report("waiting for another dbdyno process that loads the same data")
                lock.acquire(shared=True)
            for _ in range(_ATTEMPTS):
                if (snapshot := self._open_cached(key, lock)) is not None:
                    return snapshot
                lock.acquire()
                if (snapshot := self._open_cached(key, lock)) is not None:
                    return snapshot
                self._build(inputs, variant, workload.rows, load, report)
                # Another process may remove it before this one has a shared lock.
            raise MachineProblem(
                f"{self._workspace.snapshots / key} changes or disappears as soon as it is complete",
                "end the program that changes it, or choose another results directory",
                exit_code=4,
            )
        except BaseException:
            lock.release()
            raise

    def find_bytes(self, experiment: Experiment, workload: Workload, variant: Variant) -> int | None:
        """The size of the snapshot for `obtain`; None if it does not exist. Another process may create or
        remove it afterwards.
        """
        key = _key(self._list_inputs(experiment, workload, variant))
        manifest = self._manifest(key)
        return None if manifest is None else int(manifest["bytes"])

    def _manifest(self, key: str) -> dict[str, Any] | None:
        """The content of snapshot.json; None if there is no such snapshot, or its files were changed."""
        directory = self._workspace.snapshots / key
        if not owned_folder.is_owned(directory, self._workspace.root):
            return None
        try:
            manifest: dict[str, Any] = json.loads((directory / "snapshot.json").read_text())
            is_complete = {"bytes", "made_of", "method"} <= manifest.keys()
            is_current = is_complete and manifest.get("fingerprint") == fingerprint(directory / "data")
        except (FileNotFoundError, ValueError, AttributeError):
            return None
        return manifest if is_current else None

    def _list_inputs(self, experiment: Experiment, workload: Workload, variant: Variant) -> dict[str, Any]:
        declaration = read_declaration(variant)
        product = declaration.product
        users = {}
        if isinstance(workload, ScriptWorkload):
            # The data of a script may depend on the number of users, which its `prepare` can read. The data
            # of a bundled workload depend on the number of tables instead, which `workload.data()` contains.
            users = {"users": max(point.connections for point in experiment.load.points())}
        after = {"variant_after": list(variant.data.after)} if variant.data.after else {}
        return {
            "format": FORMAT,
            "dbdyno": dbdyno.__version__,
            "product": product.name,
            "version": find_software(variant).key,
            "options": dict(sorted(declaration.init_options().items())),
            "data": {**workload.data(), **users, **after},
            "seed": experiment.design.seed,
        }

    def _open_cached(self, key: str, lock: Lock) -> Snapshot | None:
        directory = self._workspace.snapshots / key
        if self._manifest(key) is None:
            return None
        # A build holds an exclusive lock; to use the snapshot, a shared lock is enough. Another process may
        # have had the lock in between.
        lock.acquire(shared=True)
        if (manifest := self._manifest(key)) is None:
            return None
        # The time of last use decides which snapshots are kept.
        os.utime(directory / "snapshot.json")
        if self._workspace.removes:
            remove_unused_snapshots(self._workspace, SNAPSHOTS_MAX)
        return Snapshot(
            key, directory / "data", manifest["bytes"], manifest["made_of"], manifest["method"], lock
        )

    def _build(
        self,
        inputs: Mapping[str, Any],
        variant: Variant,
        rows: int,
        load: Callable[[Server], None],
        report: Report,
    ) -> None:
        key = _key(inputs)
        self._workspace.require_space(rows * ROW_BYTES + EMPTY_BYTES, f"a snapshot of {rows:,} rows")
        finished, root = self._workspace.snapshots / key, self._workspace.root
        unfinished = finished.with_name(f"{key}{owned_folder.UNFINISHED}")
        for directory in (finished, unfinished):
            if not owned_folder.remove(directory, root):
                raise MachineProblem(
                    f"{directory} is no snapshot of dbdyno (it has no mark {owned_folder.MARK}, or something "
                    "is mounted there)",
                    "remove it",
                    exit_code=4,
                )
        with closing(
            PRIVATE_KINDS[variant.server.kind](_loading_variant(variant), self._workspace, None)
        ) as server:
            report("creating an empty data directory")
            server.restore()
            server.start()
            report(f"loading {rows:,} rows" if rows else "creating the data")
            load(server)
            report("flushing / waiting for background writes")
            server.stop_for_snapshot()
            owned_folder.create(unfinished, root)
            try:
                server.give_data(unfinished / "data")
                sync_tree(unfinished)
                _write_manifest(unfinished, inputs)
                unfinished.rename(finished)
            finally:
                owned_folder.remove(unfinished, root)


def _write_manifest(directory: Path, inputs: Mapping[str, Any]) -> None:
    data = directory / "data"
    try:
        require_no_link(data)
    except OSError as error:
        raise ServerProblem(
            f"the loaded data cannot be kept: {error.strerror}", "create no tablespace outside of the data"
        ) from error
    manifest = {
        "made_of": inputs,
        "bytes": tree_bytes(data),
        "method": METHOD,
        "fingerprint": fingerprint(data),
    }
    _write_synced(directory / "snapshot.json", json.dumps(manifest, indent=1))


@dataclass(frozen=True)
class Software:
    """The server program of a variant."""

    # The line with which it names its version.
    version: str
    # Where it is: a path, or an image.
    place: str
    # The product and version that determine the files, and an image's content hash.
    key: str


def find_software(variant: Variant) -> Software:
    """The program that a private server of a variant would run. Raises ServerProblem."""
    if variant.server.kind == "docker":
        image, version = find_image(variant)
        return Software(version, f"image {image.name}", f"{image.id} {version}")
    product = PRODUCTS[str(variant.server.product)]
    binaries = product.binaries(programs_folder(variant.server))
    version = product.version(binaries)
    return Software(version, str(binaries.server), version)


def _key(inputs: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:20]


def _loading_variant(variant: Variant) -> Variant:
    """The variant that loads the data: the same software and file format, without the variant's tuning."""
    declaration = read_declaration(variant)
    spec = variant.server
    shared = {
        name: getattr(spec, name) for name in ("kind", "product", "version", "basedir", "image", "network")
    }
    settings: Mapping[str, Any] = {**declaration.product.loading_options, **declaration.init_options()}
    return Variant(name="snapshot", server=ServerSpec(**shared, variables=dict(settings)))


def _write_synced(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
