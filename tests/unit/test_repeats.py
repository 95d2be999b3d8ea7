"""Blocks with foreign load: which are repeated, their trials in the schedule, and the judge's finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno.decide.decision import relevant_to
from dbdyno.experiment import repeats
from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.schedule import Trial, count_earlier_trials, engine_seed, schedule
from dbdyno.measure.foreign_load import ForeignLoad, foreign_load
from dbdyno.rules.host import unchecked
from dbdyno.run.repeating import Repeats, plan_repeats
from dbdyno.server_record import EdgesRecord, ForeignProcess, ForeignRecord
from dbdyno.store import Run


def experiment(blocks: int = 8, *, repeat_disturbed: bool = True, **design: Any) -> Experiment:
    return Experiment(
        name="repeated",
        workloads=(OltpWorkload(name="oltp_read_only"),),
        load=Load(connections=(1, 8), duration_s=1.0),
        design=Design(blocks=blocks, repeat_disturbed=repeat_disturbed, **design),
        variants=(Variant(name="a"), Variant(name="b")),
    )


def load(share: float, steal: float = 0.0, **processes: float) -> ForeignRecord:
    named = [ForeignProcess(name=name, share=part) for name, part in processes.items()]
    return {"share": share, "steal": steal, "cpus": "0-1", "processes": named}


def store(run: Run, trial: Trial, foreign: ForeignRecord | None, failed_by: str | None = None) -> None:
    with run.begin(trial, {"schema": 1}) as writer:
        edges = None if foreign is None else EdgesRecord(foreign=foreign)
        writer.write_server({"edges": edges})
        if failed_by is None:
            writer.finish("done", reason=None)
        else:
            writer.finish("failed", reason="gone", failed_by=failed_by)


def finished(folder: Path, given: Experiment, busy: dict[int, ForeignRecord]) -> Run:
    """A run whose planned trials have ended; one trial of each block in `busy` met that load."""
    run = Run.create(folder, given, b"")
    for trial in schedule(given):
        met = trial.variant == "b" and trial.point.connections == 8
        store(run, trial, busy.get(trial.block, load(0.01)) if met else load(0.02, cron=0.02))
    return run


def judged(run: Run, blocks: int) -> ForeignLoad:
    return foreign_load(run.trials(), run.schedule(), range(blocks))


@pytest.mark.parametrize(
    ("blocks", "most"), [(1, 0), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (11, 2), (12, 3), (20, 5)]
)
def test_at_most_a_quarter_of_the_blocks_is_repeated(blocks: int, most: int) -> None:
    everywhere = dict.fromkeys(range(blocks), 0.5)
    assert len(repeats.blocks_to_repeat(everywhere, blocks)) == most


def test_the_blocks_with_the_most_foreign_load_are_repeated_in_running_order() -> None:
    shares = {0: 0.11, 1: 0.05, 2: 0.9, 3: 0.1, 4: 0.3, 5: 0.2}
    assert repeats.disturbed_blocks(shares) == [0, 2, 4, 5]
    assert repeats.blocks_to_repeat(shares, 8) == [2, 4]
    assert repeats.blocks_to_repeat({3: 0.1}, 8) == []


def test_a_repeat_is_the_block_again_with_numbers_of_its_own() -> None:
    given = experiment()
    trials = schedule(given)
    added = repeats.repeat_blocks(trials, [2, 5])
    assert [trial.index for trial in added] == list(range(32, 40))
    assert [(trial.block, trial.repeats) for trial in added] == [(8, 2)] * 4 + [(9, 5)] * 4
    assert [trial.group for trial in added] == [16, 16, 17, 17, 18, 18, 19, 19]
    for original, again in ((2, 8), (5, 9)):
        first = [trial for trial in trials if trial.block == original]
        second = [trial for trial in added if trial.block == again]
        assert [(t.variant, t.workload, t.point, t.slot) for t in first] == [
            (t.variant, t.workload, t.point, t.slot) for t in second
        ]
        # Other keys than in the original, and the same for both variants.
        seeds = {(t.point.connections, engine_seed(given, t)) for t in second}
        assert len(seeds) == 2
        assert seeds.isdisjoint({(t.point.connections, engine_seed(given, t)) for t in first})


def test_a_repeat_goes_on_with_sequences_where_data_are_kept() -> None:
    for state, turns in (("restore", [0, 1, 0, 1]), ("preserve", [8, 9, 8, 9])):
        given = experiment(blocks=4, state=state)
        added = repeats.repeat_blocks(schedule(given), [1])
        assert [count_earlier_trials(given, trial, [*schedule(given), *added]) for trial in added] == turns


def test_the_stored_schedule_gives_its_trials_back(tmp_path: Path) -> None:
    given = experiment()
    run = Run.create(tmp_path, given, b"")
    added = repeats.repeat_blocks(schedule(given), [3])
    run.append_schedule(added)
    assert run.schedule() == [*schedule(given), *added]


def test_a_quiet_run_repeats_nothing(tmp_path: Path) -> None:
    given = experiment()
    run = finished(tmp_path, given, {})
    assert plan_repeats(given, run) is None
    assert len(run.schedule()) == 32
    found = judged(run, 8)
    assert (found.replaced, found.remaining, found.findings) == ({}, {}, [])
    assert len(found.shares) == 32


def unattributed(share: float) -> ForeignRecord:
    """A load of which no process is visible."""
    return {**load(share), "unattributed": share}


def test_time_of_no_process_is_that_of_the_load_where_all_its_trials_have_it(tmp_path: Path) -> None:
    """Trials of b at 8 connections use 9 to 12 % on an idle machine, which is above the limit."""
    given = experiment()
    own = {block: unattributed(0.09 + block / 200) for block in range(8)}
    quiet = finished(tmp_path / "quiet", given, own)
    assert plan_repeats(given, quiet) is None
    assert judged(quiet, 8).findings == []
    assert max(judged(quiet, 8).shares.values()) == pytest.approx(0.035)

    one = finished(tmp_path / "one", given, {**own, 3: unattributed(0.2)})
    assert planned(given, one).text == (
        "other processes used more than 10 % of the CPUs of server and client in 1 of 8 blocks "
        "(invisible processes 11 %), which is repeated"
    )
    assert judged(one, 8).remaining == {"oltp_read_only": (3,)}


def test_much_time_of_no_process_is_foreign_where_all_trials_have_it(tmp_path: Path) -> None:
    """Processes outside of a container are not visible in it."""
    given = experiment()
    run = finished(tmp_path, given, {block: unattributed(0.3) for block in range(8)})
    assert judged(run, 8).remaining == {"oltp_read_only": tuple(range(8))}


def test_a_test_of_a_suite_is_disturbed_by_what_its_own_trials_met(tmp_path: Path) -> None:
    workloads = (OltpWorkload(name="oltp_read_only"), OltpWorkload(name="oltp_point_select"))
    given = experiment(repeat_disturbed=False).model_copy(update={"workloads": workloads})
    run = Run.create(tmp_path, given, b"")
    for trial in schedule(given):
        busy = trial.block == 4 and trial.workload == "oltp_point_select" and trial.variant == "a"
        store(run, trial, load(0.4, rustc=0.4) if busy else load(0.01))
    found = judged(run, 8)
    assert found.remaining == {"oltp_point_select": (4,)}
    for workload, disturbed in (("oltp_point_select", 1), ("oltp_read_only", 0)):
        assert len(relevant_to(("a", "b", workload), found.findings)) == disturbed


def planned(given: Experiment, run: Run) -> Repeats:
    found = plan_repeats(given, run)
    assert found is not None
    return found


def test_disturbed_blocks_are_planned_once_and_named(tmp_path: Path) -> None:
    given = experiment()
    run = finished(tmp_path, given, {2: load(0.37, cc1plus=0.35, cron=0.01), 6: load(0.12, cc1plus=0.12)})
    found = planned(given, run)
    assert found.text == (
        "other processes used more than 10 % of the CPUs of server and client in 2 of 8 blocks "
        "(cc1plus 35 %), which are repeated"
    )
    assert [trial.repeats for trial in found.trials] == [2] * 4 + [6] * 4
    # Neither again, nor after one of them was disturbed too.
    store(run, found.trials[0], load(0.9))
    assert plan_repeats(given, run) is None
    assert len(run.schedule()) == 40


def test_of_many_disturbed_blocks_the_worst_are_repeated(tmp_path: Path) -> None:
    given = experiment()
    run = finished(tmp_path, given, {block: load(0.2 + block / 100, rustc=0.2) for block in range(5)})
    found = planned(given, run)
    assert found.text == (
        "other processes used more than 10 % of the CPUs of server and client in 5 of 8 blocks "
        "(rustc 20 %); the worst 2 are repeated (limit: a quarter of the blocks)"
    )
    assert {trial.repeats for trial in found.trials} == {3, 4}


def test_the_experiment_may_switch_repeats_off(tmp_path: Path) -> None:
    given = experiment(repeat_disturbed=False)
    run = finished(tmp_path, given, {2: load(0.37, cc1plus=0.35)})
    assert plan_repeats(given, run) is None
    found = judged(run, 8)
    assert (found.replaced, found.remaining) == ({}, {"oltp_read_only": (2,)})
    (finding,) = found.findings
    assert (finding.code, finding.level, finding.evidence["remaining"]) == ("D06", "warn", 1)
    assert "in 1 of the 8 blocks that count (cc1plus 35 %)" in finding.text
    assert "repeated" not in finding.text


@pytest.mark.parametrize("again", [load(0.0), load(0.8, rustc=0.8)], ids=["quiet", "disturbed too"])
def test_a_repeat_replaces_its_block_whatever_it_met(tmp_path: Path, again: ForeignRecord) -> None:
    given = experiment()
    run = finished(tmp_path, given, {2: load(0.37, cc1plus=0.35)})
    for trial in planned(given, run).trials:
        store(run, trial, again)
    found = judged(run, 8)
    assert found.replaced == {2: 8}
    assert found.remaining == ({"oltp_read_only": (2,)} if again["share"] else {})
    (finding,) = found.findings
    if again["share"]:
        assert finding.level == "warn"
        assert "(rustc 80 %)" in finding.text
        assert "1 of 8 blocks was repeated" in finding.text
        assert finding.evidence["share"] == 0.8
    else:
        assert finding.level == "note"
        assert finding.text == (
            "1 of 8 blocks was repeated because other processes used the CPUs (cc1plus 35 %); "
            "the repeats count"
        )
        assert finding.evidence == {
            "blocks": [2],
            "share": 0.37,
            "processes": [{"name": "cc1plus", "share": 0.35}, {"name": "cron", "share": 0.02}],
            "repeated": [2],
            "remaining": 0,
        }


@pytest.mark.parametrize("failed_by", [None, "harness", "server"])
def test_a_repeat_that_was_cut_short_replaces_nothing(tmp_path: Path, failed_by: str | None) -> None:
    """The failure of a server is a result; an interruption and our own failures are none."""
    given = experiment()
    run = finished(tmp_path, given, {2: load(0.37, cc1plus=0.35)})
    *most, last = planned(given, run).trials
    for trial in most:
        store(run, trial, load(0.0))
    if failed_by is not None:
        store(run, last, None, failed_by)
    found = judged(run, 8)
    assert found.replaced == ({2: 8} if failed_by == "server" else {})
    assert found.remaining == ({} if failed_by == "server" else {"oltp_read_only": (2,)})


def test_steal_and_what_cannot_be_seen_have_names() -> None:
    assert repeats.largest_processes([load(0.2, steal=0.15, cron=0.05), load(0.3, steal=0.1, cron=0.2)]) == [
        {"name": "cron", "share": 0.2},
        {"name": "steal", "share": 0.15},
    ]
    assert repeats.describe_processes([]) == "processes that dbdyno cannot see"
    assert repeats.describe_processes(load(0.0, cron=0.02, sshd=0.01)["processes"]) == "cron 2 %"


def test_trials_without_a_share_disturb_nothing(tmp_path: Path) -> None:
    """Servers of others, trials whose edges were not read, runs of earlier releases."""
    given = experiment(blocks=2)
    run = Run.create(tmp_path, given, b"")
    for trial in schedule(given):
        store(run, trial, None)
    assert plan_repeats(given, run) is None
    found = judged(run, 2)
    assert (dict(found.shares), found.findings) == ({}, [])
    assert list(unchecked(found, given)) == []
    running = ServerSpec(kind="remote", url="mysql://bench@127.0.0.1/sbtest")
    remote = given.model_copy(update={"variants": (Variant(name="a", server=running),)})
    (note,) = unchecked(found, remote)
    assert (note.code, note.level) == ("D06", "note")
    assert note.text.startswith("foreign load was not checked")


@pytest.mark.parametrize("unread", [1, 3, 7])
def test_trials_without_a_share_beside_others_are_named(tmp_path: Path, unread: int) -> None:
    given = experiment()
    run = Run.create(tmp_path, given, b"")
    for trial in schedule(given):
        store(run, trial, None if trial.index < unread else load(0.01))
    (finding,) = judged(run, 8).findings
    assert (finding.code, finding.level) == ("D06", "note")
    names = {1: "0001", 3: "0001, 0002, 0003", 7: "0001, 0002, 0003, 0004, 0005 and 2 more"}[unread]
    assert finding.text.startswith(
        f"the CPU time of other processes is unknown in {unread} of 32 trials (trial {names}): they"
    )
    assert finding.evidence == {"trials": list(range(unread)), "of": 32}


def test_a_trial_without_a_share_counts_only_where_its_block_does(tmp_path: Path) -> None:
    """What a repeat replaces, what is still to be repeated, and what the harness failed says nothing."""
    given = experiment()
    run = Run.create(tmp_path, given, b"")
    for trial in schedule(given):
        first = trial.block == 2 and trial.index % 4 == 0
        met = load(0.4, rustc=0.4) if trial.block == 2 else load(0.01)
        interrupted = trial.index == 31
        store(run, trial, None if first or interrupted else met, "harness" if interrupted else None)
    assert [one.evidence.get("trials") for one in judged(run, 8).findings] == [None, [8]]
    for trial in planned(given, run).trials:
        store(run, trial, None if trial.variant == "b" else load(0.0))
    blocks, unknown = judged(run, 8).findings
    assert blocks.evidence["repeated"] == [2]
    assert unknown.evidence == {
        "trials": [t.index for t in run.schedule()[32:] if t.variant == "b"],
        "of": 31,
    }
