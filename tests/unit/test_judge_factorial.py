"""Factorial experiments through the judge: planted effects come back, alone and together."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.pages import undrawn
from tests.unit.sentences import check_sentences
from tests.unit.stored_run import Making, Speed, judged, make, verdict_of

from dbdyno.experiment.family import contrasts
from dbdyno.experiment.model import Factor, OltpWorkload
from dbdyno.experiment.schedule import Trial
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.terminal.result import show
from dbdyno.verdict import judge

VERSIONS = Factor(name="version", levels=("8.0", "8.4", "9.7"))
THREADS = Factor(name="threads", levels=("per-connection", "pool"))


def speed(trial: Trial, _tick: int) -> int:
    """1.1 times with 8.4, 0.8 times with 9.7; the pool makes 1.2 times, and 1.5 times on 9.7."""
    version, threads = trial.variant.split("+")
    factor = {"8.0": 1.0, "8.4": 1.1, "9.7": 0.8}[version]
    pool = (1.5 if version == "9.7" else 1.2) if threads == "pool" else 1.0
    # What drifts from block to block meets all alike.
    return round(10_000 * factor * pool * (1.0 + 0.1 * trial.block))


def factors(folder: Path, **making: Any) -> dict[tuple[str, ...], dict[str, Any]]:
    """The entries of `factors`, by workload and levels."""
    made: dict[str, Any] = {"factors": (VERSIONS, THREADS), "connections": (10, 20), "speed": speed, **making}
    verdict = judged(folder, Making(**made))
    return {(entry["workload"], *entry["levels"]): entry for entry in verdict["factors"]}


def test_main_effects_and_interactions_are_those_that_were_planted(tmp_path: Path) -> None:
    found = factors(tmp_path)
    name = "oltp_read_write"
    # Means of logarithms over the levels of the other factor.
    pool = math.exp((2 * math.log(1.2) + math.log(1.5)) / 3)
    newest = 0.8 * math.sqrt(1.5 / 1.2)
    expected = {
        (name, "8.4"): 1.1,
        (name, "9.7"): newest,
        (name, "pool"): pool,
        (name, "8.4", "pool"): 1.0,
        (name, "9.7", "pool"): 1.5 / 1.2,
    }
    assert found.keys() == expected.keys()
    for key, ratio in expected.items():
        entry = found[key]
        assert entry["effect_percent"] == pytest.approx((ratio - 1) * 100, abs=0.05), key
        low, high = entry["interval_percent"]
        assert low <= entry["effect_percent"] <= high
        assert entry["blocks"] == 8
    # 9.7 and the pool interact; 8.4 does the same with and without it.
    words = {key[1:]: entry["verdict"] for key, entry in found.items()}
    assert words == {
        ("8.4",): "faster",
        ("9.7",): "mixed",
        ("pool",): "mixed",
        ("8.4", "pool"): "undecided",
        ("9.7", "pool"): "faster",
    }


def test_the_first_line_ranks_the_factors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The largest effect first, then what is undecided, then the interactions."""

    def apart(trial: Trial, _tick: int) -> int:
        version, _ = trial.variant.split("+")
        noise = 1.0 + 0.01 * ((trial.index * 7) % 5 - 2)
        return round(10_000 * {"8.0": 1.0, "8.4": 1.1, "9.7": 0.8}[version] * noise)

    for name, speed_of in (("apart", apart), ("together", speed)):
        making = Making(factors=(VERSIONS, THREADS), connections=(10, 20), speed=speed_of)
        run = make(tmp_path / name, making)
        judge(run)
        show(run, run.experiment())
        lines = capsys.readouterr().out.splitlines()
        verdict = run.verdict()
        assert verdict is not None
        assert verdict.factors
        assert verdict.factors[0].sentence not in lines
        if name == "apart":
            assert re.fullmatch(
                r"version 9\.7 −\d+\.\d % \[−.+\]; version 8\.4 \+\d+\.\d % \[\+.+\]; "
                r"threads pool: undecided; no sign of an interaction \(99 % intervals\)\.( Caveats: .*)?",
                lines[-1],
            ), lines[-1]
        else:
            assert "version and threads interact" in lines[-1]
            assert "threads pool depends on the load or on another factor" in lines[-1]


def test_several_workloads_have_a_table_of_the_factors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.terminal.console.WIDTH", 80)
    workloads = tuple(
        OltpWorkload(name=name) for name in ("oltp_read_write", "oltp_read_only", "oltp_insert")
    )

    def faster(trial: Trial, _tick: int) -> int:
        version, _ = trial.variant.split("+")
        gain = {"oltp_read_write": 1.1, "oltp_read_only": 1.3, "oltp_insert": 1.0}[trial.workload]
        noise = 1.0 + 0.01 * ((trial.index * 7) % 5 - 2)
        return round(10_000 * (gain if version == "8.4" else 1.0) * noise)

    making = Making(
        factors=(TWO_VERSIONS, THREADS), workloads=workloads, connections=(20, 10), blocks=10, speed=faster
    )
    run = make(tmp_path, making)
    judge(run)
    show(run, run.experiment())
    lines = capsys.readouterr().out.splitlines()
    (ranking,) = (line for line in lines if line.startswith("Largest effects: "))
    assert ranking.startswith("Largest effects: version 8.4 +29.7 % [")
    assert " on oltp_read_only; threads pool: undecided" in ranking
    table = lines[lines.index(ranking) + 1 :]
    assert table[0] == "throughput: effect of each factor on each workload, 99.4 % intervals"
    assert all(len(line) <= 80 for line in table)
    # The columns that do not fit follow below.
    assert [re.findall("oltp_[a-z_]+", line) for line in table if "oltp_" in line] == [
        ["oltp_read_write", "oltp_read_only"],
        ["oltp_insert"],
    ]
    of_version = [line for line in table if line.lstrip().startswith("version 8.4 ") and " x " not in line]
    assert [re.findall(r"\+\d+\.\d % \[|undecided", line) for line in of_version] == [
        ["+9.3 % [", "+29.7 % ["],
        ["undecided"],
    ]
    # Two levels of confidence stand on the page, and both are named.
    assert any("intervals of variants: 95 %" in line and "of factors: 99.4 %" in line for line in lines)
    page = html.unescape(undrawn(run))
    assert str(table[0]) in page
    assert f'<p class="sentence">{ranking}</p>' in page
    assert ranking.split(":")[0] in as_markdown(gather(run))


TWO_VERSIONS = Factor(name="version", levels=("8.0", "8.4"))
STEPS = (-4, -1, 2, 5, -5, -2, 1, 4)
CELLS = ("8.0+per-connection", "8.0+pool", "8.4+per-connection", "8.4+pool")
WHERE = "oltp_read_write at 10, 20 and 40 connections"


def cells(*speeds: int) -> Speed:
    """Transactions per tick of 8.0 and 8.4, each without and with the pool; blocks differ by up to 0.5 %."""

    def of(trial: Trial, _tick: int) -> int:
        number = CELLS.index(trial.variant)
        return speeds[number] + STEPS[(trial.block + 3 * number) % 8]

    return of


def dies(variant: str, *blocks: int) -> Callable[[Trial], str | None]:
    """A variant whose trials fail in some blocks."""
    return lambda trial: "server went away" if trial.variant == variant and trial.block in blocks else None


def crossing(trial: Trial, _tick: int) -> int:
    """The pool gains 20 % at 10 connections and loses as much at 40, with both versions."""
    gain = {10: 200, 20: 0, 40: -200}[trial.point.connections] if "pool" in trial.variant else 0
    return 1000 + gain + STEPS[(trial.block + 3 * CELLS.index(trial.variant)) % 8]


STOP: list[dict[str, Any]] = [
    {
        "code": "P07",
        "level": "stop",
        "text": "x is 1.",
        "evidence": {},
        "subject": "8.4+pool",
        "override": None,
    }
]


# Every form that the sentence of a factor can take, and a run that has it.
FORMS: dict[str, dict[str, Any]] = {
    "additive": {"speed": cells(1000, 1200, 1000, 1200)},
    "interacting": {"speed": cells(1000, 1000, 1250, 800)},
    "interacting by many times": {"speed": cells(1000, 1000, 1000, 3000)},
    "equivalent": {"speed": cells(1000, 1000, 1000, 1000), "delta_percent": 2.0},
    "it depends on the load": {"speed": crossing},
    "at one load": {"speed": cells(1000, 1200, 1000, 1200), "connections": (10,)},
    "too few blocks": {"speed": cells(1000, 1200, 1000, 1200), "blocks": 3},
    "too few blocks are left": {
        "speed": cells(1000, 1200, 1000, 1200),
        "failed": dies("8.4+pool", 0, 1, 2),
        "failed_by": "harness",
    },
    "a block less": {
        "speed": cells(1000, 1200, 1000, 1200),
        "failed": dies("8.4+pool", 3),
        "failed_by": "harness",
    },
    "no result": {
        "speed": cells(1000, 1200, 1000, 1200),
        "failed": dies("8.4+pool", *range(8)),
        "failed_by": "harness",
    },
    "not finished": {"speed": cells(1000, 1200, 1000, 1200), "absent": lambda trial: trial.block > 6},
    "stopped": {"speed": cells(1000, 1200, 1000, 1200), "findings": STOP},
    "some trials failed": {"speed": cells(1000, 1200, 1000, 1200), "failed": dies("8.4+pool", 1, 2, 3)},
    "a variant that always fails": {
        "speed": cells(1000, 1200, 1000, 1200),
        "failed": dies("8.4+pool", *range(8)),
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_the_sentence_of_a_factor(tmp_path: Path, form: str) -> None:
    verdict = judged(tmp_path, Making(**({"factors": (TWO_VERSIONS, THREADS)} | FORMS[form])))
    check_sentences(form, *(entry["sentence"] for entry in verdict["factors"]))


def test_all_effects_of_a_run_are_one_family(tmp_path: Path) -> None:
    workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
    making = Making(factors=(VERSIONS, THREADS), connections=(10,), speed=speed, workloads=workloads)
    verdict = judged(tmp_path, making)
    # Three main effects and two interactions on each workload.
    assert verdict["family"]["sentences"] == len(verdict["factors"]) == 10
    assert {entry["confidence"] for entry in verdict["factors"]} == {1.0 - 0.05 / 10}
    # 2 / 2^8 is above 0.5 %.
    assert {entry["verdict"] for entry in verdict["factors"]} == {"too-few-blocks"}
    # So no verdict can be wrong.
    assert verdict["family"]["text"] == ""
    assert "(8; 9 are needed)" in verdict["factors"][0]["sentence"]


def test_comparisons_of_a_factorial_run_have_numbers_and_no_words(tmp_path: Path) -> None:
    making = Making(factors=(TWO_VERSIONS, THREADS), speed=cells(1000, 1200, 1000, 1200))
    for comparison in judged(tmp_path, making)["comparisons"]:
        entries = (comparison["curve"], *comparison["points"])
        assert {entry["verdict"] for entry in entries} == {None}
        assert {entry["confidence"] for entry in entries} == {0.95}
        assert comparison["curve"]["interval_percent"] is not None
        assert comparison["curve"]["sentence"].startswith(
            f"{comparison['variant']} against 8.0+per-connection: "
        )


def test_comparisons_without_numbers_say_why(tmp_path: Path) -> None:
    making = Making(
        factors=(TWO_VERSIONS, THREADS),
        speed=cells(1000, 1200, 1000, 1200),
        failed=dies("8.4+pool", *range(8)),
        failed_by="harness",
    )
    words = {one["variant"]: one["curve"]["verdict"] for one in judged(tmp_path, making)["comparisons"]}
    assert words == {"8.0+pool": None, "8.4+per-connection": None, "8.4+pool": "not-comparable"}


def test_interactions_of_three_factors_are_named_as_not_examined(tmp_path: Path) -> None:
    third = Factor(name="disk", levels=("ssd", "nvme"))

    def three(trial: Trial, _tick: int) -> int:
        # The pool gains 20 %, on version 8.4 and nvme together 80 %: twice as much as each alone explains.
        version, threads, disk = trial.variant.split("+")
        gain = {("8.4", "nvme"): 1.8}.get((version, disk), 1.2) if threads == "pool" else 1.0
        return round(1000 * gain) + STEPS[(trial.block + 3 * len(trial.variant)) % 8]

    making = Making(factors=(TWO_VERSIONS, THREADS, third), connections=(10,), speed=three)
    verdict = judged(tmp_path, making)
    assert verdict["family"] == {
        "sentences": 6,
        "alpha": 0.05,
        "text": "The chance that any of these 6 verdicts is wrong is at most 5 %. "
        "Interactions of three factors are not examined.",
    }
    by_levels = {tuple(entry["levels"]): entry for entry in verdict["factors"]}
    # The mean over the disks: sqrt(1.8 / 1.2) - 1.
    assert by_levels["8.4", "pool"]["effect_percent"] == pytest.approx(22.5, abs=0.5)
    # The pool depends on both others, each a mean over the third: sqrt(1.2 * 1.2) and sqrt(1.2 * 1.8).
    assert by_levels["pool",]["verdict"] == "mixed"
    assert "depends on version and disk (+20." in by_levels["pool",]["sentence"]
    assert "% with 8.0, +47." in by_levels["pool",]["sentence"]
    assert "% with ssd, +47." in by_levels["pool",]["sentence"]


def test_two_factors_have_no_third(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(factors=(TWO_VERSIONS, THREADS), speed=cells(1000, 1000, 1000, 1000)))
    assert "three" not in verdict["family"]["text"]


def test_warnings_of_another_workload_stay_there(tmp_path: Path) -> None:
    workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
    found = [
        {"code": code, "level": "warn", "text": code, "evidence": evidence, "subject": "", "override": None}
        for code, evidence in (("D05", {"workload": "reads"}), ("P15", {}))
    ]
    entries = factors(
        tmp_path,
        factors=(TWO_VERSIONS, THREADS),
        workloads=workloads,
        findings=found,
        speed=cells(1000, 1200, 1000, 1200),
    )
    assert entries["oltp_read_write", "pool"]["sentence"].endswith(
        " blocks. Caveat: the design is weak (P15)."
    )
    assert (
        ". Caveats: connections were lost (D05); the design is weak (P15)."
        in entries["reads", "pool"]["sentence"]
    )
    assert "D05" not in entries["oltp_read_write", "pool"]["sentence"]


def test_each_workload_has_its_own(tmp_path: Path) -> None:
    workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
    found = factors(tmp_path, workloads=workloads)
    assert {key[0] for key in found} == {"oltp_read_write", "reads"}
    assert len(found) == 10


def test_a_block_that_lacks_a_cell_is_left_out_of_what_needs_it(tmp_path: Path) -> None:
    found = factors(tmp_path, absent=lambda trial: trial.block == 3 and trial.variant == "9.7+pool")
    name = "oltp_read_write"
    # 8.4 against 8.0 needs no trial of 9.7.
    assert found[name, "8.4"]["blocks"] == 8
    assert found[name, "pool"]["blocks"] == found[name, "9.7"]["blocks"] == 7


def overwhelmed(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """9.7 leaves half of what is due undone in every block; 8.4 with the pool, in one."""
    if trial.variant.startswith("9.7") or (trial.variant, trial.block) == ("8.4+pool", 3):
        # As many again were due and had not ended after two seconds.
        totals = records[-1]["data"]["phases"]["measure"]
        totals["censored_us"] = [[2_000_000, totals["events"]]]
        totals["accounting"]["unfinished"] = totals["events"]
        totals["accounting"]["due"] += totals["events"]
    return records


def test_latencies_that_were_cut_off_bear_on_a_factor_by_their_bounds(tmp_path: Path) -> None:
    """A block in which a server was overwhelmed is the answer, and none is left out for it."""
    making = Making(
        factors=(VERSIONS, THREADS), connections=(64,), rates=(500.0,), speed=speed, spoil=overwhelmed
    )
    run = make(tmp_path, making)
    judge(run)
    found = {tuple(entry["levels"]): entry for entry in verdict_of(run)["factors"]}
    assert {entry["blocks"] for entry in found.values()} == {8}
    newest = found["9.7",]
    assert (newest["bound"], newest["verdict"]) == ("at-least", "slower")
    assert newest["interval_percent"][1] is None
    assert newest["sentence"].startswith(
        "version 9.7 has a higher p95 latency than 8.0: p95 latency at least "
    )
    assert newest["effect_percent"] == pytest.approx(_at_least(run.path, "9.7", "8.0"))
    # A single bound in one of eight blocks leaves the estimate, the median of averages, as it was.
    assert found["8.4",]["effect_percent"] == pytest.approx((1 / 1.1 - 1) * 100, abs=0.05)
    assert found["8.4",]["interval_percent"][1] is None
    # What is subtracted from what is not known either: nothing is certain.
    pool = found["pool",]
    assert pool["interval_percent"] == [-100.0, None]
    assert pool["verdict"] == found["9.7", "pool"]["verdict"] == "undecided"
    assert "ratio pool/per-connection unknown from 8.0 to 9.7" in found["9.7", "pool"]["sentence"]
    assert "≥ " in as_markdown(gather(run))


def _at_least(folder: Path, version: str, base: str) -> float:
    """The estimate at the p95 as they stand: the median of all averages of two blocks, in percent."""
    stored = json.loads((folder / "measured.json").read_text())["trials"]
    p95 = {(t["place"]["variant"], t["place"]["block"]): t["figures"]["latency_p95_us"] for t in stored}
    by_block = [
        np.mean([math.log(p95[f"{version}+{t}", b] / p95[f"{base}+{t}", b]) for t in THREADS.levels])
        for b in range(8)
    ]
    averages = [(by_block[i] + by_block[j]) / 2 for i in range(8) for j in range(i, 8)]
    return (math.exp(float(np.median(averages))) - 1) * 100


def test_contrasts_are_those_of_a_linear_model() -> None:
    """Against an independent computation: least squares on the cells with effect-coded factors."""
    rng = np.random.default_rng(1)
    values: dict[tuple[str, ...], float] = {cell: float(rng.normal()) for cell in _cells()}
    for contrast in (*contrasts((VERSIONS, THREADS), 1), *contrasts((VERSIONS, THREADS), 2)):
        assert sum(contrast.weights.values()) == pytest.approx(0.0)
        mine = sum(weight * values[cell] for cell, weight in contrast.weights.items())
        assert mine == pytest.approx(_by_least_squares(values, contrast.levels))


def _cells() -> list[tuple[str, str]]:
    return [(version, threads) for version in VERSIONS.levels for threads in THREADS.levels]


def _by_least_squares(values: dict[tuple[str, ...], float], levels: tuple[str, ...]) -> float:
    """The same from a regression on effect-coded factors (each level's effects add up to 0)."""
    versions, threads = VERSIONS.levels, THREADS.levels
    coded_version = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    coded_threads = np.array([[1.0], [-1.0]])
    rows = []
    for version, thread in _cells():
        v, t = coded_version[versions.index(version)], coded_threads[threads.index(thread)]
        rows.append(np.concatenate([[1.0], v, t, v * t]))
    solution = np.linalg.lstsq(np.array(rows), np.array([values[cell] for cell in _cells()]), rcond=None)[0]
    of_version, of_threads = coded_version @ solution[1:3], coded_threads @ solution[3:4]
    of_both = coded_version @ np.outer(solution[4:6], coded_threads.T)
    if len(levels) == 2:
        row = versions.index(levels[0])
        return float((of_both[row, 1] - of_both[row, 0]) - (of_both[0, 1] - of_both[0, 0]))
    if levels[0] in versions:
        return float(of_version[versions.index(levels[0])] - of_version[0])
    return float(of_threads[1] - of_threads[0])


def test_an_experiment_without_factors_says_nothing_of_them(tmp_path: Path) -> None:
    assert judge(make(tmp_path)).factors is None


def test_the_report_tells_what_each_factor_does(tmp_path: Path) -> None:
    run = make(tmp_path, Making(factors=(VERSIONS, THREADS), connections=(10, 20), speed=speed, blocks=10))
    verdict = judge(run)
    page = undrawn(run)
    assert "Effect of each factor on the throughput of oltp_read_write" in page
    assert ">interact</span>" in page
    assert verdict.factors is not None
    for row in verdict.factors:
        assert row.sentence in page
    assert "The effect of threads depends on version: " in as_markdown(gather(run))
