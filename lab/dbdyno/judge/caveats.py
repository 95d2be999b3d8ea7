"""Writes the caveats at the end of a verdict sentence: short warnings with their codes, overrides with their
reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dbdyno.finding import Finding
from dbdyno.judge.wording import blocks_count, interval, signed, trials_count
from dbdyno.store.verdict import caveats_text
from dbdyno.text import compose, compose_count, join


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
    summary = _SUMMARIES.get(finding.code)
    text = summary(finding) if callable(summary) else summary
    if text is None:
        return compose("see {code}", code=finding.code)
    return join("", (text, f" ({finding.code})")) if text else ""


def _generator(finding: Finding) -> str:
    """D01: the finding has the code of the engine's warning, or none if the load generator was
    short of CPU time.
    """
    code = finding.evidence.get("warning")
    if code == "generator-late":
        lag_ms = finding.evidence.get("lag_us_p99", 0.0) / 1000.0
        amount = (
            compose(" (in the worst second, 1 % of wake-ups by more than {lag_ms:.1f} ms)", lag_ms=lag_ms)
            if lag_ms
            else ""
        )
        return compose("the load generator was late{amount}", amount=amount)
    if code == "client-delay":
        return compose("replies waited for the load generator")
    if code in (None, "generator-saturated"):
        return compose("the load generator was near its limit")
    return compose("the engine warned ({code})", code=code)


def _contradictory(finding: Finding) -> str:
    number = len(finding.evidence["trials"])
    return compose_count(
        number,
        "{number} contradictory trial of {variant} left out",
        "{number} contradictory trials of {variant} left out",
        variant=finding.subject,
    )


def _foreign(finding: Finding) -> str:
    if percents := finding.evidence.get("percents"):
        (baseline, one), (variant, other) = percents.items()
        return compose(
            "other processes used {one:.1f} % of the CPUs next to {baseline} and {other:.1f} % next to "
            "{variant}",
            one=one,
            baseline=baseline,
            other=other,
            variant=variant,
        )
    names = [str(process["name"]) for process in finding.evidence.get("processes", ())]
    listed = f" ({', '.join(names[:3])})" if names else ""
    blocks = finding.evidence.get("remaining", 0)
    where = compose(" in {count}", count=blocks_count(blocks)) if blocks else ""
    return compose(
        "other processes{listed} used the CPUs of server and client{where}", listed=listed, where=where
    )


def _warm_up(finding: Finding) -> str:
    evidence = finding.evidence
    # The second name is that of runs before the end of November 2026.
    if evidence["what"] in ("warmup-trial", "rehearsal"):
        return compose(
            "{variant} had not settled after {length_s:g} s",
            variant=evidence["variant"],
            length_s=evidence["length_s"],
        )
    if evidence["what"] in ("no-warmup-trial", "no-rehearsal"):
        return compose(
            "the warm-up trial of {variant} failed, so its warm state is not checked",
            variant=evidence["variant"],
        )
    percent = evidence["change_percent"]
    change = (
        compose("rose by {percent:.1f} %", percent=percent)
        if percent > 0
        else compose("fell by {percent:.1f} %", percent=-percent)
    )
    more = (
        compose(" more than that of {baseline}", baseline=evidence["baseline"])
        if "baseline" in evidence
        else ""
    )
    when = (
        compose("during the measurement")
        if evidence["what"] == "within"
        else compose("from the warm-up to the measurement")
    )
    return compose(
        "throughput of {variant} still {change}{more} {when}",
        variant=evidence["variant"],
        change=change,
        more=more,
        when=when,
    )


def _missing(finding: Finding) -> str:
    evidence = finding.evidence
    if "left_out" in evidence:
        return compose("{count} left out", count=trials_count(evidence["left_out"]))
    if "in_repeated" in evidence:
        number = trials_count(evidence["in_repeated"])
        return compose(
            "{number} of {subject} failed in a block that was repeated",
            number=number,
            subject=finding.subject,
        )
    # The sentence itself has the server failures and the missing trials, and it does not depend on counters.
    return ""


def _cpus(finding: Finding) -> str:
    evidence = finding.evidence
    if "cpus" in evidence:
        return compose(
            "client and server share CPU {cpus}: the result holds for this arrangement", cpus=evidence["cpus"]
        )
    return compose("another database server was busy on this machine")


def _resources(finding: Finding) -> str:
    if "quota_cpus" in finding.evidence:
        return compose("a control group limits the CPU time of client and server")
    return compose("the memory or disk is unusual")


def _order(finding: Finding) -> str:
    evidence = finding.evidence
    values = {
        "effect_percent": signed(evidence["effect_percent"]),
        "metric": evidence["metric"],
        "crossover_percent": signed(evidence["crossover_percent"]),
        "interval": interval(evidence["crossover_interval_percent"]),
    }
    if averaged := evidence.get("workloads"):
        return compose(
            "on average of {number} tests, the variant that ran later in a block had {effect_percent} % "
            "{metric}; their mean without this order effect is {crossover_percent} % ({interval})",
            number=len(averaged),
            **values,
        )
    return compose(
        "the variant that ran later in a block had {effect_percent} % {metric}; without this "
        "order effect {crossover_percent} % ({interval})",
        **values,
    )


def _overload(finding: Finding) -> str:
    trials = len(set(finding.evidence.get("backlog", ())))
    return compose(
        "{subject} could not keep up in {count}", subject=finding.subject, count=trials_count(trials)
    )


# Code of a check -> the short text for its warnings, or a function that writes it.
_SUMMARIES: Mapping[str, str | Callable[[Finding], str]] = {
    "D01": _generator,
    "D02": compose("the server's machine lacked CPU time or memory"),
    "D03": compose("errors were frequent or differ between the variants"),
    "D04": compose("row-count mismatches"),
    "D05": compose("connections were lost"),
    "D06": _foreign,
    "D07": compose("the variants leave different amounts of work for later"),
    "D08": compose("the load generators of the fleet differ"),
    "P02": compose("the tables differ from the declaration"),
    "P03": compose("the server's identity is in doubt"),
    "P04": compose("a setting did not take effect as declared"),
    "P05": compose("variables differ that nobody declared"),
    "P06": compose("durability or isolation differ, or are weaker than by default"),
    "P07": compose("connections or statements are near a limit"),
    "P08": compose("execution plans differ or scan tables"),
    "P09": compose("statements examined or returned unexpected numbers of rows"),
    "P10": compose("the machines differ"),
    "P11": _cpus,
    "P12": compose("round trips to the servers decide a part of the result"),
    "P13": compose("the load generator is close to its own limit"),
    "P14": compose("the data are about as large as the cache"),
    "P15": compose("the design is weak"),
    "P17": compose("the variants may not differ in what this workload does"),
    "P19": _resources,
    "P20": "",
    "P22": compose("the sessions of the variants differ"),
    "P23": compose("the servers were built differently"),
    "P24": compose("the data are inconsistent after the load"),
    "P25": compose("the proxy does not keep the settings of the sessions"),
    "P27": compose("transactions count that were not committed"),
    "R01": _warm_up,
    "R02": compose("the data changed during the run"),
    "R03": _contradictory,
    "R04": _missing,
    "R05": compose("identical variants differ"),
    "R07": _overload,
    "R08": compose("the difference is smaller than the resolution of latencies"),
    "R09": compose("the first load after a start is measured with a colder cache"),
    "R10": _order,
    "R12": compose(
        "one of the variants stalls in some slices, which the throughput of the typical slice hides"
    ),
    "R16": compose("files were changed after they were measured"),
    "R14": compose("transactions are too long for the slices"),
    "R17": compose("the limit of the load was reached"),
    "R18": compose("a background load did not run as demanded"),
}
