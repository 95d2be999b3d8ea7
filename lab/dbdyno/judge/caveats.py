"""Writes the caveats at the end of a verdict sentence: short warnings with their codes, overrides with their
reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dbdyno.finding import Finding
from dbdyno.judge.wording import count, interval, signed
from dbdyno.store.verdict import caveats_text


def with_caveats(result: str, failures: Iterable[str], findings: Sequence[Finding]) -> str:
    """The sentence `result`, followed by the failures of servers, and then by the caveats."""
    return f"{'; '.join([result, *failures])}.{caveats_text(caveats(findings))}"


def caveats(findings: Sequence[Finding]) -> list[str]:
    """Overrides and warnings as short texts, without duplicates."""
    overridden = [
        f"{finding.code} overridden: “{finding.override}”"
        for finding in findings
        if finding.override and finding.level != "note"
    ]
    warnings = [_summary(one) for one in findings if one.level == "warn" and not one.override]
    return list(dict.fromkeys([*sorted(overridden), *filter(None, warnings)]))


def _summary(finding: Finding) -> str:
    """A warning as a short text; "" if the sentence already mentions it."""
    summary = _SUMMARIES.get(finding.code)
    text = summary(finding) if callable(summary) else summary
    if text is None:
        return f"see {finding.code}"
    return f"{text} ({finding.code})" if text else ""


def _generator(finding: Finding) -> str:
    """D01: the finding has the code of the engine's warning, or none if the load generator was
    short of CPU time.
    """
    code = finding.evidence.get("warning")
    if code == "generator-late":
        lag_ms = finding.evidence.get("lag_us_p99", 0.0) / 1000.0
        amount = f" (in the worst second, 1 % of wake-ups by more than {lag_ms:.1f} ms)" if lag_ms else ""
        return f"the load generator was late{amount}"
    if code == "client-delay":
        return "replies waited for the load generator"
    if code in (None, "generator-saturated"):
        return "the load generator was near its limit"
    return f"the engine warned ({code})"


def _contradictory(finding: Finding) -> str:
    number = len(finding.evidence["trials"])
    return f"{count(number, 'contradictory trial')} of {finding.subject} left out"


def _foreign(finding: Finding) -> str:
    names = [str(process["name"]) for process in finding.evidence.get("processes", ())]
    listed = f" ({', '.join(names[:3])})" if names else ""
    blocks = finding.evidence.get("remaining", 0)
    where = f" in {count(blocks, 'block')}" if blocks else ""
    return f"other processes{listed} used the CPUs of server and client{where}"


def _warm_up(finding: Finding) -> str:
    evidence = finding.evidence
    # The second name is that of runs before the end of November 2026.
    if evidence["what"] in ("warmup-trial", "rehearsal"):
        return f"{evidence['variant']} had not settled after {evidence['length_s']:g} s"
    if evidence["what"] in ("no-warmup-trial", "no-rehearsal"):
        return f"the warm-up trial of {evidence['variant']} failed, so its warm state is not checked"
    percent = evidence["change_percent"]
    change = f"{'rose' if percent > 0 else 'fell'} by {abs(percent):.1f} %"
    more = f" more than that of {evidence['baseline']}" if "baseline" in evidence else ""
    when = "during the measurement" if evidence["what"] == "within" else "from the warm-up to the measurement"
    return f"throughput of {evidence['variant']} still {change}{more} {when}"


def _missing(finding: Finding) -> str:
    evidence = finding.evidence
    if "left_out" in evidence:
        return f"{count(evidence['left_out'], 'trial')} left out"
    if "in_repeated" in evidence:
        number = count(evidence["in_repeated"], "trial")
        return f"{number} of {finding.subject} failed in a block that was repeated"
    # The sentence itself has the server failures and the missing trials, and it does not depend on counters.
    return ""


def _cpus(finding: Finding) -> str:
    evidence = finding.evidence
    if "cpus" in evidence:
        return f"client and server share CPU {evidence['cpus']}: the result holds for this arrangement"
    names = sorted({str(one["name"]) for one in evidence.get("busy", ())})
    return f"another database server was busy on this machine ({', '.join(names)})"


def _order(finding: Finding) -> str:
    evidence = finding.evidence
    return (
        f"the variant that ran later in a block had {signed(evidence['effect_percent'])} % "
        f"{evidence['metric']}; without this order effect {signed(evidence['crossover_percent'])} % "
        f"({interval(evidence['crossover_interval_percent'])})"
    )


def _overload(finding: Finding) -> str:
    trials = len(set(finding.evidence.get("backlog", ())))
    return f"{finding.subject} could not keep up in {count(trials, 'trial')}"


# Code of a check -> the short text for its warnings, or a function that writes it.
_SUMMARIES: Mapping[str, str | Callable[[Finding], str]] = {
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
    "P09": "statements examined or returned unexpected numbers of rows",
    "P11": _cpus,
    "P14": "the data are about as large as the cache",
    "P15": "the design is weak",
    "P17": "the variants may not differ in what this workload does",
    "P19": "the memory or disk is unusual",
    "P22": "the sessions of the variants differ",
    "R01": _warm_up,
    "R03": _contradictory,
    "R04": _missing,
    "R05": "identical variants differ",
    "R07": _overload,
    "R10": _order,
    "R12": "one of the variants stalls in some slices, which the throughput of the typical slice hides",
    "R16": "files were changed after they were measured",
    "R14": "transactions are too long for the slices",
    "R17": "the limit of the load was reached",
}
