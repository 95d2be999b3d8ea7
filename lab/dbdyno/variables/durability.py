"""The settings that decide what survives a crash, and which transactions see one another."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.experiment.quantities import Setting, as_text, parse_boolean, variable_name
from dbdyno.server_record import ServerRecord

# The variables in the order of their importance. Of two names of one variable each server has at least one.
NAMES = (
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_flush_method",
    "transaction_isolation",
    "tx_isolation",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "default_transaction_isolation",
)
OLD_NAMES = {"tx_isolation": "transaction_isolation"}
# Variable -> values that guarantee less than the default. A crash may then lose committed
# transactions or damage data; a lower level of isolation takes fewer locks.
_WEAKER: Mapping[str, frozenset[str]] = {
    "innodb_flush_log_at_trx_commit": frozenset({"0", "2"}),
    "innodb_flush_method": frozenset({"NOSYNC", "LITTLESYNC"}),
    "transaction_isolation": frozenset({"READ-COMMITTED", "READ-UNCOMMITTED"}),
    "innodb_doublewrite": frozenset({"OFF", "DETECT_ONLY"}),
    "fsync": frozenset({"OFF"}),
    "synchronous_commit": frozenset({"OFF"}),
    "full_page_writes": frozenset({"OFF"}),
}


def durability(server: ServerRecord, session: Mapping[str, Setting]) -> dict[str, str]:
    """Variable -> value, by the newer name; `session` are the variables that each connection of the load
    sets.
    """
    session_values = {variable_name(name): as_text(value) for name, value in session.items()}
    values = {**server.get("variables", {}), **session_values}
    by_name: dict[str, str] = {}
    for name in NAMES:
        if name in values:
            by_name.setdefault(OLD_NAMES.get(name, name), values[name])
    return by_name


def is_weaker(name: str, values: Mapping[str, str], product: str) -> bool:
    """Whether the value of a variable in `values` guarantees less than the product's default."""
    value = values[name]
    if name == "sync_binlog":
        # MariaDB's default is 0. Without a binary log the variable has no effect.
        return product == "mysql" and bool(parse_boolean(values.get("log_bin", "OFF"))) and value != "1"
    if parse_boolean(value) is False and name != "innodb_flush_log_at_trx_commit":
        value = "OFF"
    return value.upper() in _WEAKER.get(name, ())
