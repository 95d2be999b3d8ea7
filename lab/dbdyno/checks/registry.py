"""The catalogue of checks, and the one way to run it.

A new check is one file beside this one that ends in a `CHECK`, one line in `ALL`, and one section in
docs/checks.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dbdyno.checks import (
    p02_data,
    p03_identity,
    p04_effective,
    p07_capacity,
    p08_statements,
    p09_rows,
    p11_shared_cpus,
    p14_cache,
    p15_design,
    p17_factor_bites,
    p19_memory,
    p22_session,
)
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.finding import LEVELS, Finding
from dbdyno.servers.server import ServerProblem

ALL: tuple[Check, ...] = (
    p02_data.CHECK,
    p03_identity.CHECK,
    p04_effective.CHECK,
    p07_capacity.CHECK,
    p08_statements.CHECK,
    p09_rows.CHECK,
    p11_shared_cpus.CHECK,
    p14_cache.CHECK,
    p15_design.CHECK,
    p17_factor_bites.CHECK,
    p19_memory.CHECK,
    p22_session.CHECK,
)

# Checks of what is stored, which have nothing to look at before it is loaded.
OF_DATA = frozenset({"P02", "P08", "P09"})


def run(moment: Moment, context: Context, codes: Iterable[str] | None = None) -> list[Finding]:
    """Every finding of the checks that look at this moment, gravest first.

    `codes` limits the catalogue to those checks. The experiment's overrides are attached to the stops they
    name. Raises `servers.server.ServerProblem` when the server no longer answers, and no other check says
    why.
    """
    wanted = None if codes is None else frozenset(codes)
    findings: list[Finding] = []
    trouble: ServerProblem | None = None
    for check in ALL:
        if moment in check.moments and (wanted is None or check.code in wanted):
            try:
                findings += [_overridden(finding, context) for finding in check.find(moment, context)]
            except ServerProblem as problem:
                trouble = trouble or problem
    # A setting that makes the server refuse one check's question is best told by the check that found it.
    if trouble is not None and not stops(findings):
        raise trouble
    if moment is Moment.DESIGN:
        findings += _unknown_overrides(context)
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def stops(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that forbid a comparison: level stop, and no override."""
    return [finding for finding in findings if finding.stops]


def _overridden(finding: Finding, context: Context) -> Finding:
    """Only a stop can be let pass: a warning stays a warning whatever anybody says."""
    reason = context.experiment.override.get(finding.code)
    return replace(finding, override=reason) if reason is not None and finding.level == "stop" else finding


def _unknown_overrides(context: Context) -> list[Finding]:
    """A misspelt code would otherwise look like an override and do nothing."""
    known = [check.code for check in ALL]
    # Codes with these letters belong to checks on the stored run, which the judge makes.
    later = tuple("DRQ")
    return [
        Finding(
            code=code,
            level="warn",
            text=f"[override] {code} overrides nothing: no check has that code",
            fix=f"The codes are {', '.join(known)}",
            evidence={"known": known},
        )
        for code in context.experiment.override
        if code not in known and not code.startswith(later)
    ]
