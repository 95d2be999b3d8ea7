"""What the judge notices in the records: failures, attempts, gaps, arithmetic, warm-up, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sentences import check_sentences
from tests.unit.stored_run import SECOND, Arms, Making, Spoil, judged, make

from dbdyno.experiment.model import OltpWorkload, Stop
from dbdyno.experiment.schedule import Trial
from dbdyno.measure.evidence import gather, scheduled
from dbdyno.measure.figures import merge_classes
from dbdyno.store import files
from dbdyno.store.records import CLIENT_DELAY, GENERATOR_CPU, GENERATOR_LAG_US

ROOT = Path(__file__).parents[2]
Records = list[dict[str, Any]]


def spoiled(change: Callable[[Records], None]) -> Spoil:
    """Applies `change` to every stream of variant b."""

    def spoil(trial: Trial, records: Records) -> Records:
        if trial.variant == "b":
            change(records)
        return records

    return spoil


def totals(records: Records) -> dict[str, Any]:
    """The measuring phase's totals of a stream."""
    found: dict[str, Any] = records[-1]["data"]["phases"]["measure"]
    return found


def measured(run_path: Path) -> list[dict[str, Any]]:
    """The trials of measured.json."""
    found: list[dict[str, Any]] = json.loads((run_path / "measured.json").read_text())["trials"]
    return found


def checks(tmp_path: Path, making: Making) -> list[dict[str, Any]]:
    """The findings on a made run, without the note that short trials cannot show a warm state."""
    return without_unchecked(judged(tmp_path, making))


def without_unchecked(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings of a verdict, without that note."""
    return [check for check in verdict["checks"] if (check["code"], check["level"]) != ("R01", "note")]


def curve(verdict: dict[str, Any]) -> dict[str, Any]:
    """The first comparison's effect over all loads."""
    found: dict[str, Any] = verdict["comparisons"][0]["curve"]
    return found


def drop_the_end(records: Records) -> None:
    records.pop()


def end_early(records: Records) -> None:
    records[-1]["data"].update(reason="connection-lost", failure={"code": 2013, "text": "lost", "hint": None})


def forget_a_field(records: Records) -> None:
    del totals(records)["latency_us"]


def count_nothing(records: Records) -> None:
    totals(records)["events"] = 0


@pytest.mark.parametrize(
    ("change", "reason", "failed_by"),
    [
        (drop_the_end, "the engine's records have no end", "harness"),
        (end_early, "connection-lost: lost", "harness"),
        (forget_a_field, "its records are incomplete (KeyError: 'latency_us')", "harness"),
        (count_nothing, "no transaction ended in the measurement", "server"),
    ],
)
def test_an_incomplete_stream_has_no_numbers(
    tmp_path: Path, change: Callable[[Records], None], reason: str, failed_by: str
) -> None:
    verdict = judged(tmp_path, Making(spoil=spoiled(change)))
    # A server that ends no transaction has a throughput of 0; what the harness lost says nothing.
    assert curve(verdict)["effect_percent"] == (-100.0 if failed_by == "server" else None)
    for trial in measured(verdict["path"]):
        if trial["place"]["variant"] == "b":
            assert (trial["failure"], trial["failed_by"], trial["figures"]) == (reason, failed_by, None)
        else:
            assert (trial["failure"], trial["failed_by"]) == (None, None)


def fails(*blocks: int, variant: str = "b", at: int | None = None) -> Callable[[Trial], str | None]:
    """The server of one variant goes away in some blocks, at all loads or at one."""

    def failed(trial: Trial) -> str | None:
        here = trial.variant == variant and trial.block in blocks
        return "server went away" if here and at in (None, trial.point.connections) else None

    return failed


FASTER = Arms(a=lambda _trial: 1000, b=lambda trial: 1100 + trial.block)


class TestFailuresOfAServer:
    def test_a_variant_that_dies_in_two_of_eight_blocks_is_not_faster(self, tmp_path: Path) -> None:
        """Where it lives it is 10 % faster: the six other blocks alone would say so."""
        verdict = judged(tmp_path, Making(speed=FASTER, failed=fails(2, 5, at=40)))
        found = curve(verdict)
        assert (found["verdict"], found["blocks"]) == ("undecided", 8)
        assert found["interval_percent"][0] == -100.0
        assert verdict["comparisons"][0]["points"][2]["verdict"] == "undecided"
        # It is faster where it lives.
        check_sentences("undecided, faster at the other loads", found["sentence"])
        (check,) = without_unchecked(verdict)
        assert (check["code"], check["level"], check["subject"]) == ("R04", "warn", "b")
        assert check["text"].startswith(
            "2 of 24 trials of b failed because of their server and count as 0 transactions/s"
        )
        assert (check["evidence"]["failed"], len(check["evidence"]["trials"])) == (2, 2)

    @pytest.mark.parametrize("blocks", range(1, 9))
    def test_it_is_never_faster(self, tmp_path: Path, blocks: int) -> None:
        making = Making(connections=(10,), speed=FASTER, failed=fails(*range(blocks)))
        word = curve(judged(tmp_path, making))["verdict"]
        # A failure is the largest difference there can be: with one of eight the p-value is 50/256, and with
        # six, where the two others count least, 10/256.
        assert word == ("slower" if blocks >= 6 else "undecided")

    def test_a_variant_that_dies_in_every_block_is_slower(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, Making(speed=FASTER, failed=fails(*range(8))))
        found = curve(verdict)
        assert (found["verdict"], found["effect_percent"]) == ("slower", -100.0)
        point = verdict["comparisons"][0]["points"][0]
        assert (point["baseline"], point["variant"], point["verdict"]) == (10_000.0, 0.0, "slower")

    def test_a_baseline_that_dies_in_every_block(self, tmp_path: Path) -> None:
        making = Making(connections=(10,), failed=fails(*range(8), variant="a"))
        found = curve(judged(tmp_path, making))
        # JSON has no infinity.
        assert (found["verdict"], found["effect_percent"], found["interval_percent"]) == (
            "faster",
            None,
            [None, None],
        )
        check_sentences("the baseline always fails", found["sentence"])

    def test_where_both_die_nothing_is_known(self, tmp_path: Path) -> None:
        making = Making(connections=(10,), failed=lambda _trial: "server went away")
        found = curve(judged(tmp_path, making))
        assert (found["verdict"], found["interval_percent"]) == ("undecided", [-100.0, None])
        assert found["sentence"].startswith(
            "Undecided: neither b nor a kept up, so nothing is known of their"
        )

    def test_at_a_fixed_rate_its_latency_is_without_bound(self, tmp_path: Path) -> None:
        making = Making(connections=(64,), rates=(500.0,), failed=fails(*range(8)))
        found = curve(judged(tmp_path, making))
        assert (found["verdict"], found["effect_percent"]) == ("slower", None)
        check_sentences("the variant always fails at a rate", found["sentence"])

    def test_one_load_that_kills_it(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, Making(speed=FASTER, failed=fails(*range(8), at=40)))
        assert curve(verdict)["verdict"] == "mixed"
        check_sentences("the variant always fails at one load", curve(verdict)["sentence"])

    def test_a_failure_that_nobody_is_named_for_counts_against_the_server(self, tmp_path: Path) -> None:
        making = Making(connections=(10,), failed=fails(0, 1, 2), failed_by=None)
        verdict = judged(tmp_path, making)
        assert curve(verdict)["blocks"] == 8
        assert {t["failed_by"] for t in measured(verdict["path"]) if t["figures"] is None} == {"server"}


class TestFailuresOfTheHarness:
    def test_the_trial_is_left_out_with_its_block(self, tmp_path: Path) -> None:
        making = Making(speed=FASTER, failed=fails(3), failed_by="harness")
        verdict = judged(tmp_path, making)
        found = curve(verdict)
        assert (found["verdict"], found["blocks"]) == ("faster", 7)
        check_sentences("a block is left out", found["sentence"])
        gone = {t["place"]["index"] for t in measured(verdict["path"]) if t["figures"] is None}
        points = verdict["comparisons"][0]["points"]
        assert len(gone) == 3
        assert not gone & {index for point in points for index in point["trials"]["variant"]}
        (check,) = without_unchecked(verdict)
        assert (check["code"], check["level"], set(check["evidence"]["trials"])) == ("R04", "warn", gone)
        assert "3 of 48 planned trials have no result" in check["text"]
        assert "3 x server went away" in check["text"]

    def test_a_block_that_lacks_one_load_is_left_out_of_the_average_and_of_that_load(
        self, tmp_path: Path
    ) -> None:
        making = Making(speed=FASTER, failed=fails(3, at=40), failed_by="harness")
        (comparison,) = judged(tmp_path, making)["comparisons"]
        assert [point["blocks"] for point in comparison["points"]] == [8, 8, 7]
        assert comparison["curve"]["blocks"] == 7

    def test_too_many_leave_too_few_blocks(self, tmp_path: Path) -> None:
        making = Making(speed=FASTER, failed=fails(3, 4, 5), failed_by="harness")
        found = curve(judged(tmp_path, making))
        assert found["verdict"] == "too-few-blocks"
        check_sentences("too few blocks are left", found["sentence"])


class TestAttempts:
    def test_those_before_a_resume_are_kept_and_named(self, tmp_path: Path) -> None:
        reasons = {("b", 2): ["hook before failed"], ("b", 5): ["the disk is full", "hook before failed"]}
        making = Making(
            connections=(10,),
            speed=FASTER,
            attempts=lambda trial: reasons.get((trial.variant, trial.block), []),
        )
        verdict = judged(tmp_path, making)
        assert (curve(verdict)["verdict"], curve(verdict)["blocks"]) == ("faster", 8)
        (check,) = without_unchecked(verdict)
        assert (check["code"], check["level"], check["subject"]) == ("R04", "note", "b")
        assert check["text"] == (
            "2 trials of b ran again after an attempt that gave no result (2 x hook before failed; "
            "the disk is full)"
        )
        assert check["evidence"]["reasons"] == {"hook before failed": 2, "the disk is full": 1}

    def test_a_server_that_fails_again_is_counted_once(self, tmp_path: Path) -> None:
        making = Making(
            connections=(10,),
            speed=FASTER,
            failed=fails(1),
            attempts=lambda trial: ["interrupted"] if (trial.variant, trial.block) == ("b", 1) else [],
        )
        verdict = judged(tmp_path, making)
        assert [(c["level"], c["subject"]) for c in without_unchecked(verdict)] == [
            ("warn", "b"),
            ("note", "b"),
        ]
        check_sentences("a trial of the server failed", curve(verdict)["sentence"])


def lose_an_interval(records: Records) -> None:
    records.remove(next(r for r in records if r["type"] == "interval" and r["data"]["phase"] == "measure"))


def invent_statements(records: Records) -> None:
    totals(records)["reads"] += 10_000
    next(r for r in records if r["type"] == "interval" and r["data"]["phase"] == "measure")["data"][
        "reads"
    ] += 10_000


def stretch_latency(records: Records) -> None:
    totals(records)["latency_sum_us"] *= 1.5


def plan_longer(records: Records) -> None:
    records[0]["data"]["plan"]["phases"]["measure_us"] *= 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lose_an_interval, "the intervals of measure contain 2700 events, its totals 3600"),
        (
            invent_statements,
            "82000 statements for 3600 transactions of 20 statements each (expected: 72000 ±",
        ),
        (stretch_latency, "throughput times mean latency is 15.00, but there were 10 connections"),
        (plan_longer, "the measurement took 4.000 s but 8.000 s were planned"),
    ],
)
def test_numbers_that_contradict_themselves_stop_the_comparison(
    tmp_path: Path, change: Callable[[Records], None], told: str
) -> None:
    verdict = judged(tmp_path, Making(connections=(10,), spoil=spoiled(change)))
    (check,) = (check for check in without_unchecked(verdict) if check["code"] == "R03")
    assert (check["code"], check["level"], check["subject"]) == ("R03", "stop", "")
    assert told in check["text"]
    assert check["text"].endswith("No result of this run can be trusted")
    assert len(check["evidence"]["trials"]) == 8
    assert curve(verdict)["verdict"] == "not-comparable"


class TestFewContradictions:
    """One contradictory trial drops its block; more than one, and more than 5 % of all, are a stop."""

    @staticmethod
    def judged(folder: Path, odd: set[int], **making: Any) -> dict[str, Any]:
        def spoil(trial: Trial, records: Records) -> Records:
            if trial.index in odd:
                stretch_latency(records)
            return records

        return judged(folder, Making(speed=FASTER, spoil=spoil, **making))

    def test_a_single_one_drops_its_block(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path, {7}, connections=(10,))
        assert (curve(verdict)["verdict"], curve(verdict)["blocks"]) == ("faster", 7)
        (check,) = without_unchecked(verdict)
        assert (check["code"], check["level"]) == ("R03", "warn")
        assert check["text"].endswith("The block is left out")
        # Nor does it run again with --resume: its records are complete.
        (name,) = check["subject"]
        assert curve(verdict)["sentence"].endswith(
            f"; 7 of 8 blocks. Caveat: 1 contradictory trial of {name} left out (R03)."
        )

    @pytest.mark.parametrize(
        ("blocks", "odd", "level"), [(8, 2, "warn"), (8, 3, "stop"), (20, 6, "warn"), (20, 7, "stop")]
    )
    def test_up_to_5_percent_are_left_out(self, tmp_path: Path, blocks: int, odd: int, level: str) -> None:
        # 48 trials of 8 blocks, 120 of 20.
        verdict = self.judged(tmp_path, {6 * block for block in range(odd)}, blocks=blocks)
        assert {check["level"] for check in without_unchecked(verdict)} == {level}
        assert curve(verdict)["verdict"] == ("faster" if level == "warn" else "not-comparable")

    def test_two_of_sixteen_are_too_many(self, tmp_path: Path) -> None:
        verdict = self.judged(tmp_path, {3, 8}, connections=(10,))
        assert curve(verdict)["verdict"] == "not-comparable"


def test_littles_law_allows_for_three_percent_and_no_more(tmp_path: Path) -> None:
    def nearly(factor: float) -> Spoil:
        return spoiled(lambda records: totals(records).update(latency_sum_us=10 * 4 * SECOND * factor))

    assert checks(tmp_path / "1", Making(connections=(10,), spoil=nearly(1.025))) == []
    assert checks(tmp_path / "2", Making(connections=(10,), spoil=nearly(0.975))) == []
    found = checks(tmp_path / "3", Making(connections=(10,), spoil=nearly(1.05)))
    # No trial of b is left.
    assert [(check["code"], check["level"]) for check in found] == [("R04", "stop"), ("R03", "stop")]


def test_littles_law_knows_a_stall_at_the_end(tmp_path: Path) -> None:
    def stalled(records: Records) -> None:
        # The last 0.4 s of 4 s ended no transaction: all ten connections were under way for as long.
        measure = totals(records)
        measure["latency_sum_us"] -= 10 * 400_000
        measure["accounting"]["unfinished_us"] = 10 * 400_000

    assert checks(tmp_path, Making(connections=(10,), spoil=spoiled(stalled))) == []


class TestAutomaticWarmUp:
    """Variant b creeps up for its first seconds; a stands still. Warm-up allowance 5 s, measurement 10 s."""

    @staticmethod
    def speed(seconds: float) -> Callable[[Trial, int], int]:
        def of(trial: Trial, tick: int) -> int:
            wobble = tick % 2
            return 100 + wobble if trial.variant == "a" or tick >= seconds * 10 else 20 + wobble

        return of

    def long(self, folder: Path, seconds: float, **making: Any) -> dict[str, Any]:
        """Allowance 60 s, measurement 100 s; b creeps for so many seconds."""
        making = {"blocks": 8, "speed": self.speed(seconds), **making}
        return judged(folder, Making(warmup_s=None, duration_s=100.0, connections=(10,), **making))

    def test_both_variants_of_a_block_get_the_larger_cut(self, tmp_path: Path) -> None:
        # 3 s of creeping end within the allowance of 10 s: the window stays the planned one.
        making = Making(warmup_s=None, duration_s=10.0, connections=(10,), speed=self.speed(3.0))
        verdict = judged(tmp_path, making)
        assert verdict["checks"] == []
        for trial in measured(verdict["path"]):
            window = trial["window"]
            assert window["cut_us"] == 3 * SECOND
            assert (window["start_us"], window["end_us"]) == (10 * SECOND, 20 * SECOND)
            assert trial["figures"]["throughput"] == pytest.approx(1005.0)
        assert curve(verdict)["effect_percent"] == 0.0

    def test_a_cut_into_the_measurement_shortens_both_and_is_noted(self, tmp_path: Path) -> None:
        # b creeps for 62.5 s, so the window begins at second 63: 97 of 100 s are enough.
        verdict = self.long(tmp_path / "1", 62.5)
        for trial in measured(verdict["path"]):
            window = trial["window"]
            assert window["cut_us"] == 62_500_000
            assert (window["start_us"], window["end_us"]) == (63 * SECOND, 160 * SECOND)
            assert trial["figures"]["throughput"] == pytest.approx(1005.0)
        assert [(c["subject"], c["evidence"]["what"]) for c in verdict["checks"]] == [("b", "before")]
        short = self.long(tmp_path / "2", 70.0)
        assert [(c["code"], c["level"], c["subject"], c["evidence"]["what"]) for c in short["checks"]] == [
            ("R01", "warn", "b", "before"),
            ("R01", "note", "", "cut"),
        ]
        assert "in 16 of 16 trials: 90.0 of 100.0 s count in the shortest" in short["checks"][1]["text"]
        assert "cut" not in curve(short)["sentence"]

    def test_a_trial_of_which_the_cut_leaves_nothing_has_failed_by_its_server(self, tmp_path: Path) -> None:
        # In one block a stops for good after 65 s of 160, and the window begins at 70 s.
        creeping = self.speed(70.0)

        def stops(trial: Trial) -> bool:
            return (trial.variant, trial.block) == ("a", 2)

        def under_way(trial: Trial, records: Records) -> Records:
            if stops(trial):
                totals(records)["accounting"]["unfinished_us"] = 10 * 95 * SECOND
            return records

        verdict = self.long(
            tmp_path,
            70.0,
            blocks=7,
            speed=lambda trial, tick: 0 if stops(trial) and tick >= 650 else creeping(trial, tick),
            spoil=under_way,
        )
        assert curve(verdict)["blocks"] == 7
        (gone,) = [trial for trial in measured(verdict["path"]) if trial["figures"] is None]
        assert (gone["place"]["variant"], gone["place"]["block"], gone["failed_by"]) == ("a", 2, "server")
        reason = "no transaction ended in the 90.0 s that are left after the warm-up cut"
        assert gone["failure"] == reason
        (check,) = [check for check in verdict["checks"] if check["code"] == "R04"]
        assert (check["level"], check["subject"]) == ("warn", "a")
        assert f"Caveat: 1 of 7 trials of a failed: {reason} (R04)." in curve(verdict)["sentence"]

    def test_a_server_that_never_settles_is_said(self, tmp_path: Path) -> None:
        making = Making(
            warmup_s=None,
            duration_s=10.0,
            connections=(10,),
            speed=lambda trial, tick: 100 + tick if trial.variant == "b" else 100 + tick % 2,
        )
        verdict = judged(tmp_path, making)
        found = [(c["code"], c["subject"], c["evidence"]["what"]) for c in verdict["checks"]]
        assert found == [("R01", "b", "within"), ("R01", "", "cut")]
        # Half of the measurement stays, from 15 to 20 s; b rises from 262 to 287 in its halves.
        check_sentences("throughput still rises", curve(verdict)["sentence"])


def test_a_declared_warm_up_is_kept_whatever_the_ticks_say(tmp_path: Path) -> None:
    making = Making(warmup_s=2.0, duration_s=8.0, connections=(10,), speed=TestAutomaticWarmUp.speed(3.0))
    for trial in measured(judged(tmp_path, making)["path"]):
        assert trial["window"]["cut_us"] is None
        assert (trial["window"]["start_us"], trial["window"]["end_us"]) == (2 * SECOND, 10 * SECOND)


def with_errors(errors: dict[str, int], classes: dict[str, str] | None = None) -> Spoil:
    def change(records: Records) -> None:
        for part in (totals(records), records[-2]["data"]):
            part["errors"] = errors
            part["retries"] = sum(errors.values())
            if classes is not None:
                part["error_classes"] = classes

    return spoiled(change)


@pytest.mark.parametrize(("count", "level"), [(3, "warn"), (30, "warn")])
def test_errors_are_told_per_thousand_transactions(tmp_path: Path, count: int, level: str) -> None:
    (check,) = checks(
        tmp_path, Making(connections=(10,), spoil=with_errors({"1213": count}, {"1213": "deadlock"}))
    )
    # b runs 3600 transactions in each trial.
    assert (check["code"], check["level"]) == ("D03", level)
    assert check["evidence"]["per_1000"] == {"a": 0.0, "b": pytest.approx(count / 3.6)}
    assert f"b {count / 3.6:.2f}" in check["text"]
    assert "(server error 1213 (deadlock); retried where possible)" in check["text"]


def test_few_errors_alike_in_both_arms_are_a_note(tmp_path: Path) -> None:
    def spoil(_trial: Trial, records: Records) -> Records:
        for part in (totals(records), records[-2]["data"]):
            part["errors"] = {"1213": 2}
            part["retries"] = 2
        return records

    (check,) = checks(tmp_path, Making(connections=(10,), spoil=spoil))
    assert (check["code"], check["level"]) == ("D03", "note")


def test_a_retried_deadlock_of_postgresql_is_named_and_no_outage(tmp_path: Path) -> None:
    spoil = with_errors({"40P01": 5, "40001": 3}, {"40P01": "deadlock", "40001": "serialization"})
    verdict = judged(tmp_path, Making(connections=(10,), product="postgresql", spoil=spoil))
    (check,) = without_unchecked(verdict)
    assert (check["code"], check["evidence"]["classes"]["40P01"]) == ("D03", "deadlock")
    assert "(server error 40001 (serialization), 40P01 (deadlock); retried" in check["text"]
    assert curve(verdict)["verdict"] == "slower"


def test_records_of_older_engines_have_codes_without_classes(tmp_path: Path) -> None:
    (check,) = checks(tmp_path, Making(connections=(10,), spoil=with_errors({"40P01": 5, "2013": 1})))
    assert (check["code"], check["evidence"]["classes"]) == ("D03", {})
    assert "(server error 2013, 40P01; retried" in check["text"]


@pytest.mark.parametrize(
    ("errors", "classes", "text"),
    [
        (
            {"2013": 1, "2003": 2},
            {"2013": "lost", "2003": "refused"},
            "were lost and refused in 8 trials and opened again (errors 16 x 2003, 8 x 2013)",
        ),
        ({"57P01": 2}, {"57P01": "lost"}, "were lost in 8 trials and opened again (errors 16 x 57P01)"),
        ({"53300": 1}, {"53300": "refused"}, "were refused in 8 trials and opened again (errors 8 x 53300)"),
    ],
)
def test_lost_connections_are_never_silent(
    tmp_path: Path, errors: dict[str, int], classes: dict[str, str], text: str
) -> None:
    found = checks(tmp_path, Making(connections=(10,), spoil=with_errors(errors, classes)))
    (check,) = (check for check in found if check["code"] == "D05")
    assert (check["level"], check["subject"]) == ("warn", "b")
    assert text in check["text"]


def test_a_code_that_ended_a_connection_once_is_lost() -> None:
    # A standby that must go on ends a session with the state of a serialization failure.
    parts = [{"40001": "serialization"}, {"40001": "lost", "40P01": "deadlock"}, {"40001": "serialization"}]
    assert merge_classes(parts) == {"40001": "lost", "40P01": "deadlock"}


def row_count_mismatches(count: int) -> Spoil:
    def change(records: Records) -> None:
        for part in (totals(records), records[-2]["data"]):
            part["row_count_mismatches"] = count

    return spoiled(change)


P02_STOP = {"code": "P02", "level": "stop", "text": "x", "subject": "b", "evidence": {}, "override": "y"}


@pytest.mark.parametrize(
    ("count", "findings", "workload", "level"),
    [
        (1, [P02_STOP], "oltp_read_write", "note"),
        (50, [P02_STOP], "oltp_read_write", "warn"),
        (20000, [P02_STOP], "oltp_read_write", "stop"),
        # The tables have the loaded rows after the load: only the transactions were in each other's way.
        (50, [], "oltp_read_write", "note"),
        (20000, [], "oltp_read_write", "warn"),
        # Its rows are not counted after the load.
        (20000, [], "oltp_delete", "stop"),
    ],
)
def test_rows_row_count_mismatches(
    tmp_path: Path, count: int, findings: list[dict[str, Any]], workload: str, level: str
) -> None:
    making = Making(
        connections=(10,),
        duration_s=40.0,
        spoil=row_count_mismatches(count),
        findings=findings,
        workloads=(OltpWorkload.model_validate({"name": workload}),),
    )
    (check,) = (one for one in checks(tmp_path, making) if one["code"] == "D04")
    assert (check["level"], check["subject"]) == (level, "b")


def test_a_saturated_and_late_generator_is_reported_with_the_engines_warnings(tmp_path: Path) -> None:
    def change(records: Records) -> None:
        for record in records:
            if record["type"] == "interval":
                record["data"]["generator"] |= {"cpu": 0.93, "lag_us_p99": 2_100.0}
        # The latest second of the measurement, and a later one of the warm-up.
        records[-2]["data"]["generator"]["lag_us_p99"] = 6_800.0
        next(r for r in records if r["type"] == "interval")["data"]["generator"]["lag_us_p99"] = 99_000.0
        generator = {"lag_us_p99": 2_300, "client_delay_us_p99": None}
        totals(records).update(generator=generator, percentiles_us=None)
        warning = {"code": "batch-refused", "text": "the system refuses SCHED_BATCH", "hint": "none"}
        records.insert(-1, {"type": "warning", "data": warning})

    verdict = judged(tmp_path, Making(connections=(10,), spoil=spoiled(change)))
    busy, refused, late = without_unchecked(verdict)
    assert [(c["code"], c["level"], c["subject"]) for c in (busy, refused, late)] == [
        ("D01", "warn", "b"),
        ("D01", "warn", ""),
        ("D01", "warn", ""),
    ]
    assert "up to 93 % of a CPU" in busy["text"]
    assert refused["text"] == (
        "the load generator warned (batch-refused) in 8 trials, for example in trial 0002: "
        "the system refuses SCHED_BATCH"
    )
    assert late["text"] == (
        "the load generator woke up late in 8 trials, for example in trial 0002: 1 % of its wake-ups came "
        "more than 2.3 ms late (limit 1 ms)"
    )
    assert late["fix"].startswith("Keep a CPU free for the load generator")
    assert (late["evidence"]["warning"], late["evidence"]["lag_us_p99"]) == ("generator-late", 6_800.0)
    check_sentences("warnings of the load generator", curve(verdict)["sentence"])


def test_replies_that_wait_for_the_generator_are_reported(tmp_path: Path) -> None:
    def change(records: Records) -> None:
        generator = {"lag_us_p99": 1000, "client_delay_us_p99": 101}
        totals(records).update(generator=generator, percentiles_us={"p50": {"value_us": 1000.0}})

    (late,) = without_unchecked(judged(tmp_path, Making(connections=(10,), spoil=spoiled(change))))
    assert (late["code"], late["evidence"]["warning"]) == ("D01", "client-delay")


@pytest.mark.parametrize(
    ("of_baseline", "of_variant", "level"),
    [(1_500, 1_500, "note"), (0, 150_000, "warn"), (150_000, 0, "warn")],
)
def test_delays_of_the_generator_that_hardly_change_the_effect_are_a_note(
    tmp_path: Path, of_baseline: int, of_variant: int, level: str
) -> None:
    def spoil(trial: Trial, records: Records) -> Records:
        delay_us = of_variant if trial.variant == "b" else of_baseline
        generator = {"lag_us_p99": 1000, "client_delay_us_p99": delay_us}
        totals(records).update(generator=generator, percentiles_us={"p50": {"value_us": 1000.0}})
        return records

    speed = Arms(a=lambda trial: 100 + trial.block, b=lambda trial: 90 + 2 * trial.block)
    verdict = judged(tmp_path, Making(connections=(10,), spoil=spoil, speed=speed))
    (late,) = without_unchecked(verdict)
    assert (late["code"], late["level"]) == ("D01", level)
    assert ("D01" in curve(verdict)["sentence"]) == (level == "warn")


@pytest.mark.parametrize(
    ("max_rate", "delay_us", "level"),
    [(None, 100, "note"), (None, None, "warn"), (10_000.0, 100, "warn")],
)
def test_late_timers_are_a_note_in_a_closed_loop_whose_replies_do_not_wait(
    tmp_path: Path, max_rate: float | None, delay_us: int | None, level: str
) -> None:
    """Timers of one variant are late. They delay transactions only if a timer begins them; they stand for the
    delays of replies if these are not known, as over unix sockets.
    """

    def spoil(trial: Trial, records: Records) -> Records:
        lag_us = 150_000 if trial.variant == "b" else 2_000
        generator = {"lag_us_p99": lag_us, "client_delay_us_p99": delay_us}
        totals(records).update(generator=generator, percentiles_us={"p50": {"value_us": 1000.0}})
        for record in records:
            if record["type"] == "interval":
                record["data"]["generator"] |= {"lag_us_p99": lag_us}
        return records

    speed = Arms(a=lambda trial: 100 + trial.block, b=lambda trial: 90 + 2 * trial.block)
    making = Making(connections=(10,), max_rate=max_rate, spoil=spoil, speed=speed)
    verdict = judged(tmp_path, making)
    (late,) = [finding for finding in without_unchecked(verdict) if finding["code"] == "D01"]
    assert (late["evidence"]["warning"], late["level"]) == ("generator-late", level)


def test_the_limits_of_the_generator_are_those_of_the_schema() -> None:
    schema = json.loads((ROOT / "schema" / "events.schema.json").read_text())
    properties = schema["$defs"]["Generator"]["properties"]
    limits = [properties[name]["x-limit"] for name in ("cpu", "lag_us_p99", "client_delay_us_p99")]
    assert limits == [GENERATOR_CPU, GENERATOR_LAG_US, CLIENT_DELAY]


def test_blocks_keep_their_order_if_the_clock_is_stepped_back(tmp_path: Path) -> None:
    run = make(tmp_path, Making(stop=Stop(), connections=(10,), absent=lambda trial: trial.block >= 8))
    for trial in run.trials():
        earlier = {**trial.meta, "started_unix_us": 1_700_000_000_000_000 - trial.index}
        files.write_json(trial.path / "trial.json", earlier)
    blocks = [trial.block for trial in gather(run, scheduled(run)).trials]
    assert blocks == sorted(blocks)
    assert set(blocks) == set(range(8))


def test_an_overloaded_open_loop_is_told(tmp_path: Path) -> None:
    def change(records: Records) -> None:
        for part in (totals(records), records[-2]["data"]):
            part["dropped"] = 7

    making = Making(connections=(64,), rates=(500.0,), spoil=spoiled(change), speed=Arms())
    (check,) = checks(tmp_path, making)
    assert (check["code"], check["level"], check["subject"]) == ("R07", "warn", "b")
    assert "56 scheduled transactions were dropped" in check["text"]


def test_percentiles_and_means_come_from_the_window(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(connections=(10,)))
    figures = next(t["figures"] for t in measured(verdict["path"]) if t["place"]["variant"] == "a")
    # 10 connections at 1,000 transactions per second: 10 ms each.
    assert figures["throughput"] == 1000.0
    assert figures["latency_mean_us"] == pytest.approx(10_000.0)
    assert figures["latency_p50_us"] == figures["latency_p99_us"] == pytest.approx(10_000.0)
