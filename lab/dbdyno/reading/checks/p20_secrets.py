"""P20: passwords do not belong on command lines, nor databases on the open internet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_PASSWORDS = ("mysql-password", "pgsql-password", "password")
_OTHER = re.compile(r"--master-user-password\s+\S|\bmysql\b.* -p\S|MYSQL_ROOT_PASSWORD=\S|PGPASSWORD=\S")
# What documents write in place of a password.
_PLACEHOLDER = re.compile(
    r"<.*>|x{3,}|\*+|\.{2,}|\$.*|pass(?:word|wd)?|yourpassword|비밀번호|密码|パスワード|\[.*\]", re.IGNORECASE
)
_OPEN = re.compile(r"(?:cidr|source-ranges|cidr_blocks)\W+0\.0\.0\.0/0")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for passwords in commands, and for addresses of everybody.

    Every user of a machine can read the arguments of its processes.
    """
    indexes = [call.first for call in reading.calls if _is_secret(call.options)]
    indexes += [index for index, text in reading.document.lines() if _OTHER.search(text)]
    if indexes:
        yield finding(
            reading,
            "P20",
            "note",
            compose("a password is on a command line"),
            indexes,
            fix=compose("Use an option file, a file of secrets or the environment"),
        )
    opened = [index for index, text in reading.document.lines() if _OPEN.search(text)]
    if opened:
        yield finding(
            reading, "P20", "note", compose("the server is open to every address of the internet"), opened
        )


def _is_secret(options: object) -> bool:
    assert isinstance(options, dict), "the options of a call"
    return any(
        name in options and options[name] and not _PLACEHOLDER.fullmatch(options[name]) for name in _PASSWORDS
    )


CHECK = DocumentCheck("P20", find)
