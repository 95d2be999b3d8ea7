"""Stored runs through the judge: every word, its numbers, and the keys of verdict.json."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from tests.unit import stored_run
from tests.unit.sentences import check_sentences
from tests.unit.simulated_trials import experiment, measured
from tests.unit.stored_run import Arms, Making, make

from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import OltpWorkload
from dbdyno.experiment.schedule import Trial
from dbdyno.stats.histogram import bucket_lower_us
from dbdyno.store import Run
from dbdyno.verdict import judge

ROOT = Path(__file__).resolve().parents[2]


def _without_other_keys(schema: Any) -> Any:
    """The schema, whose objects have no other keys than those that it names."""
    if isinstance(schema, list):
        return [_without_other_keys(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {key: _without_other_keys(one) for key, one in schema.items()} | closed


# The schema that other programs read allows keys of newer versions.
SCHEMA = jsonschema_rs.Draft202012Validator(
    _without_other_keys(json.loads((ROOT / "schema" / "verdict.schema.json").read_text()))
)

# What differs from block to block, in tenths of a percent; balanced around 0.
STEPS = (-4, -1, 2, 5, -5, -2, 1, 4)
THREE = (10, 20, 40)


def judged(folder: Path, making: Making | None = None) -> dict[str, Any]:
    """The verdict of a made run, without the note that short trials cannot show a warm state."""
    verdict = stored_run.judged(folder, making)
    path = verdict.pop("path")
    SCHEMA.validate(verdict)
    verdict["checks"] = [check for check in verdict["checks"] if not is_unchecked(check)]
    return verdict | {"path": path}


def is_unchecked(check: dict[str, Any]) -> bool:
    """Whether a finding is the note that short trials cannot show a warm state."""
    return (check["code"], check["level"]) == ("R01", "note")


def curve(verdict: dict[str, Any]) -> dict[str, Any]:
    """The only comparison's curve."""
    (comparison,) = verdict["comparisons"]
    found: dict[str, Any] = comparison["curve"]
    return found


def points(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """The first comparison's points."""
    found: list[dict[str, Any]] = verdict["comparisons"][0]["points"]
    return found


def spread(base: int, step: int = 1) -> Any:
    """A speed that differs from block to block, so that intervals have a width."""
    return lambda trial: base + step * trial.block


def around(base: int) -> Any:
    """A speed that lies around `base`, a few tenths of a percent of 1,000 away."""
    return lambda trial: base + STEPS[trial.block % 8]


def against_1000(b: Any) -> Arms:
    """Variant a at 1,000 transactions per tick, and b."""
    return Arms(a=lambda _trial: 1000, b=b)


def at_levels(speeds: dict[int, int]) -> Arms:
    """Variant a at 1,000, and b around a speed of its own at each number of connections."""
    return against_1000(lambda trial: around(speeds[trial.point.connections])(trial))


def uneven(noise: np.random.Generator) -> Callable[[Trial], float]:
    """Throughputs with noise of 1 %, and differences of about as much between variants and loads."""
    effects = {(connections, name): noise.normal(0.0, 0.01) for connections in THREE for name in "ab"}
    return lambda t: 1000 * math.exp(effects[t.point.connections, t.variant] + noise.normal(0.0, 0.01))


class TestDirection:
    def test_slower(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, Making(speed=against_1000(lambda t: 900 + 2 * t.block)))
        found = curve(verdict)
        assert found["verdict"] == "slower"
        # b is -10.0, -9.8, ... -8.6 % in the eight blocks. Of the 36 Walsh averages the fourth from either
        # end bounds the interval (5 of 256 sign patterns lie beyond), and the median lies in the middle.
        assert found["effect_percent"] == pytest.approx(-9.3, abs=0.001)
        assert found["interval_percent"] == pytest.approx([-9.8, -8.8], abs=0.001)
        assert (found["confidence"], found["p_value"], found["blocks"]) == (0.95, 2 / 2**8, 8)
        first, *others = points(verdict)
        assert [point["at"] for point in points(verdict)] == [{"connections": n} for n in (10, 20, 40)]
        assert {point["verdict"] for point in points(verdict)} == {"slower"}
        assert (first["baseline"], first["variant"]) == (10_000.0, 9070.0)
        assert first["blocks"] == len(first["trials"]["baseline"]) == 8
        # The numbers of all loads are the same, and so are their intervals.
        assert all(point["interval_percent"] == first["interval_percent"] for point in others)
        assert verdict["checks"] == []

    def test_faster(self, tmp_path: Path) -> None:
        assert curve(judged(tmp_path, Making(speed=Arms(b=spread(110)))))["verdict"] == "faster"

    def test_at_one_load_the_point_is_the_curve(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, Making(connections=(10,), speed=against_1000(spread(900))))
        (point,), whole = points(verdict), curve(verdict)
        for key in point.keys() & whole.keys():
            assert point[key] == whole[key], key

    def test_a_change_at_one_load_alone_is_a_word_there(self, tmp_path: Path) -> None:
        def b(trial: Trial) -> int:
            at_40 = trial.point.connections == 40
            return int(around(1080)(trial)) if at_40 else 1000 + 30 * STEPS[trial.block]

        verdict = judged(tmp_path, Making(speed=against_1000(b)))
        assert curve(verdict)["verdict"] == "undecided"
        assert [point["verdict"] for point in points(verdict)] == ["undecided", "undecided", "faster"]
        check_sentences("undecided, significant at one load", curve(verdict)["sentence"])

    def test_an_interval_holds_zero_exactly_where_there_is_no_word(self) -> None:
        """Between 1/5 and all of its share a load is significant by its own test, and has no word in the
        family.
        """
        of, noise, extended, given = experiment(loads=3), np.random.default_rng(1), 0, 0
        for _ in range(150):
            trials = measured(of, uneven(noise))
            (found,) = compare_all(trials, of, [])
            judged = found.judged
            for level, alone, word in zip(
                judged.load_effects, judged.assessment.load_effects, judged.load_verdicts, strict=True
            ):
                assert level is not None
                assert alone is not None
                assert level.is_significant == (word in ("faster", "slower"))
                extended += alone.is_significant and not level.is_significant
                given += level.is_significant
        assert extended > 0
        assert given > 0


class TestMixed:
    def test_up_at_one_load_and_down_at_another(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, Making(speed=at_levels({10: 1250, 20: 1000, 40: 810})))
        assert curve(verdict)["verdict"] == "mixed"
        assert [point["verdict"] for point in points(verdict)] == ["faster", "undecided", "slower"]

    def test_a_declared_delta_does_not_hide_it(self, tmp_path: Path) -> None:
        speed = at_levels({10: 1030, 20: 1000, 40: 970})
        verdict = judged(tmp_path, Making(speed=speed, delta_percent=5.0))
        assert curve(verdict)["verdict"] == "mixed"
        assert [point["verdict"] for point in points(verdict)] == ["faster", "equivalent", "slower"]

    def test_less_than_identical_variants_differ_by_is_nothing(self, tmp_path: Path) -> None:
        speeds = at_levels({10: 1030, 20: 1000, 40: 970})

        def speed(trial: Trial, tick: int) -> int:
            return int(around(1035)(trial)) if trial.variant == "a-again" else speeds(trial, tick)

        making = Making(names=("a", "a-again", "b"), identical=("a-again",), speed=speed)
        verdict = judged(tmp_path, making)["comparisons"][1]
        assert verdict["curve"]["verdict"] == "undecided"
        assert {point["verdict"] for point in verdict["points"]} == {"undecided"}
        assert all(point["noise_floor_percent"] > 3.0 for point in verdict["points"])

    def test_a_load_against_the_average_is_named(self, tmp_path: Path) -> None:
        noisy = {20: 40, 40: -40, 80: 35}

        def b(trial: Trial) -> int:
            at = trial.point.connections
            return int(around(950)(trial)) if at == 10 else 1130 + noisy[at] * STEPS[trial.block]

        verdict = judged(tmp_path, Making(connections=(10, 20, 40, 80), speed=against_1000(b)))
        assert curve(verdict)["verdict"] == "faster"
        assert points(verdict)[0]["verdict"] == "slower"
        check_sentences("faster, slower at one load", curve(verdict)["sentence"])


class TestEquivalent:
    def test_only_with_a_declared_delta(self, tmp_path: Path) -> None:
        speed = against_1000(around(1000))
        undeclared = judged(tmp_path / "1", Making(speed=speed))
        assert (curve(undeclared)["verdict"], curve(undeclared)["delta_percent"]) == ("undecided", None)
        declared = judged(tmp_path / "2", Making(speed=speed, delta_percent=2.0))
        assert (curve(declared)["verdict"], curve(declared)["delta_percent"]) == ("equivalent", 2.0)
        assert {point["verdict"] for point in points(declared)} == {"equivalent"}

    def test_every_load_must_lie_within(self, tmp_path: Path) -> None:
        """Opposite differences of 3 % at two loads cancel out on average."""

        def b(trial: Trial) -> int:
            # Not significant at any load: the blocks differ by more.
            wide = {10: 25 + 12 * STEPS[trial.block], 20: 0, 40: -25 - 12 * STEPS[trial.block]}
            return 1000 + STEPS[trial.block] + wide[trial.point.connections]

        verdict = judged(tmp_path, Making(speed=against_1000(b), delta_percent=2.0))
        low, high = curve(verdict)["interval_percent"]
        assert -2.0 < low < high < 2.0
        assert curve(verdict)["verdict"] == "undecided"
        assert [point["verdict"] for point in points(verdict)] == ["undecided", "equivalent", "undecided"]

    def test_it_stands_where_the_interval_excludes_zero(self, tmp_path: Path) -> None:
        speed = against_1000(spread(1004))
        verdict = judged(tmp_path / "1", Making(speed=speed, delta_percent=2.0))
        assert curve(verdict)["interval_percent"][0] > 0
        assert curve(verdict)["verdict"] == "equivalent"
        narrower = judged(tmp_path / "2", Making(speed=speed, delta_percent=0.5))
        assert curve(narrower)["verdict"] == "faster"


class TestTooFew:
    def test_below_six_blocks_there_is_no_interval(self, tmp_path: Path) -> None:
        found = curve(judged(tmp_path, Making(blocks=5)))
        assert (found["verdict"], found["interval_percent"]) == ("too-few-blocks", None)

    def test_six_blocks_are_enough_for_ten_loads(self, tmp_path: Path) -> None:
        making = Making(blocks=6, connections=tuple(range(1, 11)), speed=against_1000(spread(900)))
        verdict = judged(tmp_path, making)
        assert {curve(verdict)["verdict"], *(point["verdict"] for point in points(verdict))} == {"slower"}

    def test_several_sentences_need_more(self, tmp_path: Path) -> None:
        making = Making(
            blocks=6, names=("a", "b", "c"), speed=lambda t, _: spread({"a": 99}.get(t.variant, 90))(t)
        )
        verdict = judged(tmp_path, making)
        assert {one["curve"]["verdict"] for one in verdict["comparisons"]} == {"too-few-blocks"}
        check_sentences("too few blocks for two", verdict["comparisons"][0]["curve"]["sentence"])


class TestUnfinished:
    def test_no_interval_no_word_no_p_value(self, tmp_path: Path) -> None:
        """Whoever looks after each block would stop at a lucky one: 16 % wrong verdicts."""
        verdict = judged(tmp_path, Making(absent=lambda t: t.block >= 6))
        found = curve(verdict)
        assert (found["verdict"], found["interval_percent"], found["p_value"]) == ("unfinished", None, None)
        assert found["effect_percent"] == pytest.approx(-10.0)
        for point in points(verdict):
            assert (point["verdict"], point["interval_percent"], point["blocks"]) == ("unfinished", None, 6)
        stored = json.loads((verdict["path"] / "measured.json").read_text())["comparisons"][0]
        assert {entry["p_value"] for entry in (stored["curve"], *stored["points"])} == {None}
        (check,) = verdict["checks"]
        assert (check["code"], check["level"], check["evidence"]) == ("R04", "warn", {"not_run": 12})

    def test_nor_a_cross_over_interval(self, tmp_path: Path) -> None:
        finished = judged(tmp_path / "1")
        assert "order" in finished["comparisons"][0]
        # As many blocks, of ten.
        waiting = judged(tmp_path / "2", Making(blocks=10, absent=lambda t: t.block >= 8))
        assert curve(waiting)["blocks"] == 8
        assert "order" not in waiting["comparisons"][0]

    def test_one_trial_that_has_not_run_is_enough(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, Making(absent=lambda t: t.index == 47))
        assert curve(verdict)["verdict"] == "unfinished"

    @pytest.mark.parametrize("trials", [0, 1, 5])
    def test_before_the_first_block_is_complete(self, tmp_path: Path, trials: int) -> None:
        found = curve(judged(tmp_path, Making(absent=lambda t: t.index >= trials)))
        assert (found["verdict"], found["effect_percent"], found["blocks"]) == ("unfinished", None, 0)
        check_sentences("no block is finished", found["sentence"])

    def test_it_passes_none_of_its_share_to_the_others(self, tmp_path: Path) -> None:
        """b alone has p = 10/256: too much for half of 5 %. c is clearly slower, and not finished."""
        blocks = (-12, -30, -9, -25, -14, -20, 3, 4)

        def speed(trial: Trial, _tick: int) -> int:
            return int({"a": 1000, "b": 1000 + blocks[trial.block], "c": 700 + trial.block}[trial.variant])

        making = Making(names=("a", "b", "c"), connections=(10,), speed=speed)
        finished = [one["curve"]["verdict"] for one in judged(tmp_path / "1", making)["comparisons"]]
        assert finished == ["slower", "slower"]
        making.absent = lambda trial: (trial.variant, trial.block) == ("c", 7)
        waiting = [one["curve"]["verdict"] for one in judged(tmp_path / "2", making)["comparisons"]]
        assert waiting == ["undecided", "unfinished"]

    def test_another_workload_that_is_finished_has_its_word(self, tmp_path: Path) -> None:
        workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
        making = Making(
            workloads=workloads,
            connections=(10,),
            speed=against_1000(spread(900)),
            absent=lambda t: t.workload == "reads" and t.block > 3,
        )
        words = [one["curve"]["verdict"] for one in judged(tmp_path, making)["comparisons"]]
        assert words == ["slower", "unfinished"]


STOP: dict[str, Any] = {
    "code": "P07",
    "level": "stop",
    "text": "max_connections is 10 and 40 are needed",
    "evidence": {},
    "subject": "b",
    "override": None,
}


class TestStops:
    def test_a_stop_outweighs_everything(self, tmp_path: Path) -> None:
        for number, absent in enumerate((lambda _t: False, lambda t: t.block > 5)):
            verdict = judged(tmp_path / str(number), Making(findings=[STOP], absent=absent))
            assert curve(verdict)["verdict"] == "not-comparable"
            assert {point["verdict"] for point in points(verdict)} == {"not-comparable"}

    def test_overridden_it_stands_in_the_sentence(self, tmp_path: Path) -> None:
        making = Making(findings=[STOP], override={"P07": "known and wanted"})
        verdict = judged(tmp_path, making)
        assert curve(verdict)["verdict"] == "slower"
        check_sentences("an override", curve(verdict)["sentence"])
        assert verdict["checks"][0]["override"] == "known and wanted"

    def test_a_stop_on_one_variant_spares_the_others(self, tmp_path: Path) -> None:
        stop = {**STOP, "subject": "c"}
        speed = Arms(b=lambda t: 90 if t.variant == "b" else 80)
        verdict = judged(tmp_path / "1", Making(names=("a", "b", "c"), speed=speed, findings=[stop]))
        assert [(c["variant"], c["curve"]["verdict"]) for c in verdict["comparisons"]] == [
            ("b", "slower"),
            ("c", "not-comparable"),
        ]
        on_baseline = {**stop, "subject": "a"}
        both = judged(tmp_path / "2", Making(names=("a", "b", "c"), speed=speed, findings=[on_baseline]))
        assert {c["curve"]["verdict"] for c in both["comparisons"]} == {"not-comparable"}

    def test_a_stop_on_one_workload_spares_the_others(self, tmp_path: Path) -> None:
        workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
        stop = {**STOP, "subject": "", "evidence": {"workload": "reads"}}
        verdict = judged(tmp_path, Making(workloads=workloads, findings=[stop]))
        words = {one["workload"]: one["curve"]["verdict"] for one in verdict["comparisons"]}
        assert words == {"oltp_read_write": "slower", "reads": "not-comparable"}

    def test_a_point_that_nobody_measured_is_never_a_number(self, tmp_path: Path) -> None:
        making = Making(
            failed=lambda t: "a hook failed" if t.variant == "b" and t.point.connections == 40 else None,
            failed_by="harness",
        )
        verdict = judged(tmp_path, making)
        gone = points(verdict)[2]
        assert (gone["verdict"], gone["variant"], gone["effect_percent"]) == ("not-comparable", None, None)
        # The curve is not built on the points that happened to work.
        assert curve(verdict)["verdict"] == "not-comparable"
        assert [(c["code"], c["level"]) for c in verdict["checks"]] == [("R04", "warn"), ("R04", "stop")]

    def test_no_block_that_holds_all_loads(self, tmp_path: Path) -> None:
        making = Making(
            failed=lambda t: "hook" if t.point.connections == (10, 20, 40)[t.block % 3] else None,
            failed_by="harness",
        )
        found = curve(judged(tmp_path, making))
        assert (found["verdict"], found["blocks"]) == ("not-comparable", 0)
        check_sentences("no common block", found["sentence"])


class TestFamily:
    def test_one_comparison_has_the_whole_level(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path)
        assert (verdict["family"]["sentences"], verdict["family"]["alpha"]) == (1, 0.05)
        check_sentences("a family of one", verdict["family"]["text"])

    def test_all_variants_and_workloads_share_it(self, tmp_path: Path) -> None:
        workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
        making = Making(
            names=("a", "b", "c"), workloads=workloads, speed=lambda t, _: spread(ord(t.variant))(t)
        )
        verdict = judged(tmp_path, making)
        assert verdict["family"]["sentences"] == len(verdict["comparisons"]) == 4
        check_sentences("a family of four", verdict["family"]["text"])
        for comparison in verdict["comparisons"]:
            # The two variants share 5 %; the intervals over all loads of the two workloads hold together.
            assert comparison["curve"]["confidence"] == pytest.approx(1.0 - 0.05 / 2)
            # So do those at all loads of the two workloads.
            for entry in comparison["points"]:
                assert entry["confidence"] == pytest.approx(1.0 - 0.05 / 2)

    def test_the_interval_of_a_sentence_has_the_level_of_its_share(self, tmp_path: Path) -> None:
        speed = against_1000(lambda t: 900 + t.block**2)
        making = Making(names=("a", "b", "c"), connections=(10,), speed=speed)
        alone = curve(judged(tmp_path / "1", Making(connections=(10,), speed=speed)))
        shared = judged(tmp_path / "2", making)["comparisons"][0]["curve"]
        # b is -10, -9.9, -9.6, -9.1, -8.4, -7.5, -6.4, -5.1 %. At 5 % the fourth average of two blocks from
        # either end bounds the interval (-10 with -9.6, -6.4 with itself), at 2.5 % the third (-9.9 with
        # itself, -7.5 with -5.1).
        assert alone["interval_percent"] == pytest.approx([-9.8, -6.4], abs=0.01)
        assert shared["interval_percent"] == pytest.approx([-9.9, -6.3], abs=0.01)
        assert shared["p_value"] == alone["p_value"]

    def test_a_word_without_a_size(self, tmp_path: Path) -> None:
        """Holm's procedure gives b its word once c has one; the interval of its share still reaches zero."""
        blocks = (-12, -30, -9, -25, -14, -20, 3, 4)

        def speed(trial: Trial, _tick: int) -> int:
            c = spread(700)(trial)
            return int({"a": 1000, "b": 1000 + blocks[trial.block], "c": c}[trial.variant])

        making = Making(names=("a", "b", "c"), connections=(10,), speed=speed)
        b, c = (one["curve"] for one in judged(tmp_path, making)["comparisons"])
        assert c["verdict"] == "slower"
        assert 0.025 < b["p_value"] <= 0.05
        assert b["verdict"] == "slower"
        low, high = b["interval_percent"]
        assert low < 0.0 <= high
        assert "the direction is significant by Holm's test, though" in b["sentence"]


class TestIdentical:
    @staticmethod
    def speed(again: int, b: int) -> Any:
        return lambda trial, _tick: around({"a": 1000, "a-again": again, "b": b}[trial.variant])(trial)

    def test_identical_variants_have_no_direction_whatever_they_differ_by(self, tmp_path: Path) -> None:
        making = Making(names=("a", "a-again"), identical=("a-again",), speed=self.speed(1200, 0))
        verdict = judged(tmp_path, making)
        (comparison,) = verdict["comparisons"]
        assert comparison["identical"] is True
        assert comparison["curve"]["verdict"] == "undecided"
        assert {point["verdict"] for point in comparison["points"]} == {"undecided"}
        # The interval is not extended to zero: it is what the noise floor is made of.
        assert comparison["curve"]["interval_percent"][0] > 19.0
        (check,) = [check for check in verdict["checks"] if check["code"] == "R05"]
        assert (check["level"], check["subject"]) == ("warn", "a-again")
        assert "a and a-again are identical, but differ by +20.0 %" in check["text"]
        assert comparison["curve"]["sentence"].endswith(". Caveat: identical variants differ (R05).")

    def test_chance_alone_is_no_finding(self, tmp_path: Path) -> None:
        making = Making(names=("a", "a-again"), identical=("a-again",), speed=self.speed(1000, 0))
        # Each at its own speed in each block: no difference in the mean.
        making.speed = lambda trial, _: 1000 + (1 if trial.variant == "a" else -1) * STEPS[trial.block]
        verdict = judged(tmp_path, making)
        assert verdict["checks"] == []
        assert "R05" not in curve(verdict)["sentence"]

    def test_they_have_no_part_in_the_family(self, tmp_path: Path) -> None:
        speeds = {"a": 1000, "a-again": 1001, "b": 1100, "c": 1200}
        making = Making(
            names=("a", "a-again", "b", "c"),
            identical=("a-again",),
            speed=lambda trial, _tick: around(speeds[trial.variant])(trial),
        )
        verdict = judged(tmp_path, making)
        assert verdict["family"]["sentences"] == 2
        confidences = {one["variant"]: one["curve"]["confidence"] for one in verdict["comparisons"]}
        assert confidences == {"a-again": 0.95, "b": 0.975, "c": 0.975}

    def test_alone_they_have_no_family(self, tmp_path: Path) -> None:
        making = Making(names=("a", "a-again"), identical=("a-again",), speed=self.speed(1001, 0))
        check_sentences("a family of identical variants", judged(tmp_path, making)["family"]["text"])

    def test_an_equivalence_within_the_floor_has_no_direction(self, tmp_path: Path) -> None:
        making = Making(
            names=("a", "a-again", "b"),
            identical=("a-again",),
            speed=self.speed(1015, 1010),
            delta_percent=3.0,
        )
        check_sentences(
            "equivalent within the floor", judged(tmp_path, making)["comparisons"][1]["curve"]["sentence"]
        )

    @pytest.mark.parametrize(("b", "word"), [(1100, "faster"), (1030, "undecided")])
    def test_what_they_differ_by_is_the_noise_floor_of_the_others(
        self, tmp_path: Path, b: int, word: str
    ) -> None:
        making = Making(names=("a", "a-again", "b"), identical=("a-again",), speed=self.speed(1040, b))
        # Blocks of a vary against those of the others.
        speed = making.speed
        making.speed = lambda trial, tick: speed(trial, tick) + (trial.variant != "a") * (trial.block % 3)
        again, other = judged(tmp_path, making)["comparisons"]
        floor = max(abs(end) for end in again["curve"]["interval_percent"])
        assert again["curve"]["noise_floor_percent"] is None
        assert other["curve"]["noise_floor_percent"] == pytest.approx(floor)
        assert other["curve"]["interval_percent"][0] > 0.0
        assert other["curve"]["verdict"] == word

    def test_the_farthest_of_several_is_the_floor(self, tmp_path: Path) -> None:
        speeds = {"a": 1000, "a2": 1010, "a3": 960, "b": 1030}
        making = Making(
            names=("a", "a2", "a3", "b"),
            identical=("a2", "a3"),
            speed=lambda trial, _tick: around(speeds[trial.variant])(trial),
        )
        *copies, b = judged(tmp_path, making)["comparisons"]
        assert b["curve"]["noise_floor_percent"] == pytest.approx(
            max(abs(end) for copy in copies for end in copy["curve"]["interval_percent"])
        )
        assert b["curve"]["verdict"] == "undecided"


class TestOpenLoop:
    def test_it_is_judged_by_latency(self, tmp_path: Path) -> None:
        making = Making(connections=(64,), rates=(500.0, 1000.0), speed=Arms(b=spread(80)))
        verdict = judged(tmp_path, making)
        assert [point["at"] for point in points(verdict)] == [{"rate": 500.0}, {"rate": 1000.0}]
        assert {point["metric"] for point in points(verdict)} == {"latency_p95_us"}
        # In the made stream latency is the inverse of speed: b is slower, and its latency higher.
        assert points(verdict)[0]["effect_percent"] > 10
        assert curve(verdict)["verdict"] == "slower"

    @staticmethod
    def overwhelmed(which: Any) -> Any:
        def spoil(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if which(trial):
                # As many again were due and had not ended after two seconds.
                totals = records[-1]["data"]["phases"]["measure"]
                totals["censored_us"] = [[2_000_000, totals["events"]]]
                totals["accounting"]["unfinished"] = totals["events"]
                totals["accounting"]["due"] += totals["events"]
            return records

        return spoil

    def judged(self, folder: Path, which: Any) -> dict[str, Any]:
        making = Making(
            connections=(64,),
            rates=(500.0,),
            speed=against_1000(spread(900)),
            spoil=self.overwhelmed(which),
        )
        return judged(folder, making)

    def test_a_latency_that_was_cut_off_is_compared_by_its_bound(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path, lambda trial: trial.variant == "b")
        (point,) = points(verdict)
        assert point["censored"] == {"baseline": False, "variant": True}
        assert (point["bound"], point["verdict"]) == ("at-least", "slower")
        assert point["variant"] == pytest.approx(2_000_000, rel=0.001)
        assert point["interval_percent"][1] is None
        assert curve(verdict)["bound"] == "at-least"

    def test_blocks_in_which_a_variant_was_overwhelmed_are_the_answer(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path, lambda trial: trial.variant == "b" and trial.block in (1, 4, 6))
        found = curve(verdict)
        assert (found["verdict"], found["blocks"]) == ("slower", 8)
        assert found["interval_percent"][1] is None
        # 5 blocks are 9 to 11 % higher: without the three others that is all there would be.
        assert found["interval_percent"][0] > 8.0

    def test_one_waiting_transaction_leaves_latency_known(self, tmp_path: Path) -> None:
        def spoil(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
            totals = records[-1]["data"]["phases"]["measure"]
            count, mean_us = totals["events"], totals["latency_sum_us"] / totals["events"]
            # Latencies of which no two share a bucket.
            spread_us = [mean_us * (0.5 + at / count) for at in range(count)]
            totals["latency_us"] = [[bucket_lower_us(round(us)), 1] for us in spread_us]
            totals["latency_min_us"], totals["latency_max_us"] = spread_us[0], spread_us[-1]
            totals["censored_us"] = [[1, 1]]
            totals["accounting"]["unfinished"] = 1
            totals["accounting"]["due"] += 1
            return records

        speed = Arms(a=lambda _trial: 10, b=lambda _trial: 9)
        verdict = judged(tmp_path, Making(connections=(64,), rates=(500.0,), speed=speed, spoil=spoil))
        (point,) = points(verdict)
        assert not {"bound", "censored"} & point.keys()
        assert (point["verdict"], None in point["interval_percent"]) == ("slower", False)
        lines = {line["metric"] for line in verdict["comparisons"][0]["secondary_metrics"]}
        assert "latency_p50_us" in lines

    def test_where_both_were_nothing_is_known(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path, lambda _trial: True)
        found = curve(verdict)
        assert (found["verdict"], found["interval_percent"]) == ("undecided", [-100.0, None])
        assert found["p_value"] == 1.0


class TestForeignLoad:
    """Other processes used 31 % of the CPUs of server and client in one trial of block 2."""

    @staticmethod
    def judged(folder: Path, shares: Mapping[str, float] | None = None, **making: Any) -> dict[str, Any]:
        def edges(trial: Trial) -> dict[str, Any]:
            share = 0.31 if (trial.block, trial.variant) == (2, "b") else 0.01
            share = shares[trial.variant] if shares else share
            reading = {"unix_us": 0, "status": {}, "process": {}, "host": {}, "waits": {}}
            foreign = {"share": share, "steal": 0.0, "processes": [{"name": "cc1plus", "share": share}]}
            return {"begin": reading, "end": reading, "own": {}, "foreign": foreign}

        return judged(folder, Making(edges=edges, **making))

    @staticmethod
    def check(verdict: dict[str, Any]) -> dict[str, Any]:
        (found,) = [check for check in verdict["checks"] if check["code"] == "D06"]
        assert isinstance(found, dict)
        return found

    def test_a_disturbed_block_is_named_and_takes_no_direction_away(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path)
        assert curve(verdict)["verdict"] == "slower"
        assert (self.check(verdict)["level"], self.check(verdict)["evidence"]["blocks"]) == ("warn", [2])
        check_sentences("other processes in a block", curve(verdict)["sentence"])

    def test_unequal_load_cannot_be_told_from_a_small_effect(self, tmp_path: Path) -> None:
        """Other processes used 3 % of the CPUs next to a and 9 % next to b, which is 10 % slower."""
        verdict = self.judged(tmp_path, shares={"a": 0.03, "b": 0.09})
        low, high = curve(verdict)["interval_percent"]
        # 6 hundredths of the CPUs may have cost up to 18 %.
        assert (curve(verdict)["verdict"], low) == ("undecided", pytest.approx(-10.0, abs=0.1))
        assert high == pytest.approx(100.0 * math.expm1(math.log(0.9) + 0.18), abs=0.1)
        assert self.check(verdict)["evidence"]["percents"] == {"a": 3.0, "b": 9.0}
        check_sentences("other processes next to one variant", curve(verdict)["sentence"])
        known = self.judged(tmp_path / "known", shares={"a": 0.03, "b": 0.09}, override={"D06": "it sleeps"})
        assert curve(known)["verdict"] == "slower"
        assert curve(known)["interval_percent"] == pytest.approx([-10.0, -10.0], abs=0.1)
        assert self.check(known)["evidence"]["what"] == "stays"
        check_sentences("other processes, overridden", curve(known)["sentence"])
        stored = json.loads((known["path"] / "measured.json").read_text())
        assert {trial["foreign"] for trial in stored["trials"]} == {0.03, 0.09}
        large = self.judged(
            tmp_path / "large", shares={"a": 0.03, "b": 0.09}, speed=against_1000(around(500))
        )
        assert curve(large)["verdict"] == "slower"

    def test_a_block_that_was_repeated_is_replaced(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path, repeated=(2,))
        assert (curve(verdict)["verdict"], curve(verdict)["blocks"]) == ("slower", 8)
        assert (self.check(verdict)["level"], self.check(verdict)["evidence"]["repeated"]) == ("note", [2])
        stored = json.loads((verdict["path"] / "measured.json").read_text())
        assert set(stored["comparisons"][0]["curve"]["percent"]) == {"0", "1", "3", "4", "5", "6", "7", "8"}
        replaced = [t for t in stored["trials"] if t["place"]["block"] == 2]
        assert {t["failure"] for t in replaced} == {
            "replaced by block 9 because other processes used the CPUs"
        }

    def test_a_failure_in_it_is_not_forgotten(self, tmp_path: Path) -> None:
        verdict = self.judged(
            tmp_path,
            repeated=(2,),
            failed=lambda t: "server went away" if (t.block, t.variant) == (2, "b") else None,
        )
        assert curve(verdict)["verdict"] == "slower"
        check_sentences("a block that was repeated", curve(verdict)["sentence"])


def test_a_run_on_postgresql(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(product="postgresql", speed=against_1000(spread(900))))
    assert curve(verdict)["verdict"] == "slower"
    assert verdict["checks"] == []


def test_the_seed_of_the_order_is_told(tmp_path: Path) -> None:
    assert judged(tmp_path / "1")["order_seed"] is None
    assert judged(tmp_path / "2", Making(order_seed=2**53 - 1))["order_seed"] == 2**53 - 1


def test_one_variant_has_nothing_to_compare(tmp_path: Path) -> None:
    assert judged(tmp_path, Making(names=("a",)))["comparisons"] == []


def test_judging_again_gives_the_same(tmp_path: Path) -> None:
    run = make(tmp_path)
    first = judge(run)
    assert judge(Run.open(run.path)) == first == run.verdict()
