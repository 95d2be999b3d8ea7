"""What compare, run and check do in which order, on servers in memory and with the real engine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.fake_server import FakeServers, install

from dbdyno.binary import EngineProblem
from dbdyno.experiment.model import Client, Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.schedule import schedule
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import pilot, progress
from dbdyno.run.compare import compare
from dbdyno.run.data_state import DataState
from dbdyno.run.engine import Command, Engine
from dbdyno.run.pilot import measure_ceilings
from dbdyno.run.preflight import preflight
from dbdyno.run.repeating import CannotRunProblem
from dbdyno.run.sweep import sweep
from dbdyno.servers import open_server
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoreProblem
from dbdyno.store.endings import read_endings, read_resumptions
from dbdyno.store.preparation import CEILING, read_ceilings, read_workers
from dbdyno.store.trial import TrialWriter

WORKLOAD = OltpWorkload(name="oltp_point_select", table_size=10)


@pytest.fixture
def fakes() -> Iterator[FakeServers]:
    with FakeServers().registered() as fakes:
        yield fakes


@pytest.fixture
def basedir(tmp_path: Path) -> Path:
    return install(tmp_path / "programs")


def experiment(
    basedir: Path, *names: str, connections: tuple[int, ...] = (1, 2), **design: Any
) -> Experiment:
    spec = ServerSpec(product="mariadb", basedir=basedir)
    return Experiment(
        name="fake",
        workloads=(WORKLOAD,),
        load=Load(connections=connections, duration_s=0.2, warmup_s=0.0),
        design=Design(
            **{"blocks": 2, "repeat_disturbed": False, "order_seed": 1, "pairing": "trials", **design}
        ),
        client=Client(workers=1),
        variants=tuple(Variant(name=name, server=spec) for name in names or ("a", "b")),
        # The tables are nowhere, and nothing is to be compared.
        override=dict.fromkeys(("P02", "P15"), "servers in memory"),
    )


class Listening:
    """Keeps the progress values, and calls `then` when the trial `at` begins."""

    def __init__(self, at: int = -1, then: Callable[[], None] = lambda: None) -> None:
        self.values: list[progress.Progress] = []
        self.at, self.then = at, then

    def __call__(self, value: progress.Progress) -> None:
        self.values.append(value)
        if isinstance(value, progress.TrialBegan) and value.trial.index == self.at:
            self.then()

    def ended(self) -> list[tuple[int, str]]:
        return [(v.trial.index, v.reason) for v in self.values if isinstance(v, progress.TrialEnded)]


def created(given: Experiment, tmp_path: Path) -> Run:
    return Run.create(tmp_path / "results", given, b"", None, {})


def after_test_starts(journal: list[str]) -> list[str]:
    """The journal from the first group on."""
    first = next(k for k, entry in enumerate(journal) if "occupy" in entry)
    return journal[first:]


def test_blocks_and_groups_come_in_order_each_with_restored_data(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir)
    run, listening = created(given, tmp_path), Listening()
    conclusion = compare(given, run, listening)
    assert (conclusion.stops, conclusion.done, conclusion.failed) == ((), 8, 0)
    # Every variant was started once, empty, before data were loaded, and nothing else ran then.
    test_starts = ["a restore", "a start", "a stop", "a close", "b restore", "b start", "b stop", "b close"]
    assert fakes.journal[2:10] == test_starts
    groups = [trials[0] for trials in by_group(given)]
    restored = [f"{one.variant} {what}" for one in groups for what in ("restore", "start", "stop")]
    groups_journal = after_test_starts(fakes.journal)
    assert [entry for entry in groups_journal if "occupy" not in entry and "close" not in entry] == restored
    # The trials follow the schedule, and the last thing is that every server is closed.
    assert listening.ended() == [(index, "") for index in range(8)]
    assert sorted(groups_journal[-2:]) == ["a close", "b close"]
    assert not fakes.running


def test_the_servers_of_a_block_run_together_in_slices(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.in_slices = True
    given = experiment(basedir, connections=(1,), pairing="slices")
    run, listening = created(given, tmp_path), Listening()
    conclusion = compare(given, run, listening)
    assert (conclusion.stops, conclusion.done, conclusion.failed) == ((), 4, 0)
    calls = [entry.split()[1] for entry in after_test_starts(fakes.journal) if "occupy" not in entry]
    block = ["restore", "start", "restore", "start", "stop", "stop"]
    assert calls == [*block, *block, "close", "close"]
    assert [trial.meta["slices"]["warmup"] for trial in run.trials()] == [0] * 4
    assert all("slices" in trial.server and trial.server["round_trips"] == [] for trial in run.trials())
    assert not fakes.running


def test_the_client_ceiling_is_measured_once(fakes: FakeServers, basedir: Path, tmp_path: Path) -> None:
    """Without a server the engine does more than with servers that answer after 200 us."""
    assert fakes.variables
    given = experiment(basedir)
    run = created(given, tmp_path)
    compare(given, run, Listening())
    ceilings = read_ceilings(run)
    assert list(ceilings) == ["oltp_point_select"]
    assert (ceilings["oltp_point_select"]["connections"], ceilings["oltp_point_select"]["failure"]) == (
        2,
        None,
    )
    assert (ceilings["oltp_point_select"]["events_per_s"] or 0.0) > 10_000.0
    measured = (run.path / CEILING).read_bytes()
    measure_ceilings(run, given, Engine())
    assert (run.path / CEILING).read_bytes() == measured


def test_a_load_that_waits_has_no_ceiling(fakes: FakeServers, basedir: Path, tmp_path: Path) -> None:
    assert fakes.variables
    given = experiment(basedir)
    limited = given.model_copy(update={"load": given.load.model_copy(update={"max_rate": 100.0})})
    run = created(limited, tmp_path)
    compare(limited, run, Listening())
    assert read_ceilings(run) == {}


@pytest.mark.parametrize("state", ["restore", "reset"])
def test_a_disk_that_is_too_small_is_told_before_anything_is_loaded(
    fakes: FakeServers, basedir: Path, tmp_path: Path, state: str
) -> None:
    large = OltpWorkload(name="oltp_point_select", tables=100, table_size=10**9)
    given = experiment(basedir, state=state).model_copy(update={"workloads": (large,)})
    # 230 bytes for each of 10^11 rows on two servers (check: on one); for a restore once more in the cache.
    needed = "69,000,320 MB" if state == "restore" else "46,000,280 MB"
    with pytest.raises(
        ServerProblem, match=rf"2 servers.*it needs {needed}, .* has [\d,]+ MB free"
    ) as caught:
        compare(given, created(given, tmp_path), Listening())
    assert caught.value.exit_code == 4
    with pytest.raises(ServerProblem, match=r"one server.*it needs 46,000,280 MB"):
        preflight(given, tmp_path, Engine(), Listening())
    assert fakes.journal == []


def by_group(given: Experiment) -> list[list[Any]]:
    trials = schedule(given)
    return [[one for one in trials if one.group == group] for group in sorted({one.group for one in trials})]


@pytest.mark.parametrize(
    ("state", "between"),
    [("restart", ["a stop clean", "a start"]), ("preserve", [])],
)
def test_data_stay_where_the_design_says_so(
    state: str, between: list[str], fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir, "a", blocks=2, state=state, repeat_disturbed=False)
    compare(given, created(given, tmp_path), Listening())
    journal = after_test_starts(fakes.journal)
    end = ["a stop clean", "a close"]
    assert journal == ["a occupy slot-1", "a restore", "a start", *between, *end]


def test_a_server_that_does_not_start_ends_the_run_and_leaves_nothing_running(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.failures["b start"] = ServerProblem("no memory for b")
    given = experiment(basedir)
    with pytest.raises(ServerProblem, match="no memory for b"):
        compare(given, created(given, tmp_path), Listening())
    # Found in the test start: nothing was loaded, and no trial ran.
    assert not any("snapshot" in entry or "occupy" in entry for entry in fakes.journal)
    assert not fakes.running
    assert fakes.journal[-1] == "b close"


def test_an_interrupted_run_keeps_its_trials_and_goes_on(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir)
    run = created(given, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        compare(given, run, Listening(3, interrupt))
    run.release()
    assert not fakes.running
    assert [trial.index for trial in run.trials() if trial.is_done] == [0, 1, 2]
    resumed = Listening()
    conclusion = compare(given, Run.resume(tmp_path / "results", given), resumed)
    assert (conclusion.done, conclusion.failed) == (8, 0)
    assert [index for index, _ in resumed.ended()] == [3, 4, 5, 6, 7]
    (begun,) = [value for value in resumed.values if isinstance(value, progress.Began)]
    # Data come from the cache the second time.
    assert (begun.kept, len(begun.todo), begun.rows) == (3, 5, 0)
    # The other variant's trials of the first block ran after the resumption, at least one of them.
    (resumption,) = read_resumptions(run)
    assert (resumption.trials, resumption.blocks) == (3, [0])
    assert len(read_endings(run)) == 2


def test_all_trials_have_the_event_loops_of_the_pilot_and_so_does_a_resumed_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The null target keeps an event loop busy enough.
    monkeypatch.setattr(pilot, "BUSY_MAX", 1e-4)
    monkeypatch.setattr(pilot, "WARMUP_S", 0.1)
    monkeypatch.setattr(pilot, "MEASURE_S", 0.2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    given = experiment(basedir).model_copy(update={"client": Client()})
    run, listening = created(given, tmp_path), Listening(3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        compare(given, run, listening)
    run.release()
    workers = read_workers(run)
    assert workers is not None
    steps = [(step["variant"], step["workers"]) for step in workers["steps"]]
    assert (workers["workers"], steps) == (2, [("a", 1), ("a", 2), ("b", 2)])
    printed = [value.text for value in listening.values if isinstance(value, progress.Step)]
    assert "2 event loops of the load generator in all trials" in printed
    resumed = Listening()
    # A second pilot would find one event loop sufficient.
    monkeypatch.setattr(pilot, "BUSY_MAX", 1.0)
    compare(given, Run.resume(tmp_path / "results", given), resumed)
    assert not any(isinstance(value, progress.PilotEnded) for value in resumed.values)
    plans = [json.loads((trial.path / "plan.json").read_text()) for trial in run.trials()]
    assert [plan["client"]["workers"] for plan in plans] == [2] * 8


def test_a_run_that_began_with_one_event_loop_keeps_it(basedir: Path, tmp_path: Path) -> None:
    given = experiment(basedir)
    created(given, tmp_path).release()
    automatic = given.model_copy(update={"client": Client()})
    assert Run.resume(tmp_path / "results", automatic).experiment().client.workers == 1


def test_a_declared_number_of_event_loops_is_not_kept_if_the_file_no_longer_has_it(
    basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir)
    four, automatic = (given.model_copy(update={"client": Client(workers=n)}) for n in (4, "auto"))
    created(four, tmp_path).release()
    with pytest.raises(Problem, match="another experiment"):
        Run.resume(tmp_path / "results", automatic)


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_failure_in_the_middle_keeps_the_trials_before(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir)
    run = created(given, tmp_path)
    last = by_group(given)[3][0].variant
    broken = {f"{last} start": ServerProblem("no memory in the last group")}
    conclusion = compare(given, run, Listening(4, lambda: fakes.failures.update(broken)))
    assert (conclusion.done, conclusion.failed) == (6, 2)
    failed = [trial for trial in run.trials() if not trial.is_done]
    assert [(trial.index, trial.failed_by) for trial in failed] == [(6, "server"), (7, "server")]
    assert not fakes.running


def test_a_fault_in_the_first_group_of_a_variant_does_not_end_the_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.unreachable = {"b"}
    given = experiment(basedir, blocks=3)
    run = created(given, tmp_path)
    after = next(group for group in by_group(given) if group[0].block == 1)[0].index
    conclusion = compare(given, run, Listening(after, fakes.unreachable.clear))
    assert (conclusion.done, conclusion.failed) == (10, 2)
    failed = [trial for trial in run.trials() if not trial.is_done]
    assert [(trial.meta["block"], trial.failed_by) for trial in failed] == [(0, "server")] * 2


def test_a_trial_that_the_engine_did_not_complete_runs_once_more(
    fakes: FakeServers, basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = experiment(basedir, "a", blocks=2)
    run, listening = created(given, tmp_path), Listening()
    kills = iter([True, False, False, True, False, True])
    fallen = EngineProblem("the engine fell")
    run_engine = Engine.run

    def fall(engine: Engine, command: Command, *arguments: Any, **more: Any) -> Any:
        if command == "run" and next(kills, False):
            raise fallen
        return run_engine(engine, command, *arguments, **more)

    monkeypatch.setattr(Engine, "run", fall)
    conclusion = compare(given, run, listening)
    # Trial 0 and its repeat after the rest of its group; trial 2 twice.
    assert [index for index, _ in listening.ended()] == [0, 1, 0, 2, 3, 2]
    assert (conclusion.done, conclusion.failed) == (3, 1)
    assert [trial.meta["attempt"] for trial in run.trials()] == [2, 1, 2, 1]
    assert run.trials()[2].failed_by == "harness"
    assert not fakes.running


def test_a_disk_that_was_full_once_does_not_end_the_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = experiment(basedir, "a", blocks=2)
    full = [True]
    append = TrialWriter.append_event

    def write(writer: TrialWriter, line: bytes) -> None:
        if writer._path.name == "0002" and full:
            full.pop()
            raise StoreProblem("no space left")
        append(writer, line)

    monkeypatch.setattr(TrialWriter, "append_event", write)
    conclusion = compare(given, created(given, tmp_path), Listening())
    assert (conclusion.done, conclusion.failed) == (4, 0)
    full += [True, True]
    run = Run.create(tmp_path / "again", given, b"", None, {})
    with pytest.raises(StoreProblem, match="no space left"):
        compare(given, run, Listening())
    assert [trial.index for trial in run.trials()] == [0]
    assert not fakes.running


def test_a_setting_that_changes_in_the_middle_stops_the_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir, connections=(2, 50))
    run = created(given, tmp_path)
    conclusion = compare(given, run, Listening(2, lambda: fakes.variables.update(max_connections="1")))
    assert "P07" in {finding.code for finding in conclusion.stops}
    assert (conclusion.done, conclusion.failed) == (4, 0)
    assert not fakes.running


def test_servers_exchange_their_slots(fakes: FakeServers, basedir: Path, tmp_path: Path) -> None:
    given = experiment(basedir)
    compare(given, created(given, tmp_path), Listening())
    moves = [entry for entry in fakes.journal if "occupy" in entry]
    assert {move.split()[0] for move in moves} == {"a", "b"}
    slots = {(trials[0].variant, trials[0].slot) for trials in by_group(given)}
    assert {f"{name} occupy slot-{slot + 1}" for name, slot in slots} == set(moves)


def test_a_variant_that_never_answers_the_load_ends_the_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.unreachable = {"b"}
    given = experiment(basedir, blocks=4)
    run = created(given, tmp_path)
    with pytest.raises(CannotRunProblem, match=r"^b cannot run this load \(") as raised:
        compare(given, run, Listening())
    assert raised.value.exit_code == ExitCode.NOT_COMPARABLE
    failed = {trial.meta["block"] for trial in run.trials() if not trial.is_done}
    assert failed == {0, 1}
    assert {trial.meta["variant"] for trial in run.trials() if trial.is_done} == {"a"}
    assert {trial.meta["block"] for trial in run.trials()} == {0, 1}
    assert not fakes.running
    run.release()
    # A failure of the server is a result: the run goes on with the next block, and fakes let it succeed.
    fakes.unreachable.clear()
    conclusion = compare(given, Run.resume(tmp_path / "results", given), Listening())
    assert (conclusion.done, conclusion.failed) == (12, 4)


def test_the_trials_of_a_dead_server_fail_without_being_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.mortal = {"a"}
    given = experiment(basedir, "a", connections=(1, 2, 4), blocks=1)
    run, listening = created(given, tmp_path), Listening()
    with pytest.raises(CannotRunProblem, match="a cannot run this load"):
        compare(given, run, listening)
    reasons = [reason for _, reason in listening.ended()]
    assert len(reasons) == 3
    assert all("the server no longer answers" in reason for reason in reasons[1:])
    assert [trial.meta["failed_by"] for trial in run.trials()] == ["server"] * 3
    # The engine was asked in the first trial alone.
    sizes = [len(gzip.decompress(path.read_bytes())) for path in sorted(run.path.glob("trials/*/events.*"))]
    assert sizes[0] > 0 == sizes[1] == sizes[2]


def test_a_finding_that_stops_ends_it_before_any_data_are_loaded(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.variables["max_connections"] = "1"
    given = experiment(basedir, connections=(1, 50))
    run, listening = created(given, tmp_path), Listening()
    conclusion = compare(given, run, listening)
    assert {finding.code for finding in conclusion.stops} == {"P07"}
    assert (conclusion.done, conclusion.failed) == (0, 0)
    assert [finding.code for finding in run.findings() if finding.is_blocking] == ["P07"]
    assert fakes.journal[-2:] == ["a stop", "a close"]


def test_a_check_goes_on_after_a_stop_and_needs_no_run(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    fakes.variables["max_connections"] = "1"
    given = experiment(basedir, connections=(1, 50))
    listening = Listening()
    findings = preflight(given, tmp_path / "results", Engine(), listening)
    stops = [(finding.code, finding.subject) for finding in findings if finding.is_blocking]
    assert stops == [("P07", "a"), ("P07", "b")]
    assert [finding.level for finding in findings[:2]] == ["stop", "stop"]
    assert not fakes.running
    assert not any(isinstance(value, progress.TrialBegan) for value in listening.values)


def test_a_sweep_measures_its_points_in_order_and_stops_before_loading(
    fakes: FakeServers, basedir: Path, tmp_path: Path
) -> None:
    given = experiment(basedir, "a", connections=(2, 1), blocks=1)
    (variant,) = given.variants
    with (
        closing(Workspace.open(tmp_path / "own")) as workspace,
        closing(open_server(variant, workspace, None)) as server,
    ):
        server.start()
        listening = Listening()
        conclusion = sweep(given, created(given, tmp_path), server, listening, Engine(), keep_data=False)
        assert (conclusion.done, conclusion.failed, conclusion.stops) == (2, 0, ())
        ended = [value for value in listening.values if isinstance(value, progress.TrialEnded)]
        assert [value.trial.point.connections for value in ended] == [2, 1]
        steps = [value.text for value in listening.values if isinstance(value, progress.Step)]
        assert steps[0].startswith("loading")
        assert steps[-1] == "dropping the tables"
        fakes.variables["max_connections"] = "1"
        stopped = Listening()
        again = Run.create(tmp_path / "again", given, b"", None, {})
        conclusion = sweep(given, again, server, stopped, Engine(), keep_data=False)
        assert [finding.code for finding in conclusion.stops] == ["P07"]
        assert not [value for value in stopped.values if isinstance(value, progress.Step)]


def test_workloads_over_kept_data_have_servers_of_their_own(basedir: Path, tmp_path: Path) -> None:
    other = OltpWorkload(name="oltp_read_only", table_size=10)
    keys = {}
    with FakeServers().registered(), closing(Workspace.open(tmp_path / "results")) as workspace:
        for state in ("restore", "preserve"):
            given = experiment(basedir, state=state).model_copy(update={"workloads": (WORKLOAD, other)})
            data = DataState(given, workspace, Engine(), lambda _value: None)
            keys[state] = {
                data.server_key(workload, variant, None)
                for workload in given.workloads
                for variant in given.variants
            }
    assert {state: len(found) for state, found in keys.items()} == {"restore": 2, "preserve": 4}
