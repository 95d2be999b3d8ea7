"""P15: the design supports a conclusion."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.family import differing, family_size, is_identical
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.finding import Finding
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import blocks_needed


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Too few blocks, no interleaving, more than one difference between variants, or none at all.

    Catches what all five seeds share: each point was run once, all of one variant before all of the other,
    so that drift, cache state and chance look like the factor. Seed 000 names the thread pool and changes
    the version (both variants have the pool, and about twenty defaults differ); seed 004 has one run per
    variant and no A/A.

    Rule: a verdict sentence needs 2 / 2^blocks <= 0.05 / K, where K sentences share the chance of a false
    word (all comparisons of a run, or all main effects and interactions): 6 blocks for one, 7 for three, 8
    for six. Blocks that are no multiple of the variants cannot be balanced exactly. Points in a given order
    always meet what earlier ones left. One variant is no comparison. More than one declared difference
    between a variant and the baseline is a confounded design, unless the variants are all combinations of
    declared factors, whose effects the judge takes apart. These are warnings. Identical variants are an
    A/A experiment, which measures the noise floor: a note.
    """
    assert moment is Moment.DESIGN, "the registry asks at DESIGN only"
    experiment = context.experiment
    yield from _blocks(experiment)
    if experiment.design.order == "given" and len(experiment.load.points()) > 1:
        yield _warn(
            "the points run in the same order in every block: late points always run after early ones.",
            'Set order = "random" in [design].',
            order="given",
        )
    if len(experiment.variants) == 1:
        yield _warn(
            f"there is one variant, {experiment.variants[0].name}: nothing is compared, so no verdict.",
            "Add a second [[variant]].",
            variants=[experiment.variants[0].name],
        )
    yield from _places(experiment)
    baseline = experiment.variants[0]
    for variant in experiment.variants[1:]:
        if is_identical(experiment, variant):
            yield _identical(baseline, variant)
        else:
            yield from _differences(baseline, variant, factorial=bool(experiment.factors))


def _blocks(experiment: Experiment) -> Iterator[Finding]:
    if len(experiment.variants) == 1:
        return
    blocks, sentences, variants = (
        experiment.design.blocks,
        family_size(experiment),
        len(experiment.variants),
    )
    needed = blocks_needed(ALPHA / sentences)
    if blocks < needed:
        share = f"{100 * ALPHA / sentences:.2g} %"
        single = (
            "every variant runs once, so that drift looks like a difference"
            if blocks == 1
            else f"the smallest p-value is 2/2^{blocks} = {100 * 2 / 2**blocks:.2g} %"
        )
        among = "" if sentences == 1 else f" for each of {sentences} verdict sentences"
        yield _warn(
            f"{blocks} block{'' if blocks == 1 else 's'} cannot give a verdict: {single}; a verdict needs "
            f"{share}{among}.",
            f"Set blocks = {needed} or more in [design].",
            blocks=blocks,
            blocks_needed=needed,
            sentences=sentences,
        )
    elif blocks % variants:
        yield Finding(
            code="P15",
            level="note",
            text=f"{blocks} blocks are no multiple of {variants} variants: the order cannot be balanced "
            "exactly, so that some variants run first more often than others.",
            fix=f"Set blocks = {blocks + variants - blocks % variants} in [design].",
            evidence={"blocks": blocks, "variants": variants},
        )


def _places(experiment: Experiment) -> Iterator[Finding]:
    """Servers that keep their data keep their directory, port and socket too."""
    started = [variant.name for variant in experiment.variants if variant.server.started]
    state = experiment.design.state
    if len(started) > 1 and state != "restore":
        yield Finding(
            code="P15",
            level="note",
            text=f"each variant keeps its directory, port and socket because state = {state} keeps data, "
            "so that their effects count as the variant's.",
            fix='Set state = "restore" in [design] to exchange them from block to block.',
            evidence={"state": state, "variants": started},
        )


def _identical(baseline: Variant, variant: Variant) -> Finding:
    return Finding(
        code="P15",
        level="note",
        text=f"{variant.name} and {baseline.name} are identical: an A/A test, which measures noise only.",
        evidence={"baseline": baseline.name, "differing": []},
        subject=variant.name,
    )


def _differences(baseline: Variant, variant: Variant, *, factorial: bool) -> Iterator[Finding]:
    differences = differing(baseline, variant)
    if len(differences) > 1 and not factorial:
        yield _warn(
            f"{variant.name} differs from {baseline.name} in {len(differences)} things "
            f"({', '.join(differences)}): an effect cannot be attributed to one of them.",
            "Change one at a time, or add variants in between.",
            subject=variant.name,
            baseline=baseline.name,
            differing=differences,
        )


def _warn(text: str, fix: str, subject: str = "", **evidence: object) -> Finding:
    return Finding(code="P15", level="warn", text=text, evidence=evidence, subject=subject, fix=fix)


CHECK = Check("P15", "Design audit", frozenset({Moment.DESIGN}), find)
