"""What a verdict sentence says besides the result: warnings in words, and overrides with their reason.

The words come first and the code of the check behind them, so that a reader need not look anything up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Finding = Mapping[str, Any]


def caveats(findings: Sequence[Finding]) -> list[str]:
    """The findings that a reader must know before believing a result, each in a few words."""
    overridden = [
        f"{finding['code']} overridden: “{finding['override']}”"
        for finding in findings
        if finding.get("override") and finding["level"] != "note"
    ]
    warnings = [finding for finding in findings if finding["level"] == "warn" and not finding.get("override")]
    known = [_words(finding) for finding in warnings]
    return list(dict.fromkeys([*sorted(overridden), *filter(None, known)]))


def _words(finding: Finding) -> str:
    """One warning in a few words; "" where the sentence says it elsewhere."""
    code = str(finding["code"])
    found = _WORDS.get(code)
    text = found(finding) if callable(found) else found
    if text is None:
        return f"see {code}"
    return f"{text} ({code})" if text else ""


def _generator(finding: Finding) -> str:
    code = finding["evidence"].get("warning")
    if code is None:
        return "the load generator was near its limit"
    if "late" in str(code) or "lag" in str(code) or "delay" in str(code):
        return "the load generator was late"
    return "the load generator was disturbed"


def _foreign(finding: Finding) -> str:
    names = [str(process["name"]) for process in finding["evidence"].get("processes", ())]
    used = f" ({', '.join(names[:3])})" if names else ""
    blocks = finding["evidence"].get("remaining", 0)
    where = f" in {blocks} block{'s' if blocks > 1 else ''}" if blocks else ""
    return f"other processes{used} used the CPUs of server and client{where}"


def _warm_up(finding: Finding) -> str:
    evidence = finding["evidence"]
    percent = evidence.get("change_percent")
    if evidence.get("what") == "rehearsal":
        return f"{evidence['variant']} had not settled after {evidence['length_s']:g} s"
    if evidence.get("what") == "no-rehearsal":
        return f"the long trial of {evidence['variant']} failed, so its warm state is not checked"
    if percent is None:
        return "the warm-up reached into the measurement"
    moved = "rose" if percent > 0 else "fell"
    whose = evidence.get("variant")
    of = f" of {whose}" if whose else ""
    return f"throughput{of} still {moved} by {abs(percent):.1f} % during the trials"


def _missing(finding: Finding) -> str:
    evidence = finding["evidence"]
    if "left_out" in evidence:
        number = evidence["left_out"]
        return f"{number} trial{'s' if number > 1 else ''} left out"
    # Failures of servers and trials that have not run are part of the sentence; counters are not its subject.
    return ""


def _cpus(finding: Finding) -> str:
    evidence = finding["evidence"]
    if "cpus" in evidence:
        return f"client and server share CPU {evidence['cpus']}: the result holds for this arrangement"
    names = sorted({str(one["name"]) for one in evidence.get("busy", ())})
    return f"another database server was busy on this machine ({', '.join(names)})"


def _order(finding: Finding) -> str:
    evidence = finding["evidence"]
    low, high = evidence["crossover_interval_percent"]
    return (
        f"the variant that ran later in a block had {evidence['effect_percent']:+.1f} %; without this "
        "order effect "
        f"{evidence['crossover_percent']:+.1f} % ({low:+.1f} to {high:+.1f})"
    )


def _overload(finding: Finding) -> str:
    subject = finding.get("subject")
    trials = len(set(finding["evidence"].get("backlog", ())))
    return (
        f"{subject} could not keep up in {trials} trial{'s' if trials != 1 else ''}" if trials else "overload"
    )


_WORDS: Mapping[str, str | Callable[[Finding], str]] = {
    "D01": _generator,
    "D03": "errors were frequent or differ between the variants",
    "D04": "row-count mismatches",
    "D05": "connections were lost",
    "D06": _foreign,
    "P02": "the tables differ from the declaration",
    "P03": "the server's identity is in doubt",
    "P04": "a setting did not take effect as declared",
    "P07": "connections or statements are near a limit",
    "P08": "execution plans differ or scan tables",
    "P09": "row counts are off",
    "P11": _cpus,
    "P14": "the data are about as large as the cache",
    "P15": "the design is weak",
    "P17": "the variants may not differ in what this workload does",
    "P19": "the memory or disk is unusual",
    "P22": "the sessions of the variants differ",
    "R01": _warm_up,
    "R03": "a contradictory trial was left out",
    "R04": _missing,
    "R05": "identical variants differ",
    "R07": _overload,
    "R10": _order,
}
