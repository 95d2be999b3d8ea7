"""P15: the design can carry the sentence that will be drawn from it."""

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

    Catches what all five seeds share: each point was run once, all of one arm before all of the other, so
    drift, cache state and luck cannot be told from the factor. Seed 000 names the thread pool and changes
    the version (both arms have the pool, and about twenty defaults differ); seed 004 has one run per arm
    and no A/A.

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
            "the points run in the order of the list in every block: what the first ones leave behind "
            'always meets the later ones. Write order = "random" under [design].',
            order="given",
        )
    if len(experiment.variants) == 1:
        yield _warn(
            f"there is one variant, {experiment.variants[0].name}: nothing is compared, and no verdict can "
            "follow. Add a second [[variant]].",
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
            "every variant runs once, and whatever drifts in between looks like a difference"
            if blocks == 1
            else f"the smallest p-value is 2/2^{blocks} = {100 * 2 / 2**blocks:.2g} %"
        )
        among = "" if sentences == 1 else f" for each of {sentences} verdict sentences"
        yield _warn(
            f"{blocks} block{'' if blocks == 1 else 's'} cannot give a verdict: {single}, and a word needs "
            f"{share}{among}. Write blocks = {needed} or more under [design].",
            blocks=blocks,
            blocks_needed=needed,
            sentences=sentences,
        )
    elif blocks % variants:
        yield Finding(
            code="P15",
            level="note",
            text=f"{blocks} blocks are no multiple of {variants} variants: the order cannot be balanced "
            "exactly, so that some variants run first more often than others. Write blocks = "
            f"{blocks + variants - blocks % variants} under [design].",
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
            text=f"places are not exchanged because data are kept (state = {state}): each variant keeps its "
            "directory, port and socket, and what they change counts as the variant's. Write state = "
            '"restore" under [design] to exchange them from block to block.',
            evidence={"state": state, "variants": started},
        )


def _identical(baseline: Variant, variant: Variant) -> Finding:
    return Finding(
        code="P15",
        level="note",
        text=f"{variant.name} and {baseline.name} are identical: an A/A experiment. It measures noise only.",
        evidence={"baseline": baseline.name, "differing": []},
        subject=variant.name,
    )


def _differences(baseline: Variant, variant: Variant, *, factorial: bool) -> Iterator[Finding]:
    differences = differing(baseline, variant)
    if len(differences) > 1 and not factorial:
        yield _warn(
            f"{variant.name} differs from {baseline.name} in {len(differences)} things "
            f"({', '.join(differences)}): a difference found belongs to all of them together. Change one at "
            "a time, or add variants in between.",
            subject=variant.name,
            baseline=baseline.name,
            differing=differences,
        )


def _warn(text: str, subject: str = "", **evidence: object) -> Finding:
    return Finding(code="P15", level="warn", text=text, evidence=evidence, subject=subject)


CHECK = Check("P15", "Design audit", frozenset({Moment.DESIGN}), find)
