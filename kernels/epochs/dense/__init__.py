"""Whole epochs on dense rows in one compiled call, for every loss of `kernels.losses` and rule of `kernels.rules`.

>>> from kernels.epochs import dense
>>> dense.get("logistic", "adagrad").name
'logistic_adagrad_dense_epoch'
"""

from kernels.epochs.dense.epoch import get

__all__ = ["get"]
