"""Which sentences may have a word: by hand, against Holm's procedure, and 5 % in simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.simulated_trials import experiment, measured

from dbdyno.decide.decision import compare_all
from dbdyno.experiment.schedule import Trial
from dbdyno.stats import family as module
from dbdyno.stats.family import ComparisonTests, SignificantEffects, decide

FALSE_WORDS = ("faster", "slower", "mixed")


def comparison(overall: float, *levels: float | None, blocks: int = 10) -> module.ComparisonTests:
    """The p-values of a comparison."""
    return module.ComparisonTests(overall, blocks, levels)


def one(overall: float, *levels: float | None, blocks: int = 10) -> SignificantEffects:
    """The words of a family of one comparison."""
    (found,) = decide([comparison(overall, *levels, blocks=blocks)])
    return found


class TestByHand:
    def test_one_comparison_of_one_load_has_all_of_the_level(self) -> None:
        assert one(0.05) == SignificantEffects(overall=True)
        assert one(0.0501) == SignificantEffects(overall=False)

    def test_the_effect_over_all_loads_has_four_fifths(self) -> None:
        assert one(0.04, 1.0, 1.0).overall
        assert not one(0.0401, 1.0, 1.0).overall

    def test_single_loads_have_the_rest_until_the_effect_over_all_has_its_word(self) -> None:
        assert one(0.0401, 0.0099, 0.0101) == SignificantEffects(overall=False, loads=[True, False])
        assert one(0.04, 0.0101, 0.05) == SignificantEffects(overall=True, loads=[True, True])
        assert one(0.04, 0.0501, None) == SignificantEffects(overall=True, loads=[False, False])

    def test_where_four_fifths_are_out_of_reach_the_effect_over_all_has_everything(self) -> None:
        # Three comparisons: 1/60 each. Of 7 blocks the smallest p-value is 1/64, and 4/5 of 1/60 is 1/75.
        seven = [comparison(1 / 64, 1.0, 1.0, blocks=7), *[comparison(1.0, 0.001, blocks=7)] * 2]
        assert [words.overall for words in decide(seven)] == [True, False, False]
        # Then nothing is left for the single loads of the others.
        assert [effects.loads for effects in decide(seven)[1:]] == [[False], [False]]
        # Of 8 blocks 1/128 is within reach of 1/75, and 1/300 is left.
        eight = [comparison(1 / 64, 1.0, 1.0, blocks=8), *[comparison(1.0, 0.001, blocks=8)] * 2]
        assert [words.overall for words in decide(eight)] == [False, False, False]
        assert [effects.loads for effects in decide(eight)[1:]] == [[True], [True]]

    def test_the_verdicts_have_four_fifths_where_that_can_be_reached(self) -> None:
        # 0.04/3 takes 8 blocks, 0.05/3 takes 7.
        assert [module.verdicts_share(3, blocks) for blocks in (7, 8, None)] == [1.0, 0.8, 0.8]

    def test_a_gate_shares_the_level_of_its_comparison_and_keeps_it_until_it_is_decided(self) -> None:
        first, second = comparison(0.001), comparison(0.04)
        assert decide([first, second])[1].overall
        gated = [replace(first, gate=0.03), replace(second, gate=0.04)]
        assert [(words.overall, words.gate) for words in decide(gated)] == [(True, False), (False, False)]
        gated = [replace(first, gate=0.02), replace(second, gate=0.04)]
        assert [(words.overall, words.gate) for words in decide(gated)] == [(True, True), (True, True)]
        # Single loads have their full level only if the gate is decided too.
        loads = comparison(0.001, 0.03)
        assert [decide([replace(loads, gate=gate)])[0].loads for gate in (0.2, 0.04)] == [[False], [True]]

    def test_a_comparison_whose_words_are_all_given_passes_its_share_on(self) -> None:
        second = comparison(0.04, 0.5, 0.03)
        passed = decide([comparison(0.001, 0.001, 0.025), second])
        assert passed[0] == SignificantEffects(overall=True, loads=[True, True])
        # 4/5 of 0.05; a load of its own is still tested at 0.025.
        assert passed[1] == SignificantEffects(overall=True, loads=[False, False])
        kept = decide([comparison(0.001, 0.001, 0.026), second])
        assert kept[0] == SignificantEffects(overall=True, loads=[True, False])
        assert kept[1] == SignificantEffects(overall=False, loads=[False, False])

    def test_single_loads_are_tested_at_the_share_alone(self) -> None:
        # 1/5 of 0.025 is 0.005, also where 0.05 has come to the effect over all loads.
        undecided = decide([comparison(0.001, 0.001), comparison(0.06, 0.006, 0.0049)])[1]
        assert undecided == SignificantEffects(overall=False, loads=[False, True])

    def test_a_load_without_a_result_keeps_the_share(self) -> None:
        assert not decide([comparison(0.001, 0.001, None), comparison(0.04, 0.5)])[1].overall

    def test_the_loads_of_a_group_are_one_joint_test(self) -> None:
        """They have the full level only if the effects over all loads are significant in every test."""
        first, second = (replace(comparison(0.03, p, 1.0), group="b") for p in (0.0099, 0.0101))
        assert [words.loads[0] for words in decide([first, second])] == [True, True]
        second = replace(second, p_value=0.0401)
        assert [words.loads[0] for words in decide([first, second])] == [True, False]

    def test_a_group_with_few_blocks_in_one_test_leaves_nothing_for_its_loads(self) -> None:
        # Five variants: 0.04/5 each. 4/5 of it takes 9 blocks, so the test with 8 has all of it.
        of_b = [replace(comparison(1.0, 0.0007, blocks=blocks), group="b") for blocks in (8, 9)]
        others = [comparison(1.0, 1.0)] * 4
        assert [words.loads for words in decide([*of_b, *others], 0.04)[:2]] == [[False], [False]]
        of_b[0] = replace(of_b[0], blocks=9)
        assert [words.loads for words in decide([*of_b, *others], 0.04)[:2]] == [[True], [True]]

    def test_an_empty_family(self) -> None:
        assert decide([]) == []


def closed_bonferroni(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Holm's procedure by its definition as a closed test: a hypothesis is rejected where Bonferroni rejects
    every set of hypotheses that holds it (Marcus, Peritz & Gabriel 1976, Biometrika 63:655).
    """
    everything = range(len(p_values))
    sets = [chosen for size in everything for chosen in itertools.combinations(everything, size + 1)]
    rejected = {chosen: min(p_values[i] for i in chosen) <= alpha / len(chosen) for chosen in sets}
    return [all(rejected[chosen] for chosen in sets if i in chosen) for i in everything]


@pytest.mark.parametrize("seed", range(30))
def test_with_one_load_it_is_holms_procedure(seed: int) -> None:
    random = np.random.default_rng(seed)
    given = 0
    for _ in range(20):
        p_values = (random.random(int(random.integers(1, 7))) ** 3 * 0.1).tolist()
        words = [found.overall for found in decide([comparison(p) for p in p_values])]
        assert words == closed_bonferroni(p_values, 0.05)
        given += sum(words)
    assert given > 0


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_file_does_not_matter(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(20):
        family = [
            comparison(float(random.random() ** 3 * 0.1), *(random.random(3) ** 3 * 0.1).tolist())
            for _ in range(4)
        ]
        words = decide(family)
        order = random.permutation(4)
        assert decide([family[i] for i in order]) == [words[i] for i in order]


@pytest.mark.parametrize("seed", range(20))
def test_a_smaller_p_value_takes_no_word_away(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(20):
        p_values = random.random((3, 3)) ** 3 * 0.1
        smaller = p_values * np.where(random.random((3, 3)) < 0.3, random.random((3, 3)), 1.0)
        before, after = (decide([comparison(*row) for row in rows.tolist()]) for rows in (p_values, smaller))
        for least, most in zip(before, after, strict=True):
            assert least.overall <= most.overall
            assert all(a <= b for a, b in zip(least.loads, most.loads, strict=True))


def noisy(random: np.random.Generator, slower: str, *, heavy: bool) -> Callable[[Trial], float]:
    """Throughputs of one experiment: drifting blocks, noise of 3 %, and variants that are 18 % slower."""
    blocks = random.normal(0.0, 0.05, 8)
    noise = 0.02 * random.standard_t(3, 96) if heavy else random.normal(0.0, 0.03, 96)

    def throughput(trial: Trial) -> float:
        effect = -0.2 if trial.variant in slower else 0.0
        return 1000.0 * math.exp(effect + blocks[trial.block] + noise[trial.index])

    return throughput


@pytest.mark.parametrize(
    ("slower", "heavy"),
    [
        pytest.param("", False, id="nothing differs"),
        pytest.param("", True, id="nothing differs, heavy tails"),
        pytest.param("b", False, id="one variant is slower and passes its share on"),
    ],
)
def test_the_chance_of_any_false_word_is_5_percent(slower: str, heavy: bool) -> None:
    """Four variants at three loads through the judge; a word at one load alone counts too."""
    of, count, false = experiment(variants="abcd", loads=3, blocks=8), 200, 0
    random = np.random.default_rng(5)
    for _ in range(count):
        comparisons = compare_all(measured(of, noisy(random, slower, heavy=heavy)), of, [])
        false += any(
            word in FALSE_WORDS
            for one in comparisons
            if one.variant not in slower
            for word in (one.verdict, *one.judged.load_verdicts)
        )
        assert all(one.verdict == "slower" for one in comparisons if one.variant in slower)
    assert false / count <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / count)


def test_a_comparison_whose_equivalence_is_open_keeps_its_budget() -> None:
    clear, other = ComparisonTests(0.001, 10), ComparisonTests(0.04, 10)
    assert [one.overall for one in decide([clear, other])] == [True, True]
    open_ = replace(clear, has_open_equivalence=True)
    assert [(one.overall, one.is_complete) for one in decide([open_, other])] == [
        (True, False),
        (False, False),
    ]
