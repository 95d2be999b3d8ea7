"""The options of a server and the variables that they set, which have several spellings.

"Program Option Modifiers" in MySQL's manual; MariaDB also accepts every unique beginning of a name.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.experiment.quantities import Setting, as_text, is_equal, parse_boolean, variable_name
from dbdyno.variables import versions

# Beginnings of options that switch a variable, each with whether they switch it on.
_SWITCHES = {"skip_": False, "disable_": False, "enable_": True}
# Options that switch a variable on, and whose value names files.
_NAMES_OF_FILES = frozenset({"log_bin"})
# Values of variables in the order of the numbers that options accept for them.
_ISOLATION = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")
_NUMBERED = {
    "completion_type": ("NO_CHAIN", "CHAIN", "RELEASE"),
    "concurrent_insert": ("NEVER", "AUTO", "ALWAYS"),
    "query_cache_type": ("OFF", "ON", "DEMAND"),
    "binlog_format": ("MIXED", "STATEMENT", "ROW"),
    "delay_key_write": ("OFF", "ON", "ALL"),
    "tx_isolation": _ISOLATION,
    "transaction_isolation": _ISOLATION,
}
# What PostgreSQL reports for `on`.
_MEANINGS_OF_ON = {"wal_compression": "pglz"}


def variable_of(
    option: str, value: Setting, variables: Mapping[str, str], product: str
) -> tuple[str, Setting] | None:
    """The variable that an option sets, and the value that it sets; None if the server has no such variable.

    An option without a value has the value "".
    """
    name = variable_name(option)
    for one in (name, *sorted(versions.other_names(product).get(name, ()))):
        if one in variables:
            is_bare = as_text(value) == "" and _is_switch(one, variables)
            return one, True if is_bare else value
    for beginning, switches_on in _SWITCHES.items():
        switched = name.removeprefix(beginning)
        if switched != name and _is_switch(switched, variables):
            is_on = as_text(value) == "" or parse_boolean(as_text(value)) is not False
            return switched, is_on == switches_on
    longer = [one for one in variables if one.startswith(name)] if product == "mariadb" else []
    return (longer[0], value) if len(longer) == 1 else None


def is_effective(name: str, value: Setting, variables: Mapping[str, str]) -> bool:
    """Whether a variable of the server has the value that an option sets."""
    effective = variables[name]
    if is_equal(name, value, effective) or _is_same_file(as_text(value), effective, variables):
        return True
    if as_text(value) in map(str, range(len(_NUMBERED.get(name, ())))):
        return _NUMBERED[name][int(as_text(value))] == effective
    if name in _MEANINGS_OF_ON and parse_boolean(as_text(value)):
        return effective == _MEANINGS_OF_ON[name]
    is_name = name in _NAMES_OF_FILES and parse_boolean(as_text(value)) is None
    return is_name and effective.upper() == "ON"


def _is_switch(name: str, variables: Mapping[str, str]) -> bool:
    return variables.get(name, "").upper() in {"ON", "OFF"}


def _is_same_file(declared: str, effective: str, variables: Mapping[str, str]) -> bool:
    """Whether a declared relative path is the `effective` path: the server completes it by its data directory
    or by the directory of its programs.
    """
    folders = (variables.get(name, "") for name in ("datadir", "data_directory", "basedir"))
    relative = declared.removeprefix("./").rstrip("/")
    return bool(relative) and any(
        folder and effective.rstrip("/") == f"{folder.rstrip('/')}/{relative}" for folder in folders
    )
