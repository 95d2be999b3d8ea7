"""A bisection in progress, and the versions that it searches.

Each step is a run like those of `compare`, with the last good version, a candidate and the first bad version
as variants. The record of the bisection is written after each step.

The versions come from the file, from the versions of the product, or from the commits of a repository.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import typer
from rich.console import Console

from dbdyno.binary import EngineProblem
from dbdyno.commands.option_document import as_toml
from dbdyno.design.planning import choose_pairing
from dbdyno.experiment import bisection as documents
from dbdyno.experiment.base import parse_duration_s
from dbdyno.experiment.bisection import BUILD, CANDIDATE, Document, has_placeholder
from dbdyno.experiment.metrics import HIGHER_IS_BETTER, metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import ORDER_SEEDS
from dbdyno.fleet.fleet_engine import open_engine
from dbdyno.problem import ExitCode, Problem
from dbdyno.result_text import blocks_count
from dbdyno.run.affinity import assign_cpus, require_cpus
from dbdyno.run.compare import compare as run_comparison
from dbdyno.run.engine import Engine, LimitProblem
from dbdyno.run.progress import BlockEnded, Listener, Progress
from dbdyno.run.repeating import CannotRunProblem
from dbdyno.run.stopping import Limits
from dbdyno.runs.bisection import (
    Answer,
    Question,
    Step,
    conclude,
    decider,
    level_of,
    recall,
    steps_of,
)
from dbdyno.say.wording import effect_text, join_words, relation
from dbdyno.servers import commits
from dbdyno.servers.server import MachineProblem
from dbdyno.servers.sources.installed import install_missing, versions_between
from dbdyno.servers.usage import environment
from dbdyno.store import Run, StoreProblem, files
from dbdyno.store.listing import list_runs
from dbdyno.store.several_runs import BisectionRecord, StepRecord, new_record_path, newest_record
from dbdyno.terminal import result
from dbdyno.terminal.console import SafeConsole, print_text, result_console
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import announce
from dbdyno.terminal.progress import show_progress
from dbdyno.verdict import judge


class _StepStopped(Problem):
    """A check stopped a step, for a reason that is not the candidate's."""


# Problems that no candidate has caused.
_OF_NO_CANDIDATE = (EngineProblem, LimitProblem, MachineProblem, StoreProblem, _StepStopped)


class Bisection:
    """One call of the command."""

    def __init__(
        self,
        document: Document,
        workload: str,
        versions: Versions,
        file: Path,
        folder: Path,
        *,
        max_blocks: int,
        resume: bool,
        quiet: bool,
        as_json: bool,
    ) -> None:
        self._document, self._workload, self._versions = document, workload, versions
        self._file, self._folder, self._max_blocks = file, folder, max_blocks
        self._resumes, self._is_quiet, self._as_json = resume, quiet, as_json
        self._console = SafeConsole(stderr=True, highlight=False, quiet=quiet)
        self._asked = 0
        # Version -> its table [[variant]].
        self._tables: dict[str, Document] = {}
        self._path, self.record = self._open_record()

    def measure(self, question: Question) -> Step:
        """Run blocks until the question has its answer. Raises Problem."""
        number, self._asked = self._asked, self._asked + 1
        recorded = self.record.steps[number] if number < len(self.record.steps) else None
        if recorded is not None and recorded.outcome is not None:
            step = self._recall(question, recorded)
        else:
            _announce(self._console, question, number, self._versions)
            step = self._measure(question, recorded.run if recorded else None)
            self._write(number, step.record(self.record.steps[number]))
        if not (self._is_quiet or self._as_json):
            _show_step(question, number, step, self.record)
        return step

    def finish(self, answer: Answer) -> None:
        """Store and print the result."""
        sentence = result_sentence(answer, self._versions, self.record)
        possible = [answer.versions[number] for number in answer.possible]
        update = {"first_bad": answer.first_bad, "possible": possible, "sentence": sentence}
        self.record = self.record.model_copy(update=update)
        self.record.write(self._path)
        if self._as_json:
            print(json.dumps(self.record.model_dump(mode="json"), indent=1, ensure_ascii=False), flush=True)
        else:
            _show_result(sentence)
        print_text(self._console, f"record: {self._path}")

    def _open_record(self) -> tuple[Path, BisectionRecord]:
        names = self._versions.names
        # The tables of a file are checked together; those of versions and commits have yet to be made.
        end_names = names if self._versions.over == "variants" else (names[0], names[-1])
        tables = [self._table(name) for name in end_names]
        document = documents.step_document(self._document, tables, self._workload, self._max_blocks)
        experiment = documents.read_step(document, self._file)
        record = BisectionRecord(
            experiment=str(self._file),
            hash=self._hash(document),
            over=self._versions.over,
            versions=names,
            workload=self._workload,
            metric=experiment.metrics[0],
            confidence=1.0 - level_of(names),
        )
        if not self._resumes:
            return new_record_path(self._folder), record
        path = newest_record(self._folder)
        stored = BisectionRecord.read(path) if path else None
        if path is None or stored is None:
            raise StoreProblem(f"there is no bisection in {self._folder} to continue", "Leave out --resume")
        if stored.hash != record.hash:
            raise StoreProblem(
                f"{path} is the record of another bisection: of another file, or with other options",
                "Use its file and options, or leave out --resume to start a new bisection",
            )
        return path, stored

    def _hash(self, document: Document) -> str:
        parts = [document, self._versions.over, self._versions.names]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def _table(self, name: str) -> Document:
        if name not in self._tables:
            self._tables[name] = self._versions.variant(name)
        return self._tables[name]

    def _recall(self, question: Question, recorded: StepRecord) -> Step:
        """The step that an earlier call has concluded. Raises StoreProblem."""
        if recorded.outcome == "skipped":
            return Step.skip(recorded.reason or "")
        return recall(question, recorded, Run.open(self._folder / Path(str(recorded.run)).name))

    def _measure(self, question: Question, stored_run: str | None) -> Step:
        """The answer from a run: the one that an interrupted step has left, or a new one."""
        number = self._asked - 1
        try:
            tables = [self._table(name) for name in question.versions]
            document = documents.step_document(self._document, tables, self._workload, self._max_blocks)
            experiment = assign_cpus(documents.read_step(document, self._file))
            require_cpus(experiment)
            run = self._open_run(experiment, document, stored_run)
            self._write(number, question.record(str(run.path)))
            return self._run(question, run, is_first=number == 0)
        except Problem as problem:
            is_of_end = isinstance(problem, CannotRunProblem) and problem.variant != question.candidate
            if question.candidate is None or is_of_end or isinstance(problem, _OF_NO_CANDIDATE):
                raise
            # The two ends have run before, so the candidate is the reason: it does not build, or not start.
            begun = self.record.steps[number:]
            # A run without a trial was removed.
            has_run = bool(begun) and begun[0].run is not None and Path(begun[0].run).is_dir()
            self._write(number, begun[0] if has_run else question.record())
            return Step.skip(problem.text)

    def _open_run(self, experiment: Experiment, document: Document, stored_run: str | None) -> Run:
        newest = next(iter(list_runs(self._folder.parent, experiment.name)), None)
        if stored_run is not None and str(newest) == stored_run:
            run = Run.resume(self._folder.parent, experiment)
            run.use_overrides(experiment.override)
            return run
        experiment = choose_pairing(experiment).with_order_seed(secrets.randbelow(ORDER_SEEDS))
        facts = environment(Engine().version())
        return Run.create(self._folder.parent, experiment, as_toml(document).encode(), None, facts)

    def _run(self, question: Question, run: Run, *, is_first: bool) -> Step:
        experiment = run.experiment()
        if is_first:
            result.describe(self._console, experiment, None)
        limits = Limits(decide=decider(question))
        try:
            with (
                interruptible("stopping the servers"),
                show_progress(self._console, experiment) as listen,
                open_engine(experiment) as engine,
            ):
                conclusion = run_comparison(experiment, run, _without_hint(listen), engine, limits)
        except KeyboardInterrupt:
            run.discard_if_empty()
            arguments = [*sys.argv[1:]] if self._resumes else [*sys.argv[1:], "--resume"]
            print("dbdyno: interrupted; finished trials are kept", file=sys.stderr)
            print(f"  Continue with: dbdyno {shlex.join(arguments)}", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Problem:
            if not run.discard_if_empty():
                with contextlib.suppress(Problem):
                    judge(run)
            raise
        finally:
            run.release()
        with files.store_errors(run.path):
            judge(run)
        if conclusion.stops:
            stop = conclusion.stops[0]
            if question.candidate is None or stop.subject != question.candidate:
                raise _StepStopped(stop.summary, stop.fix, ExitCode.NOT_COMPARABLE)
            return Step.skip(stop.summary)
        return conclude(question, run)

    def _write(self, number: int, step: StepRecord) -> None:
        steps = [*self.record.steps[:number], step]
        self.record = self.record.model_copy(update={"steps": steps})
        self.record.write(self._path)


def _without_hint(listen: Listener) -> Listener:
    """A listener that does not say how a decided run gets more blocks: the bisection needs no more."""

    def tell(value: Progress) -> None:
        if isinstance(value, BlockEnded) and value.why == "decided":
            value = replace(value, why=None)
        listen(value)

    return tell


def _announce(console: Console, question: Question, number: int, versions: Versions) -> None:
    """Say on standard error what a step asks."""
    if question.candidate is None:
        steps = steps_of(versions.names)
        text = f"Do {question.good} and {question.bad} differ? If so, at most {steps} steps follow."
    else:
        text = f"Step {number}: is {question.candidate} like "
        text += f"{question.good} or like {question.bad}?"
    print_text(console, text, "bold")


def _show_step(question: Question, number: int, step: Step, record: BisectionRecord) -> None:
    """Print the result of a step, and its run."""
    run = record.steps[number].run
    where = f"; {run}" if run else ""
    what = "good and bad" if question.candidate is None else f"step {number}"
    print_text(result_console(), f"{what}: {_step_text(question, step, record.metric)}{where}", indent=2)
    sys.stdout.flush()


def _step_text(question: Question, step: Step, metric: str) -> str:
    effects = ", ".join(
        f"{effect_text(metric, effect)} against {against}" for (_, against), effect in step.effects.items()
    )
    name = question.candidate or question.bad
    measured = f"{effects}; {blocks_count(step.blocks)}"
    reason = f" ({step.reason})" if step.reason else ""
    match step.outcome.value:
        case "skipped":
            return f"{name} is skipped: {step.reason}"
        case "cannot-tell":
            return f"{name} cannot be distinguished from {_others(question)}{reason}: {measured}"
        case "between":
            return f"{name} is between {question.good} and {question.bad}: {measured}"
        case "like-bad" if question.candidate is None:
            return f"{question.good} and {name} differ: {measured}"
        case outcome:
            like = question.good if outcome == "like-good" else question.bad
            return f"{name} is like {like}: {measured}"


def _others(question: Question) -> str:
    return question.good if question.candidate is None else f"{question.good} and {question.bad}"


def _show_result(sentence: str) -> None:
    """Print the result."""
    print_text(result_console(), sentence, "bold")
    sys.stdout.flush()


def result_sentence(answer: Answer, versions: Versions, record: BisectionRecord) -> str:
    """The result in a sentence."""
    whole, noun, metric = answer.whole, versions.noun, record.metric
    good, bad = versions.names[0], versions.names[-1]
    blocks = sum(step.blocks for step in record.steps)
    if whole is None or not answer.possible:
        estimate = f": {effect_text(metric, whole)}" if whole else ""
        reason = f" ({answer.premise.reason})" if answer.premise.reason else ""
        return (
            f"Nothing to bisect: {bad} does not significantly differ from {good}{estimate}; "
            f"{blocks_count(blocks)}"
            f"{reason}."
        )
    clause = _clause(metric, whole.effect_percent)
    steps = sum(step.outcome != "skipped" for step in record.steps[1:])
    cost = f"{steps} step{'' if steps == 1 else 's'}, {blocks_count(blocks)}"
    first = answer.first_bad
    if first is None:
        names = join_words([versions.title(versions.names[number]) for number in answer.possible])
        return f"Undecided: the first {noun} that {clause} is one of {names}{_why(answer, record)}; {cost}."
    parts = [cost, *_more(answer, versions, metric)]
    if answer.effect:
        parts.insert(0, f"{effect_text(metric, answer.effect)} against {versions.names[answer.good]}")
    parts.append(f"the chance that this is the wrong {noun} is at most 5 %.")
    return f"{versions.title(first)} is the first {noun} that {clause}: {'; '.join(parts)}"


def _clause(metric: str, percent: float) -> str:
    """The direction of the change, as in "is slower"."""
    is_better = (percent > 0.0) == (metric in HIGHER_IS_BETTER)
    return relation(metric, "", "", faster=is_better).strip().removesuffix(" than")


def _why(answer: Answer, record: BisectionRecord) -> str:
    """Why more than one version is possible."""
    last = record.steps[-1]
    reasons = [f"{name} was skipped" for name in answer.skipped]
    if last.outcome == "cannot-tell":
        reason = last.reason or f"in {blocks_count(last.blocks)}"
        reasons.append(f"{last.candidate} cannot be distinguished from {last.good} and {last.bad} ({reason})")
    return f" ({'; '.join(reasons)})" if reasons else ""


def _more(answer: Answer, versions: Versions, metric: str) -> Iterator[str]:
    """What says that the found change is not the only one."""
    if answer.between:
        names = join_words(answer.between)
        verb = "is" if len(answer.between) == 1 else "are"
        further_change = f"another {versions.noun} changes the {metric_text(metric)} too"
        yield f"{names} {verb} between good and bad, so {further_change}"
    elif answer.whole is not None and answer.is_part:
        good, bad = versions.names[0], versions.names[-1]
        change = effect_text(metric, answer.whole)
        yield f"{bad} has {change} against {good}, so another {versions.noun} changes it too"


@dataclass(frozen=True)
class Ends:
    """The options that choose the versions, as the user typed them."""

    good: str
    bad: str
    over: str | None
    candidates: str | None
    repository: Path
    build: str | None
    build_timeout: str


class Versions(ABC):
    """The versions in order, with the two ends."""

    over: Literal["variants", "versions", "commits"]
    # A version in the sentences.
    noun = "version"

    def __init__(self, names: list[str]) -> None:
        self.names = names

    @abstractmethod
    def variant(self, name: str) -> Document:
        """The table [[variant]] of a version. Builds or installs its server. Raises Problem."""

    def title(self, name: str) -> str:
        """The version in the result."""
        return name


def choose_versions(document: Document, ends: Ends, builds: Path) -> Versions:
    """The versions of the options; `builds` is the folder for built commits. Raises Problem."""
    names = documents.variant_names(document)
    has_both = ends.good in names and ends.bad in names
    apart = has_both and abs(names.index(ends.good) - names.index(ends.bad)) > 1
    over = ends.over or ("variants" if apart else "versions")
    if ends.good == ends.bad:
        raise Problem(f"--good and --bad are both {ends.good}", "Name two different ones")
    if ends.candidates is not None and over != "versions":
        raise Problem(f"--candidates has no effect with --over {over}", "Leave out one of them")
    if ends.build is not None and over != "commits":
        raise Problem(f"--build has no effect with --over {over}", "Add --over commits")
    if over == "variants":
        return _Variants(document, ends)
    template = documents.find_template(document, ends.good)
    return _Releases(template, ends) if over == "versions" else _Commits(template, ends, builds)


class _Variants(Versions):
    over, noun = "variants", "variant"

    def __init__(self, document: Document, ends: Ends) -> None:
        listed = documents.variant_names(document)
        for option, name in (("--good", ends.good), ("--bad", ends.bad)):
            if name not in listed:
                raise Problem(
                    f"{option} {name}: the file has no such variant; it has {', '.join(listed)}",
                    "Name one of them, or choose --over versions",
                )
        first, last = listed.index(ends.good), listed.index(ends.bad)
        chosen = listed[first : last + 1] if first < last else listed[last : first + 1][::-1]
        super().__init__(chosen)
        self._tables = {entry["name"]: entry for entry in document["variant"]}

    def variant(self, name: str) -> Document:
        """See `Versions`."""
        return dict(self._tables[name])


class _Releases(Versions):
    over = "versions"

    def __init__(self, template: Document, ends: Ends) -> None:
        self._template = template
        self._server: Any = template.get("server", {})
        self._is_filled = has_placeholder(template, CANDIDATE)
        if not self._is_filled and self._server.get("kind", "local") != "local":
            raise Problem(
                f"server.version does not choose the version of a server of kind {self._server['kind']}",
                f"Write {CANDIDATE} in the variant where the version belongs, as in image = "
                f'"mariadb:{CANDIDATE}"',
            )
        product = self._server.get("product", "mariadb")
        # Version -> its source, if dbdyno has chosen the versions.
        self._sources: dict[str, str] = {}
        if ends.candidates is not None:
            between = [entry.strip() for entry in ends.candidates.split(",") if entry.strip()]
            names = [ends.good, *between, ends.bad]
        else:
            releases = versions_between(product, ends.good, ends.bad)
            names = [release.version for release in releases]
            self._sources = {release.version: release.source for release in releases}
        if len(names) < 2:
            raise Problem(
                f"--good {ends.good} and --bad {ends.bad} are both {names[0]}", "Name two different ones"
            )
        if len(set(names)) < len(names):
            raise Problem(f"a version is there twice: {', '.join(names)}", "Name each version once")
        super().__init__(names)
        self._product = product

    def variant(self, name: str) -> Document:
        """See `Versions`."""
        filled = documents.fill(self._template, name)
        if self._is_filled:
            return filled
        installed = install_missing(self._product, name, self._sources.get(name), announce)
        # Several sources may have this version.
        folder = {} if installed is None else {"basedir": str(installed.programs)}
        return documents.with_server(filled, version=name, **folder)


class _Commits(Versions):
    over, noun = "commits", "commit"

    def __init__(self, template: Document, ends: Ends, builds: Path) -> None:
        self._template, self._builds = template, builds
        self._repository = ends.repository
        self._how = None if ends.build is None else _parse_build(ends.build, ends.build_timeout)
        server: Any = template.get("server", {})
        kind = server.get("kind", "local")
        if has_placeholder(template, BUILD) and self._how is None:
            raise Problem(
                f"the variant contains {BUILD}, but no command builds a commit",
                "Add --build COMMAND",
            )
        if self._how is not None and kind == "local" and not has_placeholder(template, BUILD):
            self._template = documents.with_server(template, basedir=BUILD)
        elif self._how is None and kind != "command" and not has_placeholder(template, CANDIDATE):
            raise Problem(
                "the variant is the same for every commit",
                f"Add --build COMMAND; or write {CANDIDATE} where the commit belongs; or use a server of "
                "kind command, whose commands get the commit in DBDYNO_VARIANT",
            )
        super().__init__(commits.list_commits(ends.repository, ends.good, ends.bad))

    def variant(self, name: str) -> Document:
        """See `Versions`."""
        folder = ""
        if self._how is not None:
            announce(f"building {self.title(name)}")
            folder = str(commits.build(self._repository, name, self._how, self._builds))
        return documents.fill(self._template, name, folder)

    def title(self, name: str) -> str:
        """See `Versions`."""
        subject = commits.subject(self._repository, name)
        return f"{name} ({subject})" if subject else name


def _parse_build(command: str, timeout: str) -> commits.Build:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise Problem(f"--build {command}: {error}", "Close the quotation") from error
    if not argv:
        raise Problem("--build has no command", 'Write --build "make install", for example')
    try:
        seconds = parse_duration_s(timeout)
    except ValueError as error:
        raise Problem(f"--build-timeout {timeout}: {error}") from error
    return commits.Build(argv, seconds)
