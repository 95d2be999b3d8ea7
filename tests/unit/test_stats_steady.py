"""The MSER-5 cut: by hand, and on series whose settling time is known."""

from __future__ import annotations

import numpy as np

from dbdyno.stats.steady import Cut, mser5


def test_a_constant_series_is_not_cut() -> None:
    assert mser5([7.0] * 100) == Cut(0, True)


def test_a_step_is_cut_where_it_is() -> None:
    # 20 batches; the first 4 stand apart, the others alternate, so any longer cut only loses data.
    assert mser5([0.0] * 20 + [10.0, 11.0] * 40) == Cut(20, True)


def test_the_batch_that_holds_the_step_goes_too() -> None:
    assert mser5([0.0] * 18 + [10.0, 11.0] * 41) == Cut(20, True)


def test_a_series_that_never_settles_says_so() -> None:
    cut = mser5([float(i) for i in range(100)])
    assert not cut.settled
    assert cut.observations == 50


def test_too_short_a_series_is_left_alone() -> None:
    assert mser5([1.0] * 49) == Cut(0, False)
    assert mser5([]) == Cut(0, False)


def test_it_equals_the_published_formula() -> None:
    """White 1997, eq. 2, written out: the sum of squared deviations over the squared number kept."""
    series = np.random.default_rng(4).normal(100, 5, 200) - 40 * np.exp(-np.arange(200) / 25)
    means = [float(np.mean(series[i : i + 5])) for i in range(0, 200, 5)]
    scores = []
    for drop in range(21):
        kept = means[drop:]
        centre = sum(kept) / len(kept)
        scores.append(sum((value - centre) ** 2 for value in kept) / len(kept) ** 2)
    assert mser5(list(series)).observations == 5 * scores.index(min(scores)) > 0


def test_an_exponential_warm_up_is_found() -> None:
    generator = np.random.default_rng(5)
    cuts = [
        mser5(
            list(1000 * (1 - 0.6 * np.exp(-np.arange(300) / 20)) + generator.normal(0, 30, 300))
        ).observations
        for _ in range(100)
    ]
    # After 3 time constants the bias is below the noise, after 8 there is none left.
    assert 50 <= float(np.median(cuts)) <= 120
