"""Statistics of samples: a quantile of them and the interval between ranks that holds it."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def quantile_interval(
    samples: Sequence[float], quantile: float, confidence: float = 0.95
) -> tuple[float, float, float]:
    """(quantile, low, high): the interval between two ranks of the samples that holds the true quantile.

    It assumes no distribution, but that the samples are independent: how many of n lie below the quantile q is
    binomial(n, q), and the ranks are the innermost with at least `confidence`. Where no ranks reach that, as below six
    samples for a median at 95 %, the smallest and the largest are returned. Same unit as the samples. O(n log n).
    ValueError without samples or where one is not finite.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if ordered.size == 0 or not np.isfinite(ordered).all():
        bad = np.count_nonzero(~np.isfinite(ordered))
        raise ValueError(f"A quantile needs finite samples; {ordered.size} came, of which {bad} are not finite.")
    ranks = stats.binom.ppf(((1 - confidence) / 2, (1 + confidence) / 2), ordered.size, quantile).astype(int)
    low, high = max(ranks[0], 1), min(ranks[1] + 1, ordered.size)
    return float(np.quantile(ordered, quantile)), float(ordered[low - 1]), float(ordered[high - 1])


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """(median, low, high) of samples that are independent, as `quantile_interval` gives them."""
    return quantile_interval(samples, 0.5, confidence)
