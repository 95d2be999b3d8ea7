"""The commits of a Git repository, and servers that the user's command builds from them.

::

    <folder>/.dbdyno            the mark of dbdyno (`owned_folder`)
    <folder>/source/            a clone that shares the objects of the repository; the command runs in it
    <folder>/<commit>/          what the command has installed; its variable DBDYNO_BUILD
    <folder>/<commit>.done      the command that has built it
    <folder>/<commit>.log       its output
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.servers import owned_folder, user_commands
from dbdyno.servers.server import MachineProblem, ServerProblem

# Digits of the hash that is the name of a commit.
_DIGITS = 12


class BuildProblem(ServerProblem):
    """A commit cannot be built."""


@dataclass(frozen=True)
class Build:
    """How a commit becomes a server."""

    argv: tuple[str, ...]
    timeout_s: float


def list_commits(repository: Path, good: str, bad: str) -> list[str]:
    """The commits from good to bad, both included, along the first parents. Raises ServerProblem."""
    first, last = (_commit(repository, name) for name in (good, bad))
    listed = _git(repository, "rev-list", "--first-parent", "--reverse", f"{first}..{last}") or ""
    commits = listed.split()
    # The parent of the first one is the good commit only if that is on the path along the first parents.
    parent = (_git(repository, "rev-parse", f"{commits[0]}^") or "").strip() if commits else ""
    if parent != first:
        raise ServerProblem(
            f"{good} is not among the first parents of {bad}",
            "name the older commit as --good; after a merge, name the commit where the branch began",
        )
    return [commit[:_DIGITS] for commit in (first, *commits)]


def _commit(repository: Path, name: str) -> str:
    """The hash of a commit, tag or branch. Raises ServerProblem."""
    commit = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not commit:
        raise ServerProblem(f"{repository} has no commit {name}", "name a commit, a tag or a branch")
    return commit.strip()


def subject(repository: Path, commit: str) -> str:
    """The first line of a commit's message."""
    return (_git(repository, "log", "-1", "--format=%s", commit) or "").strip()


def build(repository: Path, commit: str, how: Build, folder: Path) -> Path:
    """The folder with the server of a commit, which is built unless it is there. Raises BuildProblem if the
    command fails, and ServerProblem if the commit cannot be checked out.
    """
    target, done, root = folder / commit, folder / f"{commit}.done", folder.parent
    mark = json.dumps(how.argv)
    if not owned_folder.is_owned(folder, root):
        folder.parent.mkdir(parents=True, exist_ok=True)
        owned_folder.create(folder, root)
    is_built = target.is_dir() and done.is_file() and done.read_text() == mark
    if is_built and not target.is_symlink():
        return target
    source, origin = folder / "source", _root(repository)
    if source.is_symlink() or (source.is_dir() and _origin(source) != origin):
        _remove(source, folder)
    try:
        # The mark would be that of what this build replaces.
        done.unlink(missing_ok=True)
        _remove(target, folder)
        target.mkdir()
    except OSError as error:
        raise MachineProblem(
            f"{folder} cannot be written: {error.strerror}", "choose another folder with --results"
        ) from error
    if not source.is_dir():
        _require_git(folder, "clone", "--quiet", "--shared", "--no-checkout", origin, str(source))
    _require_git(source, "checkout", "--quiet", "--force", "--detach", commit)
    # Files that Git ignores stay, so that a build system compiles only what has changed.
    _require_git(source, "clean", "-ffdq")
    result = user_commands.run(
        _command(how.argv, source), _environment(commit, target, source), how.timeout_s, source
    )
    log = folder / f"{commit}.log"
    log.unlink(missing_ok=True)
    log.write_text(result.output + result.errors)
    if failure := result.failure():
        raise BuildProblem(f"{commit} does not build: {failure}", f"its output is in {folder}/{commit}.log")
    done.write_text(mark)
    return target


def _remove(path: Path, folder: Path) -> None:
    """Remove an entry of the folder with the mark. Raises ServerProblem if it is a symbolic link."""
    if path.is_symlink() or not owned_folder.remove(path, folder.parent, marked=folder):
        raise ServerProblem(f"{path} is not a folder of dbdyno", "remove it, if it is a symbolic link")


def _command(argv: Sequence[str], source: Path) -> list[str]:
    """The command, whose program may be a file of the current folder or of the commit."""
    program, *arguments = argv
    if "/" in program:
        program = str(
            next((entry for entry in (Path.cwd() / program, source / program) if entry.is_file()), program)
        )
    return [program, *arguments]


def _root(repository: Path) -> str:
    """The root of the repository, of which the folder may be a part. A bare one has no working tree."""
    root = (_git(repository, "rev-parse", "--show-toplevel") or "").strip()
    return root or str(repository.resolve())


def _origin(source: Path) -> str:
    """The repository of which a folder is a clone."""
    return (_git(source, "config", "remote.origin.url") or "").strip()


def _environment(commit: str, target: Path, source: Path) -> dict[str, str]:
    """The environment of dbdyno, because a build may need any variable."""
    environment = {"DBDYNO_COMMIT": commit, "DBDYNO_BUILD": str(target), "DBDYNO_SOURCE": str(source)}
    return {**os.environ, **environment}


def _require_git(folder: Path, *arguments: str) -> None:
    if _git(folder, *arguments) is None:
        raise ServerProblem(f"git {' '.join(arguments)} failed in {folder}", "repeat this command to see why")


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of a Git command; None if it fails. Raises ServerProblem without Git or repository."""
    argv: Sequence[str] = ("git", "-C", str(folder), *arguments)
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ServerProblem("there is no git on PATH", "install git") from error
    if "not a git repository" in result.stderr or "cannot change to" in result.stderr:
        raise ServerProblem(f"{folder} is not a Git repository", "name it with --repository DIR")
    return result.stdout if result.returncode == 0 else None
