"""The store: whole files or none, trials only when they ended, runs that go on and never mix."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Stop, Variant
from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.store import VERDICT, Run, StoreProblem, digests, files
from dbdyno.store.run import trial_folder

SOURCE = b"# exactly as given\r\n[experiment]\nname = 'test'\n"
LINES = [b'{"type":"hello","data":{"schema":1}}\n', b'{"type":"end","data":{"reason":"time-limit"}}\n']


def experiment(name: str = "test", blocks: int = 2, config: Path | None = None) -> Experiment:
    return Experiment(
        name=name,
        workloads=(OltpWorkload(name="oltp_read_only"),),
        load=Load(connections=(1, 2), duration_s=1.0),
        design=Design(blocks=blocks),
        variants=(Variant(name="a", server=ServerSpec(config=config)), Variant(name="b")),
    )


def create(results: Path, **given: object) -> Run:
    return Run.create(results, experiment(**given), SOURCE, "quick", {"host": {"name": "here"}})  # type: ignore[arg-type]


def write_trial(run: Run, index: int, status: str = "done") -> None:
    with run.begin(schedule(experiment())[index], {"schema": 1}) as writer:
        for line in LINES:
            writer.append_event(line)
        writer.write_server({"product": "mariadb"})
        writer.finish(status, reason=None)  # type: ignore[arg-type]


def test_a_run_is_plain_files(tmp_path: Path) -> None:
    run = create(tmp_path)
    assert run.path.parent == tmp_path / "test"
    assert (run.path / "experiment.toml").read_bytes() == SOURCE
    again = Run.open(run.path)
    assert again.experiment() == experiment()
    assert again.profile == "quick"
    assert again.environment == {"host": {"name": "here"}}
    entry = files.read_json(run.path / "schedule.json")[0]
    assert entry.keys() == {"index", "block", "group", "variant", "workload", "at", "slot"}
    assert len(again.schedule()) == 8
    assert (again.trials(), again.findings(), again.verdict()) == ([], [], None)


def test_a_trial_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    run = create(tmp_path)
    write_trial(run, 3, "failed")
    write_trial(run, 1)
    first, second = run.trials()
    assert (first.index, first.is_done, second.index, second.is_done) == (1, True, 3, False)
    assert first.plan == {"schema": 1}
    assert first.server == {"product": "mariadb"}
    assert [record["type"] for record in first.records()] == ["hello", "end"]
    assert gzip.decompress((first.path / "events.jsonl.gz").read_bytes()) == b"".join(LINES)
    assert not (first.path / "events.jsonl").exists()


def test_an_interrupted_trial_does_not_count_and_is_run_again(tmp_path: Path) -> None:
    run = create(tmp_path)
    writer = run.begin(schedule(experiment())[0], {"schema": 1})
    writer.append_event(LINES[0])
    # Written as it comes: another process can already read it.
    assert (run.path / "trials/0001/events.jsonl").read_bytes() == LINES[0]
    writer.close()
    assert run.trials() == []
    write_trial(run, 0)
    assert len(list(run.trials()[0].records())) == 2


def test_earlier_attempts_are_kept(tmp_path: Path) -> None:
    run = create(tmp_path)
    for _ in range(2):
        write_trial(run, 0, "failed")
    interrupted = run.begin(schedule(experiment())[0], {"schema": 1})
    interrupted.append_event(LINES[0])
    interrupted.close()
    write_trial(run, 0)
    (trial,) = run.trials()
    assert (trial.is_done, trial.meta["attempt"]) == (True, 3)
    assert [(one.is_done, one.failed_by, one.meta["attempt"]) for one in trial.attempts] == [
        (False, "server", 1),
        (False, "server", 2),
    ]
    assert [len(list(one.records())) for one in trial.attempts] == [2, 2]


def test_a_cut_off_last_line_is_left_out_and_any_other_is_not(tmp_path: Path) -> None:
    run = create(tmp_path)
    for index, lines in enumerate([[LINES[0], b'{"type":"en'], [b"{broken}\n", LINES[0]]]):
        with run.begin(schedule(experiment())[index], {}) as writer:
            for line in lines:
                writer.append_event(line)
            writer.finish("failed")
    cut, broken = run.trials()
    assert [record["type"] for record in cut.records()] == ["hello"]
    with pytest.raises(StoreProblem, match=r"line 1 of the events is not valid JSON"):
        list(broken.records())


def test_a_file_without_an_order_goes_on_in_the_order_that_was_drawn(tmp_path: Path) -> None:
    run = Run.create(tmp_path, experiment().with_order_seed(77), SOURCE, "quick")
    run.release()
    again = Run.resume(tmp_path, experiment())
    assert again.experiment().design.order_seed == 77
    again.release()
    with pytest.raises(StoreProblem, match="order_seed was 77 and is 78"):
        Run.resume(tmp_path, experiment().with_order_seed(78))


def test_findings_are_told_once(tmp_path: Path) -> None:
    run = create(tmp_path)
    finding = Finding("P11", "warn", "shared")
    of_a = replace(finding, subject="a")
    assert run.add_findings([finding, of_a, finding]) == [finding, of_a]
    assert run.add_findings([finding]) == []
    # Only figures differ: the same thing was found again.
    assert len(run.add_findings([replace(finding, text="pid 1"), replace(finding, text="pid 23")])) == 1
    assert len(Run.open(run.path).findings()) == 3


def test_a_verdict_is_kept_and_cannot_hold_what_json_lacks(tmp_path: Path) -> None:
    run = create(tmp_path)
    path = run.path / VERDICT
    files.write_json(path, {"schema": 1})
    # An older schema is judged again.
    assert run.verdict() is None
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, {"effect_percent": float("nan")})
    assert files.read_json(path) == {"schema": 1}
    files.write_json(path, {"schema": 2, "experiment": "made"})
    with pytest.raises(StoreProblem, match=r"does not match the schema: baseline: Field required"):
        run.verdict()


def test_resume_takes_the_newest_run_of_the_same_experiment(tmp_path: Path) -> None:
    old = create(tmp_path)
    old.release()
    old.path.rename(old.path.with_name("20000101T000000Z-0000"))
    new = create(tmp_path)
    new.release()
    new.path.rename(new.path.with_name("20990101T000000Z-0000"))
    assert Run.resume(tmp_path, experiment()).path.name == "20990101T000000Z-0000"


def test_the_newest_run_is_the_last_by_number_whatever_the_clock_says(tmp_path: Path) -> None:
    first = create(tmp_path)
    first.release()
    # The clock was a century ahead.
    ahead = first.path.rename(first.path.with_name(f"21{first.path.name[2:]}"))
    second = create(tmp_path)
    second.release()
    assert second.path.name < ahead.name
    assert Run.resume(tmp_path, experiment()).path == second.path
    other = Run.create(tmp_path, experiment().model_copy(update={"name": "other"}), SOURCE)
    assert [one.name[-6:] for one in (ahead, second.path, other.path)] == ["-r0001", "-r0002", "-r0003"]


def test_a_run_of_eight_blocks_is_not_resumed_until_it_is_sure_and_the_fix_names_the_option(
    tmp_path: Path,
) -> None:
    create(tmp_path).release()
    given, blocks = experiment(), experiment().design.blocks
    changed = given.model_copy(update={"design": Design(**given.design.model_dump() | {"stop": Stop()})})
    with pytest.raises(StoreProblem) as caught:
        Run.resume(tmp_path, changed)
    assert f"--set of that run, --blocks {blocks}, or leave out" in (caught.value.fix or "")
    assert "design.stop was not set and is set" in str(caught.value)


def test_resume_refuses_another_experiment_and_says_what_differs(tmp_path: Path) -> None:
    create(tmp_path)
    with pytest.raises(StoreProblem, match=r"design\.blocks was 2 and is 3") as caught:
        Run.resume(tmp_path, experiment(blocks=3))
    assert "--resume" in caught.value.fix
    with pytest.raises(StoreProblem, match="no run of other"):
        Run.resume(tmp_path, experiment("other"))


def test_a_changed_configuration_file_is_another_experiment(tmp_path: Path) -> None:
    config = tmp_path / "my.cnf"
    config.write_text("[mariadbd]\n")
    create(tmp_path, config=config)
    config.write_text("[mariadbd]\nsync_binlog=1\n")
    with pytest.raises(StoreProblem, match="configuration file has changed"):
        Run.resume(tmp_path, experiment(config=config))


def older(run: Run, *keys: tuple[str, str]) -> None:
    """Make a run one of a version that did not know these keys: it neither stored nor hashed them, and had no
    digests of files.
    """
    (run.path / digests.NAME).unlink()
    stored = json.loads((run.path / "experiment.json").read_text())
    for section, key in keys:
        del stored["experiment"][section][key]
    written = json.dumps(stored["experiment"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(written.encode())
    for variant in stored["experiment"]["variants"]:
        if config := variant["server"]["config"]:
            digest.update(hashlib.sha256(Path(config).read_bytes()).digest())
    stored.pop(digests.KEY)
    (run.path / "experiment.json").write_text(json.dumps({**stored, "hash": digest.hexdigest()}))
    run.release()


NEW_KEYS = (("design", "repeat_disturbed"), ("design", "order_seed"), ("load", "prewarm"))


def test_a_run_of_an_older_version_is_continued_with_the_defaults_of_new_keys(tmp_path: Path) -> None:
    config = tmp_path / "my.cnf"
    config.write_text("[mariadbd]\n")
    run = create(tmp_path, config=config)
    older(run, *NEW_KEYS)
    again = Run.resume(tmp_path, experiment(config=config))
    assert (again.path, again.experiment()) == (run.path, experiment(config=config))
    again.release()
    changed = experiment(config=config).model_copy(
        update={"load": Load(connections=(1, 2), duration_s=1.0, prewarm="scan")}
    )
    with pytest.raises(StoreProblem, match=r"another experiment: load\.prewarm was 'none' and is 'scan'$"):
        Run.resume(tmp_path, changed)
    config.write_text("[mariadbd]\nsync_binlog=1\n")
    with pytest.raises(StoreProblem, match="configuration file has changed"):
        Run.resume(tmp_path, experiment(config=config))


def test_a_schedule_of_another_experiment_is_refused(tmp_path: Path) -> None:
    run = create(tmp_path)
    path = run.path / "schedule.json"
    entries = files.read_json(path)
    files.write_json(path, [{**entries[0], "at": {"connections": 12345}}, *entries[1:]])
    with pytest.raises(StoreProblem, match="does not explain"):
        run.schedule()


def test_true_is_another_value_than_1(tmp_path: Path) -> None:
    def with_value(value: bool | int) -> Experiment:
        spec = ServerSpec(variables={"autocommit": value})
        return experiment().model_copy(update={"variants": (Variant(name="a", server=spec),)})

    Run.create(tmp_path, with_value(True), SOURCE).release()
    with pytest.raises(StoreProblem, match="autocommit was True and is 1"):
        Run.resume(tmp_path, with_value(1))


def test_two_processes_never_write_one_run(tmp_path: Path) -> None:
    run = create(tmp_path)
    code = "import sys, pathlib; from dbdyno.store import Run; Run.open(pathlib.Path(sys.argv[1])).lock()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    held = subprocess.run(
        [sys.executable, "-c", code, run.path], capture_output=True, text=True, env=environment, check=False
    )
    assert "is in use by another dbdyno" in held.stderr


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    run = create(tmp_path)
    with pytest.raises(StoreProblem, match="is not a run directory") as caught:
        Run.open(tmp_path)
    assert str(run.path) in caught.value.fix


def test_a_run_that_could_not_begin_leaves_nothing(tmp_path: Path) -> None:
    run = create(tmp_path)
    assert run.discard_if_empty()
    assert not run.path.exists()
    begun = create(tmp_path)
    write_trial(begun, 0)
    assert not begun.discard_if_empty()
    assert begun.path.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_space_left_names_the_place_and_the_way_out(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(StoreProblem, match=f"no space left for {tmp_path}") as caught,
        files.store_errors(tmp_path),
    ):
        raise OSError(number, os.strerror(number))
    assert "--resume" in caught.value.fix
    assert caught.value.exit_code == 4


# A file size limit fails a real write in the middle, as a full disk does.
FULL = """
import json, resource, sys
from dataclasses import replace
from pathlib import Path
from dbdyno.store import StoreProblem, files
target = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    files.write(target, b"x" * 100_000)
except StoreProblem as problem:
    print(problem.text)
"""


def test_a_write_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    target = tmp_path / "verdict.json"
    target.write_text("{}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", FULL, target], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.startswith(f"no space left for {target}")
    assert target.read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["verdict.json"]


def test_a_place_that_cannot_be_written() -> None:
    with pytest.raises(StoreProblem, match="Not a directory") as caught:
        Run.create(Path("/dev/null/results"), experiment(), SOURCE)
    assert caught.value.exit_code == 2


def test_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.jsonl").write_bytes(b"".join(LINES) * 100)
        files.compress(tmp_path / name / "events.jsonl")
    packed = [(tmp_path / name / "events.jsonl.gz").read_bytes() for name in ("one", "two")]
    assert packed[0] == packed[1]
    assert json.loads(gzip.decompress(packed[0]).splitlines()[0])["type"] == "hello"


def test_folders_of_trials_begin_at_1_and_those_of_older_runs_at_0(tmp_path: Path) -> None:
    """Texts name trials as folders do; a run of an older version is continued with its own names."""
    assert trial_folder(tmp_path, 0) == tmp_path / "trials/0001"
    (tmp_path / "trials/0000").mkdir(parents=True)
    assert trial_folder(tmp_path, 3) == tmp_path / "trials/0003"


def measure_once(run: Run) -> None:
    with run.begin(run.schedule()[0], {"schema": 1}) as writer:
        writer.append_event(b"{}\n")
        writer.write_server({})
        writer.finish("failed", failed_by="harness", reason="broken")


@pytest.mark.parametrize("attempts", [0, 2])
def test_a_kill_at_any_instant_of_a_trial_leaves_an_unchanged_run(
    tmp_path: Path, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed before each of its operations on files; then the trial is run again."""
    # A killed process, unlike a machine without power, loses nothing that it has written.
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    original = create(tmp_path)
    for _ in range(attempts):
        measure_once(original)
    original.release()
    kills = 0
    for last in range(1, 200):
        path = Path(shutil.copytree(original.path, tmp_path / f"killed-{last}"))
        if (pid := os.fork()) == 0:
            kill_before(last)
            measure_once(Run(path))
            os._exit(0)
        is_killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
        kills += is_killed
        stored = Run(path)
        for _ in range(2):
            assert stored.changed_files() == stored.changed_files(quick=True) == [], last
            measure_once(Run(path))
        ended = stored.trials()
        assert len(ended) == 1
        assert attempts + 1 <= len(ended[0].attempts) <= attempts + 2
        shutil.rmtree(path / "trials" / "0001" / "attempt-1")
        assert stored.changed_files() == ["trials/0001/attempt-1"]
        shutil.rmtree(path / "trials" / "0001")
        assert stored.changed_files() == stored.changed_files(quick=True) == ["trials/0001"]
        if not is_killed:
            break
    assert kills > 20


def kill_before(last: int) -> None:
    """End this process before its operation on files with that number."""
    operations = 0

    def count(event: str, _arguments: object) -> None:
        nonlocal operations
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
            operations += 1
            if operations == last:
                os._exit(9)

    sys.addaudithook(count)
