"""Whole epochs in one compiled call, batch after batch, for every loss of `kernels.losses` and rule of `kernels.rules`.

>>> from kernels import epochs
>>> epochs.get("logistic", "adagrad").name
'logistic_adagrad_epoch'
"""

from kernels.epochs.epoch import get

__all__ = ["get"]
