"""`dbdyno bisect FILE --good A --bad B`: finds the first version that differs.

Each step is a run like those of `compare`, with the last good version, a candidate and the first bad version
as variants. The record of the bisection is written after each step.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import typer

from dbdyno.binary import EngineProblem
from dbdyno.commands import bisect_output, comparison_output
from dbdyno.commands.bisect_versions import Ends, Versions, choose_versions
from dbdyno.commands.choices import Over
from dbdyno.commands.console import SafeConsole, print_text
from dbdyno.commands.interrupts import interruptible
from dbdyno.commands.option_document import as_toml
from dbdyno.commands.progress_output import show_progress
from dbdyno.commands.sharing import only_measurement
from dbdyno.experiment.bisection import (
    SUFFIX,
    Document,
    choose_workload,
    read_step,
    require_suitable,
    step_document,
    with_unequal_software,
)
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import ORDER_SEEDS
from dbdyno.fleet.fleet_engine import open_engine
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.affinity import assign_cpus, require_cpus
from dbdyno.run.compare import compare as run_comparison
from dbdyno.run.engine import Engine, LimitProblem
from dbdyno.run.environment import environment
from dbdyno.run.failures import CannotRunProblem
from dbdyno.run.pairing import choose_pairing
from dbdyno.run.progress import BlockEnded, Listener, Progress
from dbdyno.run.stopping import Limits
from dbdyno.runs.bisection import (
    Answer,
    Question,
    Step,
    blocks_needed,
    conclude,
    decider,
    level_of,
    recall,
)
from dbdyno.runs.bisection import bisect as search
from dbdyno.servers.server import MachineProblem
from dbdyno.store import Run, StoreProblem, files
from dbdyno.store.listing import list_runs
from dbdyno.store.several_runs import BisectionRecord, StepRecord, new_record_path, newest_record
from dbdyno.verdict import judge


class _StepStopped(Problem):
    """A check stopped a step, for a reason that is not the candidate's."""


# Problems that no candidate has caused.
_OF_NO_CANDIDATE = (EngineProblem, LimitProblem, MachineProblem, StoreProblem, _StepStopped)


@dataclass(frozen=True)
class Options:
    """The options of the command, without those that choose the versions."""

    file: Path
    workload: str | None
    max_blocks: int
    results: Path
    resume: bool
    share: bool
    quiet: bool
    as_json: bool


def bisect(document: Document, ends: Ends, options: Options) -> NoReturn:
    """Find the first version that differs, and print it; exits with 0 if it is found, else with 5."""
    require_suitable(document)
    workload = choose_workload(document, options.workload)
    folder = options.results / f"{document['experiment'].get('name', '')}{SUFFIX}"
    versions = choose_versions(document, ends, (folder / ".builds").absolute())
    if options.max_blocks < (needed := blocks_needed(versions.names)):
        raise Problem(
            f"--max-blocks {options.max_blocks}: no step can be decided before {needed} blocks, because the "
            f"tests of {len(versions.names) - 2} candidates share an error rate of 5 %",
            f"Write --max-blocks {needed} or more",
        )
    if versions.over is Over.COMMITS:
        document = with_unequal_software(document)
    with only_measurement(f"bisect {options.file}", share=options.share):
        # Builds or installs the two ends.
        command = _Bisection(document, workload, versions, options, folder)
        answer = search(versions.names, level_of(versions.names), command.measure)
        command.finish(answer)
    raise typer.Exit(ExitCode.UNDECIDED if answer.first_bad is None else ExitCode.DONE)


class _Bisection:
    """One call of the command."""

    def __init__(
        self, document: Document, workload: str, versions: Versions, options: Options, folder: Path
    ) -> None:
        self._document, self._workload, self._versions = document, workload, versions
        self._options, self._folder = options, folder
        self._console = SafeConsole(stderr=True, highlight=False, quiet=options.quiet)
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
            bisect_output.announce(self._console, question, number, self._versions)
            step = self._measure(question, recorded.run if recorded else None)
            self._write(number, step.record(self.record.steps[number]))
        if not (self._options.quiet or self._options.as_json):
            bisect_output.show_step(question, number, step, self.record)
        return step

    def finish(self, answer: Answer) -> None:
        """Store and print the result."""
        sentence = bisect_output.sentence(answer, self._versions, self.record)
        possible = [answer.versions[number] for number in answer.possible]
        update = {"first_bad": answer.first_bad, "possible": possible, "sentence": sentence}
        self.record = self.record.model_copy(update=update)
        self.record.write(self._path)
        if self._options.as_json:
            print(json.dumps(self.record.model_dump(mode="json"), indent=1, ensure_ascii=False), flush=True)
        else:
            bisect_output.show_result(sentence)
        print_text(self._console, f"record: {self._path}")

    def _open_record(self) -> tuple[Path, BisectionRecord]:
        names = self._versions.names
        # The tables of a file are checked together; those of versions and commits have yet to be made.
        known = names if self._versions.over is Over.VARIANTS else (names[0], names[-1])
        tables = [self._table(name) for name in known]
        document = step_document(self._document, tables, self._workload, self._options.max_blocks)
        experiment = read_step(document, self._options.file)
        record = BisectionRecord(
            experiment=str(self._options.file),
            hash=self._hash(document),
            over=self._versions.over.value,
            versions=names,
            workload=self._workload,
            metric=experiment.metrics[0],
            confidence=1.0 - level_of(names),
        )
        if not self._options.resume:
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
            document = step_document(self._document, tables, self._workload, self._options.max_blocks)
            experiment = assign_cpus(read_step(document, self._options.file))
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
        newest = next(iter(list_runs(self._options.results, experiment.name)), None)
        if stored_run is not None and str(newest) == stored_run:
            run = Run.resume(self._options.results, experiment)
            run.use_overrides(experiment.override)
            return run
        experiment = choose_pairing(experiment).with_order_seed(secrets.randbelow(ORDER_SEEDS))
        facts = environment(Engine().version())
        return Run.create(self._options.results, experiment, as_toml(document).encode(), None, facts)

    def _run(self, question: Question, run: Run, *, is_first: bool) -> Step:
        experiment = run.experiment()
        if is_first:
            comparison_output.describe(self._console, experiment, None)
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
            arguments = [*sys.argv[1:]] if self._options.resume else [*sys.argv[1:], "--resume"]
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
    """A listener that does not say how a run that is sure gets more blocks: the bisection needs no more."""

    def tell(value: Progress) -> None:
        if isinstance(value, BlockEnded) and value.why == "sure":
            value = replace(value, why=None)
        listen(value)

    return tell
