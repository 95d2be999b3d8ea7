"""P25: the proxy of a variant can serve the load."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.model import Experiment, ScriptWorkload, SqlWorkload, Variant, Workload
from dbdyno.experiment.sql_reading import protocol_of
from dbdyno.finding import Finding, Level
from dbdyno.run.description import describe
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.proxies.proxy import Pool
from dbdyno.text import compose, mark

# Besides the load one client of dbdyno connects, to see that the proxy answers.
_OWN_CLIENTS = 1


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds limits and modes of a proxy with which the load would wait, fail, or run with other settings.

    Catches a pooler in session mode with fewer connections to the server than the load has: the rest of the
    load waits for ever. Catches prepared statements in transaction mode with a pooler that does not follow
    them, and statements of the session, such as SET, which then reach only one of the pooler's connections.

    Rule: a proxy must admit one client more than the load has connections. If a client keeps its connection
    to the server, there must be as many of these; otherwise the workload must not prepare statements, unless
    the proxy prepares them again. Otherwise the finding is a stop. Statements of the session in a pool whose
    connections change are a warning. A note names the proxy, its version, and what dbdyno set.
    """
    assert moment is Moment.READY, "P25 is registered for READY only"
    if context.variant is None or context.description is None:
        return
    facts = context.description.identity.get("proxy")
    if context.variant.proxy is None or facts is None:
        return
    program = PROGRAMS[context.variant.proxy.program]
    pool = program.pool(facts["settings"], facts["version"])
    title = f"{program.title} {facts['version']}"
    for workload in context.workloads:
        yield from _limits(context, title, pool, clients(context.experiment, workload, context.variant))
        if not pool.is_per_session:
            yield from _mode(context, title, pool, workload)
    own = ", ".join(f"{name} = {text}" for name, text in facts["set_by_dbdyno"].items())
    text = compose("the load connects to {title}", title=title)
    if own:
        text = compose("{text}; dbdyno set {own}", text=text, own=own)
    evidence = {key: facts[key] for key in ("program", "version", "binary", "settings", "set_by_dbdyno")}
    yield Finding("P25", "note", text, evidence, context.subject)


def clients(experiment: Experiment, workload: Workload, variant: Variant) -> int:
    """The most connections that the load of a workload has, with its background loads."""
    own = max(point.connections for point in experiment.load.points())
    return own + sum(one.connections for one in experiment.backgrounds(variant, workload.title))


def server_connections(variant: Variant, connections: int) -> int:
    """How many of the server's connections that many connections of the load need."""
    if variant.proxy is None:
        return connections
    settings = PROGRAMS[variant.proxy.program].declared(variant.proxy, variant.name)
    size = PROGRAMS[variant.proxy.program].pool(settings, "0").size
    return min(connections, size) if size else connections


def _limits(context: Context, title: str, pool: Pool, number: int) -> Iterator[Finding]:
    limits = [(pool.clients_setting, pool.clients, number + _OWN_CLIENTS)]
    if pool.is_per_session:
        limits.append((pool.size_setting, pool.size, number))
    for name, limit, need in limits:
        if 0 < limit < need:
            yield _finding(
                context,
                "stop",
                compose(
                    "{name} of {title} is {limit:,}, and the load needs {need:,}: the other connections "
                    "would wait",
                    name=name,
                    title=title,
                    limit=limit,
                    need=need,
                ),
                compose(
                    "Set {name} = {need} under [variant.proxy.settings], or lower [load] connections",
                    name=name,
                    need=need,
                ),
            )


def _mode(context: Context, title: str, pool: Pool, workload: Workload) -> Iterator[Finding]:
    variant = context.variant
    assert variant is not None, "a variant's server runs"
    protocol = protocol_of(variant.server)
    uses_prepared = isinstance(workload, ScriptWorkload) or bool(
        describe(context.experiment, workload, protocol, variant).prepared_per_connection
    )
    if uses_prepared and not pool.keeps_prepared:
        yield _finding(
            context,
            "stop",
            compose(
                "{workload} prepares statements, and {title} gives a client another connection to the server "
                "for each transaction, where they do not exist",
                workload=workload.title,
                title=title,
            ),
            compose("Write prepared = false under [variant.session], or use {fix}", fix=pool.prepared_fix),
        )
    own = workload.session if isinstance(workload, SqlWorkload) else ()
    if statements := (*own, *variant.session.statements(protocol)):
        yield _finding(
            context,
            "warn",
            compose(
                "{title} gives a client another connection to the server for each transaction: {statement} "
                "of the session holds only in some of them",
                title=title,
                statement=repr(statements[0]),
            ),
            compose("Set it for the account or the server, or let the proxy pool sessions"),
        )


def _finding(context: Context, level: Level, text: str, fix: str) -> Finding:
    return Finding("P25", level, text, {}, context.subject, fix=fix)


CHECK = Check(
    "P25",
    "The proxy can serve the load",
    frozenset({Moment.READY}),
    find,
    caveat=mark("the proxy does not keep the settings of the sessions"),
)
