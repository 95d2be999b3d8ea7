"""`dbdyno run`: measures one variant at several points, and prints a row of a table after each.

Standard output gets only the table; progress, findings and the run's folder go to standard error.

The options become the content of an experiment file, so that the same rules check them, and the run is stored
and reported like any other.
"""

from __future__ import annotations

import getpass
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

import typer

from dbdyno.checks import CHECKS
from dbdyno.checks.host import is_this_machine
from dbdyno.commands.option_document import as_toml, is_script, numbers, with_option_name, workload_table
from dbdyno.experiment import bundled, overrides
from dbdyno.experiment.errors import InputError, InvalidExperiment
from dbdyno.experiment.model import Experiment, OltpName
from dbdyno.experiment.promise import parse_abort_if
from dbdyno.experiment.reading import from_document, read
from dbdyno.experiment.schedule import ORDER_SEEDS
from dbdyno.finding import Finding
from dbdyno.fleet.fleet_engine import open_engine
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress
from dbdyno.run.affinity import require_cpus
from dbdyno.run.compare import compare
from dbdyno.run.coordinator import Conclusion
from dbdyno.run.machine_lock import only_measurement
from dbdyno.run.sweep import sweep
from dbdyno.servers.kinds.remote import RemoteServer, read_password
from dbdyno.servers.url import Target, parse_url
from dbdyno.servers.usage import environment
from dbdyno.store import Run, StoredTrial
from dbdyno.store.run import trial_folder
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import announce, print_message, print_problem
from dbdyno.terminal.tables import peak, sweep_header, sweep_row
from dbdyno.verdict import judge

# The finding "a trial failed" is not printed, because the row of the trial says so.
_TRIAL_FAILED = "R04"
# The name of the variant.
_VARIANT = "target"


def run(
    options: SweepOptions,
    password_file: Path | None,
    results: Path,
    profile: str | None,
    *,
    keep_data: bool,
    share: bool,
) -> NoReturn:
    """Benchmark the server of the options, or run the experiment file that is named instead of a workload."""
    path = Path(options.workload)
    is_file = path.suffix == ".toml" or (path.is_file() and path.suffix not in (".sql", ".lua"))
    if is_file and not options.target:
        _run_experiment(path, profile, list(options.assignments), results, share=share)
    _run_on_target(options, password_file, results, keep_data=keep_data, share=share)


def _run_on_target(
    options: SweepOptions, password_file: Path | None, results: Path, *, keep_data: bool, share: bool
) -> NoReturn:
    """Benchmark an existing server."""
    experiment, where, source = experiment_of(options)
    # Over tables that an earlier run has left, the transactions need other values than that run wrote.
    experiment = experiment.with_order_seed(secrets.randbelow(ORDER_SEEDS))
    require_cpus(experiment)
    prompt = f"Password of {where.user} on {where.host}: "
    secret = read_password(password_file, (lambda: getpass.getpass(prompt)) if sys.stdin.isatty() else None)
    measuring = only_measurement(f"dbdyno run {options.workload}", print_message, share=share)
    with open_engine(experiment) as engine, measuring, closing(RemoteServer(where, secret)) as server:
        # Start it before creating the run, so that an unreachable server leaves no empty run.
        server.start()
        for note in server.notes:
            announce(note)
        stored = Run.create(results, experiment, source.encode(), None, environment(engine.version()))
        with _handle_early_end(stored), interruptible("dropping the tables"):
            end = sweep(experiment, stored, server, _PointTable(stored).listen, engine, keep_data=keep_data)
    _conclude(stored, end)


def _run_experiment(
    path: Path, profile: str | None, assignments: list[str], results: Path, *, share: bool
) -> NoReturn:
    """Run an experiment of one variant on a server that dbdyno starts."""
    experiment = read(path, profile, assignments)
    if len(experiment.variants) > 1:
        names = ", ".join(variant.name for variant in experiment.variants)
        raise Problem(
            f"{path} has {len(experiment.variants)} variants ({names}), but dbdyno run measures only one",
            f"Compare them with dbdyno compare {path}",
        )
    require_cpus(experiment)
    with (
        open_engine(experiment) as engine,
        only_measurement(f"dbdyno run {path}", print_message, share=share),
    ):
        stored = Run.create(results, experiment, path.read_bytes(), profile, environment(engine.version()))
        with _handle_early_end(stored), interruptible("stopping the server"):
            conclusion = compare(experiment, stored, _PointTable(stored).listen, engine)
    _conclude(stored, conclusion)


@contextmanager
def _handle_early_end(stored: Run) -> Iterator[None]:
    """After an interruption or an error: remove an empty run, or print how many points are stored."""
    try:
        yield
    except KeyboardInterrupt:
        print("dbdyno: interrupted", file=sys.stderr)
        _print_stored_points(stored)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Problem:
        _print_stored_points(stored)
        raise


def _print_stored_points(stored: Run) -> None:
    done = sum(trial.is_done for trial in stored.trials())
    if not stored.discard_if_empty() and done:
        points = "1 finished point is" if done == 1 else f"{done} finished points are"
        print(f"{points} stored in {stored.path}", file=sys.stderr)


def _conclude(stored: Run, end: Conclusion) -> NoReturn:
    """Judge the run, print the findings and the folder, and exit."""
    is_stopped = bool(end.stops)
    if end.done + end.failed:
        printed = stored.findings()
        # The checks of results, such as the load generator's CPU use, run only now.
        verdict = judge(stored)
        if highest := peak(verdict):
            announce(highest)
        for finding in verdict.checks:
            if finding not in printed and finding.code != _TRIAL_FAILED:
                _print_finding(finding)
                is_stopped = is_stopped or finding.is_blocking
    announce(f"stored in {stored.path}")
    # A point that was asked for and has no result is a failure, however many others have one.
    if is_stopped or end.failed:
        points = f"{end.failed} point{'s' if end.failed > 1 else ''} failed"
        loads = dict.fromkeys(_load(trial) for trial in stored.trials() if not trial.is_done)
        text = f"{points} ({', '.join(loads)})" if end.failed else "aborted by a check"
        print_problem(Problem(text, "See the messages above"))
        raise typer.Exit(ExitCode.NOT_COMPARABLE)
    raise typer.Exit(ExitCode.DONE)


def _load(trial: StoredTrial) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in trial.meta["at"].items())


class _PointTable:
    """Prints a row on standard output as each point ends, and everything else on standard error."""

    def __init__(self, stored: Run) -> None:
        self._stored = stored
        self._has_header = False
        self._loading = progress.LoadingLines()

    def listen(self, value: progress.Progress) -> None:
        """Print a progress value."""
        match value:
            case progress.Step() | progress.ProblemOccurred():
                announce(value.text)
            case progress.Loading():
                if line := self._loading.next(value):
                    announce(f"  {line}")
            case progress.TrialEnded():
                self._print_row(value.trial.index)
            case progress.NewFindings():
                for finding in value.findings:
                    _print_finding(finding)
            case _:
                pass

    def _print_row(self, index: int) -> None:
        trial = StoredTrial(trial_folder(self._stored.path, index))
        if not self._has_header:
            self._has_header = True
            print(sweep_header(trial))
        # Flushed for users and scripts that read the table while it grows.
        print(sweep_row(trial), flush=True)


def _print_finding(finding: Finding) -> None:
    # A run of one variant compares nothing.
    if any(check.of_comparison for check in CHECKS if check.code == finding.code):
        return
    announce(f"{finding.level} {finding.summary}")
    if finding.override is not None:
        announce(f"  overridden: {finding.override}")


@dataclass(frozen=True)
class SweepOptions:
    """The options as the user typed them, not validated."""

    workload: str
    target: str
    connections: str
    rate: str | None
    time: str
    warmup: str
    tables: int | None
    table_size: int | None
    workers: str
    # key=value; a key without a dot is an option of the workload.
    assignments: Sequence[str]
    max_rate: float | None = None
    abort_if: str | None = None
    # Number of load generators; None: one, without a fleet.
    fleet: int | None = None


def experiment_of(options: SweepOptions) -> tuple[Experiment, Target, str]:
    """The experiment, the address of its server, and the text of an equivalent experiment file.

    Raises InvalidExperiment with all errors, which name the options instead of the keys.
    """
    errors: list[InputError] = []
    target = _parse_target(options.target, errors)
    document = _build_document(options, target, errors)
    section = "workload.options" if is_script(options.workload) else "workload"
    changes = [overrides.parse_assignment(_add_section(text, section)) for text in options.assignments]
    errors += [change for change in changes if isinstance(change, InputError)]
    errors += overrides.apply(document, [change for change in changes if not isinstance(change, InputError)])
    source = as_toml(document)
    try:
        checked = from_document(document, "dbdyno run", Path.cwd())
    except InvalidExperiment as invalid:
        known = {error.key for error in errors}
        errors += [
            error
            for error in (with_option_name(one, "WORKLOAD") for one in invalid.errors)
            if error.key not in known
        ]
        raise InvalidExperiment("dbdyno run", errors) from None
    if (count := len(checked.workloads)) > 1:
        fix = f"Name one of them; dbdyno compare --a URL --workload '{options.workload}' measures all"
        errors.append(InputError("WORKLOAD", options.workload, f"it selects {count} workloads", fix))
    if errors or target is None:
        raise InvalidExperiment("dbdyno run", errors)
    return checked, target, source


def _parse_target(url: str, errors: list[InputError]) -> Target | None:
    if not url:
        fix = "Write --target mysql://user@host:3306/database, or postgresql://"
        errors.append(InputError("--target", None, "this is missing", fix))
        return None
    try:
        return parse_url(url)
    except Problem as problem:
        # The URL itself is not repeated: it may hold a password.
        errors.append(InputError("--target", None, problem.text.removeprefix("--target: "), problem.fix))
        return None


def _build_document(options: SweepOptions, target: Target | None, errors: list[InputError]) -> dict[str, Any]:
    known = options.workload in (*get_args(OltpName), *bundled.names())
    local = target is not None and (
        target.unix_socket is not None or all(is_this_machine(host) for host, _ in target.hosts_and_ports())
    )
    # An absolute path, so that the stored experiment finds the file again.
    workload = workload_table(options.workload, options.tables, options.table_size, Path.absolute)
    title = options.workload if known else workload.get("label")
    load: dict[str, Any] = {
        "connections": numbers("--connections", options.connections, int, errors),
        "duration": options.time,
        "warmup": options.warmup,
        "transport": "unix" if target is not None and target.unix_socket is not None else "tcp",
    }
    if options.rate is not None:
        load["rate"] = numbers("--rate", options.rate, float, errors)
    if options.max_rate is not None:
        load["max_rate"] = options.max_rate
    if options.abort_if is not None:
        try:
            load["abort_if"] = parse_abort_if(options.abort_if)
        except ValueError as error:
            errors.append(InputError("--abort-if", options.abort_if, str(error)))
    fleet = {} if options.fleet is None else {"fleet": {"engines": options.fleet}}
    return {
        **fleet,
        "experiment": {"name": f"run-{title.replace('/', '-')}" if title else "run"},
        "workload": [workload],
        "load": load,
        "design": {"blocks": 1, "state": "preserve", "order": "given"},
        "client": {
            "workers": int(options.workers) if options.workers.isdecimal() else options.workers,
            # If client and server share CPUs, the client must not preempt the server at each reply.
            "scheduling": "batch" if local and options.rate is None else "normal",
        },
        "variant": [
            {"name": _VARIANT, "server": {"kind": "remote", "url": str(target) if target else "unknown"}}
        ],
        "override": {},
    }


def _add_section(text: str, section: str) -> str:
    """`point_selects=5` means an option of the workload; a key with a section stays unchanged."""
    key = text.partition("=")[0]
    return text if "." in key or "=" not in text else f"{section}.{text}"
