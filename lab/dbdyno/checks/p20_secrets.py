"""P20: passwords are not in files that others can read, nor in the experiment."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.finding import Finding
from dbdyno.text import compose

# A password in an argument of a command or in its environment, but not the name of a variable that has it.
_PASSWORD = re.compile(r"(?:--password|MYSQL_PWD|PGPASSWORD)[= ](?![$\s])\S", re.IGNORECASE)


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds passwords that other users can read.

    Catches a password that a published benchmark shows in its commands, and a file with a password that
    every user of the machine can read.

    Rule: a `password_file` must not be readable by the group or by others, and no command, argument or hook
    of the experiment may contain a password, because the experiment is stored with every run and other users
    can read the arguments of processes. Otherwise the finding is a warning, which does not quote the
    password. A URL with a password is an error of the experiment file.
    """
    assert moment is Moment.DESIGN, "P20 is registered for DESIGN only"
    for variant in context.experiment.variants:
        file = variant.server.password_file
        if file is None:
            continue
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            # The start of the server reports a file that is missing.
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield Finding(
                "P20",
                "warn",
                compose(
                    "other users of this machine can read the password file {file} (mode {mode})",
                    file=repr(str(file)),
                    mode=f"{mode:04o}",
                ),
                {"file": str(file), "mode": f"{mode:04o}"},
                variant.name,
                fix=compose("Run chmod 600 {file}", file=str(file)),
            )
    for key, text in _texts("", context.experiment.model_dump(mode="json")):
        if _PASSWORD.search(text):
            yield Finding(
                "P20",
                "warn",
                compose(
                    "{key} contains a password, which is stored with every run and visible to other users of "
                    "this machine",
                    key=key,
                ),
                {"key": key},
                fix=compose("Put it into a file that only you can read, or into an environment variable"),
            )


def _texts(key: str, value: object) -> Iterator[tuple[str, str]]:
    """The keys and texts of a document; the words of a list of texts as one text."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(f"{key}.{name}" if key else str(name), inner)
    elif isinstance(value, list) and not all(isinstance(one, str) for one in value):
        for number, inner in enumerate(value, start=1):
            yield from _texts(f"{key}[{number}]", inner)
    elif isinstance(value, list):
        yield key, " ".join(value)
    elif isinstance(value, str):
        yield key, value


CHECK = Check("P20", "Passwords are not readable by others", frozenset({Moment.DESIGN}), find, caveat="")
