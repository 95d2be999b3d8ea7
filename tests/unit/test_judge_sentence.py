"""The sentences, whole: one for each form that a verdict can take, and how numbers are put into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Arms, Making, Spoil, judged

from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding, Level
from dbdyno.result_text import decimals_for, signed, times
from dbdyno.say.caveats import caveats
from dbdyno.say.wording import blocks_text, change, effect_text, loads, times_interval
from dbdyno.stats.paired import Bound, Effect

# What differs from block to block, in tenths of a percent; balanced around 0.
STEPS = (-4, -1, 2, 5, -5, -2, 1, 4)
WHERE = "oltp_read_write at 10, 20 and 40 connections"
THREE = (10, 20, 40)


def against_1000(b: Callable[[Trial], int]) -> Arms:
    """Variant a at 1,000 transactions per tick, and b."""
    return Arms(a=lambda _trial: 1000, b=b)


def around(base: int) -> Callable[[Trial], int]:
    """A speed that lies around `base`."""
    return lambda trial: base + STEPS[trial.block % 8]


def at_levels(**speeds: int) -> Arms:
    """Variant b around a speed of its own at each load: at_levels(c10=900)."""
    return against_1000(lambda trial: around(speeds[f"c{trial.point.connections}"])(trial))


def fails(*blocks: int, at: int | None = None, variant: str = "b") -> Callable[[Trial], str | None]:
    """A variant whose trials fail in some blocks, at all loads or at one."""

    def failed(trial: Trial) -> str | None:
        here = trial.variant == variant and trial.block in blocks and at in (None, trial.point.connections)
        return "server went away" if here else None

    return failed


def overwhelmed(which: Callable[[Trial], bool]) -> Spoil:
    """As many transactions again were due and had not ended after two seconds."""

    def spoil(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if which(trial):
            totals = records[-1]["data"]["phases"]["measure"]
            totals["censored_us"] = [[2_000_000, totals["events"]]]
            totals["accounting"]["unfinished"] = totals["events"]
            totals["accounting"]["due"] += totals["events"]
            for record in records:
                if record["type"] == "interval":
                    record["data"]["backlog"] = 500
        return records

    return spoil


SLOWER = against_1000(lambda trial: 900 + 2 * trial.block)
CUT_OFF: dict[str, Any] = {
    "connections": (64,),
    "rates": (500.0,),
    "speed": against_1000(lambda trial: 900 + trial.block),
}
TWO_RATES: dict[str, Any] = {"connections": (64,), "rates": (500.0, 900.0)}
LOST: dict[str, Any] = {"speed": SLOWER, "failed_by": "harness"}
STOPS: list[dict[str, Any]] = [
    {"code": code, "level": "stop", "text": text, "evidence": {}, "subject": "b", "override": None}
    for code, text in (("P07", "max_connections is 10 and 40 are needed."), ("P04", "x is not as declared"))
]


def unsure_size(trial: Trial, _tick: int) -> int:
    """c is surely slower; b is so at the level that Holm's procedure then gives it."""
    blocks = (-12, -30, -9, -25, -14, -20, 3, 4)
    return {"a": 1000, "b": 1000 + blocks[trial.block], "c": 700 + trial.block}[trial.variant]


def twins(trial: Trial, _tick: int) -> int:
    """Identical variants 3 % apart, b 2 %."""
    return around({"a": 1000, "a-again": 1030, "b": 1020}[trial.variant])(trial) + (
        0 if trial.variant == "a" else 2 * (trial.block % 2)
    )


# Every form that the sentence of a comparison can take: the run, and the sentences of its comparisons.
SENTENCES: dict[str, tuple[Making, list[str]]] = {
    "a direction at every load": (
        Making(speed=SLOWER),
        [
            "b is slower than a at every load: throughput -9.3 % on average (95 % interval -9.8 to "
            "-8.8), oltp_read_write at 10, 20 and 40 connections; 8 blocks.",
        ],
    ),
    "a direction at the only load": (
        Making(speed=SLOWER, connections=(10,)),
        [
            "b is slower than a: throughput -9.3 % (95 % interval -9.8 to -8.8), oltp_read_write at "
            "10 connections; 8 blocks.",
        ],
    ),
    "a direction on average, sure at one load": (
        Making(speed=at_levels(c10=1000, c20=1000, c40=1060)),
        [
            "b is faster than a: throughput +2.0 % on average (95 % interval +1.6 to +2.3), surely at"
            " 40 connections; oltp_read_write at 10, 20 and 40 connections; 8 blocks.",
        ],
    ),
    "a direction whose size is not sure": (
        Making(names=("a", "b", "c"), connections=(10,), speed=unsure_size),
        [
            "b is slower than a: throughput -1.3 % (97.5 % interval -2.5 to +0.3), oltp_read_write at"
            " 10 connections; 8 blocks; the direction is sure by Holm's test, the size is not: the "
            "interval, which holds for all sentences together, reaches zero.",
            "c is slower than a: throughput -29.7 % (97.5 % interval -29.9 to -29.4), oltp_read_write"
            " at 10 connections; 8 blocks.",
        ],
    ),
    "mixed": (
        Making(speed=at_levels(c10=1250, c20=1000, c40=810)),
        [
            "It depends on the load: b is faster than a at 10 connections (+25.0 %), slower at 40 "
            "connections (-19.0 %); throughput, oltp_read_write at 10, 20 and 40 connections; 8 "
            "blocks.",
        ],
    ),
    "mixed, several loads": (
        Making(speed=at_levels(c10=1250, c20=1100, c40=810)),
        [
            "It depends on the load: b is faster than a at 10 and 20 connections (+25.0 % and +10.0 "
            "%), slower at 40 connections (-19.0 %); throughput, oltp_read_write at 10, 20 and 40 "
            "connections; 8 blocks.",
        ],
    ),
    "equivalent at several loads": (
        Making(speed=against_1000(around(1001)), delta_percent=2.0),
        [
            "a and b are equivalent: at each of 10, 20 and 40 connections any difference in "
            "throughput is within ±2 % (declared); throughput +0.1 % on average (95 % interval -0.3 "
            "to +0.4), oltp_read_write; 8 blocks.",
        ],
    ),
    "equivalent at one connection": (
        Making(speed=against_1000(around(1001)), delta_percent=2.0, connections=(1,)),
        [
            "a and b are equivalent: at 1 connection any difference in throughput is within ±2 % "
            "(declared); throughput +0.1 % (95 % interval -0.3 to +0.4), oltp_read_write; 8 blocks.",
        ],
    ),
    "equivalent at many loads": (
        Making(speed=against_1000(around(1001)), delta_percent=2.0, connections=tuple(range(1, 9))),
        [
            "a and b are equivalent: at each of 8 loads from 1 to 8 connections any difference in "
            "throughput is within ±2 % (declared); throughput +0.1 % on average (95 % interval -0.3 "
            "to +0.4), oltp_read_write; 8 blocks.",
        ],
    ),
    "faster by less than delta": (
        Making(speed=against_1000(lambda trial: 1004 + trial.block), delta_percent=2.0),
        [
            "b is faster than a by less than 2 % (declared): throughput +0.7 % on average (95 % "
            "interval +0.5 to +1.0), oltp_read_write at 10, 20 and 40 connections; 8 blocks.",
        ],
    ),
    "undecided": (
        Making(speed=against_1000(lambda trial: 970 + 40 * STEPS[trial.block])),
        [
            "Undecided: b against a, throughput -3.8 % on average (95 % interval -17.2 to +10.8), "
            "oltp_read_write at 10, 20 and 40 connections; a difference of more than 17.2 % either "
            "way is excluded; 8 blocks, which differ by 15 %; ±10 % would take about 12 blocks.",
        ],
    ),
    # Ten blocks would be enough for ±5 %, which is hardly more than there are.
    "undecided, with the next precision": (
        Making(speed=against_1000(lambda trial: 1000 + 19 * STEPS[trial.block])),
        [
            "Undecided: b against a, throughput -0.2 % on average (95 % interval -6.7 to +6.6), "
            "oltp_read_write at 10, 20 and 40 connections; a difference of more than 6.7 % either "
            "way is excluded; 8 blocks, which differ by 6.9 %; ±2 % would take about 60 blocks.",
        ],
    ),
    "undecided, a block less": (
        Making(
            speed=against_1000(lambda trial: 970 + 40 * STEPS[trial.block]),
            failed=fails(3),
            failed_by="harness",
        ),
        [
            "Undecided: b against a, throughput -6.9 % on average (95 % interval -19.0 to +6.8), "
            "oltp_read_write at 10, 20 and 40 connections; a difference of more than 19.0 % either "
            "way is excluded; 7 of 8 blocks, which differ by 14 %; ±10 % would take about 10 blocks. Caveat: "
            "3 trials left out (R04).",
        ],
    ),
    "undecided by ratios": (
        Making(speed=against_1000(lambda trial: 1200 + 190 * STEPS[trial.block])),
        [
            "Undecided: b against a, throughput +3.8 % on average (95 % interval -54.7 to +84.3), "
            "oltp_read_write at 10, 20 and 40 connections; less than 0.45 times and more than 1.8 "
            "times are excluded; 8 blocks, which differ by 75 %; ±20 % would take about 70 blocks.",
        ],
    ),
    "undecided over all loads, sure at one": (
        Making(
            speed=against_1000(
                lambda trial: (
                    around(1080)(trial) if trial.point.connections == 40 else 1000 + 30 * STEPS[trial.block]
                )
            )
        ),
        [
            "Undecided: b against a, throughput +2.3 % on average (95 % interval -4.9 to +9.7), "
            "oltp_read_write at 10, 20 and 40 connections; at 40 connections b is faster than a (+8.0"
            " %); 8 blocks, which differ by 7.4 %; ±5 % would take about 11 blocks.",
        ],
    ),
    "less than identical variants differ by": (
        Making(names=("a", "a-again", "b"), identical=("a-again",), connections=(10,), speed=twins),
        [
            "a and a-again are identical, but differ here: throughput +3.1 % (95 % interval +3.0 to "
            "+3.2), oltp_read_write at 10 connections; 8 blocks. Caveat: identical variants differ "
            "(R05).",
            "Undecided: b against a, throughput +2.1 % (95 % interval +2.0 to +2.2), oltp_read_write "
            "at 10 connections; identical variants differ by up to 3.2 % here; 8 blocks, which differ"
            " by 0.1 %.",
        ],
    ),
    "too few blocks": (
        Making(speed=SLOWER, blocks=3),
        [
            "Too few blocks for a verdict (3; 6 are needed): b against a, throughput -9.8 %, "
            "oltp_read_write at 10, 20 and 40 connections.",
        ],
    ),
    "too few blocks are left": (
        Making(failed=fails(3, 4, 5, 6, 7), **LOST),
        [
            "Too few blocks for a verdict (3 of 8; 6 are needed): b against a, throughput -9.8 %, "
            "oltp_read_write at 10, 20 and 40 connections. Caveat: 15 trials left out (R04).",
        ],
    ),
    "no result at a load": (
        Making(failed=fails(*range(8), at=40), **LOST),
        [
            "b has no result at 40 connections, so b and a cannot be compared over the whole range "
            "(R04). Caveat: 8 trials left out (R04).",
        ],
    ),
    "no common block at a load": (
        Making(
            failed=lambda trial: (
                "x"
                if trial.point.connections == 40 and (trial.variant == "b") == (trial.block % 2 == 0)
                else None
            ),
            **LOST,
        ),
        [
            "b and a have no result at 40 connections in the same block, so b and a cannot be "
            "compared over the whole range (R04). Caveat: 8 trials left out (R04).",
        ],
    ),
    "no block with all loads": (
        Making(
            failed=lambda trial: (
                "x" if trial.variant == "b" and trial.point.connections == THREE[trial.block % 3] else None
            ),
            **LOST,
        ),
        [
            "No block holds b and a at every load, so they cannot be compared (R04). Caveat: 8 trials left "
            "out (R04).",
        ],
    ),
    "stopped": (
        Making(findings=STOPS),
        [
            "b and a are not comparable: max_connections is 10 and 40 are needed (P07); P04 failed too.",
        ],
    ),
    "not finished": (
        Making(speed=SLOWER, absent=lambda trial: trial.block > 5),
        [
            "Not finished (6 of 8 blocks): b against a, throughput -9.5 % so far, oltp_read_write at "
            "10, 20 and 40 connections.",
        ],
    ),
    "some trials failed": (
        Making(speed=SLOWER, failed=fails(2, 5, 6, at=40)),
        [
            "b is slower than a at every load: throughput between -100.0 and -9.2 % on average (95 % "
            "interval), oltp_read_write at 10, 20 and 40 connections; 8 blocks; 3 of 24 trials of b "
            "failed (server went away).",
        ],
    ),
    "all trials of the variant failed": (
        Making(speed=SLOWER, connections=(10,), failed=fails(*range(8))),
        [
            "b is slower than a: throughput -100 %, oltp_read_write at 10 connections; 8 blocks; 8 of"
            " 8 trials of b failed (server went away).",
        ],
    ),
    "all trials of the baseline failed": (
        Making(speed=SLOWER, connections=(10,), failed=fails(*range(8), variant="a")),
        [
            "b is faster than a: throughput infinitely higher, oltp_read_write at 10 connections; 8 "
            "blocks; 8 of 8 trials of a failed (server went away).",
        ],
    ),
    "latency": (
        Making(**TWO_RATES, speed=against_1000(lambda trial: 1100 + trial.block)),
        [
            "b has a lower p95 latency than a at every load: p95 latency -9.4 % on average (95 % "
            "interval -9.6 to -9.2), oltp_read_write at 500 and 900 transactions/s; 8 blocks.",
        ],
    ),
    "latency, mixed": (
        Making(
            **TWO_RATES,
            speed=against_1000(lambda trial: (1250 if trial.point.rate == 500 else 800) + STEPS[trial.block]),
        ),
        [
            "It depends on the load: b has a lower p95 latency than a at 500 transactions/s (-20.0 "
            "%), a higher one at 900 transactions/s (+25.0 %); oltp_read_write at 500 and 900 "
            "transactions/s; 8 blocks.",
        ],
    ),
    "latency at least": (
        Making(**CUT_OFF, spoil=overwhelmed(lambda trial: trial.variant == "b")),
        [
            "b has a higher p95 latency than a: p95 latency at least 200.0 times, oltp_read_write at "
            "500 transactions/s; 8 blocks. Caveat: b could not keep up in 8 trials (R07).",
        ],
    ),
    "latency at most": (
        Making(**CUT_OFF, spoil=overwhelmed(lambda trial: trial.variant == "a")),
        [
            "b has a lower p95 latency than a: p95 latency lower by at least 99.4 % (0.0055 times or "
            "less), oltp_read_write at 500 transactions/s; 8 blocks. Caveat: a could not keep up in 8 trials "
            "(R07).",
        ],
    ),
    "latency of neither": (
        Making(**CUT_OFF, spoil=overwhelmed(lambda _trial: True)),
        [
            "Undecided: neither b nor a kept up, so nothing is known of their p95 latency, "
            "oltp_read_write at 500 transactions/s; 8 blocks. Caveats: a could not keep up in 8 trials "
            "(R07); b could not keep up in 8 trials (R07).",
        ],
    ),
    "latency of neither at one rate": (
        Making(
            **TWO_RATES,
            speed=against_1000(lambda trial: 1001 + STEPS[trial.block]),
            spoil=overwhelmed(lambda trial: trial.point.rate == 900),
        ),
        [
            "Undecided over all loads: at 900 transactions/s neither b nor a kept up, so nothing is known of "
            "their p95 latency there; elsewhere: at 500 transactions/s (-0.1 %), oltp_read_write; 8 blocks. "
            "Caveats: a could not keep up in 8 trials (R07); b could not keep up in 8 trials (R07).",
        ],
    ),
    "many times": (
        Making(speed=Arms(a=lambda _trial: 100, b=lambda trial: 796 + 2 * trial.block)),
        [
            "b is faster than a at every load: 8.0 times the throughput on average (95 % interval 8.0"
            " to 8.1 times), oltp_read_write at 10, 20 and 40 connections; 8 blocks.",
        ],
    ),
    "a fraction": (
        Making(speed=against_1000(lambda trial: 396 + 4 * trial.block)),
        [
            "b is slower than a at every load: 0.41 times the throughput on average (95 % interval "
            "0.40 to 0.42 times), oltp_read_write at 10, 20 and 40 connections; 8 blocks.",
        ],
    ),
    "identical": (
        Making(names=("a", "a-again"), identical=("a-again",), speed=against_1000(around(1003))),
        [
            "a and a-again are identical, and no difference is certain: throughput +0.3 % on average (95 % "
            "interval -0.1 to +0.6), oltp_read_write at 10, 20 and 40 connections; 8 blocks.",
        ],
    ),
    "identical, many times": (
        Making(
            names=("a", "a-again"),
            identical=("a-again",),
            speed=Arms(a=lambda _trial: 100, b=lambda trial: 796 + 2 * trial.block),
            connections=(10,),
        ),
        [
            "a and a-again are identical, but differ here: 8.0 times the throughput (95 % interval 8.0 to "
            "8.1 times), oltp_read_write at 10 connections; 8 blocks. Caveat: identical variants differ "
            "(R05).",
        ],
    ),
    "two decimals at most": (
        Making(speed=against_1000(around(1000))),
        [
            "Undecided: b against a, throughput 0.00 % on average (95 % interval -0.35 to +0.35), "
            "oltp_read_write at 10, 20 and 40 connections; a difference of more than 0.4 % either way"
            " is excluded; 8 blocks, which differ by 0.4 %; ±0.2 % would take about 16 blocks.",
        ],
    ),
}


@pytest.mark.parametrize("form", SENTENCES)
def test_the_sentence_of_a_comparison(tmp_path: Path, form: str) -> None:
    making, sentences = SENTENCES[form]
    verdict = judged(tmp_path, making)
    assert [comparison["curve"]["sentence"] for comparison in verdict["comparisons"]] == sentences


def test_no_sentence_has_a_true_minus_or_a_bracket() -> None:
    # The report sets true minus signs; a sentence is copied into terminals and tickets.
    text = "".join(sentence for _, sentences in SENTENCES.values() for sentence in sentences)
    assert not set(text) & set("\N{MINUS SIGN}[]\N{EN DASH}\N{EM DASH}")


def finding(code: str, level: Level = "warn", subject: str = "", **evidence: Any) -> Finding:
    """A finding with this evidence."""
    return Finding(code, level, f"the text of {code}", evidence, subject)


DRIFT: dict[str, Any] = {"variant": "b", "change_percent": 7.04, "what": "within"}
CROSSED: dict[str, Any] = {
    "effect_percent": -5.02,
    "crossover_percent": -9.9,
    "crossover_interval_percent": [-10.2, -0.04],
}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (finding("D01", subject="b"), "the load generator was near its limit"),
        (finding("D01", warning="generator-saturated"), "the load generator was near its limit"),
        (
            finding("D01", warning="generator-late", lag_us_p99=6_800.0),
            "the load generator was late (in the worst second, 1 % of wake-ups by more than 6.8 ms)",
        ),
        (finding("D01", warning="generator-late"), "the load generator was late"),
        (finding("D01", warning="client-delay"), "replies waited for the load generator"),
        (finding("D01", warning="script-blocks"), "the engine warned (script-blocks)"),
        (finding("D03"), "errors were frequent or differ between the variants"),
        (finding("D05"), "connections were lost"),
        (
            finding("D06", processes=[{"name": "cc1plus"}, {"name": "rustc"}], remaining=2),
            "other processes (cc1plus, rustc) used the CPUs of server and client in 2 blocks",
        ),
        (
            finding("D06", what="unequal", percents={"a": 3.0, "b": 9.0}),
            "other processes used 3.0 % of the CPUs next to a and 9.0 % next to b",
        ),
        (finding("D06", remaining=1), "other processes used the CPUs of server and client in 1 block"),
        (
            finding("P11", cpus="0-1"),
            "client and server share CPU 0-1: the result holds for this arrangement",
        ),
        (
            finding("P11", busy=[{"name": "mysqld"}, {"name": "mysqld"}]),
            "another database server was busy on this machine",
        ),
        (finding("P15"), "the design is weak"),
        (finding("P22"), "the sessions of the variants differ"),
        (finding("R01", **DRIFT), "throughput of b still rose by 7.0 % during the measurement"),
        (
            finding("R01", **{**DRIFT, "change_percent": -7.04, "what": "before", "baseline": "a"}),
            "throughput of b still fell by 7.0 % more than that of a from the warm-up to the measurement",
        ),
        (
            finding("R01", what="warmup-trial", variant="b", length_s=60.0),
            "b had not settled after 60 s",
        ),
        (finding("R03", subject="b", trials={"3": [], "9": []}), "2 contradictory trials of b left out"),
        (finding("R04", left_out=1), "1 trial left out"),
        (finding("R05"), "identical variants differ"),
        (finding("R07", subject="b", backlog={"3": 0, "9": 5}), "b could not keep up in 2 trials"),
        (
            finding("R10", metric="throughput", **CROSSED),
            "the variant that ran later in a block had -5.0 % throughput; without this order effect -9.9 % "
            "(-10.20 to -0.04)",
        ),
    ],
)
def test_warnings_are_words_with_their_code_behind(found: Finding, words: str) -> None:
    assert caveats([found]) == [f"{words} ({found.code})"]


def test_every_caveat_is_said_once() -> None:
    overridden = replace(finding("P08", "stop"), override="why not")
    assert caveats(
        [
            finding("P15"),
            finding("P15"),
            # Notes are no caveats, and a stop that was not overridden is the sentence itself.
            finding("P02", "note"),
            replace(finding("D06", "note", repeated=[2]), override="a cron job"),
            finding("P09", "stop"),
            overridden,
            finding("X1"),
            # What servers failed and what has not run stands in the sentence anyway.
            finding("R04", failed=3),
            finding("R04", not_run=3),
        ]
    ) == ["P08 overridden: “why not”", "the design is weak (P15)", "see X1"]


def test_caveats_follow_the_result(tmp_path: Path) -> None:
    making = Making(
        speed=SLOWER,
        findings=[asdict(finding("D05")), asdict(finding("P15")), asdict(finding("P02", "note"))],
    )
    sentence = judged(tmp_path, making)["comparisons"][0]["curve"]["sentence"]
    assert sentence.endswith("; 8 blocks. Caveats: connections were lost (D05); the design is weak (P15).")


@pytest.mark.parametrize(
    ("values", "delta", "decimals"),
    [
        ((-9.2, -10.4, -8.1), 2.0, 1),
        ((0.5, 0.04, 0.9), 2.0, 2),
        ((0.5, 0.004, 0.9), 2.0, 2),
        ((1.0, 0.2, 1.96), 2.0, 2),
        ((1.0, 0.2, 2.03), 2.0, 2),
        ((1.0, 0.2, 1.96), None, 1),
        ((1.0, 0.2, 1.9), 2.0, 1),
        ((0.0, 0.0, 0.0), 2.0, 1),
        ((1e-9,), 2.0, 2),
        ((float("inf"), 3.0), 2.0, 1),
    ],
)
def test_rounding_never_moves_a_bound_to_the_other_side(
    values: tuple[float, ...], delta: float | None, decimals: int
) -> None:
    assert decimals_for(values, delta) == decimals


def test_signs() -> None:
    assert [signed(value) for value in (-9.24, 9.25, 0.0, -0.04)] == ["-9.2", "+9.2", "0.0", "0.0"]
    assert [signed(float(value)) for value in ("inf", "-inf")] == ["∞", "-∞"]


def test_ratios() -> None:
    ratios = [times(percent) for percent in (697.6, 100.0, -50.5, -59.0, -95.0, -99.45, -100.0, float("inf"))]
    assert ratios == ["8.0", "2.0", "0.49", "0.41", "0.05", "0.0055", "0.00", "∞"]
    assert times_interval((690.0, 710.0)) == "7.9 to 8.1 times"
    assert times_interval((697.0, 701.0)) == "7.97 to 8.01 times"
    assert times_interval((300.0, float("inf"))) == "4.0 to ∞ times"


EFFECT = Effect(-9.3, (-9.8, -8.8), 0.05, 0.01, 8)


@pytest.mark.parametrize(
    ("effect", "words", "alone"),
    [
        (EFFECT, "throughput -9.3 % on average (95 % interval -9.8 to -8.8)", "-9.3 %"),
        (replace(EFFECT, interval_percent=None), "throughput -9.3 % on average", "-9.3 %"),
        # -50 % and +100 % are still percentages.
        (
            Effect(-50.0, (-100.0, 100.0), 0.05, 0.5, 8),
            "throughput -50.0 % on average (95 % interval -100.0 to +100.0)",
            "-50.0 %",
        ),
        (
            Effect(100.1, (90.0, 120.0), 0.05, 0.01, 8),
            "2.0 times the throughput on average (95 % interval 1.9 to 2.2 times)",
            "2.0 times",
        ),
        (
            Effect(12.0, (3.0, float("inf")), 0.05 / 3, 0.01, 8),
            "throughput +12.0 % on average (98.3 % interval +3.0 to ∞)",
            "+12.0 %",
        ),
        (
            Effect(12.0, None, 0.05, 0.01, 8, Bound.AT_LEAST),
            "throughput +12.0 % or more on average",
            "+12.0 % or more",
        ),
        (
            Effect(12.0, None, 0.05, 0.01, 8, Bound.AT_MOST),
            "throughput +12.0 % or less on average",
            "+12.0 % or less",
        ),
        (
            Effect(12.0, (3.0, 20.0), 0.05, 0.01, 8, Bound.AT_LEAST),
            "throughput +12.0 % or more on average (95 % interval +3.0 to +20.0)",
            "+12.0 % or more",
        ),
        (
            Effect(-12.0, None, 0.05, 0.01, 8, Bound.AT_MOST),
            "throughput lower by at least 12.0 % on average",
            "-12.0 % or less",
        ),
        (
            Effect(-7.0, None, 0.05, 0.01, 8, Bound.AT_LEAST),
            "throughput above -7.0 % on average",
            "above -7.0 %",
        ),
        (
            Effect(float("inf"), (-7.0, float("inf")), 0.05, 0.4, 8),
            "throughput above -7.0 % on average (95 % interval)",
            "above -7.0 % (95 % interval)",
        ),
        (
            Effect(512.0, None, 0.05, 0.01, 8, Bound.AT_LEAST),
            "throughput at least 6.1 times on average",
            "6.1 times or more",
        ),
        (
            Effect(-100.0, (-100.0, float("inf")), 0.05, 1.0, 8, Bound.AT_LEAST),
            "throughput unknown on average",
            "unknown",
        ),
        (Effect(-100.0, None, 0.05, 1.0, 3), "throughput unknown on average", "unknown"),
        (Effect(-100.0, (-100.0, -100.0), 0.05, 0.01, 8), "throughput -100 % on average", "-100 %"),
        (
            Effect(-100.0, (-100.0, -9.2), 0.05, 0.01, 8),
            "throughput between -100.0 and -9.2 % on average (95 % interval)",
            "between -100.0 and -9.2 % (95 % interval)",
        ),
        (
            Effect(float("inf"), (3.1, float("inf")), 0.05, 0.01, 8),
            "throughput +3.1 % or more on average (95 % interval)",
            "+3.1 % or more (95 % interval)",
        ),
        (
            Effect(float("inf"), (float("inf"), float("inf")), 0.05, 0.01, 8),
            "throughput infinitely higher on average",
            "infinitely higher",
        ),
    ],
)
def test_the_size_of_an_effect(effect: Effect, words: str, alone: str) -> None:
    assert effect_text("throughput", effect, average=True) == words
    assert change(effect) == alone


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([{"connections": 1}], "at 1 connection"),
        ([{"connections": 64}], "at 64 connections"),
        ([{"connections": 1}, {"connections": 8}], "at 1 and 8 connections"),
        ([{"connections": n} for n in range(1, 7)], "at 1, 2, 3, 4, 5 and 6 connections"),
        ([{"connections": n} for n in range(1, 9)], "at 8 loads from 1 to 8 connections"),
        ([{"rate": 500.0}, {"rate": 1500.5}], "at 500 and 1500.5 transactions/s"),
    ],
)
def test_loads(levels: list[dict[str, float]], words: str) -> None:
    assert loads(levels) == words


def test_blocks() -> None:
    assert [blocks_text(*of) for of in ((8, 8), (1, 1), (7, 8), (0, 8))] == [
        "8 blocks",
        "1 block",
        "7 of 8 blocks",
        "0 of 8 blocks",
    ]
