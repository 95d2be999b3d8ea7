"""Translates documents into an experiment: its workloads and loads are those of the calls, and it has a
variant for each variant of the document that differs in settings. A command line is one, too.

The names of a bundled workload's options are those of its model. What has no counterpart is listed, and no
password gets into the experiment or into a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

from dbdyno.checks.non_deterministic import find_conditions
from dbdyno.experiment.dialect import MYSQL
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.workload import OltpWorkload
from dbdyno.problem import Problem
from dbdyno.reading.attribution import differing_settings
from dbdyno.reading.call import PROGRAMS, Call, find_calls, whole_number
from dbdyno.reading.document import Document
from dbdyno.reading.limits import (
    HOSTS_MAX,
    LOADS_MAX,
    NOTES_MAX,
    SQL_TOTAL_MAX,
    WORKLOADS_MAX,
    linear,
    sentence,
)
from dbdyno.reading.reading import Reading, read
from dbdyno.reading.setting import POSTGRESQL

# Options with the same meaning as a key, under any of their names.
_LOAD = {
    "threads": "connections",
    "num-threads": "connections",
    "time": "duration",
    "max-time": "duration",
    "warmup-time": "warmup",
    "rate": "rate",
    "tx-rate": "rate",
}
_KEYS = {
    "rand-type": "distribution",
    "rand-spec-iter": "iterations",
    "rand-spec-pct": "percent",
    "rand-spec-res": "hot_percent",
    "rand-pareto-h": "h",
    "rand-zipfian-exp": "exponent",
}
# Options of sysbench itself, which a script does not declare.
_FRACTION = re.compile(r"\d{1,20}\.\d{1,20}")
_OUTPUT = (
    *("report-interval", "report-checkpoints", "percentile", "histogram", "verbosity", "debug", "validate"),
    *("events", "max-requests", "forced-shutdown", "config-file"),
    *("db-debug", "mysql-debug", "mysql-ignore-errors"),
)
# Options that are in the file otherwise.
_PLACED = ("db-driver", "rand-seed", "mysql-ssl", "oltp-read-only")
_ADDRESS = ("host", "port", "socket", "user", "password", "db")
_NOT_IN_NAMES = linear(r"[^A-Za-z0-9._]+")
_NAME_MAX = 60
# Commands that change a server or what it runs on.
_OTHER_COMMAND = linear(
    r"\b(?:set\s++(?:global|persist)|alter\s++system)\b|"
    r"(?:^|[\s;&|(\"'])(?:mysql|mariadb|psql|mysqladmin|mariadb-admin|pg_ctl|pg_ctlcluster|mysqld|"
    r"mysqld_safe|mariadbd|postgres|"
    r"systemctl|service|docker|podman|kubectl|sysctl|taskset|numactl|tc|wrk|ycsb|hammerdbcli|tpcc_start|"
    r"go-tpc)\s",
    re.IGNORECASE,
)
_SHOWN_MAX = 80
# sysbench's tests of the machine.
_BUILTIN = ("cpu", "memory", "threads", "mutex", "fileio")
_BOOLEANS = {
    "on": True,
    "true": True,
    "1": True,
    "yes": True,
    "": True,
    "off": False,
    "false": False,
    "0": False,
}


@dataclass
class Translation:
    """An experiment document, and what a user must know about it, one sentence each."""

    document: dict[str, Any]
    notes: list[str]


def is_command(text: str) -> bool:
    """Whether the text is a command line of a benchmark program, not a path."""
    words = text.split()
    return len(words) > 1 and any(Path(word).name in PROGRAMS for word in words)


def translate_document(document: Document, folder: Path) -> Translation:
    """The experiment of a command line, or of a shell script with its variables and loops. Lua scripts are
    relative to `folder`. Raises Problem if it calls no workload of a database.
    """
    calls = [call for call in find_calls(document) if call.tool == "sysbench"]
    if not calls:
        return translate_reading(read(document))
    translation = _translate(calls, folder)
    translation.notes += _lines_left_out(document)
    translation.notes += [f"line {entry.line}: {sentence(entry)}" for entry in document.left_out]
    return translation


def _translate(calls: Sequence[Call], folder: Path) -> Translation:
    """One experiment for all runs of sysbench; the other calls only count if there is no run. Raises
    Problem.
    """
    calls = [call for call in calls if call.test]
    runs = [call for call in calls if call.phase == "run"] or calls
    runs = [call for call in runs if call.test not in _BUILTIN]
    if not runs:
        named = ", ".join(sorted({call.test for call in calls})) or "no test"
        raise Problem(
            f"--from: this calls sysbench with {named}, but with no workload of a database",
            "Name a workload, as in sysbench oltp_read_write --threads=16 run; dbdyno sysbench runs the "
            "tests of the machine",
        )
    notes: dict[str, None] = {}
    load: dict[str, Any] = {}
    # By their texts, because every call may have another one.
    workloads: dict[str, dict[str, Any]] = {}
    left: dict[str, None] = {}
    for call in runs:
        workload = _workload(call, folder, left, notes)
        if len(workloads) < WORKLOADS_MAX:
            workloads.setdefault(repr(workload), workload)
        elif repr(workload) not in workloads:
            notes[f"the file has the first {WORKLOADS_MAX} different workloads of the calls"] = None
        notes |= {f"{word} is not known here": None for word in call.unknown}
        for name, key in _LOAD.items():
            if name in call.options and len(load.get(key, ())) < LOADS_MAX:
                load.setdefault(key, {}).setdefault(call.options[name], None)
    document: dict[str, Any] = {
        "experiment": {"name": "from-sysbench"},
        "workload": _with_labels(list(workloads.values())),
        "load": _load(load, notes),
        "design": {"state": "preserve"},
        "variant": _variants(runs, notes),
    }
    if len(document["variant"]) == 1:
        # One measurement of each load, as in the script.
        document["design"]["blocks"] = 1
    if left:
        notes[_without_counterpart(left)] = None
    listed = list(notes)
    if len(listed) > NOTES_MAX:
        listed = [*listed[:NOTES_MAX], f"there are {len(listed) - NOTES_MAX:,} more notes like these"]
    listed.append(
        "dbdyno loads the tables itself and drops them at the end; tables that sysbench has prepared in this "
        "database must be dropped first (sysbench … cleanup)"
    )
    return Translation(document, listed)


def _without_counterpart(options: Mapping[str, None]) -> str:
    more = f" and {len(options) - NOTES_MAX:,} others" if len(options) > NOTES_MAX else ""
    return "these options have no counterpart: " + ", ".join(list(options)[:NOTES_MAX]) + more


def _variants(runs: Sequence[Call], notes: dict[str, None]) -> list[dict[str, Any]]:
    """A variant for each server of the calls."""
    servers: dict[str, dict[str, Any]] = {}
    tests: dict[str, set[str]] = {}
    for call in runs:
        server = _server(call, notes)
        if len(servers) >= HOSTS_MAX and repr(server) not in servers:
            notes[f"the file has the first {HOSTS_MAX} servers of the calls"] = None
            continue
        servers.setdefault(repr(server), server)
        tests.setdefault(repr(server), set()).add(call.test)
    if len(servers) == 1:
        return [{"name": "server", **server} for server in servers.values()]
    if len({frozenset(test) for test in tests.values()}) > 1:
        notes["the calls run other tests on each server; the file runs all of them on all servers"] = None
    addresses = [server["server"]["url"].partition("@")[2] for server in servers.values()]
    for names in (
        [address.partition(":")[0] for address in addresses],
        [address.partition("/")[0] for address in addresses],
    ):
        if len(set(names)) == len(names):
            break
    else:
        names = addresses
    return [
        {"name": f"{_NOT_IN_NAMES.sub('-', name)[:_NAME_MAX].strip('-.')}", **server}
        for name, server in zip(names, servers.values(), strict=True)
    ]


def _lines_left_out(document: Document) -> list[str]:
    """The lines of a script that do something else to a server, or run another benchmark."""
    calls = list(find_calls(document))
    others = {call.first: f"the call of {call.tool}" for call in calls if call.tool != "sysbench"}
    occupied = {index for call in calls for index in range(call.first, call.last + 1)}
    for index, text in document.lines():
        if index not in occupied and not text.lstrip().startswith("#") and _OTHER_COMMAND.search(text):
            others[index] = text.strip()[:_SHOWN_MAX]
        if len(others) > NOTES_MAX:
            break
    return [f"line {document.numbers[index]} is left out: {what}" for index, what in sorted(others.items())][
        :NOTES_MAX
    ]


def _workload(call: Call, folder: Path, left: dict[str, None], notes: dict[str, None]) -> dict[str, Any]:
    """The [[workload]] of a call; options that are left are added to `left`."""
    stem = call.test
    is_bundled = stem in get_args(OltpName)
    workload: dict[str, Any] = {"name": stem}
    if stem == "oltp" and not is_bundled:
        is_read_only = _BOOLEANS.get(call.options.get("oltp-read-only", "off").lower(), False)
        is_bundled, workload = True, {"name": "oltp_read_only" if is_read_only else "oltp_read_write"}
        name = workload["name"]
        notes[f"oltp of sysbench 0.5 is {name} here, whose transaction has other statements"] = None
    if not is_bundled:
        path = Path(call.path if call.path.endswith(".lua") else f"{call.path}.lua")
        workload = {"script": str(path if path.is_absolute() else (folder / path)), "options": {}}
    keys: dict[str, Any] = {}
    for name, text in call.options.items():
        field = name.removeprefix("oltp-").replace("-", "_")
        field = {"tables_count": "tables"}.get(field, field)
        if name in _LOAD or _address(name) or name in _PLACED:
            continue
        if "$" in text:
            notes[f"the value of --{name} is not known here: {text}"] = None
        elif name in _KEYS:
            keys[_KEYS[name]] = _value(text)
        elif name == "db-ps-mode":
            workload |= {"statements": "text"} if text == "disable" else {}
        elif is_bundled and field in OltpWorkload.model_fields and field not in ("name", "label", "keys"):
            kind = OltpWorkload.model_fields[field].annotation
            workload[field] = _BOOLEANS.get(text.lower(), text) if kind is bool else _value(text)
        elif is_bundled or name in _OUTPUT:
            left[f"--{name}={text}" if text and "pass" not in name else f"--{name}"] = None
        else:
            workload["options"][name.replace("-", "_")] = _value(text)
    # The default of sysbench 1.0.
    keys.setdefault("distribution", "special")
    workload["keys"] = keys if len(keys) > 1 else keys["distribution"]
    return workload


def _with_labels(workloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Workloads of one name get labels with a number."""
    names = [entry.get("name", entry.get("script")) for entry in workloads]
    for number, workload in enumerate(workloads, start=1):
        title = str(workload.get("name") or Path(workload["script"]).stem)
        if names.count(workload.get("name", workload.get("script"))) > 1:
            workload["label"] = f"{title}-{number}"
    return workloads


def _load(table: Mapping[str, Mapping[str, None]], notes: dict[str, None]) -> dict[str, Any]:
    """The [load] of the values of all calls."""
    load: dict[str, Any] = {"connections": [1], "duration": "10s"}
    for key, texts in table.items():
        numbers = [number for text in texts if isinstance(number := _value(text), int) and number > 0]
        unknown = [text for text in texts if not isinstance(_value(text), int)]
        notes |= {f"load.{key}: the value {text} is not known here": None for text in unknown}
        if not numbers:
            continue
        if key in ("connections", "rate"):
            load[key] = sorted(set(numbers))
        else:
            load[key] = f"{max(numbers)}s"
            if len(set(numbers)) > 1:
                notes[f"load.{key}: the calls have several values; the longest is used"] = None
    if "rate" in load and len(load["connections"]) > 1:
        notes[f"with a rate, connections is one number; of {load['connections']} the largest is used"] = None
        load["connections"] = [max(load["connections"])]
    return load


def _server(call: Call, notes: dict[str, None]) -> dict[str, Any]:
    """The server of a call: a URL without the password."""
    driver = "pgsql" if call.options.get("db-driver") == "pgsql" else "mysql"
    if "db-driver" not in call.options and any(name.startswith("pgsql-") for name in call.options):
        driver = "pgsql"
    texts = {name: call.options.get(f"{driver}-{name}", "") for name in _ADDRESS}
    unknown = [f"--{driver}-{name}" for name, text in texts.items() if "$" in text and name != "password"]
    if unknown:
        notes[f"the value of {', '.join(unknown)} is not known here: correct the URL"] = None
    values = {name: text for name, text in texts.items() if text and "$" not in text}
    if "password" in call.options or texts["password"]:
        notes[
            f"the password (--{driver}-password) is not in this file: put it into the environment variable "
            "DBDYNO_PASSWORD, or name a file with password_file; every user of the machine can read a "
            "password on a command line"
        ] = None
    default = "5432" if driver == "pgsql" else "3306"
    host, port = values.get("host", "127.0.0.1"), values.get("port", default)
    # Several hosts or ports are used in turn.
    places = [
        f"{entry}:{port_text}" for entry in host.split(",") for port_text in port.split(",")[:HOSTS_MAX]
    ][:HOSTS_MAX]
    if len(places) == HOSTS_MAX:
        notes[f"at most {HOSTS_MAX} hosts and ports of a call are in the file"] = None
    where = ",".join(places)
    user, database = (quote(values.get(key, "sbtest"), safe="") for key in ("user", "db"))
    scheme = "postgresql" if driver == "pgsql" else "mysql"
    socket = f"?socket={quote(values['socket'])}" if "socket" in values else ""
    server: dict[str, Any] = {"kind": "remote", "url": f"{scheme}://{user}@{where}/{database}{socket}"}
    ssl = call.options.get("mysql-ssl", "off").lower()
    session = {"session": {"tls": "required"}} if ssl in ("on", "required") else {}
    return {"server": server, **session}


def _address(name: str) -> bool:
    return any(name == f"{driver}-{part}" for driver in ("mysql", "pgsql") for part in _ADDRESS)


def _value(text: str) -> int | float | str:
    """A number, also with a unit of sysbench (K, M, G), or the text."""
    if (number := whole_number(text)) is not None:
        return number
    return float(text) if _FRACTION.fullmatch(text) else text


_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
# pgbench's built-in scripts, by the names of its option and of its output.
_PGBENCH = {"tpcb-like": "tpcb", "": "tpcb", "simple-update": "tpcb", "select-only": "micro/point-query"}
# Options of pgbench that are in the file, the numbers only if they are known, and those that change nothing.
_PGBENCH_NUMBERS = ("client", "time")
_PGBENCH_READ = ("select-only", "skip-some-updates", "builtin", "file", "no-vacuum", "progress", "jobs")


def translate_reading(reading: Reading) -> Translation:
    """The experiment, and what a user must know about it. Raises Problem if the document calls nothing that
    dbdyno can measure.
    """
    runs = [call for call in reading.calls if call.phase != "prepare"] or reading.calls
    tools = {call.tool for call in runs}
    if "sysbench" in tools:
        translation = _translate([call for call in reading.calls if call.tool == "sysbench"], reading.folder)
        _use_loaded_rows(reading, translation)
    elif tools & {"mysqlslap", "mariadb-slap"}:
        translation = _of_slap(reading, [call for call in runs if call.options.get("query")])
    elif "pgbench" in tools:
        translation = _of_pgbench([call for call in runs if call.tool == "pgbench"])
    else:
        raise Problem(
            f"{reading.document.name} calls no benchmark program that dbdyno knows",
            "dbdyno knows sysbench, pgbench and mysqlslap",
        )
    if reading.loads:
        translation.document["load"]["connections"] = sorted(reading.loads)
    _add_variants(reading, translation)
    translation.notes += [f"line {entry.line}: {sentence(entry)}" for entry in reading.document.left_out]
    return translation


def _use_loaded_rows(reading: Reading, translation: Translation) -> None:
    """The sizes of prepare, where a run names others: these are the rows that there are."""
    prepared = next((call for call in reading.calls if call.phase == "prepare"), None)
    size = prepared.number("table-size", "oltp-table-size") if prepared is not None else None
    for workload in translation.document["workload"]:
        if size is not None and workload.get("table_size", size) != size:
            translation.notes.append(
                f"the run names {workload['table_size']} rows; prepare has loaded {size}"
            )
            workload["table_size"] = size


def _of_slap(reading: Reading, calls: Sequence[Call]) -> Translation:
    """Own SQL with the document's tables and its query; a random key becomes a parameter."""
    notes: list[str] = []
    queries = list(dict.fromkeys(call.options["query"].strip().rstrip(";") for call in calls))
    if len(queries) > WORKLOADS_MAX or sum(map(len, queries)) > SQL_TOTAL_MAX:
        raise Problem(
            f"{reading.document.name} has {len(queries):,} queries "
            f"with {sum(map(len, queries)):,} characters; "
            f"an experiment is written of at most {WORKLOADS_MAX} with {SQL_TOTAL_MAX:,}",
            "Write the experiment of its queries as own SQL",
        )
    if not queries:
        raise Problem(
            "the calls of mysqlslap have no --query", "Write the experiment of its queries as own SQL"
        )
    transactions: list[dict[str, Any]] = []
    parameters: dict[str, str] = {}
    for number, query in enumerate(queries, start=1):
        text = query
        for condition in find_conditions(query, MYSQL):
            if condition.generator:
                where = _WHERE.search(text)
                text = f"{text[: where.start() if where else len(text)]}WHERE {condition.parameterized}"
                parameters[condition.parameter] = condition.generator
                notes.append(f"{condition.text} scans the table; the file looks one random key up")
        transactions.append({"name": f"query-{number}", "sql": text})
    statements = _sql_statements(reading.document)
    if sum(map(len, statements)) > SQL_TOTAL_MAX:
        notes.append(
            f"the statements of the document have more than {SQL_TOTAL_MAX:,} characters: "
            "write `setup` yourself"
        )
        statements = []
    workload: dict[str, Any] = {"name": "sql", "label": "queries", "transactions": transactions}
    if statements:
        workload["setup"] = (
            list(dict.fromkeys(statements)) if len(set(statements)) < len(statements) / 2 else statements
        )
    if parameters:
        workload["parameters"] = parameters
    document = {
        "experiment": {"name": "from-mysqlslap"},
        "workload": [workload],
        "load": {"connections": [1], "duration": "30s"},
        "variant": [{"name": "server", "server": {"product": "mysql"}}],
    }
    return Translation(document, notes)


def _of_pgbench(calls: Sequence[Call]) -> Translation:
    notes: list[str] = []
    names = []
    for call in calls:
        test = "select-only" if "select-only" in call.options else call.test
        if test not in _PGBENCH:
            raise Problem(
                f"pgbench runs {test}, which dbdyno has no workload for", "Write its statements as own SQL"
            )
        names.append(_PGBENCH[test])
        if test in ("simple-update", "select-only"):
            notes.append(
                f"{test} of pgbench is {_PGBENCH[test]} here, whose statements and tables are others"
            )
    left = dict.fromkeys(
        f"--{name}={value}" if value else f"--{name}"
        for call in calls
        for name, value in call.options.items()
        if name not in _PGBENCH_READ and (name not in _PGBENCH_NUMBERS or call.number(name) is None)
    )
    if left:
        notes.append(_without_counterpart(left))
    notes.append("the server is a private one that dbdyno starts, not the one of the calls")
    time = next((seconds for call in calls if (seconds := call.number("time"))), 60)
    document = {
        "experiment": {"name": "from-pgbench"},
        "workload": [{"name": name} for name in dict.fromkeys(names)],
        "load": {"connections": [1], "duration": f"{time}s"},
        "variant": [{"name": "server", "server": {"product": "postgresql"}}],
    }
    return Translation(document, list(dict.fromkeys(notes)))


def _add_variants(reading: Reading, translation: Translation) -> None:
    """A private server for each variant of the document that differs in a setting."""
    names = differing_settings(reading.series)
    if len(reading.series) < 2 or not names:
        return
    texts = " ".join(reading.document.texts).lower()
    product = (
        "postgresql"
        if any(POSTGRESQL.fullmatch(name) for name in names)
        else "mariadb"
        if "mariadb" in texts
        else "mysql"
    )
    variants = []
    for series in reading.series:
        values: Mapping[str, str] = {name: series.settings[name][0] for name in names}
        name = _NOT_IN_NAMES.sub("-", "-".join(values.values()))[:_NAME_MAX].strip("-.")
        variants.append(
            {"name": name or "variant", "server": {"product": product, "variables": dict(values)}}
        )
    translation.document["variant"] = variants
    translation.document.pop("design", None)
    translation.notes[:] = [
        note for note in translation.notes if "password" not in note and "drops them" not in note
    ]
    translation.notes.append(
        "the servers are private ones that dbdyno starts, with these settings and no others"
    )


_SQL_BEGIN = linear(r"(?<!\s)\s*+(?:CREATE\s+(?:TABLE|INDEX|UNIQUE)|INSERT\s+INTO)\b", re.IGNORECASE)


def _sql_statements(document: Document) -> list[str]:
    """The statements that make tables and rows, in order, without the semicolon; those that do not end are
    left out.
    """
    statements: list[str] = []
    index = 0
    while index < len(document.texts):
        lines = document.statement(index) if _SQL_BEGIN.match(document.texts[index]) else ()
        if lines:
            statements.append(" ".join(text.strip() for text in lines).rstrip("; "))
        index += max(1, len(lines))
    return statements
