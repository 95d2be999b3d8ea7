"""P15: the design must support a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.decide.decision import verdict_test
from dbdyno.decide.second_lines import BEYOND_MIN
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.differences import is_identical, list_differences
from dbdyno.experiment.family import allows_false_discoveries, error_shares, family_size
from dbdyno.experiment.metrics import CPU
from dbdyno.experiment.model import Experiment, Stop, Variant
from dbdyno.experiment.slices import load_s
from dbdyno.finding import Finding
from dbdyno.stats.paired import ALPHA
from dbdyno.text import compose, compose_count, join, mark


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds too few blocks, points in a fixed order, and variants with several differences or none.

    Catches designs in which drift, cache state or chance look like an effect of the variant. Published
    benchmarks often run each point once, and all points of one variant before those of the other. One
    benchmark attributed to the thread pool what another version with about twenty changed defaults caused.

    Rule: the smallest possible p-value, 2 / 2^blocks, must not exceed 0.05 / K, where K is the number of
    compared variants, whose workloads are tested jointly, or of all main effects and interactions: 6 blocks
    for K = 1, 7 for three, 8 for six. With `design.stop`, `max_blocks` and `max_time` must allow for the
    first look that can give a verdict (8 blocks for K = 1, 9 for two). Points in a fixed order run in the
    state that earlier points left. A promised percentile of latency needs at least 30 transactions beyond it
    in each trial. With a single variant nothing is compared. Several declared differences between a variant
    and the baseline are confounded, unless the variants are all combinations of declared factors, whose
    effects the judge separates. CPU time per transaction needs servers whose processes dbdyno sees: without,
    it is a stop if it is the metric of the verdict. Each of these is a warning. Identical variants are a
    note: an A/A test, which measures the noise floor.
    """
    assert moment is Moment.DESIGN, "P15 is registered for DESIGN only"
    experiment = context.experiment
    yield from _block_findings(experiment)
    if experiment.design.order == "given" and len(experiment.load.points()) > 1:
        yield _warn(
            compose(
                "the points run in the same order in every block: late points always run after early ones"
            ),
            compose('Set order = "random" in [design]'),
            order="given",
        )
    if len(experiment.variants) == 1:
        yield _warn(
            compose(
                "there is one variant, {name}: nothing is compared, so no verdict",
                name=experiment.variants[0].name,
            ),
            compose("Add a second [[variant]]"),
            variants=[experiment.variants[0].name],
        )
    yield from _promise_findings(experiment)
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
        yield _warn(
            compose_count(
                blocks,
                "{number} block cannot give a verdict: {single}; a verdict needs {share}{among}",
                "{number} blocks cannot give a verdict: {single}; a verdict needs {share}{among}",
                single=single,
                share=share,
                among=among,
            ),
            compose("Set blocks = {needed} or more in [design]", needed=needed),
            blocks=blocks,
            blocks_needed=needed,
            sentences=sentences,
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
        yield Finding(
            code="P15",
            level="note",
            text=compose(
                "{blocks} blocks cannot give a verdict on the further metrics: {sentences} share an "
                "error rate of {value:g} %",
                blocks=blocks,
                sentences=sentences,
                value=100 * ALPHA,
            ),
            fix=compose(
                "Set {key} = {needed} or more in [design], or name fewer metrics", key=key, needed=needed
            ),
            evidence={"blocks": blocks, "blocks_needed": needed, "sentences": sentences},
        )


def _stop_findings(experiment: Experiment, stop: Stop, sentences: int, needed: int) -> Iterator[Finding]:
    """Warnings if the limits of design.stop end the run before the first look that can give a verdict."""
    of_sentences = (
        "" if sentences == 1 else compose(" with {sentences} verdict sentences", sentences=sentences)
    )
    if stop.max_blocks < needed:
        yield _warn(
            compose(
                "max_blocks = {max_blocks} cannot give a verdict: the first one is possible after "
                "{needed} blocks{of_sentences}",
                max_blocks=stop.max_blocks,
                needed=needed,
                of_sentences=of_sentences,
            ),
            compose("Set max_blocks = {needed} or more in [design] stop", needed=needed),
            blocks=stop.max_blocks,
            blocks_needed=needed,
            sentences=sentences,
        )
    warmup_s = experiment.load.warmup_s or 0.0
    of_variant_s = sum(
        sum(load_s(experiment, workload.title, point.connections, warmup_s))
        for workload in experiment.workloads
        for point in experiment.load.points()
    )
    least_s = needed * len(experiment.variants) * of_variant_s
    if least_s > stop.max_time_s:
        yield _warn(
            compose(
                "max_time = {format_duration} allows for no verdict: it needs {needed} "
                "blocks{of_sentences}, whose load takes {format_duration_2}",
                format_duration=format_duration(stop.max_time_s),
                needed=needed,
                of_sentences=of_sentences,
                format_duration_2=format_duration(least_s),
            ),
            compose("Set a longer max_time in [design] stop, or fewer loads or shorter trials in [load]"),
            max_time_s=stop.max_time_s,
            least_s=least_s,
            blocks_needed=needed,
        )


def _promise_findings(experiment: Experiment) -> Iterator[Finding]:
    """A warning if a promised percentile depends on a few transactions. Unknown rates are checked when the
    probe has found them.
    """
    load = experiment.load
    if load.promise is None or not load.has_rates:
        return
    lowest = min(float(point.rate or 0.0) for point in load.points())
    beyond = lowest * load.duration_s * load.promise.share_beyond
    if beyond < BEYOND_MIN:
        needed_s = math.ceil(BEYOND_MIN / lowest / load.promise.share_beyond)
        yield _warn(
            compose(
                "{percentile} of a trial at {lowest:g} transactions/s depends on {beyond:.1f} "
                "transactions, so capacities are noisy, and a few queued ones break the promise",
                percentile=load.promise.percentile,
                lowest=lowest,
                beyond=beyond,
            ),
            compose(
                'Set duration = "{needed_s}s" in [load], or promise a lower percentile', needed_s=needed_s
            ),
            rate=lowest,
            beyond=beyond,
        )


def _slot_findings(experiment: Experiment) -> Iterator[Finding]:
    """A note if servers keep their data, and therefore also their directory, port and socket."""
    started = [variant.name for variant in experiment.variants if variant.server.is_private]
    state = experiment.design.state
    if len(started) > 1 and state != "restore":
        yield Finding(
            code="P15",
            level="note",
            text=compose(
                "each variant keeps its directory, port and socket because state = {state} keeps data, "
                "so their effects are attributed to the variant",
                state=state,
            ),
            fix=compose('Set state = "restore" in [design] to rotate them from block to block'),
            evidence={"state": state, "variants": started},
        )


def _cpu_findings(experiment: Experiment) -> Iterator[Finding]:
    """Variants whose CPU time dbdyno cannot read, if it is a metric; a stop if it is that of the verdict."""
    if CPU not in experiment.metrics:
        return
    for variant in experiment.variants:
        if not variant.server.is_private and not variant.server.sample:
            yield Finding(
                code="P15",
                level="stop" if experiment.metrics[0] == CPU else "warn",
                text=compose(
                    "cpu_per_transaction has no figure for {name}: dbdyno does not see the processes of a "
                    "server that it did not start",
                    name=variant.name,
                ),
                fix=compose(
                    "Leave cpu_per_transaction out of metrics in [design], or let dbdyno start the server"
                ),
                evidence={"metric": CPU},
                subject=variant.name,
            )


def _identical_finding(baseline: Variant, variant: Variant) -> Finding:
    return Finding(
        code="P15",
        level="note",
        text=compose(
            "{name} and {name_2} are identical: an A/A test, which measures noise only",
            name=variant.name,
            name_2=baseline.name,
        ),
        evidence={"baseline": baseline.name, "differing": []},
        subject=variant.name,
    )


def _difference_findings(experiment: Experiment, variant: Variant) -> Iterator[Finding]:
    baseline, differences = experiment.variants[0], list_differences(experiment, variant)
    if len(differences) == 2 and "url" in differences and not experiment.factors:
        setting = next(name for name in differences if name != "url")
        yield _warn(
            compose(
                "{name} and {name_2} are different servers (url) with different values of {setting}: any "
                "other difference between the servers looks like an effect of the setting",
                name=variant.name,
                name_2=baseline.name,
                setting=setting,
            ),
            compose(
                "Exchange the values of the two servers and run again: an effect of the setting changes "
                "its sign"
            ),
            subject=variant.name,
            baseline=baseline.name,
            differing=differences,
        )
    elif len(differences) > 1 and not experiment.factors:
        yield _warn(
            compose(
                "{name} differs from {name_2} in {number} settings ({listed}): an effect cannot be "
                "attributed to one of them",
                name=variant.name,
                name_2=baseline.name,
                number=len(differences),
                listed=join(", ", differences),
            ),
            compose("Change one setting per variant, or add variants in between"),
            subject=variant.name,
            baseline=baseline.name,
            differing=differences,
        )


def _warn(text: str, fix: str, subject: str = "", **evidence: object) -> Finding:
    return Finding(code="P15", level="warn", text=text, evidence=evidence, subject=subject, fix=fix)


CHECK = Check(
    "P15",
    "The design supports a verdict",
    frozenset({Moment.DESIGN}),
    find,
    caveat=mark("the design is weak"),
)
