"""Layers, batches and steps for tests of our optimizers in PyTorch, which must be there."""

import functools

import numpy as np
import torch

from tests.support.torch_rows import drawn
from workbench import optimizers
from workbench.bridges import pytorch
from workbench.bridges.contracts import class_name
from workbench.bridges.pytorch import SparseLinear, rows_of

RULES = optimizers.names()


@functools.cache
def batches() -> list:
    """Five, whose making compiles code: not while tests are collected."""
    return [rows_of(drawn(seed=seed)) for seed in range(5)]


def class_of(rule: str):
    return getattr(pytorch, class_name(rule))


def layer_of(seed: int = 0, dtype=torch.float32) -> SparseLinear:
    torch.manual_seed(seed)
    return SparseLinear(30, 3, dtype=dtype)


def train(layer, optimizer, some=None, after=None) -> None:
    for rows in batches() if some is None else some:
        optimizer.zero_grad()
        (layer(rows) ** 2).sum().backward()
        optimizer.step()
        if after is not None:
            after()


def arrays(layer) -> list[np.ndarray]:
    return [parameter.detach().numpy().copy() for parameter in layer.parameters()]


def assert_same(one, other) -> None:
    for left, right in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(left, right)
