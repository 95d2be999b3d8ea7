"""The list of all checks, and the function that runs them.

A new check is one file in this folder that defines a `CHECK`, and one line in `_MODULES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.finding import LEVELS, Finding
from dbdyno.servers.server import ServerProblem, StatementRefused
from dbdyno.text import compose

_MODULES = (
    "p02_data",
    "p03_identity",
    "p04_effective",
    "p05_variables",
    "p06_durability",
    "p07_capacity",
    "p08_statements",
    "p09_rows",
    "p10_hosts",
    "p11_shared_cpus",
    "p14_cache",
    "p15_design",
    "p16_loads",
    "p17_difference_effect",
    "p18_duration",
    "p19_memory",
    "p20_secrets",
    "p22_thread_pool",
    "p23_builds",
    "p24_consistency",
    "p25_proxy",
    "p26_unreported",
    "p27_commits",
)

ALL: tuple[Check, ...] = tuple(import_module(f"dbdyno.checks.{name}").CHECK for name in _MODULES)

# Checks that need loaded data.
NEED_DATA = frozenset({"P02", "P08", "P09", "P24"})


def run(moment: Moment, context: Context, codes: Iterable[str] | None = None) -> list[Finding]:
    """Run the checks of this moment and return their findings, the most severe first.

    `codes` selects some of the checks. A stop with an override in the experiment gets the reason of
    the override. A check whose statement a server refuses that dbdyno has not started yields a note. Raises
    `servers.server.ServerProblem` if the server no longer answers and no check yields a stop.
    """
    selected = None if codes is None else frozenset(codes)
    findings: list[Finding] = []
    first_problem: ServerProblem | None = None
    for check in ALL:
        if moment in check.moments and (selected is None or check.code in selected):
            try:
                # Those before a refusal stay.
                findings.extend(_apply_override(finding, context) for finding in check.find(moment, context))
            except StatementRefused as refusal:
                if context.server is None or context.server.private:
                    first_problem = first_problem or refusal
                else:
                    # A server that speaks the protocol may be another product.
                    text = compose("not checked, because {refusal}", refusal=refusal.text)
                    findings.append(Finding(check.code, "note", text, {}, context.subject))
            except ServerProblem as problem:
                first_problem = first_problem or problem
    # A stop explains more than the error of another check.
    if first_problem is not None and not blocking_findings(findings):
        raise first_problem
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def blocking_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that forbid a comparison: those of level stop without an override."""
    return [finding for finding in findings if finding.is_blocking]


def _apply_override(finding: Finding, context: Context) -> Finding:
    """The finding with its override. Only a stop can be overridden, not a warning."""
    reason = context.experiment.override.get(finding.code)
    return replace(finding, override=reason) if reason is not None and finding.level == "stop" else finding
