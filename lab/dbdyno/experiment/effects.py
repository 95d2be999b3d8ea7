"""What each key of an experiment can do to the machine that runs it: execute a program, read a file, or
neither.

Another person's experiment is shown by these marks before it runs. Every key has a mark in `MARKS`; a test
walks all models and fails for a key without one. Keys with names and values, such as `server.variables`, are
judged by `setting_effect`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, RootModel

from dbdyno.experiment import bundled
from dbdyno.experiment.base import file_key
from dbdyno.experiment.model import Experiment


class Effect(Enum):
    """What a key can do."""

    # Names a program, a library, an image or a server that gets load, or changes a server.
    EXECUTES = "executes"
    # Names a file or a password that is read, or decides how a password is sent.
    READS = "reads a file"
    HARMLESS = "harmless"
    # SQL that the load's account executes on the variant's server.
    SQL = "sql"
    # Names and values of settings: see `setting_effect`.
    SETTINGS = "settings"
    # Sources of values, of which `csv(…)` reads a file.
    GENERATORS = "generators"


# Model -> effect -> its fields. Fields that are tables are walked; those of a base class are listed there.
MARKS: Mapping[str, Mapping[Effect, str]] = {
    "Experiment": {Effect.HARMLESS: "name question conclusion override"},
    "Factor": {Effect.HARMLESS: "name levels"},
    "Variant": {Effect.HARMLESS: "name levels"},
    "ServerSpec": {
        # The product chooses which program of this machine runs.
        Effect.EXECUTES: (
            "product version arguments init_sql basedir image url set_global start stop restore describe "
            "sample"
        ),
        Effect.READS: "config password_env password_file",
        Effect.SETTINGS: "variables",
        Effect.HARMLESS: "kind cpus memory cpu_limit network command_timeout_s start_timeout_s",
    },
    "Hooks": {
        Effect.EXECUTES: "before_trial during_trial after_trial",
        Effect.READS: "hook_environment",
        Effect.HARMLESS: "hook_timeout_s",
    },
    "ConnectionSettings": {
        Effect.READS: (
            "tls_ca tls_certificate tls_key server_public_key allow_public_key_retrieval allow_clear_text"
        ),
        Effect.HARMLESS: "tls compression zstd_level",
    },
    "SessionSettings": {
        Effect.SETTINGS: "variables",
        Effect.SQL: "sql",
        Effect.HARMLESS: "prepared isolation",
    },
    "VariantLoad": {
        Effect.HARMLESS: (
            "transport prewarm reconnect_every think_time_s think queue_limit on_lost give_up_s"
        )
    },
    "VariantData": {Effect.SQL: "after undo"},
    "Proxy": {
        Effect.EXECUTES: "program basedir",
        Effect.SETTINGS: "settings",
        Effect.HARMLESS: "cpus",
    },
    "BaseWorkload": {Effect.HARMLESS: "name label statements"},
    "OltpWorkload": {
        Effect.HARMLESS: (
            "tables table_size range_size point_selects simple_ranges sum_ranges order_ranges "
            "distinct_ranges index_updates non_index_updates delete_inserts random_points number_of_ranges "
            "delta range_selects auto_inc skip_trx secondary create_secondary mysql_storage_engine"
        )
    },
    # A script may call any function of the C library.
    "ScriptWorkload": {Effect.EXECUTES: "script", Effect.HARMLESS: "options prepare digest"},
    "SqlWorkload": {
        Effect.READS: "file",
        Effect.SQL: "setup after prewarm cleanup session",
        Effect.GENERATORS: "parameters",
        Effect.HARMLESS: "options order reconnect_every pauses main_statement description",
    },
    "Background": {Effect.HARMLESS: "connections rate arrivals background"},
    "SqlStatement": {
        Effect.SQL: "sql",
        Effect.HARMLESS: "name rows rows_parameter mode draw repeat access line",
    },
    "SqlLoop": {Effect.HARMLESS: "first last times"},
    "SqlTransaction": {Effect.HARMLESS: "name weight keying_s think_s"},
    "SqlConsistency": {Effect.SQL: "sql", Effect.HARMLESS: "name line"},
    "SqlTable": {Effect.GENERATORS: "columns", Effect.HARMLESS: "rows parent"},
    "SqlReplay": {Effect.READS: "file", Effect.HARMLESS: "format database"},
    "Keys": {
        Effect.HARMLESS: "distribution iterations percent hot_percent h exponent scattered a c",
    },
    "Load": {
        Effect.HARMLESS: (
            "connections rate arrivals think_time_s think queue_limit duration_s warmup_s prewarm transport "
            "reconnect_every on_lost give_up_s answer_timeout_s max_rate writes"
        )
    },
    "Ramp": {Effect.HARMLESS: "from_percent duration_s"},
    "Step": {Effect.HARMLESS: "percent duration_s"},
    "Percentiles": {Effect.HARMLESS: "p50_s p90_s p95_s p99_s p999_s"},
    "AbortIf": {Effect.HARMLESS: "errors_per_1000"},
    "Design": {
        Effect.HARMLESS: (
            "blocks pairing slice_s state state_per order seed order_seed repeat_disturbed metrics "
            "delta_percent identical_copy error_rate max_loss_percent"
        )
    },
    "Stop": {Effect.HARMLESS: "half_width_percent max_blocks max_time_s top_up"},
    "Client": {Effect.HARMLESS: "cpus workers scheduling"},
    "Loading": {Effect.HARMLESS: "streams method keep"},
    # A Ray cluster gets the load generator and the files of the workload.
    "Fleet": {Effect.EXECUTES: "address", Effect.HARMLESS: "engines per_host"},
}

# Words in the names of settings whose value is a program, a library or SQL that a server executes.
_EXECUTING = re.compile(
    r"(?:^|[_.])(plugins?|librar(y|ies)|lib|preload|command|cmd|provider|sst|notify|init|script|hook|validator"
    r"|jit|lua|exec|program)(?=[_.]|$)"
)
# The same for files, folders and other hosts.
_NAMING = re.compile(
    r"(?:^|[_.])(files?|filename|paths?|dirs?|director(y|ies)|sockets?|include|conninfo|address(es)?|hosts?|url"
    r"|uri|chroot|logfile|pidfile|(tmp|data|base)dir|bin|relay|error|user|ca|capath|cert|key|crl|crlpath|keyfile"
    r"|keyring|bind|listen|tablespaces?|basename|debug|dbug|isam|tc|http)(?=[_.]|$)"
)
# Settings by their whole names: their value is no text, or their words are those of harmless settings.
_BY_NAME: Mapping[str, Effect] = {
    "local_infile": Effect.READS,
    "grant_tables": Effect.EXECUTES,
    "allow_suspicious_udfs": Effect.EXECUTES,
    "secure_file_priv": Effect.READS,
    "extension_control_path": Effect.EXECUTES,
    "extension_destdir": Effect.EXECUTES,
    "search_path": Effect.HARMLESS,
}
_NO_TEXT = re.compile(
    r"(?i)|[-+]?\d+(\.\d+)?\s*([kmgtpe]i?b?|b|us|ms|s|min|h|d|%)?|on|off|true|false|yes|no|default|auto"
)
_CSV = re.compile(r"\bcsv\s*\(")


def setting_name(name: str) -> str:
    """One spelling of a setting: servers accept dashes, upper case, and prefixes such as `loose-`."""
    plain = re.sub(r"[\s-]+", "_", name.strip().lstrip("-").lower())
    while (match := re.match(r"(loose|skip|enable|disable|maximum)_(?=.)", plain)) is not None:
        plain = plain[match.end() :]
    return plain


def setting_effect(name: str, value: object) -> Effect:
    """What a setting of a server, a session or a proxy can do, by its name and value. A setting that no rule
    knows is harmless only if its value cannot name a file.
    """
    plain, text = setting_name(name), str(value).strip().strip("'\"")
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    if _NO_TEXT.fullmatch(text):
        return Effect.HARMLESS
    if _EXECUTING.search(plain) or "|" in text or "`" in text:
        return Effect.EXECUTES
    return (
        Effect.READS if _NAMING.search(plain) or re.search(r"[/\\]|\.[A-Za-z]\w*$", text) else Effect.HARMLESS
    )


@dataclass(frozen=True)
class Use:
    """One key that an experiment sets, and what it can do: EXECUTES, READS or SQL."""

    effect: Effect
    # Name of the variant; "" for a key outside of variants.
    variant: str
    # The key below the variant, or below the file.
    key: str
    value: str


def marks_of(model: type[BaseModel], field: str) -> list[Effect]:
    """The marks of a field: one, or none if it is not marked."""
    return [
        effect
        for base in model.__mro__
        for effect, fields in MARKS.get(base.__name__, {}).items()
        if field in fields.split()
    ]


def uses(experiment: Experiment) -> Iterator[Use]:
    """Everything that the experiment executes or reads besides dbdyno's own programs."""
    yield from _of_model(experiment, "", "")


# Keys whose value is the path of a file.
FILE_KEYS = frozenset(
    {
        "file",
        "script",
        "config",
        "password_file",
        "tls_ca",
        "tls_certificate",
        "tls_key",
        "server_public_key",
    }
)
# The file in csv('FILE', …).
CSV_FILE = re.compile(r"""\bcsv\s*\(\s*["']([^"']*)""")


def named_files(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Key and path of each file that the experiment names, without programs and values of settings."""
    for use in uses(experiment):
        if use.key.rpartition(".")[2] in FILE_KEYS:
            yield use.key, use.value
        elif use.effect is Effect.READS:
            yield from ((use.key, path) for path in CSV_FILE.findall(use.value))


def _of_model(model: BaseModel, variant: str, place: str) -> Iterator[Use]:
    for field, info in type(model).model_fields.items():
        value = getattr(model, field)
        key = f"{place}.{file_key(field)}" if place else file_key(field)
        if field == "variants":
            for member in value:
                yield from _of_model(member, member.name, "")
        elif nested := list(_models(value, key)):
            for member, where in nested:
                yield from _of_model(member, variant, where)
        elif value != info.get_default(call_default_factory=True):
            for effect in marks_of(type(model), field):
                yield from _of_value(effect, variant, key, value)


def _models(value: Any, key: str) -> Iterator[tuple[BaseModel, str]]:
    """The tables in a value, and their keys."""
    if isinstance(value, RootModel):
        yield from _models(value.root, key)
    elif isinstance(value, BaseModel):
        yield value, key
    elif isinstance(value, tuple):
        for item in value:
            title = getattr(item, "title", None) or getattr(item, "name", None)
            yield from _models(item, f"{key}[{title}]" if isinstance(title, str) else key)
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _models(entry, f"{key}[{name}]")


def _of_value(effect: Effect, variant: str, key: str, value: Any) -> Iterator[Use]:
    if effect is Effect.SETTINGS:
        for name, entry in value.items():
            of_setting = setting_effect(name, entry)
            if of_setting is not Effect.HARMLESS:
                yield Use(of_setting, variant, f"{key}.{name}", str(entry))
    elif effect is Effect.GENERATORS:
        for name, part in value.items():
            if _CSV.search(part):
                yield Use(Effect.READS, variant, f"{key}.{name}", part)
    elif effect is Effect.SQL:
        for part in (value,) if isinstance(value, str) else value:
            yield Use(effect, variant, key, part)
    elif effect is not Effect.HARMLESS and not (isinstance(value, str) and bundled.has(Path(value))):
        yield Use(effect, variant, key, _shown(value))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
