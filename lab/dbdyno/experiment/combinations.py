"""The register of rules: they find errors of an experiment whose values are valid individually but not
together.

A rule is a function with the decorator `rule`. Its parameters are the names of what it needs: sections, by
the fields of `Experiment`, or `experiment`, for what the compared sections say together. It runs if these
sections are valid, whatever the others are.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from dbdyno.experiment import slices, sql_reading
from dbdyno.experiment.base import file_key
from dbdyno.experiment.dialect import POSTGRESQL
from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.family import has_verdict, is_factorial
from dbdyno.experiment.model import (
    FLEET_LOCAL,
    Client,
    ConnectionSettings,
    Design,
    Experiment,
    Factor,
    Fleet,
    Load,
    ScriptWorkload,
    SqlWorkload,
    Variant,
    Workload,
)
from dbdyno.experiment.resolving import relocate
from dbdyno.experiment.server import UNIX_SOCKET_ONLY
from dbdyno.experiment.sql_text import created_index
from dbdyno.experiment.variant import PROXY_TITLES
from dbdyno.experiment.workload import workload_title
from dbdyno.finding import codes

# The program that forwards any protocol, and TLS with it; the others are PostgreSQL's own and end a session.
_FORWARDS_ALL = "haproxy"
# Seconds. The engine's tick is 0.1 s; in a shorter measurement the ticks at both ends dominate.
DURATION_S_MIN = 0.5


Find = Callable[..., Iterable[InputError]]
AnyFind = TypeVar("AnyFind", bound=Find)
# In the order in which their errors are listed.
RULES: list[Find] = []
# The sections of a rule that needs `experiment`.
_COMPARED = ("design", "load", "workloads", "variants")


def rule(find: AnyFind) -> AnyFind:
    """Register a function that yields errors."""
    RULES.append(find)
    return find


def find_errors(experiment: Experiment, invalid: Collection[str] = ()) -> Iterator[InputError]:
    """The errors by all rules that need none of the `invalid` sections of the file."""
    known_sections = {**dict(experiment), "experiment": experiment}
    for find in RULES:
        names = inspect.signature(find).parameters
        sections = {entry for name in names for entry in (_COMPARED if name == "experiment" else (name,))}
        if not any(file_key(section) in invalid for section in sections):
            yield from find(**{name: known_sections[name] for name in names})


def find_duplicates(document: Mapping[str, Any]) -> Iterator[InputError]:
    """Names that several variants or workloads of a file have, whatever else is wrong with these."""
    yield from _duplicate_errors("variant", [str(entry.get("name")) for entry in document.get("variant", ())])
    yield from _duplicate_errors(
        "workload", [workload_title(entry) for entry in document.get("workload", ())]
    )


@rule
def find_override_errors(override: Mapping[str, Any]) -> Iterator[InputError]:
    """Errors in the codes and the reasons of [override]."""
    for code, reason in override.items():
        if code not in codes():
            fix = did_you_mean(code, codes())
            yield InputError(f"override.{code}", reason, "no check has this code", fix)
        elif isinstance(reason, str) and not reason.strip():
            fix = f'Write {code} = "the reason why the run may continue"'
            yield InputError(f"override.{code}", reason, "an override needs a reason", fix)


@rule
def _duration_errors(load: Load) -> Iterator[InputError]:
    if load.duration_s < DURATION_S_MIN:
        yield InputError("load.duration", f"{load.duration_s:g}s", "a trial measures at least 500ms")


@rule
def _transport_errors(load: Load, variants: Sequence[Variant]) -> Iterator[InputError]:
    for variant in variants:
        server, transport = variant.server, variant.load.transport or load.transport
        if server.kind == "local" and server.product in UNIX_SOCKET_ONLY and transport == "tcp":
            problem = (
                f"{server.product} listens on all interfaces, so dbdyno starts {variant.name} in a network "
                "of its own, which only a unix socket leaves"
            )
            yield InputError("load.transport", transport, problem, 'Write transport = "unix"')
            return


@rule
def _stop_errors(design: Design, variants: Sequence[Variant]) -> Iterator[InputError]:
    if design.stop is not None and len(variants) < 2:
        fix = "Add a [[variant]], or write blocks"
        yield InputError("design.stop", None, "one variant has no comparison that could end the run", fix)


@rule
def _max_loss_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of a limit without a variant whose loss it could limit."""
    if experiment.design.max_loss_percent is not None:
        if is_factorial(experiment):
            problem = "it limits the loss of a variant, but the experiment compares factors"
            yield InputError("design.max_loss_percent", None, problem, "Leave it out, or write variants")
        elif not has_verdict(experiment):
            problem = "no variant differs from the baseline, so there is no loss to limit"
            yield InputError("design.max_loss_percent", None, problem, "Leave it out, or change a variant")


@rule
def _error_rate_errors(design: Design, load: Load, factors: Sequence[Factor]) -> Iterator[InputError]:
    """What a false discovery rate cannot be combined with: it is known only when all p-values are."""
    if design.error_rate != "false-discovery":
        return
    problems: dict[str, str] = {}
    if len(factors) > 1:
        problems["factors have a family-wise error rate"] = "Leave it out"
    if design.stop is not None:
        problems["with design.stop a verdict may come after any block"] = "Write blocks = 20"
    if design.max_loss_percent is not None:
        problems["the gate of max_loss has a family-wise error rate"] = "Leave it out"
    if len(load.points()) > 1 and load.latency_objective is None:
        fix = "Write one number of connections or one rate"
        problems["single loads have a family-wise error rate"] = fix
    for problem, fix in problems.items():
        yield InputError("design.error_rate", design.error_rate, problem, fix)


# A function of another module, which decides by it too.
rule(slices.find_errors)


@rule
def _objective_errors(experiment: Experiment) -> Iterator[InputError]:
    """What a latency objective, or the probe that finds its rates, cannot do."""
    load = experiment.load
    if load.latency_objective is not None and is_factorial(experiment):
        problem = "the capacity of variants is judged, but the experiment compares factors"
        yield InputError("load.latency_objective", None, problem, "Leave it out, or write variants")
    if not load.needs_probe:
        return
    fix = "Give rate = [...]"
    if len(experiment.workloads) > 1:
        problem = "a probe finds the rates of one workload, and the experiment has several"
        yield InputError(
            "load.latency_objective", None, problem, f"{fix}, or write one experiment file per workload"
        )
    if not experiment.design.renews_data:
        problem = "the probe that finds the rates changes the data, and nothing renews them"
        yield InputError(
            "load.latency_objective", None, problem, f'{fix}, or set state = "restore" or "reset"'
        )


@rule
def _writes_errors(load: Load, workloads: Sequence[Workload]) -> Iterator[InputError]:
    """Errors of a load that leaves out what it cannot leave out."""
    if load.writes != "skip":
        return
    for workload in workloads:
        if not slices.only_reads(workload) and not (isinstance(workload, SqlWorkload) and workload.replay):
            problem = f"only statements of a recorded log can be left out, and {workload.title} is none"
            yield InputError("load.writes", "skip", problem, 'Write "refuse" or "replay"')


@rule
def _metric_errors(design: Design, load: Load, factors: Sequence[Factor]) -> Iterator[InputError]:
    """Errors for metrics that cannot be compared."""
    names = design.metrics
    if load.latency_objective is not None and names:
        problem, fix = (
            "with a latency objective the capacity is judged",
            "Leave out metrics, or leave out the latency objective",
        )
        yield InputError("design.metrics", list(names), problem, fix)
    elif load.rate and "throughput" in names:
        problem, fix = "the rate fixes the throughput", "Leave out throughput, or replace rate by connections"
        yield InputError("design.metrics", list(names), problem, fix)
    if len(factors) > 1 and len(names) > 1:
        problem = "factors are compared by one metric"
        yield InputError("design.metrics", list(names), problem, f'Write metrics = ["{names[0]}"]')


@rule
def _statement_errors(workloads: Sequence[Workload], variants: Sequence[Variant]) -> Iterator[InputError]:
    """Errors in the SQL of the workloads, by the dialects of the servers that run it."""
    for workload in workloads:
        users = [
            variant
            for variant in variants
            if all(changed.title != workload.title for changed in variant.workloads)
        ]
        if isinstance(workload, SqlWorkload):
            servers = (variant.server for variant in users or variants[:1])
            dialects = sql_reading.dialects_of(servers)
            yield from sql_reading.find_errors(workload, dialects)
    for variant in variants:
        for changed in variant.workloads:
            if isinstance(changed, SqlWorkload):
                errors = sql_reading.find_errors(changed, [sql_reading.dialect_of(variant.server)])
                yield from relocate(errors, changed.title, f"variant[{variant.name}].workload")


@rule
def _background_errors(workloads: Sequence[Workload], variants: Sequence[Variant]) -> Iterator[InputError]:
    """Errors of background loads: their names, their statements, and tables that nothing would load."""
    dialects = sql_reading.dialects_of(variant.server for variant in variants)
    for workload in workloads:
        if isinstance(workload, ScriptWorkload):
            continue
        place = f"workload[{workload.title}].background"
        for name, count in Counter(entry.title for entry in workload.background).items():
            if count > 1:
                problem = f"{count} of them have this name"
                yield InputError(f"{place}[{name}]", None, problem, "Give each its own label")
        for background in workload.background:
            yield from relocate(
                sql_reading.find_errors(background, dialects),
                background.title,
                f"{place}[{background.title}]",
            )
            if background.has_data and not isinstance(workload, SqlWorkload):
                problem = f"{workload.title} has the tables, and nothing would load these"
                fix = "Leave out setup and tables, or use them in a workload of your own SQL"
                yield InputError(f"{place}[{background.title}].tables", None, problem, fix)


def _has_several_data(experiment: Experiment, variant: Variant) -> bool:
    """Whether the workloads of a variant load different data."""
    try:
        data = {json.dumps(workload.data(), sort_keys=True) for workload in experiment.workloads_of(variant)}
    except ValueError:
        # A generator is wrong, which `_statement_errors` reports.
        return False
    return len(data) > 1


@rule
def _all_variant_errors(experiment: Experiment) -> Iterator[InputError]:
    errors: list[InputError] = []
    for variant in experiment.variants:
        errors += [error for error in _variant_errors(experiment, variant) if error not in errors]
    yield from errors


def _variant_errors(experiment: Experiment, variant: Variant) -> Iterator[InputError]:
    """Errors of the load and the workloads of one variant."""
    place = f"variant[{variant.name}]"
    load, changes = experiment.load_for(variant), variant.load.changes()

    def key_of(name: str) -> str:
        return f"{place}.load.{name}" if name in changes else f"load.{name}"

    yield from _ineffective_keys(variant, load, place)
    yield from _proxy_errors(place, variant, load.transport)
    if variant.data.after and _has_several_data(experiment, variant):
        problem = "the workloads have different tables, and these statements would run on those of each"
        yield InputError(f"{place}.data.after", None, problem, "Write one experiment file per workload")
    try:
        Load.model_validate(load.model_dump())
    except ValidationError as invalid:
        for detail in invalid.errors():
            yield InputError(f"{place}.load", None, detail["msg"].removeprefix("Value error, "))
    for workload in experiment.workloads_of(variant):
        title = workload.title
        is_unreadable = isinstance(workload, SqlWorkload) and not (workload.prewarm or workload.tables)
        if load.prewarm == "scan" and is_unreadable:
            problem = f"{title} has no generated tables, so dbdyno does not know what to read"
            fix = f"Give workload[{title}].prewarm, a list of statements that read its data"
            yield InputError(key_of("prewarm"), "scan", problem, fix)
        if isinstance(workload, SqlWorkload) and workload.has_pauses and (load.is_open or load.think_time_s):
            problem = "its transactions have keying or think times, which replace think_time in a closed loop"
            fix = "Write pauses = false, or remove think_time and the rate from [load]"
            yield InputError(f"workload[{title}].pauses", True, problem, fix)
        if isinstance(workload, ScriptWorkload):
            if load.reconnect_every:
                problem = f"{title} is a script, which opens its connections itself"
                yield InputError(key_of("reconnect_every"), load.reconnect_every, problem, "Leave it out")
            if not workload.prepare and experiment.design.state == "reset":
                problem = f"{title} has prepare = false, so dbdyno cannot load its data again"
                yield InputError("design.state", "reset", problem, "Remove prepare = false")


def _ineffective_keys(variant: Variant, load: Load, place: str) -> Iterator[InputError]:
    """Errors for keys without effect, which would count as a difference between variants."""
    url = variant.server.url or ""
    if variant.load.transport == "unix" and not variant.server.is_private and "socket=" not in url:
        fix = "Add ?socket=/path to the URL, or leave it out"
        yield InputError(f"{place}.load.transport", "unix", "the server's URL names no socket", fix)
    if variant.load.think is not None and load.think_time_s is None:
        problem = "it has no effect without think_time"
        yield InputError(
            f"{place}.load.think", variant.load.think, problem, "Set think_time, or leave it out"
        )
    if variant.session.allow_clear_text and sql_reading.dialect_of(variant.server) is not POSTGRESQL:
        problem = "it is for servers of PostgreSQL's protocol"
        yield InputError(f"{place}.session.allow_clear_text", True, problem, "Leave it out")
    session, default = variant.session, ConnectionSettings.model_fields["zstd_level"].default
    if session.zstd_level != default and session.compression != "zstd" and "compression=zstd" not in url:
        problem = 'it has no effect without compression = "zstd"'
        yield InputError(f"{place}.session.zstd_level", session.zstd_level, problem, "Leave it out")


def _proxy_errors(place: str, variant: Variant, transport: str) -> Iterator[InputError]:
    """Errors of a variant's proxy that its server or the variant's connections cause."""
    proxy = variant.proxy
    if proxy is None:
        return
    title, key = PROXY_TITLES[proxy.program], f"{place}.proxy"
    if not variant.server.is_private:
        problem = (
            f"dbdyno starts proxies only in front of servers that it starts, not of {variant.server.kind}"
        )
        fix = "Start the proxy yourself, and write its address as url"
        yield InputError(f"{key}.program", proxy.program, problem, fix)
        return
    if transport == "unix":
        problem = 'the load reaches a proxy over TCP, and the transport is "unix"'
        yield InputError(f"{key}.program", proxy.program, problem, 'Write transport = "tcp"')
    if proxy.program == _FORWARDS_ALL:
        return
    if sql_reading.dialect_of(variant.server) is not POSTGRESQL:
        fix = f'Write program = "{_FORWARDS_ALL}", or product = "postgresql"'
        yield InputError(f"{key}.program", proxy.program, f"{title} is a proxy for PostgreSQL", fix)
    if variant.session.tls != "disabled":
        problem = f"dbdyno starts {title} without TLS"
        fix = f'Leave it out, or write program = "{_FORWARDS_ALL}", which forwards TLS'
        yield InputError(f"{place}.session.tls", variant.session.tls, problem, fix)


@rule
def _fleet_errors(
    fleet: Fleet | None, load: Load, client: Client, variants: Sequence[Variant]
) -> Iterator[InputError]:
    """Errors of a fleet that other sections cause."""
    if fleet is None:
        return
    loops = fleet.engines * (1 if client.workers == "auto" else client.workers)
    for connections in load.connections:
        if connections < loops:
            few = "1 connection is" if connections == 1 else f"{connections} connections are"
            what = f"{loops} event loops ({fleet.engines} engines)"
            problem, fix = f"{few} too few for {what}", f"Use at least {loops}"
            yield InputError("load.connections", connections, problem, f"{fix}, or fewer engines")
    if fleet.address == FLEET_LOCAL:
        return
    for variant in variants:
        key = f"variant[{variant.name}].server"
        if variant.server.is_private:
            problem = (
                "servers that dbdyno starts listen on this machine only, and the fleet's hosts are others"
            )
            fix = f'Give the url of a server that they reach, or write address = "{FLEET_LOCAL}" in [fleet]'
            yield InputError(key, variant.server.kind, problem, fix)
        elif (variant.load.transport or load.transport) == "unix":
            problem = "other hosts have no unix socket of the server"
            yield InputError("load.transport", "unix", problem, 'Write transport = "tcp"')


@rule
def _state_per_errors(design: Design) -> Iterator[InputError]:
    """Data that are not renewed have no start that several workloads could share."""
    if design.state_per == "block" and not design.renews_data:
        problem = f"state = {design.state!r} keeps the data of each workload apart"
        yield InputError("design.state_per", "block", problem, 'Set state = "restore" or "reset"')


@rule
def _state_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of servers that do not support `state`."""
    state = experiment.design.state
    for variant in experiment.variants:
        kind, possible = variant.server.kind, variant.server.states()
        if state not in possible:
            lacking = f" without {_COMMANDS[state]}" if kind == "command" and state in _COMMANDS else ""
            problem = (
                f"variant {variant.name!r} has a server of kind {kind}, which has no such state{lacking}"
            )
            fix = "Write " + " or ".join(f'state = "{entry}"' for entry in possible)
            yield InputError("design.state", state, problem, fix)
        if kind == "command" and state == "restore" and variant.data.after:
            problem = 'with state = "restore" dbdyno loads no data on a server of kind command'
            fix = "Run the statements on the data that your `restore` command restores"
            yield InputError(f"variant[{variant.name}].data.after", None, problem, fix)
    if not experiment.design.renews_data:
        yield from _shared_database_errors(experiment)


UNDO_FIX = 'Write undo = ["..."] in [variant.data], the statements that undo them'


def undo_problem(variant: Variant) -> str:
    """What `data.after` has that dbdyno cannot undo on existing tables; empty without such a statement."""
    data, dialect = variant.data, sql_reading.dialect_of(variant.server)
    unknown = [] if data.undo else [sql for sql in data.after if created_index(sql, dialect) is None]
    if not unknown:
        return ""
    return f"dbdyno does not know how to undo {unknown[0]!r} of {variant.name!r} (data.after)"


@rule
def _undo_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of changes of existing tables, which are undone after each group of trials."""
    for variant in experiment.variants:
        key = f"variant[{variant.name}].data"
        if variant.data.undo and not variant.data.after:
            yield InputError(
                f"{key}.undo", None, "it has no effect without after", "Write after, or leave it out"
            )
        loads = [
            not isinstance(entry, SqlWorkload) or entry.has_data for entry in experiment.workloads_of(variant)
        ]
        if not variant.server.is_private and not all(loads) and (problem := undo_problem(variant)):
            yield InputError(f"{key}.after", None, problem, UNDO_FIX)


def _shared_database_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of workloads and variants with different data in one existing database."""
    existing = [variant for variant in experiment.variants if not variant.server.is_private]
    for variant in existing:
        location = variant.server.data_location
        sharing = [entry for entry in existing if entry.server.data_location == location]
        data = {
            json.dumps([workload.data(), entry.data.after], sort_keys=True)
            for entry in sharing
            for workload in experiment.workloads_of(entry)
            # Others use no tables, or existing ones.
            if not isinstance(workload, SqlWorkload) or workload.has_data
        }
        if len(data) > 1:
            with_data = [entry.name for entry in sharing if entry.data.after or entry.workloads]
            problem = f"the workloads have different tables, and {sharing[0].name!r} has one database for all"
            if with_data and len(sharing) > 1:
                problem = f"{with_data[0]!r} has other data than the variants that use the same database"
            fix = 'Write state = "reset", or give all workloads the same tables and table_size'
            yield InputError("design.state", experiment.design.state, problem, fix)
            return


# Commands that a server of kind `command` needs, by state.
_COMMANDS = {"restart": "start and stop", "restore": "restore"}


def _duplicate_errors(section: str, names: list[str]) -> Iterator[InputError]:
    fix = "Give each its own label" if section == "workload" else "Give each its own name"
    for name, count in Counter(names).items():
        if count > 1:
            yield InputError(f"{section}[{name}]", None, f"{count} of them have this name", fix)
