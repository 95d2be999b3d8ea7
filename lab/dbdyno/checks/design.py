"""Checks of the experiment's design: whether it supports a verdict (P15), its loads (P16), the duration of
its trials (P18), and passwords in its file (P20).
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator

from dbdyno.checks.host import is_local
from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.decide.decision import verdict_test
from dbdyno.decide.secondary_metrics import BEYOND_MIN
from dbdyno.experiment.base import format_duration, parse_cpus
from dbdyno.experiment.differences import is_identical, list_differences
from dbdyno.experiment.family import allows_false_discoveries, error_shares, family_size
from dbdyno.experiment.metrics import CPU
from dbdyno.experiment.model import Experiment, Stop, Variant, Workload
from dbdyno.experiment.quantities import number
from dbdyno.experiment.slices import load_s, only_reads
from dbdyno.finding import Finding
from dbdyno.result_text import blocks_count, connections_count, cpus_count
from dbdyno.servers.server import Description
from dbdyno.stats.paired import ALPHA
from dbdyno.text import compose, compose_count, join, mark

# Variables that give the time from one such work to the next, of which one may exceed a trial.
_PERIODS = ("checkpoint_timeout", "autovacuum_naptime")

# A password in an argument of a command or in its environment, but not the name of a variable that has it.
_PASSWORD = re.compile(r"(?:--password|MYSQL_PWD|PGPASSWORD)[= ](?![$\s])\S", re.IGNORECASE)


@check(
    "P15",
    "The design supports a verdict",
    Moment.DESIGN,
    of_comparison=True,
    caveat=mark("the design is weak"),
)
def support_of_verdict(experiment: Experiment) -> Iterator[Finding]:
    """Finds too few blocks, points in a fixed order, and variants with several differences or none.

    Catches designs in which drift, cache state or chance look like an effect of the variant. Published
    benchmarks often run each point once, and all points of one variant before those of the other. One
    benchmark attributed to the thread pool what another version with about twenty changed defaults caused.

    Rule: the smallest possible p-value, 2 / 2^blocks, must not exceed 0.05 / K, where K is the number of
    compared variants, whose workloads are tested jointly, or of all main effects and interactions: 6 blocks
    for K = 1, 7 for three, 8 for six. With `design.stop`, `max_blocks` and `max_time` must allow for the
    first look that can give a verdict (8 blocks for K = 1, 9 for two). Points in a fixed order run in the
    state that earlier points left. The percentile of a latency objective needs at least 30 transactions
    beyond it in each trial. With a single variant nothing is compared, but with a latency objective its
    capacity is known. Several declared differences between a variant and the baseline are confounded, unless
    the variants are all combinations of declared factors, whose effects the judge separates. CPU time per
    transaction needs servers whose processes dbdyno sees: without, it is a stop if it is the metric of the
    verdict. Each of these is a warning. Identical variants
    are a note: an A/A test, which measures the noise floor.
    """
    yield from _block_findings(experiment)
    if experiment.design.order == "given" and len(experiment.load.points()) > 1:
        yield make_finding(
            "warn",
            compose(
                "the points run in the same order in every block: late points always run after early ones"
            ),
            {"order": "given"},
            compose('Set order = "random" in [design]'),
        )
    if len(experiment.variants) == 1 and experiment.load.latency_objective is None:
        yield make_finding(
            "warn",
            compose(
                "there is one variant, {name}: nothing is compared, so no verdict",
                name=experiment.variants[0].name,
            ),
            {"variants": [experiment.variants[0].name]},
            compose("Add a second [[variant]]"),
        )
    yield from _objective_findings(experiment)
    yield from _slot_findings(experiment)
    yield from _cpu_findings(experiment)
    baseline = experiment.variants[0]
    for variant in experiment.variants[1:]:
        if is_identical(experiment, variant):
            yield _identical_finding(baseline, variant)
        else:
            yield from _difference_findings(experiment, variant)


def _block_findings(experiment: Experiment) -> Iterator[Finding]:
    if len(experiment.variants) == 1:
        return
    blocks, sentences = experiment.design.blocks, _sharing(experiment)
    stop, needed = experiment.design.stop, verdict_test(experiment).blocks_needed
    if needed <= blocks:
        yield from _further_findings(experiment)
    if stop is not None:
        yield from _stop_findings(experiment, stop, sentences, needed)
        return
    if blocks < needed:
        share = f"{100 * ALPHA / error_shares(experiment):.2g} %"
        single = (
            compose("every variant runs once, so drift looks like a difference")
            if blocks == 1
            else compose(
                "the smallest p-value is 2/2^{blocks} = {value:.2g} %",
                blocks=blocks,
                value=100 * 2 / 2**blocks,
            )
        )
        among = ""
        if allows_false_discoveries(experiment):
            among = compose(" for the first of {sentences} verdict sentences", sentences=sentences)
        elif sentences > 1 and len(experiment.workloads) > 1:
            among = compose(" for each of {sentences} variants", sentences=sentences)
        elif sentences > 1:
            among = compose(" for each of {sentences} verdict sentences", sentences=sentences)
        yield make_finding(
            "warn",
            compose_count(
                blocks,
                "{number} block cannot give a verdict: {single}; a verdict needs {share}{among}",
                "{number} blocks cannot give a verdict: {single}; a verdict needs {share}{among}",
                single=single,
                share=share,
                among=among,
            ),
            {"blocks": blocks, "blocks_needed": needed, "sentences": sentences},
            compose("Set blocks = {needed} or more in [design]", needed=needed),
        )


def _sharing(experiment: Experiment) -> int:
    """Number of variants or verdict sentences that share the error rate."""
    if allows_false_discoveries(experiment):
        return family_size(experiment)
    return int(error_shares(experiment))


def _further_findings(experiment: Experiment) -> Iterator[Finding]:
    """A note if the blocks are enough for the first metric, but not for the further ones."""
    blocks, names = experiment.design.blocks, experiment.metrics[1:]
    needed = verdict_test(experiment, names[0]).blocks_needed if names else 0
    if blocks < needed:
        sentences = _sharing(experiment) * len(names)
        key = "max_blocks" if experiment.design.stop else "blocks"
        yield make_finding(
            "note",
            compose(
                "{blocks} cannot give a verdict on the further metrics: {sentences} share an error rate of "
                "{value:g} %",
                blocks=blocks_count(blocks),
                sentences=sentences,
                value=100 * ALPHA,
            ),
            {"blocks": blocks, "blocks_needed": needed, "sentences": sentences},
            compose(
                "Set {key} = {needed} or more in [design], or name fewer metrics", key=key, needed=needed
            ),
        )


def _stop_findings(experiment: Experiment, stop: Stop, sentences: int, needed: int) -> Iterator[Finding]:
    """Warnings if the limits of design.stop end the run before the first look that can give a verdict."""
    of_sentences = (
        "" if sentences == 1 else compose(" with {sentences} verdict sentences", sentences=sentences)
    )
    if stop.max_blocks < needed:
        yield make_finding(
            "warn",
            compose(
                "max_blocks = {max_blocks} cannot give a verdict: the first one is possible after "
                "{needed} blocks{of_sentences}",
                max_blocks=stop.max_blocks,
                needed=needed,
                of_sentences=of_sentences,
            ),
            {"blocks": stop.max_blocks, "blocks_needed": needed, "sentences": sentences},
            compose("Set max_blocks = {needed} or more in [design] stop", needed=needed),
        )
    warmup_s = experiment.load.warmup_s or 0.0
    of_variant_s = sum(
        sum(load_s(experiment, workload.title, point.connections, warmup_s))
        for workload in experiment.workloads
        for point in experiment.load.points()
    )
    least_s = needed * len(experiment.variants) * of_variant_s
    if least_s > stop.max_time_s:
        yield make_finding(
            "warn",
            compose(
                "max_time = {format_duration} allows for no verdict: it needs {needed} "
                "blocks{of_sentences}, whose load takes {format_duration_2}",
                format_duration=format_duration(stop.max_time_s),
                needed=needed,
                of_sentences=of_sentences,
                format_duration_2=format_duration(least_s),
            ),
            {"max_time_s": stop.max_time_s, "least_s": least_s, "blocks_needed": needed},
            compose("Set a longer max_time in [design] stop, or fewer loads or shorter trials in [load]"),
        )


def _objective_findings(experiment: Experiment) -> Iterator[Finding]:
    """A warning if the percentile of the objective depends on a few transactions. Unknown rates are checked
    when the probe has found them.
    """
    load = experiment.load
    if load.latency_objective is None or not load.has_rates:
        return
    lowest = min(float(point.rate or 0.0) for point in load.points())
    beyond = lowest * load.duration_s * load.latency_objective.share_beyond
    if beyond < BEYOND_MIN:
        needed_s = math.ceil(BEYOND_MIN / lowest / load.latency_objective.share_beyond)
        yield make_finding(
            "warn",
            compose(
                "{percentile} of a trial at {lowest:g} transactions/s depends on {beyond:.1f} "
                "transactions, so capacities are noisy, and a few queued ones miss the latency objective",
                percentile=load.latency_objective.percentile,
                lowest=lowest,
                beyond=beyond,
            ),
            {"rate": lowest, "beyond": beyond},
            compose(
                'Set duration = "{needed_s}s" in [load], or name a lower percentile in latency_objective',
                needed_s=needed_s,
            ),
        )


def _slot_findings(experiment: Experiment) -> Iterator[Finding]:
    """A note if servers keep their data, and therefore also their directory, port and socket."""
    started = [variant.name for variant in experiment.variants if variant.server.is_private]
    state = experiment.design.state
    if len(started) > 1 and state != "restore":
        yield make_finding(
            "note",
            compose(
                "each variant keeps its directory, port and socket because state = {state} keeps data, "
                "so their effects are attributed to the variant",
                state=state,
            ),
            {"state": state, "variants": started},
            compose('Set state = "restore" in [design] to rotate them from block to block'),
        )


def _cpu_findings(experiment: Experiment) -> Iterator[Finding]:
    """Variants whose CPU time dbdyno cannot read, if it is a metric; a stop if it is that of the verdict."""
    if CPU not in experiment.metrics:
        return
    for variant in experiment.variants:
        if not variant.server.is_private and not variant.server.sample:
            yield make_finding(
                "stop" if experiment.metrics[0] == CPU else "warn",
                compose(
                    "cpu_per_transaction has no figure for {name}: dbdyno does not see the processes of a "
                    "server that it did not start",
                    name=variant.name,
                ),
                {"metric": CPU},
                compose(
                    "Leave cpu_per_transaction out of metrics in [design], or let dbdyno start the server"
                ),
                variant.name,
            )


def _identical_finding(baseline: Variant, variant: Variant) -> Finding:
    return make_finding(
        "note",
        compose(
            "{name} and {name_2} are identical: an A/A test, which measures noise only",
            name=variant.name,
            name_2=baseline.name,
        ),
        {"baseline": baseline.name, "differing": []},
        "",
        variant.name,
    )


def _difference_findings(experiment: Experiment, variant: Variant) -> Iterator[Finding]:
    baseline, differences = experiment.variants[0], list_differences(experiment, variant)
    if len(differences) == 2 and "url" in differences and not experiment.factors:
        setting = next(name for name in differences if name != "url")
        yield make_finding(
            "warn",
            compose(
                "{name} and {name_2} are different servers (url) with different values of {setting}: any "
                "other difference between the servers looks like an effect of the setting",
                name=variant.name,
                name_2=baseline.name,
                setting=setting,
            ),
            {"baseline": baseline.name, "differing": differences},
            compose(
                "Exchange the values of the two servers and run again: an effect of the setting changes "
                "its sign"
            ),
            variant.name,
        )
    elif len(differences) > 1 and not experiment.factors:
        yield make_finding(
            "warn",
            compose(
                "{name} differs from {name_2} in {number} settings ({listed}): an effect cannot be "
                "attributed to one of them",
                name=variant.name,
                name_2=baseline.name,
                number=len(differences),
                listed=join(", ", differences),
            ),
            {"baseline": baseline.name, "differing": differences},
            compose("Change one setting per variant, or add variants in between"),
            variant.name,
        )


@check("P16", "The loads lie on both sides of the number of CPUs", Moment.DESIGN)
def range_of_loads(experiment: Experiment) -> Iterator[Finding]:
    """Finds sweeps over connections that never leave one region of load.

    Catches a conclusion about scaling from overloaded servers only. A published benchmark had 10 to 40
    connections on a server with one CPU, so all its points were in overload.

    Rule: several loads in a closed loop must include one with at most as many connections as the server has
    CPUs, and one with more than twice as many; otherwise a note names the missing region. The CPUs are known
    of servers on this machine.
    """
    load = experiment.load
    connections = sorted({point.connections for point in load.points()})
    counts = {_usable_cpus(variant) for variant in experiment.variants if is_local(variant)}
    if load.is_open or len(connections) < 2 or not counts:
        return
    evidence = {"connections": connections, "cpus": sorted(counts)}
    if connections[0] > max(counts):
        yield make_finding(
            "note",
            compose(
                "the lowest load has {connections}, more than the server's {cpus}: no load shows it without "
                "a queue",
                connections=connections_count(connections[0]),
                cpus=cpus_count(max(counts)),
            ),
            evidence,
            compose("Add a load of {connections} or fewer", connections=connections_count(max(counts))),
        )
    if connections[-1] <= 2 * min(counts):
        yield make_finding(
            "note",
            compose(
                "the highest load has {connections}, at most two for each of the server's {cpus}: no load "
                "shows it overloaded",
                connections=connections_count(connections[-1]),
                cpus=cpus_count(min(counts)),
            ),
            evidence,
            compose("Add a load of more than {connections} connections", connections=2 * min(counts)),
        )


def _usable_cpus(variant: Variant) -> int:
    """The number of CPUs that a server on this machine may use."""
    declared = variant.server.cpus
    return len(parse_cpus(declared)) if declared else os.cpu_count() or 1


@check(
    "P18",
    "Trials are longer than the server's periods",
    Moment.READY,
    in_sweep=(Moment.READY,),
    at_first_start=True,
)
def duration_of_trials(context: Context, description: Description, workload: Workload) -> Iterator[Finding]:
    """Finds trials that are shorter than the periods of a server's background work.

    Catches a throughput of a server that postpones work until after the trial.

    Rule: if the workload may change rows, a trial with its warm-up must be longer than PostgreSQL's
    `checkpoint_timeout` and `autovacuum_naptime`; otherwise a note says that the trials do not contain this
    work. MySQL and MariaDB have no such periods: they write checkpoints as the redo log fills, which D07
    compares at the end of the trials.
    """
    if only_reads(workload):
        return
    trial_s = context.load.duration_s + context.load.warmup_allowance_s()
    periods = {
        name: float(value) / 1000.0
        for name in _PERIODS
        if (value := number(description.variables.get(name, ""))) is not None
    }
    longer = {name: period_s for name, period_s in periods.items() if trial_s < period_s}
    if not longer:
        return
    yield make_finding(
        "note",
        compose(
            "a trial of {workload} takes {trial}, less than {listed}: most trials contain no checkpoint or "
            "vacuum that time triggers, and their costs are not in the result",
            workload=workload.title,
            trial=format_duration(trial_s),
            listed=join(
                ", ",
                (
                    compose("{name} ({period})", name=name, period=format_duration(period_s))
                    for name, period_s in longer.items()
                ),
            ),
        ),
        {"trial_s": trial_s, "periods_s": longer},
        compose("Set a longer duration in [load] if the result must hold for hours of load"),
    )


@check(
    "P20",
    "Passwords are not readable by others",
    Moment.DESIGN,
    in_sweep=(Moment.DESIGN,),
    caveat="",
)
def readable_passwords(experiment: Experiment) -> Iterator[Finding]:
    """Finds passwords that other users can read.

    Catches a password that a published benchmark shows in its commands, and a file with a password that
    every user of the machine can read.

    Rule: a `password_file` must not be readable by the group or by others, and no command, argument or hook
    of the experiment may contain a password, because the experiment is stored with every run and other users
    can read the arguments of processes. Otherwise the finding is a warning, which does not quote the
    password. A URL with a password is an error of the experiment file.
    """
    for variant in experiment.variants:
        file = variant.server.password_file
        if file is None:
            continue
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            # The start of the server reports a file that is missing.
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield make_finding(
                "warn",
                compose(
                    "other users of this machine can read the password file {file} (mode {mode})",
                    file=repr(str(file)),
                    mode=f"{mode:04o}",
                ),
                {"file": str(file), "mode": f"{mode:04o}"},
                compose("Run chmod 600 {file}", file=str(file)),
                variant.name,
            )
    for key, text in _texts("", experiment.model_dump(mode="json")):
        if _PASSWORD.search(text):
            yield make_finding(
                "warn",
                compose(
                    "{key} contains a password, which is stored with every run and visible to other users of "
                    "this machine",
                    key=key,
                ),
                {"key": key},
                compose("Put it into a file that only you can read, or into an environment variable"),
            )


def _texts(key: str, value: object) -> Iterator[tuple[str, str]]:
    """The keys and texts of a document; the words of a list of texts as one text."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(f"{key}.{name}" if key else str(name), inner)
    elif isinstance(value, list) and not all(isinstance(entry, str) for entry in value):
        for number, inner in enumerate(value, start=1):
            yield from _texts(f"{key}[{number}]", inner)
    elif isinstance(value, list):
        yield key, " ".join(value)
    elif isinstance(value, str):
        yield key, value
