"""Statistics of samples: the median and the interval between ranks that holds it."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """(median, low, high): the interval between two ranks of the samples that holds the true median.

    It assumes no distribution: how many of n samples lie below the median is binomial(n, 1/2), and the ranks are the
    innermost with at least `confidence`. Below six samples no ranks reach 95 %: smallest and largest are returned,
    which hold the median with probability 1 - 2**(1 - n). Same unit as the samples. O(n log n). ValueError without
    samples or where one is not finite.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if ordered.size == 0 or not np.isfinite(ordered).all():
        bad = np.count_nonzero(~np.isfinite(ordered))
        raise ValueError(f"A median needs finite samples; {ordered.size} came, of which {bad} are not finite.")
    rank = max(int(stats.binom.ppf((1 - confidence) / 2, ordered.size, 0.5)), 1)
    return float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[-rank])
