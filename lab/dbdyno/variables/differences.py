"""Server variables whose values differ between the variants, by the reason of the difference.

A variable may be declared in the experiment file, it may contain a path or port, which differ between any
two servers, or nobody has set it, so that its value is that of the version. All other differences are
unintended and could explain the result, so check P05 reports them and the report lists them separately.
Those that decide what survives a crash, and which transactions see one another, are always shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from dbdyno.experiment.quantities import Setting, as_text, parse_boolean, variable_name
from dbdyno.finding import FreeForm
from dbdyno.server_record import ServerRecord
from dbdyno.variables import versions

Kind = Literal["declared", "location", "default", "other"]
# Variables that identify a server, its address or its history; they differ between any two servers.
IDENTITY_VARIABLES = frozenset(
    {"admin_port", "extra_port", "hostname", "server_uid", "server_uuid", "server_id", "basedir"}
    | {"datadir", "tmpdir", "socket", "pid_file", "log_error", "init_file", "port", "bind_address"}
    | {
        "character_sets_dir",
        "lc_messages_dir",
        "plugin_dir",
        "listen_addresses",
        "mysqlx_port",
        "cluster_name",
        "report_host",
        "wsrep_node_name",
    }
    | {"gtid_executed", "gtid_purged", "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos"}
)
# Origins of values that the server itself has chosen; "client" and "session" are settings of the reader.
_OWN_ORIGINS = frozenset({"auto", "compiled", "default", "override", "client", "session"})
# Minimum length of a path or port to be recognised within a value; shorter ones would match unrelated text.
LENGTH_MIN = 4


@dataclass(frozen=True)
class Difference:
    """One variable, with its value for each variant; None if the variant's server does not have it."""

    name: str
    kind: Kind
    values: Mapping[str, str | None]


@dataclass(frozen=True)
class _Row:
    """What is compared: a variable, one flag of it, or a variable that has other names in a later version."""

    names: tuple[str, ...]
    flag: str = ""
    renaming: versions.Renaming | None = None

    @property
    def title(self) -> str:
        if self.renaming is not None:
            return f"{' x '.join(self.renaming.old)} / {', '.join(self.renaming.new)}"
        return f"{self.names[0]}: {self.flag}" if self.flag else self.names[0]

    def value(self, variables: Mapping[str, str]) -> str | None:
        """The value as text; None if the server does not have the variable."""
        values = [variables[name] for name in self._names_in(variables)]
        if self.flag and values:
            return _flags(values[0]).get(self.flag)
        return " x ".join(values) if values else None

    def _names_in(self, variables: Mapping[str, str]) -> Sequence[str]:
        """The names of this row that a server has; the new ones if it has them."""
        if self.renaming is None:
            return [name for name in self.names if name in variables]
        new = [name for name in self.renaming.new if name in variables]
        return new or [name for name in self.renaming.old if name in variables]

    def is_own_choice(self, server: ServerRecord, record: ServerRecord) -> bool:
        """Whether nobody has set the variable: it has the default of the version, or the server chose it."""
        variables, origins = server.get("variables", {}), server.get("origins", {})
        for name in self._names_in(variables):
            value = _flags(variables[name]).get(self.flag) if self.flag else variables[name]
            product, version = server.get("product", ""), server.get("version", "")
            is_absent = name not in record.get("variables", {})
            if value is None or (
                name in _set_by_dbdyno(server) and (is_absent or name in _set_by_dbdyno(record))
            ):
                continue
            if versions.is_default(product, version, name, value, self.flag):
                continue
            is_unset = bool(origins) and origins.get(name, "default") in _OWN_ORIGINS
            if not is_unset and not (self.flag and name in _declared(server)):
                return False
        return True


def differences(
    servers: Mapping[str, ServerRecord], order: Sequence[str], changed: Collection[str] = ()
) -> list[Difference]:
    """All differing variables in alphabetical order. `servers` is by variant; each variant is compared with
    the first. `changed` are the variants whose servers are declared to differ in more than variables.
    """
    kinds: dict[_Row, list[Kind]] = {}
    for name in order[1:]:
        for row, kind in _pair(servers[order[0]], servers[name], is_changed=name in changed):
            kinds.setdefault(row, []).append(kind)
    variables = {name: servers[name].get("variables", {}) for name in order}
    by_reason: tuple[Kind, ...] = ("other", "declared", "default", "location")
    rows = (
        Difference(
            row.title,
            min(of_row, key=by_reason.index),
            {name: row.value(variables[name]) for name in order},
        )
        for row, of_row in kinds.items()
    )
    return sorted(rows, key=lambda difference: difference.name)


def _pair(base: ServerRecord, record: ServerRecord, *, is_changed: bool) -> Iterator[tuple[_Row, Kind]]:
    """The differing rows of two servers."""
    declared = _declared(base) | _declared(record)
    is_changed |= _software(base) != _software(record)
    # TLS needs options that dbdyno sets on one of the servers.
    is_changed |= _set_by_dbdyno(base) != _set_by_dbdyno(record)
    rows = list(_rows(base, record))
    declares_difference = any(not declared.isdisjoint(row.names) for row in rows)
    for row in rows:
        yield row, _kind(row, base, record, is_changed or declares_difference)


def _rows(base: ServerRecord, record: ServerRecord) -> Iterator[_Row]:
    base_name, two = _without_suffix(base), _without_suffix(record)
    differing = {name for name in base_name.keys() | two.keys() if base_name.get(name) != two.get(name)}
    product = base.get("product", "")
    renamings = versions.renamings(product) if product == record.get("product") else ()
    if _software(base) == _software(record):
        renamings = ()
    for renaming in renamings:
        for before, after in ((base_name, two), (two, base_name)):
            old, new = (
                [s[name] for name in names if name in s]
                for names, s in ((renaming.old, before), (renaming.new, after))
            )
            names = {*renaming.old, *renaming.new}
            is_renamed = len(old) == len(renaming.old) and len(new) == len(renaming.new)
            if is_renamed and names <= differing and not names & before.keys() & after.keys():
                differing -= names
                if not renaming.is_same(old, new):
                    yield _Row(tuple(sorted(names)), renaming=renaming)
    for name in differing:
        flags = [_flags(values.get(name, "")) for values in (base_name, two)]
        if not all(flags):
            yield _Row((name,))
            continue
        for flag in flags[0].keys() | flags[1].keys():
            if flags[0].get(flag) != flags[1].get(flag):
                yield _Row((name,), flag)


def _without_suffix(server: ServerRecord) -> dict[str, str]:
    """The variables, with the version that does not depend on the logs that are on."""
    variables = dict(server.get("variables", {}))
    if "version" in variables:
        variables["version"] = versions.without_log_suffix(variables["version"])
    return variables


def _kind(row: _Row, base: ServerRecord, record: ServerRecord, has_cause: bool) -> Kind:
    """`has_cause`: the versions or declared settings differ, from which a server computes other values."""
    servers = (base, record)
    if not (_declared(base) | _declared(record)).isdisjoint(row.names):
        in_text = any(
            row.flag in _flags(text)
            for server in servers
            for name, text in server.get("declared", {}).items()
            if variable_name(name) in row.names
        )
        if not row.flag or in_text:
            return "declared"
    if _is_location(row, servers):
        return "location"
    product, of_versions = base.get("product", ""), [server.get("version", "") for server in servers]
    is_other_version = _software(base) != _software(record)
    if is_other_version and row.names[0].startswith(("version", "server_version", "innodb_version")):
        return "default"
    if product == record.get("product", "") and versions.depends_on_machine(
        product, of_versions, row.names[0]
    ):
        return "other"
    if has_cause and all(
        row.is_own_choice(*pair) or _is_only_of_version(row, *pair) for pair in (servers, servers[::-1])
    ):
        return "default"
    return "other"


def _is_only_of_version(row: _Row, server: ServerRecord, record: ServerRecord) -> bool:
    """Whether only other software than that of `other` has the variable: another product, or another version
    if no origin says who set it.
    """
    if row.value(record.get("variables", {})) is not None or _software(server) == _software(record):
        return False
    return server.get("product") != record.get("product") or not server.get("origins")


def _is_location(row: _Row, servers: Sequence[ServerRecord]) -> bool:
    if row.names[0] in IDENTITY_VARIABLES:
        return True
    values = [row.value(server.get("variables", {})) or "" for server in servers]
    without = [_without_location(text, server) for text, server in zip(values, servers, strict=True)]
    # A path of one server, where the other one has none.
    is_path = any(text != value for text, value in zip(without, values, strict=True))
    return is_path and len({text for text in without if text}) == 1


def _without_location(value: str, server: ServerRecord) -> str:
    """`value` with the server's paths, ports and host name replaced by placeholders."""
    facts = {**server.get("identity", {}), **_named_places(server.get("variables", {}))}
    locations = {key: str(text).rstrip("/") for key, text in facts.items()}
    for key, text in list(locations.items()):
        if text.startswith("/"):
            # Sockets, logs and temporary files have the same parent as the data directory.
            locations[f"{key}'s folder"] = str(PurePosixPath(text).parent)
    # Longest first, because a path may start with another one.
    for key, text in sorted(locations.items(), key=lambda item: -len(item[1])):
        if text and (len(text) >= LENGTH_MIN or value.startswith((f"{text}.", f"{text}-"))):
            value = value.replace(text, f"<{key}>")
    return value


def _named_places(variables: Mapping[str, str]) -> FreeForm:
    """Where the programs are, and the host name, after which servers name their logs."""
    places = {name: variables.get(name, "").rstrip("/") for name in ("basedir", "hostname")}
    return {name: text for name, text in places.items() if text}


def _flags(value: str) -> dict[str, str]:
    """The flags of a value like `a=on,b=off`; {} for other values."""
    pairs = [part.partition("=") for part in value.split(",")]
    is_list = all(sign and text in ("on", "off", "default") for _, sign, text in pairs)
    return {name.strip(): text for name, _, text in pairs} if is_list else {}


def _software(server: ServerRecord) -> tuple[str, tuple[int, ...]]:
    return server.get("product", ""), versions.version_key(server.get("version", ""))


def _declared(server: ServerRecord) -> frozenset[str]:
    """The declared variables by all of their names."""
    names = frozenset(map(variable_name, server.get("declared", {})))
    others = versions.other_names(server.get("product", ""))
    return names.union(*(others.get(name, ()) for name in names))


def _set_by_dbdyno(server: ServerRecord) -> frozenset[str]:
    return frozenset(server.get("set_by_dbdyno", {}))


# The variables in the order of their importance. Of two names of one variable each server has at least one.
DURABILITY_NAMES = (
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
OLD_DURABILITY_NAMES = {"tx_isolation": "transaction_isolation"}
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
    for name in DURABILITY_NAMES:
        if name in values:
            by_name.setdefault(OLD_DURABILITY_NAMES.get(name, name), values[name])
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
