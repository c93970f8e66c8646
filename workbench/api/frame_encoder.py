"""The scikit-learn transformer that encodes frames as the one that a model was trained on."""

from typing import Any, final

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin

from workbench.data.tables.assembly import feature_names
from workbench.data.tables.columns import Columns
from workbench.data.tables.frames import encode
from workbench.formats.arrays import computed


@final
class FrameEncoder(TransformerMixin, BaseEstimator):
    """Encodes frames by columns that are learned: with their values, edges and divisors."""

    def __init__(self, columns: Columns) -> None:
        """Store the columns."""
        self.columns = columns

    def fit(self, frame: Any, y: Any = None) -> "FrameEncoder":
        """Return the encoder itself: its columns are learned already."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return True."""
        return True

    def transform(self, frame: Any) -> scipy.sparse.csr_array:
        """Return a frame, columns in any order, as csr [rows, features], float32; DataError if it lacks one."""
        return encode(computed(frame), self.columns)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, such as "color=red"; `input_features` is not used."""
        return np.array(feature_names(self.columns.columns), object)
