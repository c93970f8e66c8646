"""A batch after a batch of dense rows: scores X @ W + b, the slope g of the loss, X.T @ g, a step of all of W.

Arguments  x float32|float64 [T, D]; held csr: indptr int32|int64 [T+1] - row starts; indices same type [z]; data
           float32|float64 [z]; held uint8: x uint8 [T, D]; held float16: x uint16 [T, D], the bits of float16
           targets as the loss takes them, a row for each of T; counts same as weights [T], what the loss of each row
           counts for, or [0]; order int64 [M], the rows of the batches, one after the other, any number of times;
           batch_rows >= 1, the last batch may have fewer; weights float32|float64 [D, N] and states as the rule has
           them; intercept same [N], or [0] for none, and its states [N]; settings same [S, K], what the rule's formula
           takes in each step, those after the last as the last; settings_intercept the same for the intercept
Writes     weights, intercept and the states of both; nothing else changes; returns the losses, float64 [batches]: each
           the mean over its rows before the step, in which all count alike
Assumes    N >= 1; of CSR duplicates are summed, columns may be unsorted; a target out of range is refused when the
           batches before it have had their steps
Cost       of a batch: 4*R*D*N flops, those of the loss and of D steps of the rule; reads R*D values of X as it is
           held, of csr z*(index+value) bytes, weights and states of D rows, and writes those
Parallel   within a batch, if it has work for several threads, over rows and then over columns; weights have the same
           bits on any number of threads, losses on every run with as many threads
Limits     T*D < 2**63, D*N < 2**63; beside the arguments memory grows with the rows of a block: slopes, of batches of
           several blocks D*N sums, unless held dense a table of them; up to 4 outputs weights and states once more
Source     the two products of a dense step as loops with sums in registers (Goto and van de Geijn 2008), on rows that
           are read in place, in blocks that fit a core's cache, with the step of the rule behind the second one
"""

import functools
from collections.abc import Callable

import numpy as np

from kernels.contract import Case, Cost, Kernel, KernelError, Sizes
from kernels.epochs import epoch as sparse_epoch
from kernels.epochs.dense import calls
from kernels.epochs.dense.sources import SOURCES
from kernels.loss_blocks import block_of
from kernels.registry import get as get_kernel
from kernels.rules.rule import Rule, get_rule


def reference(loss: str, rule: Rule, held: str, *args) -> np.ndarray:
    """Run the reference: an epoch on CSR rows that store every element, with updates of all rows."""
    operands, rest = calls.split(held, args)
    weights = rest[4]
    x = SOURCES[held].dense_rows(operands, len(weights)).astype(weights.dtype)
    rows, columns = x.shape
    every = np.arange(rows + 1) * columns, np.tile(np.arange(columns), rows), x.reshape(-1)
    return sparse_epoch.reference(loss, rule, "standard", *every, *rest, np.zeros_like(weights))


def cpu(loss: str, rule: Rule, held: str, *args) -> np.ndarray:
    """Run on the CPU: A batch after a batch of dense rows: scores X @ W + b, the gradient g of the scores, X.T @ g, a
    step of all of W.

    Writes weights, intercept and the states of both; nothing else changes; returns the losses, float64 [batches]: each
    the mean over its rows before the step, in which all count alike.
    """
    return calls.run(loss, rule, held, calls.Call.of(rule, held, args))


def cost(loss: str, rule: Rule, held: str, s: Sizes) -> Cost:
    """Return the cost of a batch of R rows: each entry of X, each row of weights and states moves once."""
    of_loss = get_kernel(loss).cost(s)
    flops = 4 * s.R * s.D * s.N + of_loss.flops + rule.flops * s.D * s.N
    of_csr = s.z * (s.index + s.value) + (s.R + 1) * s.index
    bytes_x = {"dense": s.R * s.D * s.value, "csr": of_csr, "uint8": s.R * s.D, "float16": 2 * s.R * s.D}[held]
    return Cost(flops, bytes_x + s.R * s.N * s.value + s.D * rule.bytes_row(s))


def arguments(loss: str, rule: Rule, held: str, case: Case) -> tuple:
    """Build operands: those of an epoch on CSR rows with dense updates, X in the form `held`."""
    _, _, _, *rest, _ = sparse_epoch.arguments(loss, rule, "standard", case)
    return *SOURCES[held].arguments(case), *rest


def _operands(loss: str, rule: Rule, held: str) -> str:
    """Return the declaration of the operands of a dense epoch, with rows held as `held` ("dense", "csr", "halves")."""
    _, _, _, *rest, _ = sparse_epoch.operands_of(loss, rule, "standard").split()
    return " ".join((SOURCES[held].operands, *rest))


@functools.cache
def get(loss: str, rule: str, held: str = "dense") -> Kernel:
    """Return the kernel `<loss>_<rule>_dense_epoch`, with `_<held>` unless X is held dense.

    `held` is a name of `kernels.epochs.dense.sources`. KernelError, with the known names, for an unknown loss, rule or
    `held`. The kernel is not in the registry.
    """
    block_of(loss)
    known = get_rule(rule)
    if held not in SOURCES:
        raise KernelError(f"Unknown way to hold dense rows {held!r}. Expected one of: {', '.join(SOURCES)}.")
    operands = _operands(loss, known, held)
    names = [operand.partition(":")[0] for operand in operands.split()]

    def named(function: Callable) -> Callable:
        return sparse_epoch.named_twin(function, names, loss, known, held)

    return Kernel(
        name=f"{loss}_{rule}_dense_epoch{'' if held == 'dense' else f'_{held}'}",
        operands=operands,
        reference=named(reference),
        cpu=named(cpu),
        gpu=None,
        cost=functools.partial(cost, loss, known, held),
        arguments=functools.partial(arguments, loss, known, held),
        writes=(*known.written, *(name for name in names if name.startswith("intercept"))),
    )
