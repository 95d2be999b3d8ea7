"""A bisection: its steps on simulated trials, its experiments, its versions, and its sentence."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth import bisection as simulated
from tests.unit.simulated_trials import experiment, measured
from tests.unit.stored_run import Making, make
from typer.testing import CliRunner

from dbdyno.commands.bisect import Over
from dbdyno.commands.bisect import bisect as bisect_command
from dbdyno.commands.bisection import Bisection, Ends, choose_versions, result_sentence
from dbdyno.experiment import bisection as documents
from dbdyno.experiment.model import Design, Experiment, Stop
from dbdyno.experiment.reading import read_document
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.run.repeating import CannotRunProblem
from dbdyno.runs.bisection import Question, Step, bisect, conclude, judge_step, level_of, recall
from dbdyno.servers import commits
from dbdyno.servers.sources.installed import versions_between
from dbdyno.stats.bisection import Outcome
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.several_runs import BisectionRecord

LEVEL = 0.01
FILE = """
[experiment]
name = "file"
[[workload]]
name = "oltp_point_select"
[[workload]]
name = "oltp_read_only"
[load]
connections = [1]
duration = "1s"
[design]
blocks = 8
identical_copy = true
max_loss_percent = 3
delta_percent = 1
error_rate = "false-discovery"
metrics = ["throughput", "p95"]
"""
TEMPLATE = '[[variant]]\nname = "template"\nserver = { product = "postgresql" }\n'


def stopped(variants: str) -> Experiment:
    of = experiment(variants=variants, blocks=12)
    return of.model_copy(update={"design": Design(**of.design.model_dump() | {"stop": Stop(max_blocks=12)})})


def trials(of: Experiment, **levels: float) -> list[MeasuredTrial]:
    random = np.random.default_rng(3)
    return measured(
        of, lambda trial: 1000.0 * levels[trial.variant] * float(np.exp(random.normal(0.0, 0.005)))
    )


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        (1.0, Outcome.LIKE_GOOD),
        (0.9, Outcome.LIKE_BAD),
        (0.95, Outcome.BETWEEN),
        (0.8, Outcome.LIKE_BAD),
        (1.1, Outcome.LIKE_GOOD),
    ],
)
def test_a_step_says_what_its_candidate_is_like(candidate: float, outcome: Outcome) -> None:
    of, question = stopped("abc"), Question("a", "b", "c", LEVEL, towards_bad=-1)
    step = judge_step(question, trials(of, a=1.0, b=candidate, c=0.9), of)
    assert step.outcome == outcome
    assert step.blocks == 12
    assert step.effects["b", "a"].effect_percent == pytest.approx(100 * (candidate - 1), abs=1.0)
    assert step.effects["b", "c"].effect_percent == pytest.approx(100 * (candidate / 0.9 - 1), abs=1.0)


def test_the_first_question_is_whether_good_and_bad_differ() -> None:
    of, question = stopped("ab"), Question("a", None, "b", LEVEL)
    assert judge_step(question, trials(of, a=1.0, b=1.0), of).outcome == Outcome.CANNOT_TELL
    for level in (0.9, 1.1):
        assert judge_step(question, trials(of, a=1.0, b=level), of).outcome == Outcome.LIKE_BAD


def test_no_step_has_an_outcome_after_too_few_blocks_or_with_a_finding_that_forbids_it() -> None:
    of, question = stopped("abc"), Question("a", "b", "c", LEVEL, towards_bad=-1)
    every = trials(of, a=1.0, b=1.0, c=0.5)
    early = judge_step(question, [one for one in every if one.block < 8], of)
    assert early.outcome == Outcome.CANNOT_TELL
    assert early.effects["b", "a"].interval_percent is None
    for finding in (
        Finding("P04", "stop", "a setting is not effective", {}),
        Finding("R03", "stop", "the numbers contradict each other", {}, "b"),
    ):
        forbidden = judge_step(question, every, of, [finding])
        assert forbidden.outcome == Outcome.CANNOT_TELL
        assert finding.text in forbidden.reason
    other = Finding("R03", "stop", "of another run", {}, "z")
    assert judge_step(question, every, of, [other]).outcome == Outcome.LIKE_GOOD


def truth(levels: dict[str, float], asked: list[Question]) -> Callable[[Question], Step]:
    """Measures versions with these throughputs, without noise that matters."""

    def measure(question: Question) -> Step:
        asked.append(question)
        names = question.versions
        of = stopped("abc"[: len(names)])
        renamed = [
            one.model_copy(update={"name": name}) for one, name in zip(of.variants, names, strict=True)
        ]
        of = of.model_copy(update={"variants": tuple(renamed)})
        return judge_step(question, trials(of, **{name: levels[name] for name in names}), of)

    return measure


@pytest.mark.parametrize("first_bad", range(1, 8))
def test_the_effect_of_the_answer_is_that_of_two_neighbours(first_bad: int) -> None:
    levels = {f"v{number}": 0.9 if number >= first_bad else 1.0 for number in range(8)}
    asked: list[Question] = []
    answer = bisect(list(levels), level_of(list(levels)), truth(levels, asked))
    assert answer.first_bad == f"v{first_bad}"
    assert answer.versions[answer.good] == f"v{first_bad - 1}"
    assert answer.effect is not None
    assert answer.effect.effect_percent == pytest.approx(-10.0, abs=1.0)
    low, high = answer.effect.interval_percent or (0.0, 0.0)
    assert low < -10.0 < high < 0.0
    assert len(asked) <= 4
    assert {question.level for question in asked} == {0.0125}
    assert not answer.is_part


def test_several_changes_are_reported_and_a_real_one_is_found() -> None:
    levels = dict(zip("abcdefgh", (1.0, 1.0, 0.97, 0.97, 0.97, 0.9, 0.9, 0.9), strict=True))
    answer = bisect(list(levels), LEVEL, truth(levels, []))
    assert answer.first_bad == "f"
    assert answer.between == ("d",)
    assert answer.is_part
    gradual = {name: 0.98**number for number, name in enumerate("abcde")}
    found = bisect(list(gradual), LEVEL, truth(gradual, []))
    assert found.is_part
    assert found.effect is not None
    assert found.effect.effect_percent == pytest.approx(-2.0, abs=0.5)


def test_equal_ends_are_nothing_to_bisect() -> None:
    asked: list[Question] = []
    answer = bisect("abcd", LEVEL, truth(dict.fromkeys("abcd", 1.0), asked))
    assert (answer.first_bad, list(answer.possible), len(asked)) == (None, [], 1)


def test_a_recorded_step_has_the_effects_of_its_run(tmp_path: Path) -> None:
    question = Question("a", None, "b", LEVEL)
    run = make(tmp_path, Making(blocks=12, connections=(2,), stop=Stop(max_blocks=12)))
    step = conclude(question, run)
    record = step.record(question.record("results/x"))
    assert (record.candidate, record.outcome, record.run) == (None, "like-bad", "results/x")
    assert recall(question, record, run) == step
    # What was recorded remains, although another version may decide otherwise.
    other = record.model_copy(update={"outcome": "cannot-tell", "reason": "disturbed"})
    again = recall(question, other, run)
    assert (again.outcome, again.reason, again.effects) == (Outcome.CANNOT_TELL, "disturbed", step.effects)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.toml"
    path.write_text(FILE + TEMPLATE)
    return path


def ends(good: str = "14", bad: str = "18", over: Over | None = None, **options: str) -> Ends:
    repository, build = Path(options.get("repository", ".")), options.get("build")
    return Ends(good, bad, over, options.get("candidates"), repository, build, "1m")


def test_the_experiment_of_a_step_has_its_variants_and_stops_when_the_step_can(file: Path) -> None:
    document = read_document(file, None, ["load.connections=[4]"])
    versions = choose_versions(document, ends(candidates="16"), file.parent)
    assert versions.names == ["14", "16", "18"]
    tables = [
        documents.with_server(documents.fill(document["variant"][0], name), version=name) for name in "ab"
    ]
    made = documents.step_document(document, tables, "oltp_read_only", 30)
    of = documents.read_step(made, file)
    assert of.name == "file-bisect"
    assert [(one.name, one.server.version) for one in of.variants] == [("a", "a"), ("b", "b")]
    assert [one.title for one in of.workloads] == ["oltp_read_only"]
    assert of.load.connections == (4,)
    assert of.design.stop is not None
    assert of.design.stop.max_blocks == 30
    assert not of.design.identical_copy
    assert of.design.max_loss_percent is None
    assert (of.design.error_rate, of.design.delta_percent) == ("family-wise", None)
    assert of.design.metrics == ("throughput",)
    assert document["experiment"]["name"] == "file"


def test_variants_of_the_file_are_the_candidates_if_it_has_both_ends(file: Path) -> None:
    file.write_text(FILE + "".join(f'[[variant]]\nname = "{name}"\n' for name in ("14", "15", "16", "18")))
    document = read_document(file, None, [])
    assert choose_versions(document, ends(), file.parent).names == ["14", "15", "16", "18"]
    assert choose_versions(document, ends("18", "15"), file.parent).names == ["18", "16", "15"]
    assert choose_versions(document, ends(over="versions", candidates="a"), file.parent).over == "versions"
    with pytest.raises(Problem, match="no such variant"):
        choose_versions(document, ends(bad="19", over="variants"), file.parent)


def test_versions_between_two_are_of_one_source_and_in_their_direction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DBDYNO_SERVERS", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    there = versions_between("postgresql", "13", "17")
    assert [one.version.split(".")[0] for one in there] == ["13", "14", "15", "16", "17"]
    assert len({one.source for one in there}) == 1
    assert versions_between("postgresql", "17", "13") == there[::-1]
    assert [one.version[:5] for one in versions_between("mariadb", "10.11", "11.4")] == ["10.11", "11.4."]
    with pytest.raises(Problem, match="no source of servers has both postgresql 8 and 18"):
        versions_between("postgresql", "8", "18")


def test_the_ends_are_of_the_source_of_the_versions_between_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path
) -> None:
    monkeypatch.setenv("DBDYNO_SERVERS", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    first = versions_between("postgresql", "14", "18")
    # A newer 18 of another source, and the same one.
    others = [replace(first[-1], version=version, source="pypi") for version in ("18.99", first[-1].version)]
    for release in (*first, *others):
        (tmp_path / release.name / "server").mkdir(parents=True)
        (tmp_path / release.name / "release.json").write_text(json.dumps(asdict(release)))
    versions = choose_versions(read_document(file, None, []), ends(), tmp_path)
    assert versions.names == [one.version for one in first]
    for release in (first[0], first[-1]):
        server = versions.variant(release.version)["server"]
        assert server["version"] == release.version
        assert server["basedir"] == str(tmp_path / release.name / "server")
    with pytest.raises(Problem, match=r"--good 18 and --bad 18\.\d+ are both 18"):
        choose_versions(read_document(file, None, []), ends("18", first[-1].version), tmp_path)


@pytest.mark.parametrize(
    ("variant", "options", "words"),
    [
        (TEMPLATE, ends("14", "14"), "both 14"),
        (TEMPLATE, ends(build="make"), "--build has no effect"),
        (TEMPLATE, ends(over="variants", candidates="a"), "--candidates has no effect"),
        (TEMPLATE, ends(candidates="16,16"), "twice"),
        (TEMPLATE, ends(over="commits"), "the same for every commit"),
        (TEMPLATE.replace("postgresql", "{build}"), ends(over="commits"), "no command builds"),
        (TEMPLATE, ends(over="commits", build="'"), "No closing quotation"),
        (TEMPLATE + TEMPLATE.replace("template", "b"), ends(), "none of them is named 14"),
        (
            TEMPLATE.replace('product = "postgresql"', 'kind = "remote", url = "mysql://a@b/c"'),
            ends(candidates="16"),
            "does not choose the version",
        ),
    ],
)
def test_options_that_cannot_work_are_refused(file: Path, variant: str, options: Ends, words: str) -> None:
    file.write_text(FILE + variant)
    document = read_document(file, None, [])
    with pytest.raises(Problem, match=words):
        choose_versions(document, options, file.parent)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Five commits of a file; the third one does not build. A tag names the first one."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        author = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
        subprocess.run(["git", *author, "-C", str(folder), *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    (folder / "install").write_text('#!/bin/sh\ncp value "$DBDYNO_BUILD/value" || exit 7\n')
    (folder / "install").chmod(0o755)
    for number in range(5):
        (folder / "value").unlink(missing_ok=True)
        if number != 2:
            (folder / "value").write_text(str(number))
        git("add", "--all")
        git("commit", "--quiet", "--message", f"change {number}")
    git("tag", "v0", "HEAD~4")
    return folder


def test_commits_are_listed_and_built_outside_the_repository(repository: Path, tmp_path: Path) -> None:
    listed = commits.list_commits(repository, "v0", "HEAD")
    assert [commits.subject(repository, one) for one in listed] == [f"change {number}" for number in range(5)]
    how = commits.Build(("./install",), 20.0)
    builds = tmp_path / "builds"
    assert (commits.build(repository, listed[1], how, builds) / "value").read_text() == "1"
    (builds / listed[1] / "value").write_text("kept")
    assert (commits.build(repository, listed[1], how, builds) / "value").read_text() == "kept"
    assert (commits.build(repository, listed[4], how, builds) / "value").read_text() == "4"
    with pytest.raises(commits.BuildProblem, match=f"{listed[2]} does not build"):
        commits.build(repository, listed[2], how, builds)
    assert "value" in (builds / f"{listed[2]}.log").read_text()
    with pytest.raises(commits.BuildProblem, match=r"took longer than"):
        commits.build(repository, listed[3], commits.Build(("sleep", "20"), 0.1), builds)
    status = subprocess.run(
        ["git", "-C", str(repository), "worktree", "list"], check=True, capture_output=True, text=True
    )
    assert len(status.stdout.splitlines()) == 1


def test_a_commit_is_built_again_after_another_command_has_failed(repository: Path, tmp_path: Path) -> None:
    commit = commits.list_commits(repository, "v0", "HEAD")[1]
    how, builds = commits.Build(("./install",), 20.0), tmp_path / "builds"
    commits.build(repository, commit, how, builds)
    with pytest.raises(commits.BuildProblem):
        commits.build(repository, commit, commits.Build(("false",), 20.0), builds)
    assert (commits.build(repository, commit, how, builds) / "value").read_text() == "1"


def test_a_folder_of_the_repository_names_it(repository: Path, tmp_path: Path) -> None:
    (repository / "storage").mkdir()
    commit = commits.list_commits(repository / "storage", "v0", "HEAD")[1]
    how = commits.Build(("./install",), 20.0)
    assert (
        commits.build(repository / "storage", commit, how, tmp_path / "builds") / "value"
    ).read_text() == "1"


def test_the_ends_are_built_while_no_other_dbdyno_measures(
    repository: Path, tmp_path: Path, file: Path
) -> None:
    lock, status = Path(os.environ["XDG_RUNTIME_DIR"]) / "dbdyno" / "measuring", tmp_path / "status"
    script = tmp_path / "build"
    script.write_text(f"#!/bin/sh\nflock --nonblock {lock} true\necho $? > {status}\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(commits.BuildProblem):
        bisect_command(
            file,
            "v0",
            "HEAD",
            "commits",
            repository=repository,
            build=str(script),
            results=tmp_path / "results",
        )
    # Another process cannot lock it.
    assert status.read_text() == "1\n"


@pytest.mark.parametrize("failing", ["a", "b"])
def test_only_a_candidate_is_skipped_if_a_variant_cannot_run_its_load(
    file: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise CannotRunProblem(failing, f"{failing} cannot run this load", "")

    monkeypatch.setattr("dbdyno.commands.bisection.run_comparison", fail)
    file.write_text(FILE + "".join(f'[[variant]]\nname = "{name}"\n' for name in "abc"))
    document = read_document(file, None, [])
    versions = choose_versions(document, ends("a", "c"), file.parent)
    command = Bisection(
        document,
        "oltp_read_only",
        versions,
        file,
        file.parent / "results" / "file-bisect",
        max_blocks=60,
        resume=False,
        quiet=True,
        as_json=False,
    )
    question = Question("a", "b", "c", LEVEL, towards_bad=-1)
    if failing == "b":
        assert command.measure(question) == Step.skip("b cannot run this load")
        return
    with pytest.raises(CannotRunProblem, match="a cannot run this load"):
        command.measure(question)


def test_a_commit_that_is_not_before_the_other_is_refused(repository: Path, tmp_path: Path) -> None:
    for good, bad, words in (
        ("HEAD", "v0", "not among the first parents"),
        ("v0", "v0", "not among the first parents"),
        ("v9", "HEAD", "has no commit v9"),
    ):
        with pytest.raises(Problem, match=words):
            commits.list_commits(repository, good, bad)
    with pytest.raises(Problem, match="is not a Git repository"):
        commits.list_commits(tmp_path, "a", "b")


def test_the_placeholders_of_a_commit_are_replaced(repository: Path, file: Path) -> None:
    file.write_text(
        FILE + '[[variant]]\nname = "x"\nserver = { config = "{build}/value", arguments = ["{candidate}"] }\n'
    )
    document = read_document(file, None, [])
    options = ends("v0", "HEAD", "commits", repository=str(repository), build="./install")
    versions = choose_versions(document, options, file.parent / "builds")
    name = versions.names[1]
    assert versions.variant(name) == {
        "name": name,
        "server": {"config": str(file.parent / "builds" / name / "value"), "arguments": [name]},
    }
    assert versions.title(name) == f"{name} (change 1)"


def record(answer_steps: list[tuple[Question, Step]], names: list[str]) -> BisectionRecord:
    steps = [step.record(question.record()) for question, step in answer_steps]
    return BisectionRecord(
        experiment="f", hash="", over="versions", versions=names, workload="w", metric="throughput",
        confidence=0.99, steps=steps,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("levels", "broken", "words"),
    [
        (
            (1.0, 1.0, 0.9, 0.9),
            "",
            ["c is the first version that is slower: throughput -", " against b; 2 steps, "],
        ),
        ((1.0, 1.0, 1.1, 1.1), "", ["c is the first version that is faster: throughput +"]),
        ((1.0, 1.0, 1.0, 1.0), "", ["Nothing to bisect: d does not significantly differ from a: throughput"]),
        (
            (1.0, 1.0, 0.9, 0.9),
            "c",
            ["Undecided: the first version that is slower is one of c and d (c was skipped); "],
        ),
        (
            (1.0, 0.96, 0.9, 0.9),
            "",
            ["b is between good and bad, so another version changes the throughput too"],
        ),
    ],
)
def test_the_result_is_one_sentence(
    file: Path, levels: tuple[float, ...], broken: str, words: list[str]
) -> None:
    names = ["a", "b", "c", "d"]
    asked: list[tuple[Question, Step]] = []
    measure_all = truth(dict(zip(names, levels, strict=True)), [])

    def measure(question: Question) -> Step:
        step = Step.skip("it does not build") if question.candidate == broken else measure_all(question)
        asked.append((question, step))
        return step

    answer = bisect(names, LEVEL, measure)
    options = ends("a", "d", candidates="b,c")
    versions = choose_versions(read_document(file, None, []), options, file.parent)
    sentence = result_sentence(answer, versions, record(asked, names))
    for text in words:
        assert text in sentence
    is_found = answer.first_bad is not None
    assert sentence.endswith("the chance that this is the wrong version is at most 5 %.") == is_found


def test_simulated_bisections_of_equal_versions_find_nothing_and_of_others_the_right_one() -> None:
    noise = simulated.resampled
    assert all(one.first_bad is None for one in simulated.repeat([0.0] * 10, noise, 10, seed=1))
    found = simulated.repeat(simulated.SIXTH, noise, 10, seed=2)
    assert sum(one.first_bad == "v6" for one in found) >= 8


def test_a_mistake_is_one_error(file: Path) -> None:
    from dbdyno.commands import app

    run = CliRunner().invoke
    assert run(app(["bisect"]), ["bisect", str(file), "--good", "14"]).exit_code == 2
    words = ["--good", "14", "--bad", "18", "--candidates", "15,16,17", "--max-blocks", "8"]
    refused = run(app(["bisect"]), ["bisect", str(file), *words, "--results", str(file.parent)])
    assert "no step can be decided before 9 blocks" in str(refused.exception)
    document = read_document(file, None, [])
    with pytest.raises(Problem, match="there is no such workload"):
        documents.choose_workload(document, "oltp_writeonly")
    with pytest.raises(Problem, match=r"\[factor\]"):
        documents.require_suitable({**document, "factor": [{}]})
