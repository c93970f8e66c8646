"""Whole epochs in one compiled call, batch after batch, for every loss of `kernels.losses` and rule of `kernels.rules`.

>>> from kernels import epochs
>>> epochs.get("logistic", "adagrad").name
'logistic_adagrad_epoch'
"""

from kernels.epochs.epoch import get
from kernels.epochs.touched import count_batches

__all__ = ["count_batches", "get"]
