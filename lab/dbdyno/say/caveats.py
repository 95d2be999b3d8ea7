"""Writes the caveats at the end of a verdict sentence: short warnings with their codes, overrides with their
reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbdyno.codes import caveat_of, form
from dbdyno.finding import Finding
from dbdyno.rules.register import CAVEATS as RULES_CAVEATS
from dbdyno.store.verdict import caveats_text
from dbdyno.text import compose, join


def with_caveats(result: str, failures: Iterable[str], findings: Sequence[Finding]) -> str:
    """The sentence `result`, followed by the failures of servers, and then by the caveats."""
    return join("", (join("; ", [result, *failures]), ".")) + caveats_text(caveats(findings))


def caveats(findings: Sequence[Finding]) -> list[str]:
    """Overrides and warnings as short texts, without duplicates."""
    overridden = [
        compose("{code} overridden: “{override}”", code=finding.code, override=finding.override)
        for finding in findings
        if finding.override and finding.level != "note"
    ]
    warnings = [_summary(one) for one in findings if one.level == "warn" and not one.override]
    return list(dict.fromkeys([*sorted(overridden), *filter(None, warnings)]))


def _summary(finding: Finding) -> str:
    """A warning as a short text; "" if the sentence already mentions it."""
    text = RULES_CAVEATS.get(finding.code) or caveat_of(finding.code)
    short = text(finding) if callable(text) else form(text, finding.evidence)
    if short is None:
        return compose("see {code}", code=finding.code)
    return join("", (short, f" ({finding.code})")) if short else ""
