"""The sentences, whole: one for each form that a verdict can take, and how numbers are put into them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sentences import check_sentences, read
from tests.unit.stored_run import Arms, Making, Spoil, judged, make

from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding, Level
from dbdyno.languages import IN_ENGLISH
from dbdyno.result_text import decimals_for, signed, times
from dbdyno.say.caveats import caveats
from dbdyno.say.wording import blocks_text, change, effect_text, loads, times_interval
from dbdyno.stats.paired import Bound, Effect
from dbdyno.terminal.messages import Output
from dbdyno.terminal.result import _caveats_line, show
from dbdyno.verdict import judge

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


def unknown_size(trial: Trial, _tick: int) -> int:
    """c is significantly slower; b is so at the level that Holm's procedure then gives it."""
    blocks = (-12, -30, -9, -25, -14, -20, 3, 4)
    return {"a": 1000, "b": 1000 + blocks[trial.block], "c": 700 + trial.block}[trial.variant]


def copies(trial: Trial, _tick: int) -> int:
    """Identical variants 3 % apart, b 2 %."""
    return around({"a": 1000, "a-again": 1030, "b": 1020}[trial.variant])(trial) + (
        0 if trial.variant == "a" else 2 * (trial.block % 2)
    )


# Every form that the sentence of a comparison can take, and a run that has it.
FORMS: dict[str, Making] = {
    "a direction at every load": Making(speed=SLOWER),
    "a direction at the only load": Making(speed=SLOWER, connections=(10,)),
    "a direction on average, significant at one load": Making(speed=at_levels(c10=1000, c20=1000, c40=1060)),
    "a direction whose size is not known": Making(
        names=("a", "b", "c"), connections=(10,), speed=unknown_size
    ),
    "mixed": Making(speed=at_levels(c10=1250, c20=1000, c40=810)),
    "mixed, several loads": Making(speed=at_levels(c10=1250, c20=1100, c40=810)),
    "equivalent at several loads": Making(speed=against_1000(around(1001)), delta_percent=2.0),
    "equivalent at one connection": Making(
        speed=against_1000(around(1001)), delta_percent=2.0, connections=(1,)
    ),
    "equivalent at many loads": Making(
        speed=against_1000(around(1001)), delta_percent=2.0, connections=tuple(range(1, 9))
    ),
    "faster by less than delta": Making(
        speed=against_1000(lambda trial: 1004 + trial.block), delta_percent=2.0
    ),
    "undecided": Making(speed=against_1000(lambda trial: 970 + 40 * STEPS[trial.block])),
    # Ten blocks would be enough for ±5 %, which is hardly more than there are.
    "undecided, with the next precision": Making(
        speed=against_1000(lambda trial: 1000 + 19 * STEPS[trial.block])
    ),
    "undecided, a block less": Making(
        speed=against_1000(lambda trial: 970 + 40 * STEPS[trial.block]),
        failed=fails(3),
        failed_by="harness",
    ),
    "undecided by ratios": Making(speed=against_1000(lambda trial: 1200 + 190 * STEPS[trial.block])),
    "undecided over all loads, significant at one": Making(
        speed=against_1000(
            lambda trial: (
                around(1080)(trial) if trial.point.connections == 40 else 1000 + 30 * STEPS[trial.block]
            )
        )
    ),
    "less than identical variants differ by": Making(
        names=("a", "a-again", "b"), identical=("a-again",), connections=(10,), speed=copies
    ),
    "too few blocks": Making(speed=SLOWER, blocks=3),
    "too few blocks are left": Making(failed=fails(3, 4, 5, 6, 7), **LOST),
    "no result at a load": Making(failed=fails(*range(8), at=40), **LOST),
    "no common block at a load": Making(
        failed=lambda trial: (
            "x"
            if trial.point.connections == 40 and (trial.variant == "b") == (trial.block % 2 == 0)
            else None
        ),
        **LOST,
    ),
    "no block with all loads": Making(
        failed=lambda trial: (
            "x" if trial.variant == "b" and trial.point.connections == THREE[trial.block % 3] else None
        ),
        **LOST,
    ),
    "stopped": Making(findings=STOPS),
    "not finished": Making(speed=SLOWER, absent=lambda trial: trial.block > 5),
    "some trials failed": Making(speed=SLOWER, failed=fails(2, 5, 6, at=40)),
    "all trials of the variant failed": Making(speed=SLOWER, connections=(10,), failed=fails(*range(8))),
    "all trials of the baseline failed": Making(
        speed=SLOWER, connections=(10,), failed=fails(*range(8), variant="a")
    ),
    "latency": Making(**TWO_RATES, speed=against_1000(lambda trial: 1100 + trial.block)),
    "latency, mixed": Making(
        **TWO_RATES,
        speed=against_1000(lambda trial: (1250 if trial.point.rate == 500 else 800) + STEPS[trial.block]),
    ),
    "latency at least": Making(**CUT_OFF, spoil=overwhelmed(lambda trial: trial.variant == "b")),
    "latency at most": Making(**CUT_OFF, spoil=overwhelmed(lambda trial: trial.variant == "a")),
    "latency of neither": Making(**CUT_OFF, spoil=overwhelmed(lambda _trial: True)),
    "latency of neither at one rate": Making(
        **TWO_RATES,
        speed=against_1000(lambda trial: 1001 + STEPS[trial.block]),
        spoil=overwhelmed(lambda trial: trial.point.rate == 900),
    ),
    "many times": Making(speed=Arms(a=lambda _trial: 100, b=lambda trial: 796 + 2 * trial.block)),
    "a fraction": Making(speed=against_1000(lambda trial: 396 + 4 * trial.block)),
    "identical": Making(names=("a", "a-again"), identical=("a-again",), speed=against_1000(around(1003))),
    "identical, many times": Making(
        names=("a", "a-again"),
        identical=("a-again",),
        speed=Arms(a=lambda _trial: 100, b=lambda trial: 796 + 2 * trial.block),
        connections=(10,),
    ),
    "two decimals at most": Making(speed=against_1000(around(1000))),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_sentence_of_a_comparison(tmp_path: Path, form: str) -> None:
    check_sentences(form, *(one["curve"]["sentence"] for one in judged(tmp_path, FORMS[form])["comparisons"]))


def test_no_sentence_has_a_true_minus_or_a_bracket() -> None:
    # The report sets true minus signs; a sentence is copied into terminals and tickets.
    text = "".join(sentence for form in FORMS for sentence in read()["test_judge_sentence"][form])
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


CAVEATS = (
    finding("D01", subject="b"),
    finding("D01", warning="generator-saturated"),
    finding("D01", warning="generator-late", lag_us_p99=6_800.0),
    finding("D01", warning="generator-late"),
    finding("D01", warning="client-delay"),
    finding("D01", warning="script-blocks"),
    finding("D03"),
    finding("D05"),
    finding("D06", processes=[{"name": "cc1plus"}, {"name": "rustc"}], remaining=2),
    finding("D06", what="unequal", percents={"a": 3.0, "b": 9.0}),
    finding("D06", remaining=1),
    finding("P11", cpus="0-1"),
    finding("P11", busy=[{"name": "mysqld"}, {"name": "mysqld"}]),
    finding("P15"),
    finding("P22"),
    finding("R01", **DRIFT),
    finding("R01", **{**DRIFT, "change_percent": -7.04, "what": "before", "baseline": "a"}),
    finding("R01", what="warmup-trial", variant="b", length_s=60.0),
    finding("R03", subject="b", trials={"3": [], "9": []}),
    finding("R04", left_out=1),
    finding("R05"),
    finding("R07", subject="b", backlog={"3": 0, "9": 5}),
    finding("R10", metric="throughput", **CROSSED),
)


def name_of(one: Finding) -> str:
    """Code, variant and evidence of a finding."""
    evidence = [f"{key}={value}" for key, value in one.evidence.items()]
    return " ".join(filter(None, ["caveat", one.code, one.subject, *evidence]))


@pytest.mark.parametrize("one", CAVEATS, ids=name_of)
def test_warnings_are_words_with_their_code_behind(one: Finding) -> None:
    check_sentences(name_of(one), *caveats([one]))
    assert caveats([one])[0].endswith(f" ({one.code})")


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


INFINITE = float("inf")
EFFECT = Effect(-9.3, (-9.8, -8.8), 0.05, 0.01, 8)
EFFECTS = (
    EFFECT,
    replace(EFFECT, interval_percent=None),
    Effect(-50.0, (-100.0, 100.0), 0.05, 0.5, 8),
    Effect(100.1, (90.0, 120.0), 0.05, 0.01, 8),
    Effect(12.0, (3.0, INFINITE), 0.05 / 3, 0.01, 8),
    Effect(12.0, None, 0.05, 0.01, 8, Bound.AT_LEAST),
    Effect(12.0, None, 0.05, 0.01, 8, Bound.AT_MOST),
    Effect(12.0, (3.0, 20.0), 0.05, 0.01, 8, Bound.AT_LEAST),
    Effect(-12.0, None, 0.05, 0.01, 8, Bound.AT_MOST),
    Effect(-7.0, None, 0.05, 0.01, 8, Bound.AT_LEAST),
    Effect(INFINITE, (-7.0, INFINITE), 0.05, 0.4, 8),
    Effect(512.0, None, 0.05, 0.01, 8, Bound.AT_LEAST),
    Effect(-100.0, (-100.0, INFINITE), 0.05, 1.0, 8, Bound.AT_LEAST),
    Effect(-100.0, None, 0.05, 1.0, 3),
    Effect(-100.0, (-100.0, -100.0), 0.05, 0.01, 8),
    Effect(-100.0, (-100.0, -9.2), 0.05, 0.01, 8),
    Effect(INFINITE, (3.1, INFINITE), 0.05, 0.01, 8),
    Effect(INFINITE, (INFINITE, INFINITE), 0.05, 0.01, 8),
)


def size_of(one: Effect) -> str:
    """Estimate, interval and bound of an effect."""
    return f"size {one.effect_percent} {one.interval_percent} alpha {one.alpha:.3g} {one.bound}"


@pytest.mark.parametrize("one", EFFECTS, ids=size_of)
def test_the_size_of_an_effect(one: Effect) -> None:
    check_sentences(size_of(one), effect_text("throughput", one, average=True), change(one))


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


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_the_caveats_on_a_line_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", str(int(is_terminal)))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    run = make(tmp_path, Making(failed=lambda trial: "gone" if trial.variant == "b" else None))
    judge(run)
    show(run, run.experiment(), Output(quiet=True))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    caveat = "Caveat: 24 of 24 trials of b failed: gone (R04)."
    if is_terminal:
        assert lines[-1] == f"  {caveat}"
        assert lines[-2].endswith("; 8 blocks.")
    else:
        # A script reads a verdict in one line.
        assert lines[-1].endswith(f"; 8 blocks. {caveat}")


def test_the_caveats_of_a_terminal_are_one_line() -> None:
    short = ["connections were lost (D05)", "3 trials left out (R04)"]
    assert _caveats_line(short, IN_ENGLISH, 80) == f"Caveats: {short[0]}; {short[1]}."
    long = [*short, "the load generator was late (D01)", "P07 overridden: “(known)”", "see P11"]
    assert _caveats_line(long, IN_ENGLISH, 80) == f"Caveats: {short[0]}; also R04, D01, P07, P11."
    assert _caveats_line(["x" * 90 + " (D05)"], IN_ENGLISH, 80) == "Caveat: D05."
