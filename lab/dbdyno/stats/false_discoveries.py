"""The false discovery rate: the expected share of wrong ones among all effects with a direction.

The procedure of Benjamini & Yekutieli (2001, Ann. Stat. 29:1165) limits it whatever the dependence of the
tests, which share the trials of the baseline: of m p-values the R smallest are significant, for the largest
R for which the R-th smallest is at most q R / (m (1 + 1/2 + ... + 1/m)). An interval at that level excludes
zero if and only if its effect is significant, and of such intervals too an expected share of at most q
misses the true value (Benjamini & Yekutieli 2005, J. Am. Stat. Assoc. 100:71).
"""

from __future__ import annotations

from collections.abc import Sequence

from scipy import stats


def discoveries(p_values: Sequence[float], rate: float) -> int:
    """How many of the p-values are significant at this false discovery rate q."""
    if not p_values:
        return 0
    return int((stats.false_discovery_control(p_values, method="by") <= rate).sum())
