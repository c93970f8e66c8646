"""The noise that is usual among rounds, which a spread is judged by."""

import numpy as np
import pytest

from workbench.analysis.outliers import usual_deviation
from workbench.measure.rounds import MIN_LOG_SD


def test_the_usual_deviation_is_that_of_the_rounds_however_few_a_configuration_has_and_whatever_lies_off():
    generator = np.random.default_rng(0)
    runs = [*(0.2 * generator.standard_normal((400, 4))), *(3 + generator.standard_normal((40, 4)))]
    assert usual_deviation(runs) == pytest.approx(0.2, rel=0.15)
    assert usual_deviation([[1.0], []]) == MIN_LOG_SD
