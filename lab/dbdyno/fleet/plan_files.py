"""The files that a plan names, for hosts without them: certificates, CSV files, recordings, scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dbdyno.fleet.carrier import FleetProblem
from dbdyno.problem import ExitCode

# The keys of a plan whose values are paths (schema/plan.schema.json).
_KEYS = frozenset({"ca", "certificate", "file", "key", "path", "server_public_key"})
_BYTES_MAX = 256 << 20


def read_files(plan: Mapping[str, Any]) -> dict[str, bytes]:
    """Path -> content of each file that the plan names. A script brings the other scripts of its folder,
    which it may load. Raises FleetProblem.
    """
    paths: set[Path] = set()

    def note(path: str) -> str:
        paths.add(Path(path))
        return path

    replace_paths(plan, note)
    for script in [path for path in paths if path.suffix == ".lua"]:
        paths.update(script.parent.glob("*.lua"))
    try:
        files = {str(path): path.read_bytes() for path in sorted(paths)}
    except OSError as error:
        raise FleetProblem(
            f"{error.filename} cannot be read: {error.strerror}", exit_code=ExitCode.USAGE
        ) from error
    if (size := sum(map(len, files.values()))) > _BYTES_MAX:
        raise FleetProblem(
            f"the files of the workload have {size >> 20} MB; a fleet sends at most {_BYTES_MAX >> 20} MB to "
            "each host",
            "Use shorter files, or one load generator",
            ExitCode.USAGE,
        )
    return files


def name_on_host(path: str) -> str:
    """The name of a sent file: files of one folder stay together."""
    return path.lstrip("/")


def replace_paths(value: Any, path_of: Callable[[str], str], key: str = "") -> Any:
    """A plan with `path_of(path)` for the path of each file of this machine."""
    if isinstance(value, Mapping):
        return {name: replace_paths(one, path_of, name) for name, one in value.items()}
    if isinstance(value, list):
        return [replace_paths(one, path_of, key) for one in value]
    is_file = key in _KEYS and isinstance(value, str) and value.startswith("/") and Path(value).is_file()
    return path_of(value) if is_file else value
