"""P06: variants have the same durability and isolation, and not less than by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.differences import list_differences
from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import is_equal, variable_name
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.text import compose, join, mark
from dbdyno.variables.durability import OLD_NAMES, durability, is_weaker


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds servers that guarantee less than others, or than by default, when they crash.

    Catches a throughput that was bought with durability. Templates of vendors for benchmarks set
    innodb_flush_log_at_trx_commit = 0 and sync_binlog = 1000.

    Rule: the settings that decide what survives a crash, and the isolation level, must be the same on all
    servers unless the experiment declares the difference, and must not guarantee less than the product's
    default unless the experiment compares them. Otherwise the finding is a warning. A note lists them for
    each variant.
    """
    assert moment is Moment.READY, "P06 is registered for READY only"
    own, variant = context.description, context.variant
    if own is None or variant is None or context.first_description is not None:
        return
    values = _values(own, variant)
    if not values:
        return
    listed = join(", ", (f"{name} = {value or compose('none')}" for name, value in values.items()))
    text = compose("durability and isolation: {listed}", listed=listed)
    yield Finding("P06", "note", text, {"settings": values}, context.subject)
    compared = _compared(context, values)
    weaker = [
        f"{name} = {value}"
        for name, value in values.items()
        if name not in compared and is_weaker(name, values, own.product)
    ]
    if weaker:
        yield Finding(
            "P06",
            "warn",
            compose(
                "{listed} guarantees less than the default of {product}: the results do not hold for a "
                "server with its defaults",
                listed=join(", ", weaker),
                product=own.product,
            ),
            {"weaker": weaker},
            context.subject,
            fix=compose("Use the default, or compare both values"),
        )
    yield from _differences(context, values, compared)


def _compared(context: Context, values: Mapping[str, str]) -> set[str]:
    """The variables whose difference the experiment declares, by their newer names."""
    keys = {
        key.rpartition(".")[2]
        for one in context.experiment.variants[1:]
        for key in list_differences(context.experiment, one)
    }
    baseline = context.experiment.variants[0]
    peer = context.peers.get(baseline.name)
    if peer is not None and context.description is not None:
        # Options of `config` and `arguments` are declared too.
        others = _values(peer, baseline)
        declared = map(variable_name, (*peer.declared, *context.description.declared))
        keys |= {name for name in declared if values.get(name) != others.get(name)}
    return {OLD_NAMES.get(key, key) for key in keys}


def _differences(context: Context, values: Mapping[str, str], compared: set[str]) -> Iterator[Finding]:
    baseline = context.experiment.variants[0]
    peer = context.peers.get(baseline.name)
    if peer is None or context.subject == baseline.name:
        return
    others = _values(peer, baseline)
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
    yield Finding(
        "P06",
        "warn",
        compose(
            "durability or isolation differ between {baseline} and {name}, which the experiment does not "
            "declare: {listed}",
            baseline=baseline.name,
            name=context.subject,
            listed=listed,
        ),
        differing,
        context.subject,
        fix=compose("Set the same values on both servers, or declare them in [variant.server.variables]"),
    )


def _values(description: Description, variant: Variant) -> dict[str, str]:
    return durability(description.record(), variant.session.variables)


CHECK = Check(
    "P06",
    "Durability and isolation are the same",
    frozenset({Moment.READY}),
    find,
    caveat=mark("durability or isolation differ, or are weaker than by default"),
)
