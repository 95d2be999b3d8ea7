"""What differs between a variant and the baseline, as keys of the experiment file and as short texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.base import file_key
from dbdyno.experiment.model import Experiment, SqlTransaction, SqlWorkload, Variant, Workload
from dbdyno.experiment.quantities import Setting, as_text, is_equal, variable_name
from dbdyno.experiment.variant import PROXY_TITLES, Proxy
from dbdyno.finding import Finding
from dbdyno.text import Text, compose, compose_form, mark

# Keys of a server that do not count as differences: dbdyno compares variables one by one, the version may be
# one that check P03 only verifies, and the other keys name the source of a password.
_NO_DIFFERENCE = ("variables", "version", "password_env", "password_file")
# The beginnings of the keys of a variant that are not its server's.
_BESIDES_SERVER = ("session.", "load.", "data.", "proxy", "workload")
# Maximum number of characters of a statement or value in a text.
_LENGTH_MAX = 70


@dataclass(frozen=True)
class DataDifference:
    """One difference between the existing data of a variant and those of the baseline. P29 finds it, and its
    evidence has it, so that it is named where a result says what differs.
    """

    # "table", "rows", "estimated rows", "column", "storage" or "index".
    what: str
    table: str
    # The name of the column, index or property of storage.
    name: str
    # None: the baseline, or the variant, does not have it.
    baseline: int | str | None
    variant: int | str | None

    @property
    def text(self) -> Text:
        """What the variant has and the baseline has not, or the reverse."""
        absent = "baseline" if self.baseline is None else "variant" if self.variant is None else ""
        name = _PROPERTIES.get(self.name, self.name) if self.what == "storage" else self.name
        values = {"table": self.table, "name": name, "before": self.baseline, "after": self.variant}
        return compose_form(_DATA_PATTERNS[self.what, absent], values)


# What a `DataDifference` is, and which side lacks it -> its text.
_DATA_PATTERNS = {
    ("table", "baseline"): mark("with the table {table}"),
    ("table", "variant"): mark("without the table {table}"),
    ("rows", ""): mark("rows of {table}: {after:,}, not {before:,}"),
    ("estimated rows", ""): mark("rows of {table}: about {after:,}, not {before:,} (estimates)"),
    ("column", "baseline"): mark("column {name} of {table} ({after})"),
    ("column", "variant"): mark("without column {name} of {table} ({before})"),
    ("column", ""): mark("column {name} of {table} is {after}, not {before}"),
    ("storage", "baseline"): mark("{name} of {table} is {after}"),
    ("storage", "variant"): mark("{name} of {table} is not {before}"),
    ("storage", ""): mark("{name} of {table} is {after}, not {before}"),
    ("index", "baseline"): mark("index {name} on {table} {after}"),
    ("index", "variant"): mark("without index {name} on {table} {before}"),
}
# The properties of a table's storage, by the names that evidence has.
_PROPERTIES = {
    str(text): text
    for text in (
        compose("storage engine"),
        compose("row format"),
        compose("collation"),
        compose("partitioning"),
        compose("access method"),
        compose("persistence"),
        compose("options"),
    )
}


def differences_in_data(findings: Iterable[Finding], variant: str) -> list[Text]:
    """What differs in the existing data of a variant, by the findings of P29, one short text each."""
    texts: dict[Text, None] = {}
    for finding in findings:
        if finding.code == "P29" and finding.subject == variant:
            listed = finding.evidence.get("differences", ())
            texts |= {DataDifference(**entry).text: None for entry in listed}
            if more := finding.evidence.get("count", 0) - len(listed):
                texts[compose("{number} more differences of the data (P29)", number=more)] = None
    return list(texts)


def is_identical(experiment: Experiment, variant: Variant) -> bool:
    """Whether a variant equals the baseline except for its name (an A/A comparison)."""
    return not list_differences(experiment, variant)


def list_differences(experiment: Experiment, variant: Variant) -> list[str]:
    """The differences between a variant and the baseline, as keys of the experiment file."""
    return list(_differences(experiment, variant))


def changes_server(experiment: Experiment, variant: Variant) -> bool:
    """Whether a variant declares another configuration of its server than the baseline, not only its URL."""
    keys = list_differences(experiment, variant)
    return any(key != "url" and not key.startswith(_BESIDES_SERVER) for key in keys)


def describe_differences(
    experiment: Experiment, variant: Variant, findings: Iterable[Finding] = (), *, server: bool = True
) -> list[str]:
    """What a variant has and the baseline has not, or the reverse, one short text each; without `server`
    only what the variant changes besides its server. If the findings name differences of existing data, these
    replace the URL.
    """
    in_data = differences_in_data(findings, variant.name)
    chosen = (
        texts
        for key, texts in _differences(experiment, variant).items()
        if (server or key.startswith(_BESIDES_SERVER)) and not (in_data and key == "url")
    )
    return list(dict.fromkeys([*(text for texts in chosen for text in texts), *in_data]))


def differing_variables(first: Variant, second: Variant) -> list[str]:
    """The server variables with different declared values; two spellings of a value (8G) are equal."""
    return _differing(first.server.variables, second.server.variables)


def _differing(first: Mapping[str, Setting], second: Mapping[str, Setting]) -> list[str]:
    left, right = (
        {variable_name(option): as_text(value) for option, value in variables.items()}
        for variables in (first, second)
    )
    return [
        name
        for name in dict.fromkeys([*left, *right])
        if name not in left or name not in right or not is_equal(name, left[name], right[name])
    ]


def _choice(variant: Variant) -> str | None:
    """The version that chooses a variant's server among those installed; None if another key does."""
    server = variant.server
    return server.version if server.kind == "local" and server.basedir is None else None


def _differences(experiment: Experiment, variant: Variant) -> dict[str, list[str]]:
    """Key in the experiment file -> the texts of its differences."""
    base = experiment.variants[0]
    texts_by_key: dict[str, list[str]] = {}
    for key in (key for key in type(base.server).model_fields if key not in _NO_DIFFERENCE):
        before, value = getattr(base.server, key), getattr(variant.server, key)
        if before != value:
            texts_by_key[key] = [_setting(key, value)]
    if _choice(base) != _choice(variant):
        texts_by_key["version"] = [_setting("version", variant.server.version)]
    texts_by_key |= _variables("variables", base.server.variables, variant.server.variables)
    texts_by_key |= _session(base, variant)
    for key in type(base.load).model_fields:
        before, value = (getattr(experiment.load_for(entry), key) for entry in (base, variant))
        if before != value:
            texts_by_key[f"load.{file_key(key)}"] = [_setting(key, value)]
    texts_by_key |= _proxy(base.proxy, variant.proxy)
    if base.data.after != variant.data.after:
        texts_by_key["data.after"] = _statements(base.data.after, variant.data.after)
    for title in (workload.title for workload in experiment.workloads):
        pair = (experiment.workload_for(entry, title) for entry in (base, variant))
        for key, texts in _workload(*pair).items():
            texts_by_key.setdefault(key, []).extend(texts)
    return texts_by_key


def _session(base: Variant, variant: Variant) -> dict[str, list[str]]:
    before, after = base.session, variant.session
    texts_by_key = {
        f"session.{key}": [_connection_setting(key, getattr(after, key))]
        for key in type(before).model_fields
        # `prepared` is compared as the workloads' `statements`.
        if key not in ("prepared", "variables", "sql") and getattr(before, key) != getattr(after, key)
    }
    texts_by_key |= _variables("session.variables", before.variables, after.variables, in_session=True)
    if before.sql != after.sql:
        texts_by_key["session.sql"] = _statements(before.sql, after.sql)
    return texts_by_key


def _connection_setting(key: str, value: Any) -> str:
    # Many variants are named after the setting: "tls: tls = required" would say it twice.
    return compose("connections with TLS {mode}", mode=value) if key == "tls" else _setting(key, value)


def _proxy(first: Proxy | None, second: Proxy | None) -> dict[str, list[str]]:
    """A proxy that only one of the two has is one difference; two proxies are compared by key."""
    if second is None:
        return {} if first is None else {"proxy": [compose("without a proxy")]}
    through: str = compose("through {title}", title=PROXY_TITLES[second.program])
    settings = _variables("proxy.settings", first.settings if first else {}, second.settings)
    if first is None:
        return {"proxy": [through, *(text for texts in settings.values() for text in texts)]}
    texts_by_key = {"proxy.program": [through]} if first.program != second.program else {}
    for key in ("cpus", "basedir"):
        if getattr(first, key) != getattr(second, key):
            texts_by_key[f"proxy.{key}"] = [_setting(f"proxy.{key}", getattr(second, key))]
    return texts_by_key | settings


def _variables(
    section: str, first: Mapping[str, Setting], second: Mapping[str, Setting], *, in_session: bool = False
) -> dict[str, list[str]]:
    values = {variable_name(option): as_text(value) for option, value in second.items()}
    return {
        f"{section}.{name}": [
            _in_session(
                f"{name} = {values[name]}" if name in values else _not_set(name), in_session=in_session
            )
        ]
        for name in _differing(first, second)
    }


def _workload(first: Workload, second: Workload) -> dict[str, list[str]]:
    """Key -> the texts of its differences. The tables, parameters and statements of the user's own SQL belong
    together, so they count as one difference.
    """
    if type(first) is not type(second):
        return {"workload": [compose("the workload {name}", name=second.name)]}
    is_sql = isinstance(first, SqlWorkload)
    texts_by_key: dict[str, list[str]] = {}
    for key in (key for key in type(first).model_fields if key not in ("label", "file", "digest")):
        before, value = getattr(first, key), getattr(second, key)
        if before == value or (key == "transactions" and _plans(before) == _plans(value)):
            continue
        if key == "statements":
            texts_by_key["workload.statements"] = [compose("{kind} statements", kind=value)]
        else:
            texts = _workload_texts(key, before, value)
            texts_by_key.setdefault("workload" if is_sql else f"workload.{key}", []).extend(texts)
    if not texts_by_key and getattr(first, "digest", "") != getattr(second, "digest", ""):
        texts_by_key["workload.script"] = [compose("another content of the script's folder")]
    return texts_by_key


def _workload_texts(key: str, before: Any, value: Any) -> list[str]:
    if key == "transactions":
        return _transactions(before, value)
    if isinstance(value, tuple):
        return _statements(before, value)
    if isinstance(value, dict):
        return [
            _setting(f"{key}.{name}", value.get(name))
            for name in {**before, **value}
            if before.get(name) != value.get(name)
        ]
    return [_setting(key, value)]


def _plans(transactions: Sequence[SqlTransaction]) -> list[Any]:
    """The transactions without the lines of their statements in a .sql file."""
    return [transaction.plan() for transaction in transactions]


def _transactions(before: Sequence[SqlTransaction], after: Sequence[SqlTransaction]) -> list[str]:
    old_statements, new_statements = (
        [s for t in transactions for s in t.statements] for transactions in (before, after)
    )
    if [s.sql for s in old_statements] != [s.sql for s in new_statements]:
        return _statements([s.sql for s in old_statements], [s.sql for s in new_statements])
    if [len(t.statements) for t in before] != [len(t.statements) for t in after]:
        return [compose("the same statements in other transactions")]
    pairs: list[tuple[Any, Any, str]] = [
        *((old, new, new.name or new.statements[0].sql) for old, new in zip(before, after, strict=True)),
        *((old, new, new.sql) for old, new in zip(old_statements, new_statements, strict=True)),
    ]
    return [
        compose("{setting} of {title}", setting=_setting(key, getattr(new, key)), title=_shorten(title))
        for old, new, title in pairs
        for key in type(new).model_fields
        if key not in ("statements", "line") and getattr(old, key) != getattr(new, key)
    ]


def _statements(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The statements that only one of the two lists has."""
    texts = [_shorten(sql) for sql in after if sql not in before]
    texts += [compose("without {sql}", sql=_shorten(sql)) for sql in before if sql not in after and not texts]
    return texts or [compose("the same statements in another order")]


def _not_set(key: str) -> Text:
    return compose("{key} not set", key=key)


def _in_session(text: str, *, in_session: bool) -> str:
    return compose("{text} in each session", text=text) if in_session else text


def _setting(key: str, value: Any) -> str:
    key = file_key(key)
    if value is None or value == ():
        return _not_set(key)
    if isinstance(value, bool):
        return f"{key} = {'true' if value else 'false'}"
    if isinstance(value, tuple):
        return f"{key} = {_shorten(' '.join(map(str, value)))}"
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_defaults=True)
    return f"{key} = {_shorten(str(value))}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH_MAX else f"{line[: _LENGTH_MAX - 1]}…"
