"""P04: declared settings must be effective on the running server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.checks import session_settings
from dbdyno.checks.adjustments import rounding, rule
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.quantities import Setting, as_text, is_loose, variable_name, with_unit
from dbdyno.finding import Finding
from dbdyno.text import compose, mark
from dbdyno.variables.options import is_effective, variable_of


def find(_moment: Moment, context: Context) -> Iterator[Finding]:
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
    if context.description is None:
        return
    # The session's settings do not change from group to group.
    if context.first_description is None:
        yield from session_settings.find(context)
    variables, product = context.description.variables, context.description.product
    for option, declared in _declared(context).items():
        resolved = variable_of(option, declared, variables, product)
        if resolved is None:
            yield _missing_finding(option, declared, context.subject)
            continue
        name, value = resolved
        if value == "" and option in context.description.declared:
            # An option of a file without a value: the server chooses it.
            continue
        if not is_effective(name, with_unit(value, context.description.units.get(name)), variables):
            yield _difference_finding(name, as_text(value), variables, context)


def _declared(context: Context) -> dict[str, Setting]:
    """The values that configuration files and the experiment declare."""
    declared: dict[str, Setting] = dict(context.description.declared) if context.description else {}
    if context.variant is not None:
        options = {variable_name(option): option for option in declared}
        for option, value in context.variant.server.variables.items():
            declared.pop(options.get(variable_name(option), ""), None)
            declared[option] = value
    return declared


def _difference_finding(name: str, declared: str, variables: Mapping[str, str], context: Context) -> Finding:
    effective, subject = variables[name], context.subject
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
        return Finding(
            code="P04", level="note", text=text, evidence={**evidence, "rule": rounded}, subject=subject
        )
    server = context.variant.server if context.variant is not None else None
    if server is not None and not server.is_private and not server.set_global:
        return Finding(
            code="P04",
            level="stop",
            text=compose(
                "{name} is {effective} on the remote server; the experiment declares {declared}",
                name=name,
                effective=effective,
                declared=declared,
            ),
            fix=compose(
                "Set it on the server, declare {effective}, or let dbdyno set it (set_global = true)",
                effective=effective,
            ),
            evidence=evidence,
            subject=subject,
        )
    allowed = rule(name)
    because = (
        compose(" The server's rule: {allowed}", allowed=allowed)
        if allowed
        else compose(" See the warnings in the server's error log")
    )
    return Finding(
        code="P04",
        level="stop",
        text=compose(
            "{name} is {effective}, adjusted by the server from the declared {declared}.{because}",
            name=name,
            effective=effective,
            declared=declared,
            because=because,
        ),
        fix=compose(
            "Declare {name} = {effective}, or the settings that allow {declared}",
            name=name,
            effective=effective,
            declared=declared,
        ),
        evidence={**evidence, "rule": allowed},
        subject=subject,
    )


def _missing_finding(option: str, declared: Setting, subject: str) -> Finding:
    """A finding about an option that sets no variable of this server."""
    known = rule(variable_name(option))
    evidence = {
        "variable": variable_name(option),
        "declared": as_text(declared),
        "effective": None,
        "rule": known,
    }
    if is_loose(option):
        return Finding(
            "P04",
            "note",
            compose("the running server does not know {option} and ignores it", option=option),
            evidence,
            subject,
        )
    return Finding(
        code="P04",
        level="stop",
        text=compose(
            "the running server has no variable {option} (declared as {as_text}), so its effect "
            "cannot be verified{rule}",
            option=option,
            as_text=as_text(declared),
            rule=compose(": {rule}", rule=known) if known else "",
        ),
        fix=compose("Remove it; put an option without a variable into `arguments`"),
        evidence=evidence,
        subject=subject,
    )


CHECK = Check(
    "P04",
    "Declared settings are effective",
    frozenset({Moment.READY}),
    find,
    caveat=mark("a setting did not take effect as declared"),
)
