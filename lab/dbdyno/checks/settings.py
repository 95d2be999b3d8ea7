"""Checks of the servers' settings: whether the declared ones are effective (P04), which others differ (P05),
durability (P06), and whether declared differences have an effect (P17).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal

from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.experiment.differences import changes_server, differing_variables, list_differences
from dbdyno.experiment.model import Experiment, SqlWorkload, Variant
from dbdyno.experiment.quantities import (
    Setting,
    as_text,
    is_equal,
    is_loose,
    number,
    variable_name,
    with_unit,
)
from dbdyno.finding import Finding
from dbdyno.servers.admin import answers
from dbdyno.servers.kinds.remote_protocol import open_load_connection
from dbdyno.servers.products.declaration import PRODUCTS, read_declaration
from dbdyno.servers.server import Description, ServerProblem
from dbdyno.text import compose, compose_count, join, mark
from dbdyno.variables.differences import (
    DURABILITY_NAMES,
    OLD_DURABILITY_NAMES,
    Difference,
    Kind,
    differences,
    durability,
    is_weaker,
)
from dbdyno.variables.versions import is_effective, variable_of

# Known adjustments of servers: rounding and clipping. Servers round some values to a multiple of a step,
# which is too small a change to matter. They clip other values to a range, which changes the experiment. The
# steps and ranges are those of MariaDB 10.11 ("Server System Variables" in its manual), verified on a running
# server.

# Sizes that the server rounds down to a multiple of this number of bytes.
_STEP_BYTES = {
    "aria_log_file_size": 8192,
    "binlog_cache_size": 4096,
    "binlog_stmt_cache_size": 4096,
    "innodb_log_buffer_size": 4096,
    "innodb_log_file_size": 4096,
    "join_buffer_size": 128,
    "key_buffer_size": 4096,
    "max_allowed_packet": 1024,
    "max_binlog_size": 4096,
    "max_heap_table_size": 16384,
    "query_alloc_block_size": 1024,
    "query_cache_size": 1024,
    "query_prealloc_size": 1024,
    "range_alloc_block_size": 1024,
    "read_buffer_size": 4096,
    "slave_max_allowed_packet": 1024,
    "stored_program_cache": 256,
    "thread_stack": 1024,
    "tmp_memory_table_size": 16384,
    "tmp_table_size": 16384,
    "transaction_alloc_block_size": 1024,
    "transaction_prealloc_size": 1024,
}

# Rounding by less than this share of the value has no measurable effect.
ROUNDING_SHARE = Decimal("0.01")

_MIB = 1024 * 1024

# Variable -> the values that the server allows, or why it changes the declared value.
_ALLOWED_VALUES = {
    "back_log": compose("0, or no value, lets the server derive it from max_connections"),
    "innodb_buffer_pool_instances": compose(
        "MariaDB accepts it and ignores it since 10.5; MySQL uses 1 if the pool is smaller than 1G"
    ),
    "innodb_buffer_pool_size": compose("a multiple of innodb_buffer_pool_chunk_size, or of 1M if that is 0"),
    "innodb_flush_log_at_trx_commit": compose("0 to 3"),
    "innodb_io_capacity": compose("at most innodb_io_capacity_max, and at least 100"),
    "innodb_log_buffer_size": compose("at least 2M"),
    "innodb_lru_scan_depth": compose("at least 100"),
    "innodb_open_files": compose("at most table_open_cache and open_files_limit"),
    "innodb_read_io_threads": compose("1 to 64"),
    "innodb_write_io_threads": compose("2 to 64"),
    "interactive_timeout": compose("1 to 31536000 s"),
    "max_connections": compose("10 to 100000, and lower if open_files_limit is too small"),
    "open_files_limit": compose(
        "at most the limit of the process (ulimit -n), at least what connections need"
    ),
    "read_buffer_size": compose("8192 to 2147479552, a multiple of 4096"),
    "sort_buffer_size": compose("at least 1024"),
    "table_definition_cache": compose("400 to 2097152"),
    "table_open_cache": compose("10 to 1048576, and at most half of the files that open_files_limit leaves"),
    "thread_cache_size": compose("at most 16384, and lowered to fit max_connections"),
    "thread_pool_size": compose("1 to 100000"),
    "thread_stack": compose("131072 to 67108864, a multiple of 1024"),
    "tmp_table_size": compose("a multiple of 16384, rounded down; less than 16384 becomes 0"),
    "wait_timeout": compose("1 to 31536000 s"),
}

# Maximum number of variables that a text lists.
LISTED_MAX = 6

# (Product, variable) that the server accepts and ignores -> why it does.
IGNORED: Mapping[tuple[str, str], str] = {
    ("mariadb", "innodb_buffer_pool_instances"): compose(
        "MariaDB has had one buffer pool instance since 10.5"
    ),
    ("mariadb", "query_cache_size"): compose("the query cache is off unless query_cache_type is ON"),
    ("mariadb", "thread_pool_size"): compose(
        "there is no thread pool unless thread_handling is pool-of-threads"
    ),
    ("mysql", "innodb_log_file_size"): compose("innodb_redo_log_capacity takes its place since 8.0.30"),
    ("mysql", "innodb_log_files_in_group"): compose("innodb_redo_log_capacity takes its place since 8.0.30"),
}


def declared_settings(variant: Variant) -> dict[str, str]:
    """The declared settings of a variant, by variable. If dbdyno starts the server, they include `config` and
    `arguments` of the variant; the last value of a variable applies, as in the server.
    """
    if variant.server.is_private:
        # Errors in the declaration are reported later, when the server starts.
        with suppress(ServerProblem):
            return read_declaration(variant).options()
    return {variable_name(name): as_text(value) for name, value in variant.server.variables.items()}


@check(
    "P04",
    "Declared settings are effective",
    Moment.READY,
    caveat=mark("a setting did not take effect as declared"),
)
def effective_settings(context: Context, description: Description) -> Iterator[Finding]:
    """Finds declared variables that have another value on the running server.

    Catches a comparison of settings that were never in effect. A published benchmark compared values of
    innodb_buffer_pool_instances and never read the value back. A server ignores a configuration file that
    everyone may write, and adjusts the number of instances if the pool is small.

    On a remote server, dbdyno only compares the settings, unless `set_global` lets it change them.

    Rule: the declared and the effective value must be equal, apart from units (8G), booleans (ON, 1, true),
    list order and letter case. A value that the server rounded by less than 1 % is a note. Any other value is
    a stop that shows both values and, if known, the server's rule. A variable that the server does not have
    is a stop, or a note if its option begins with `loose-`. The same holds for the variables of `session`,
    which a connection of the load sets and reads back; a statement of `session` that the server refuses is a
    stop.
    """
    # The session's settings do not change from group to group.
    if context.first_description is None:
        yield from _session_findings(context)
    variables, product = description.variables, description.product
    for option, declared in _declared(context, description).items():
        resolved = variable_of(option, declared, variables, product)
        if resolved is None:
            yield _missing_finding(option, declared)
            continue
        name, value = resolved
        if value == "" and option in description.declared:
            # An option of a file without a value: the server chooses it.
            continue
        if not is_effective(name, with_unit(value, description.units.get(name)), variables):
            yield _difference_finding(name, as_text(value), variables, context)


def _declared(context: Context, description: Description) -> dict[str, Setting]:
    """The values that configuration files and the experiment declare."""
    declared: dict[str, Setting] = dict(description.declared)
    if context.variant is not None:
        options = {variable_name(option): option for option in declared}
        for option, value in context.variant.server.variables.items():
            declared.pop(options.get(variable_name(option), ""), None)
            declared[option] = value
    return declared


def _difference_finding(name: str, declared: str, variables: Mapping[str, str], context: Context) -> Finding:
    effective = variables[name]
    evidence = {"variable": name, "declared": declared, "effective": effective}
    rounded = rounding(name, declared, variables)
    if rounded is not None:
        text = compose(
            "{name} is {effective}; the experiment declares {declared}, which the server {rounded}",
            name=name,
            effective=effective,
            declared=declared,
            rounded=rounded,
        )
        return make_finding("note", text, {**evidence, "rule": rounded})
    server = context.variant.server if context.variant is not None else None
    if server is not None and not server.is_private and not server.set_global:
        return make_finding(
            "stop",
            compose(
                "{name} is {effective} on the remote server; the experiment declares {declared}",
                name=name,
                effective=effective,
                declared=declared,
            ),
            evidence,
            compose(
                "Set it on the server, declare {effective}, or let dbdyno set it (set_global = true)",
                effective=effective,
            ),
        )
    allowed = allowed_values(name)
    because = (
        compose(" The server's rule: {allowed}", allowed=allowed)
        if allowed
        else compose(" See the warnings in the server's error log")
    )
    return make_finding(
        "stop",
        compose(
            "{name} is {effective}, adjusted by the server from the declared {declared}.{because}",
            name=name,
            effective=effective,
            declared=declared,
            because=because,
        ),
        {**evidence, "rule": allowed},
        compose(
            "Declare {name} = {effective}, or the settings that allow {declared}",
            name=name,
            effective=effective,
            declared=declared,
        ),
    )


def _missing_finding(option: str, declared: Setting) -> Finding:
    """A finding about an option that sets no variable of this server."""
    values = allowed_values(variable_name(option))
    evidence = {
        "variable": variable_name(option),
        "declared": as_text(declared),
        "effective": None,
        "rule": values,
    }
    if is_loose(option):
        return make_finding(
            "note",
            compose("the running server does not know {option} and ignores it", option=option),
            evidence,
        )
    return make_finding(
        "stop",
        compose(
            "the running server has no variable {option} (declared as {as_text}), so its effect "
            "cannot be verified{rule}",
            option=option,
            as_text=as_text(declared),
            rule=compose(": {rule}", rule=values) if values else "",
        ),
        evidence,
        compose("Remove it; put an option without a variable into `arguments`"),
    )


def _session_findings(context: Context) -> Iterator[Finding]:
    """Findings about statements of the session that the server refuses, and variables with another value."""
    session = context.variant.session if context.variant is not None else None
    if session is None or context.server is None or context.description is None:
        return
    address = context.server.address()
    statements = session.settings(address.protocol)
    if context.workload is not None:
        # Other statements may need the data.
        statements += session.sql
    if not statements:
        return
    if isinstance(context.workload, SqlWorkload):
        statements = [*context.workload.session, *statements]
    with open_load_connection(address, context.load.transport) as admin:
        for sql in statements:
            try:
                admin.query(sql)
            except ServerProblem as problem:
                fix = compose("Correct it under [variant.session], or in the `session` of the workload")
                yield make_finding(
                    "stop",
                    compose("a statement of the session fails: {text}", text=problem.text),
                    {"sql": sql},
                    fix,
                )
                return
        for option, value in session.variables.items():
            name = variable_name(option)
            if address.protocol == "postgresql":
                effective = answers.value(admin.query, f"SHOW {name}", answers.text)
            else:
                sql = f"SHOW SESSION VARIABLES WHERE Variable_name = '{name}'"
                _, effective = answers.row(admin.query, sql, answers.text, answers.text)
            declared = with_unit(value, context.description.units.get(name))
            if not is_equal(name, declared, effective):
                text = compose(
                    "{name} is {effective} in the session, adjusted by the server from {as_text}",
                    name=name,
                    effective=effective,
                    as_text=as_text(value),
                )
                fix = compose(
                    "Write {name} = {effective} under [variant.session.variables]",
                    name=name,
                    effective=effective,
                )
                yield make_finding("stop", text, {"variable": name, "effective": effective}, fix)


def rounding(name: str, declared: str, variables: Mapping[str, str]) -> str | None:
    """How the server rounded `declared` to its effective value; None if the change is not a known rounding.

    `variables` are all variables of the server. A change of one step or more, or of 1 % or more, is not
    rounding.
    """
    requested, effective = number(declared), number(variables[name])
    step = _step_bytes(name, variables)
    if requested is None or effective is None or step is None:
        return None
    change = abs(effective - requested)
    if change >= step or change >= ROUNDING_SHARE * requested or effective % step:
        return None
    return compose("rounded to a multiple of {step}", step=step)


def allowed_values(name: str) -> str | None:
    """The values that the server allows for a variable; None if unknown."""
    return _ALLOWED_VALUES.get(name)


def _step_bytes(name: str, variables: Mapping[str, str]) -> int | None:
    if name != "innodb_buffer_pool_size":
        return _STEP_BYTES.get(name)
    # The server rounds up to a multiple of chunk size times instances. In newer MariaDB the chunk size is 0,
    # and the multiple is 1 MiB.
    chunk = number(variables.get("innodb_buffer_pool_chunk_size", "0")) or Decimal(0)
    instances = number(variables.get("innodb_buffer_pool_instances", "1")) or Decimal(1)
    return int(chunk * instances) or _MIB


@check(
    "P05",
    "Differing variables are explained",
    Moment.READY,
    at_first_start=True,
    caveat=mark("variables differ that nobody declared"),
)
def explained_variables(
    context: Context, description: Description, baseline_description: Description
) -> Iterator[Finding]:
    """Finds variables that differ between a variant and the baseline, although nobody declared them.

    Catches a comparison of two servers with several differences, of which the experiment names one. A
    published benchmark gave one of its two versions a redo log of 512 MB and the other one of 1 GB.

    Rule: all global variables of both servers are compared, under both names if a version has renamed them,
    and optimizer_switch flag by flag. A differing variable is declared, or it is a default: nobody has set it
    on either server, by the origins that the servers report or by a table of defaults, and the versions
    differ, or declared settings from which the server computes it. All others are unexplained, which is a
    warning. Defaults are a note. Paths, ports and the settings of P06 are left out.
    """
    baseline = context.baseline.name
    records = {baseline: baseline_description.record(), context.subject: description.record()}
    by_kind: dict[Kind, list[Difference]] = defaultdict(list)
    changed = {v.name for v in context.experiment.variants[1:] if changes_server(context.experiment, v)}
    for difference in differences(records, [baseline, context.subject], changed):
        if difference.name not in DURABILITY_NAMES:
            by_kind[difference.kind].append(difference)
    if further := by_kind["other"]:
        yield make_finding(
            "warn",
            compose_count(
                len(further),
                "{number} variable differs between {baseline} and {name}, which neither the experiment "
                "declares nor the versions explain: {listed}. It may be the cause of a measured difference",
                "{number} variables differ between {baseline} and {name}, which neither the experiment "
                "declares nor the versions explain: {listed}. They may be the cause of a measured difference",
                baseline=baseline,
                name=context.subject,
                listed=_listed_differences(further),
            ),
            _evidence_of(further),
            compose("Set the same values on both servers, or declare them in [variant.server.variables]"),
        )
    if defaults := by_kind["default"]:
        yield _note_of_defaults(defaults, baseline, baseline_description, context.subject, description)


def _note_of_defaults(
    defaults: Sequence[Difference], baseline: str, peer: Description, name: str, description: Description
) -> Finding:
    """Variables of which the servers chose the values."""
    is_other_version = (peer.product, peer.version) != (description.product, description.version)
    reason = (
        compose("by the defaults of their versions, or because of other settings")
        if is_other_version
        else compose("because of other settings")
    )
    fix = compose("To separate the version from its defaults, add a variant that declares the old ones")
    text = compose_count(
        len(defaults),
        "{number} variable differs between {baseline} and {name} {reason}: {listed}",
        "{number} variables differ between {baseline} and {name} {reason}: {listed}",
        reason=reason,
        baseline=baseline,
        name=name,
        listed=_listed_differences(defaults),
    )
    return make_finding("note", text, _evidence_of(defaults), fix if is_other_version else "")


def _listed_differences(found_differences: Sequence[Difference]) -> str:
    """The first variables with both values."""
    parts: list[str] = []
    for entry in found_differences[:LISTED_MAX]:
        before, after = (
            compose("none") if value is None else value or "''" for value in entry.values.values()
        )
        parts.append(compose("{name} ({before} and {after})", name=entry.name, before=before, after=after))
    if len(found_differences) > LISTED_MAX:
        parts.append(compose("{number} more", number=len(found_differences) - LISTED_MAX))
    return join(", ", parts)


def _evidence_of(found_differences: Sequence[Difference]) -> dict[str, object]:
    return {"variables": {entry.name: dict(entry.values) for entry in found_differences}}


@check(
    "P06",
    "Durability and isolation are the same",
    Moment.READY,
    in_sweep=(Moment.READY,),
    at_first_start=True,
    caveat=mark("durability or isolation differ, or are weak"),
)
def durability_and_isolation(
    context: Context, description: Description, variant: Variant
) -> Iterator[Finding]:
    """Finds servers that guarantee less than others, or than by default, when they crash.

    Catches a throughput that was bought with durability. Templates of vendors for benchmarks set
    innodb_flush_log_at_trx_commit = 0 and sync_binlog = 1000.

    Rule: the settings that decide what survives a crash, and the isolation level, must be the same on all
    servers unless the experiment declares the difference, and must not guarantee less than the product's
    default unless the experiment compares them. Otherwise the finding is a warning. A note lists them for
    each variant.
    """
    values = _durability_of(description, variant)
    if not values:
        return
    listed = join(", ", (f"{name} = {value or compose('none')}" for name, value in values.items()))
    text = compose("durability and isolation: {listed}", listed=listed)
    yield make_finding("note", text, {"settings": values})
    others = {}
    if context.baseline_description is not None:
        others = _durability_of(context.baseline_description, context.baseline)
    compared = _compared_settings(context, description, values, others)
    defaults = PRODUCTS[description.product].defaults
    weaker = [
        f"{name} = {value}"
        for name, value in values.items()
        if name not in compared
        and value != defaults.get(name)
        and is_weaker(name, values, description.product)
    ]
    if weaker:
        yield make_finding(
            "warn",
            compose(
                "{listed} guarantees less than the default of {product}: the results do not hold for a "
                "server with its defaults",
                listed=join(", ", weaker),
                product=description.product,
            ),
            {"weaker": weaker},
            compose("Use the default, or compare both values"),
        )
    yield from _undeclared_differences(context, values, others, compared)


def _compared_settings(
    context: Context, description: Description, values: Mapping[str, str], others: Mapping[str, str]
) -> set[str]:
    """The variables whose difference the experiment declares, by their newer names."""
    keys = {
        key.rpartition(".")[2]
        for variant in context.experiment.variants[1:]
        for key in list_differences(context.experiment, variant)
    }
    if (peer := context.baseline_description) is not None:
        # Options of `config` and `arguments` are declared too.
        declared = map(variable_name, (*peer.declared, *description.declared))
        keys |= {name for name in declared if values.get(name) != others.get(name)}
    return {OLD_DURABILITY_NAMES.get(key, key) for key in keys}


def _undeclared_differences(
    context: Context, values: Mapping[str, str], others: Mapping[str, str], compared: set[str]
) -> Iterator[Finding]:
    baseline = context.baseline
    differing = {
        name: {baseline.name: others[name], context.subject: values[name]}
        for name in values
        if name in others and name not in compared and not is_equal(name, others[name], values[name])
    }
    if not differing:
        return
    listed = join(
        ", ",
        (
            compose("{name} ({before} and {after})", name=name, before=before, after=after)
            for name, (before, after) in ((name, both.values()) for name, both in differing.items())
        ),
    )
    yield make_finding(
        "warn",
        compose(
            "durability or isolation differ between {baseline} and {name}, which the experiment does not "
            "declare: {listed}",
            baseline=baseline.name,
            name=context.subject,
            listed=listed,
        ),
        differing,
        compose("Set the same values on both servers, or declare them in [variant.server.variables]"),
    )


def _durability_of(description: Description, variant: Variant) -> dict[str, str]:
    return durability(description.record(), variant.session.variables)


@check(
    "P17",
    "Declared differences take effect",
    Moment.READY,
    caveat=mark("the variants may not differ for this workload"),
)
def effect_of_differences(
    context: Context, variant: Variant, description: Description, baseline_description: Description
) -> Iterator[Finding]:
    """Finds declared differences without effect: equal values on both servers, or an ignored variable.

    Catches settings without effect. A published benchmark compared 1 and 8 buffer pool instances and never
    read the value back: MySQL uses one instance if the pool is smaller than 1G, and MariaDB always uses one.

    Rule: of the variables in which a variant's declaration differs from the baseline, at least one must
    have an effect. If none has an effect, a warning says that the variants are identical; if only
    some have one, a note names the others. A variable that the server is known to ignore has no effect. After
    the run the judge reports P17 too, if no counter changed.
    """
    baseline = context.baseline
    declared = sorted(differing_variables(baseline, variant))
    without_effect = {
        name: why
        for name in declared
        if (why := _reason_without_effect(name, baseline_description, description))
    }
    if not without_effect:
        return
    listed = join(
        "; ", (compose("{name} ({why})", name=name, why=why) for name, why in without_effect.items())
    )
    others = len(declared) - len(without_effect) or _count_other_differences(context.experiment, variant)
    yield make_finding(
        "note" if others else "warn",
        compose(
            "{name} differs from {name_2} by settings without effect: {listed}",
            name=variant.name,
            name_2=baseline.name,
            listed=listed,
        )
        + ("" if others else compose(" The two variants are identical: a difference between them is noise")),
        {"idle": without_effect, "declared": declared},
        "",
        variant.name,
    )


def _reason_without_effect(name: str, baseline: Description, variant: Description) -> str | None:
    """Why a declared difference has no effect; None if it has one, or if the servers do not report it."""
    for description in (variant, baseline):
        reason = IGNORED.get((description.product, name))
        if reason and not _takes_effect(name, description):
            return reason
    before, after = baseline.variables.get(name), variant.variables.get(name)
    return (
        compose("both servers have {after}", after=after) if after is not None and before == after else None
    )


def _takes_effect(name: str, description: Description) -> bool:
    """Whether the variable takes effect on this server."""
    variables = description.variables
    takes_effect = {
        "query_cache_size": variables.get("query_cache_type") not in (None, "OFF", "0"),
        "thread_pool_size": variables.get("thread_handling") == "pool-of-threads",
        "innodb_log_file_size": "innodb_redo_log_capacity" not in variables,
        "innodb_log_files_in_group": "innodb_redo_log_capacity" not in variables,
    }
    return takes_effect.get(name, False)


def _count_other_differences(experiment: Experiment, variant: Variant) -> int:
    """Number of settings other than server variables that differ from the baseline's."""
    return sum(not key.startswith("variables.") for key in list_differences(experiment, variant))
