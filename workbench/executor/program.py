"""Programs: flat lists of steps with their buffers, compiled from a graph for one tuple of argument shapes."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from kernels import aligned
from workbench import formats, ops
from workbench.graph import GraphError, Group, Inference, Symbol
from workbench.ops import products
from workbench.ops.contract import Op
from workbench.ops.products import Unsummed

# The executor's own error.


class BindError(GraphError):
    """An argument does not fit the graph, or a call comes in the wrong order; the message says what to do."""


PARTS = ("plan", "forward", "loss", "backward", "store")


@dataclass(slots=True)
class Step:
    """A step: `values[output] = call(*values of inputs, out=out)`.

    `name` is the node's; `op` its operator, None for building a plan or storing a gradient; `part` one of `PARTS`
    (loss: a loss computed with the gradient of its scores). `dead` are slots whose values are not read afterwards.
    """

    name: str
    op: Op | None
    part: str
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    output: int
    out: np.ndarray | None = None
    dead: tuple[int, ...] = ()
    take: Callable[[list[Any]], Sequence[Any]] = field(init=False, repr=False)
    """Gives the values of the inputs, of all values: in a fourth of the time of a loop over the slots."""

    def __post_init__(self) -> None:
        """Set `take`, which returns the values of the step's inputs from the list of all values."""
        one = slice(self.inputs[0], self.inputs[0] + 1) if self.inputs else slice(0)
        self.take = itemgetter(*self.inputs) if len(self.inputs) > 1 else itemgetter(one)


def with_params(call: Callable[..., Any], params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return `call` with the keyword arguments `params` bound; `call` itself if there are none."""
    return partial(call, **params) if params else call


def with_plan(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` as a function (*arrays, out) whose last array is passed as the keyword `plan`."""

    def planned(*arrays: Any, out: np.ndarray | None) -> Any:
        """Return `call(*arrays but the last, out=out, plan=last)`."""
        return call(*arrays[:-1], out=out, plan=arrays[-1])

    return planned


def plan_of(x: Any, plan: Any, out: None, width: float) -> Any:
    """Return the given batch plan of x, or a new one for a product of `width` columns; `out` is unused.

    None if the product is faster without one.
    """
    return products.plan_for(x, width) if plan is None else plan


def joint_call(call: Callable[..., Any], slope: np.ndarray, params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function (*arrays, out) -> out for a loss `call` that also writes `slope`, the scores' gradient."""

    def both(*arrays: Any, out: np.ndarray) -> np.ndarray:
        """Overwrite `out` by the loss and `slope` by the gradient of the scores; return `out`."""
        out[...] = call(*arrays, slope=slope, **params)
        return out

    return both


def scale_in_place(slope: np.ndarray, head: np.ndarray, out: None) -> np.ndarray:
    """Multiply `slope`, the gradient of the scores, by `head` in place and return it; a head of 1 costs nothing.

    `out` is unused.
    """
    return slope if head.size == 1 and head.item() == 1 else np.multiply(slope, head, out=slope)


def identity(value: Any, *others: Any, out: None) -> Any:
    """Return `value` itself; `out` and other arguments are unused."""
    return value


def copy_value(value: Any, out: np.ndarray | None) -> Any:
    """Return a copy of a value of any format; a dense one is written to `out` if that is given, and `out` returned."""
    if out is None:
        return formats.copy(value)
    out[...] = value
    return out


def add_values(value: Any, before: Any, out: None) -> Any:
    """Return `before` + `value` in the format of `before`, in place if that is dense.

    Raises BindError if shapes differ. `out` is unused.
    """
    if value.shape != before.shape:
        raise BindError(
            f"A gradient of shape {value.shape} came to one of {before.shape}, to be added. Request write for "
            "arguments whose rows change."
        )
    if isinstance(before, np.ndarray):
        before += formats.to_format(value, "dense")
        return before
    if before.nnz == 0:
        return formats.copy(value)
    return formats.to_format(ops.get("add")(before, value), formats.format_of(before))


def factored_gradient(shape: tuple[int, ...]) -> Callable[..., Unsummed | formats.RowSparse]:
    """Return a function (x, slope, plan, out) -> X.T @ slope of this shape, kept as its factors."""

    def factors(x: Any, slope: np.ndarray, plan: Any, out: None) -> Unsummed | formats.RowSparse:
        """Return X.T @ slope as `Unsummed`; multiplied out as `RowSparse` if `plan` is None. `out` is unused."""
        if plan is None:
            return products.rule(x.format, True, "row_sparse")(x, slope)
        return Unsummed(x, slope, plan, shape)

    return factors


# Memory for dense values: blocks that last for the executor's life, given to values whose time does not overlap.


@dataclass
class Pool:
    """Flat buffers by key; all buffers are allocated here.

    A block has the size of the largest value that it ever held; smaller values use its leading part. `grown` counts
    allocations: an executor whose shapes were all seen makes none. Programs share the views of values of equal shape,
    such as gradients: who has bound calls to these arrays repeats them whichever program wrote there.
    """

    blocks: dict[Hashable, np.ndarray] = field(default_factory=dict)
    views: dict[tuple[Hashable, tuple[int, ...]], np.ndarray] = field(default_factory=dict)
    grown: int = 0

    def view(self, key: Hashable, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """Return a C-contiguous array of this shape and dtype over the leading part of the block `key`.

        A block that is missing or too small is allocated, as zeros, and counted in `grown`. The same arguments give the
        same array object, as long as the block has not grown.
        """
        size, place = math.prod(shape), (key, tuple(shape))
        block = self.blocks.get(key)
        if block is None or block.size < size or block.dtype != dtype:
            block = self.blocks[key] = aligned.zeros((size,), dtype)
            self.views = {other: view for other, view in self.views.items() if other[0] != key}
            self.grown += 1
        if place not in self.views:
            self.views[place] = block[:size].reshape(shape)
        return self.views[place]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all blocks."""
        return sum(block.nbytes for block in self.blocks.values())


@dataclass
class Shared:
    """Assignment of blocks to values for their lifetimes: a free block that is large enough, else the largest, else a
    new one.

    One instance per program; blocks are numbered by dtype in order of first use, so programs for other shapes share
    them.
    """

    free: dict[np.dtype, list[tuple[int, int]]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    count: dict[np.dtype, int] = field(default_factory=dict)

    def take(self, size: int, dtype: np.dtype) -> tuple[str, int]:
        """Return the key (dtype name, id) of a free block for `size` elements, now taken, or of a new one.

        A block that is too small will grow.
        """
        free = sorted(self.free.get(dtype, []))
        if free:
            chosen = next((entry for entry in free if entry[0] >= size), free[-1])
            self.free[dtype].remove(chosen)
            number = chosen[1]
        else:
            number = self.count[dtype] = self.count.get(dtype, 0) + 1
        key = dtype.name, number
        self.sizes[key] = max(self.sizes.get(key, 0), size)
        return key

    def give_back(self, key: tuple[str, int]) -> None:
        """Mark the block as free, since the lifetime of its value has ended."""
        self.free.setdefault(np.dtype(key[0]), []).append((self.sizes[key], key[1]))


def last_uses(steps: Sequence[tuple[Hashable, Sequence[Hashable], bool]], kept: Sequence[Hashable]) -> dict:
    """Return the index of the last step that may read each value.

    `steps` are (result, inputs, whether the result may share memory with its inputs); such inputs live as long as the
    result. Values in `kept` outlive all steps. O(steps + inputs).
    """
    last = dict.fromkeys(kept, len(steps))
    for number in range(len(steps) - 1, -1, -1):
        result, inputs, shares = steps[number]
        mine = max(number, last.get(result, number))
        for entry in inputs:
            last[entry] = max(last.get(entry, -1), mine if shares else number)
        last.setdefault(result, number)
    return last


PASSING = ("sum_to_shape_of", "identity", "stop_gradient", "to_format", "dense_unless_alike")
"""Operators that often have nothing to do: then no copy is made."""


def _is_among(node: Symbol, others: Iterable[Symbol]) -> bool:
    """Return whether one of `others` is the node itself; their `==` may make symbols."""
    return id(node) in map(id, others)


@dataclass(frozen=True)
class Training:
    """A graph with its gradients: everything that does not depend on shapes."""

    graph: Group
    """Outputs, then gradients."""
    outputs: tuple[Symbol, ...]
    gradients: Mapping[str, Symbol]
    requests: Mapping[str, str]
    """`write` or `add` for each gradient."""
    slopes: Mapping[Symbol, Symbol]
    fused: frozenset[Symbol]
    """Gradients that are left as their factors."""
    nodes: tuple[Symbol, ...]
    names: Mapping[Symbol, str]
    slots: Mapping[object, int]
    """Where values stand: nodes, ("plan", node) and ("gradient", name)."""

    @property
    def forward(self) -> list[Symbol]:
        """Return the operator nodes that the outputs need, inputs first."""
        return [node for node in Group(self.outputs).nodes() if node.op is not None]

    @property
    def backward(self) -> list[Symbol]:
        """Return the operator nodes that the forward pass does not compute, in order of computation."""
        before = set(self.forward)
        return [node for node in self.nodes if node.op is not None and node not in before]

    def scales(self, node: Symbol) -> bool:
        """Return whether the node multiplies a loss's gradient by the head; such a product is computed in place."""
        return node.kind == "multiply" and _is_among(node.inputs[0], self.slopes.values())


class HeadsOfOnes(NamedTuple):
    """Heads of ones by slot, the (result, input) slots of the products with them, and the backward steps without."""

    heads: dict[int, Any]
    passed: list[tuple[int, int]]
    steps: list[Step]


@dataclass
class Program:
    """Steps of the forward pass without and with training and of the backward pass, with the facts that they were
    made from.
    """

    inference: Inference
    forward: list[Step] = field(default_factory=list)
    training: list[Step] = field(default_factory=list)
    backward: list[Step] = field(default_factory=list)
    views: list[tuple[int, np.ndarray]] = field(default_factory=list)
    """Slots of the gradients of scores, which losses write, and their buffers."""
    plans: dict[int, int] = field(default_factory=dict)
    """Slots of arrays whose batch plan is read, and of their plans."""
    widths: dict[int, float] = field(default_factory=dict)
    """Columns of the widest X.T @ slope that reads such a plan, by the slot of X; infinite where others read it too."""
    reads_again: bool = False
    """Whether steps backward follow indices of sparse values that stood there before, and not a batch plan alone."""
    written: dict[str, int] = field(default_factory=dict)
    """Where the gradients of this program stand."""
    partial: dict[frozenset[int], list[Step]] = field(default_factory=dict)
    """The steps forward that some outputs need, by the slots of these."""
    with_ones: HeadsOfOnes | None = None
    """What the first backward pass without given heads has found: programs for two shapes often alternate."""

    def needed(self, slots: frozenset[int]) -> list[Step]:
        """Return the forward steps that the values in these slots need, in order; cached. O(steps) the first time."""
        if slots not in self.partial:
            read, kept = set(slots), []
            for step in reversed(self.forward):
                if step.output in read:
                    read.update(step.inputs)
                    kept.append(step)
            self.partial[slots] = kept[::-1]
        return self.partial[slots]


class Writer:
    """Builder of one program."""

    def __init__(self, training: Training, inference: Inference, pool: Pool) -> None:
        """Start an empty program for these facts; dense values get their memory from `pool`."""
        self.training, self.facts, self.pool = training, inference.facts, pool
        self.program = Program(inference)
        self.planned: set[Symbol] = set()
        self._sharing: dict[Symbol, bool] = {}

    def write(self) -> Program:
        """Return the program: forward and backward steps, their buffers and the lifetimes of values.

        O(nodes + edges).
        """
        forward, backward = self.training.forward, self.training.backward
        for node in (*forward, *backward):
            if (facts := self.facts[node]).chosen_rule.plan:
                slot, is_sum = self.training.slots[node.inputs[0]], node.kind == "dot" and facts.format == "row_sparse"
                width = math.prod(facts.complete.shape[1:]) if is_sum else math.inf
                self.program.widths[slot] = max(width, self.program.widths.get(slot, 0))
        buffers = self._buffers([*forward, *backward])
        for loss, slope in self.training.slopes.items():
            if slope in buffers and loss in self.facts:
                self.program.views.append((self.training.slots[slope], buffers[slope]))
        for node in forward:
            self._plan(node, self.program.forward, self.program.training)
            step = self._step(node, "forward", buffers.get(node))
            self.program.forward.append(step)
            self.program.training.append(self._joint(node, step, buffers))
        for node in backward:
            self._plan(node, self.program.backward)
            self.program.backward.append(self._step(node, "backward", buffers.get(node)))
            if not self.facts[node].chosen_rule.plan and any(
                self.facts[entry].format != "dense" for entry in node.inputs
            ):
                self.program.reads_again = True
        for name, node in self.training.gradients.items():
            self._store(name, node)
        self._forget([*forward, *backward])
        return self.program

    def _forget(self, order: Sequence[Symbol]) -> None:
        """Set `Step.dead`: the last reader of each sparse value that is not kept drops it.

        `order` are the nodes as they run.
        """
        kept = {*self.training.outputs, *self.training.gradients.values()}
        last = {entry: node for node in order for entry in node.inputs}
        dead: dict[int, list[int]] = {}
        for entry, reader in last.items():
            if entry.op is not None and entry not in kept and self.facts[entry].format != "dense":
                dead.setdefault(self.training.slots[reader], []).append(self.training.slots[entry])
        for step in (*self.program.training, *self.program.forward, *self.program.backward):
            if step.op is not None:
                step.dead = tuple(dead.get(step.output, ()))

    def _plan(self, node: Symbol, *lists: list[Step]) -> None:
        """Append to `lists` the step that builds the batch plan of the first input, before its first reader."""
        x = node.inputs[0] if node.inputs else None
        if x is None or not self.facts[node].chosen_rule.plan or x in self.planned:
            return
        self.planned.add(x)
        slot, plan = self.training.slots[x], self.training.slots["plan", x]
        self.program.plans[slot] = plan
        call = partial(plan_of, width=self.program.widths[slot])
        for entries in lists:
            entries.append(Step(f"plan of {self.training.names[x]}", None, "plan", call, (slot, plan), plan))

    def _step(self, node: Symbol, part: str, out: np.ndarray | None) -> Step:
        """Return the step that computes `node` into `out` (None: a new value); `part` is "forward" or "backward"."""
        slots = self.training.slots
        inputs = tuple(map(slots.__getitem__, node.inputs))
        rule = self.facts[node].chosen_rule
        call: Callable[..., Any]
        if self.training.scales(node):
            call = scale_in_place
        elif self._passes(node):
            call = identity
        elif node in self.training.fused:
            call = factored_gradient(self.facts[node].complete.shape)
        else:
            call = with_params(rule.call, node.params)
            call = with_plan(call) if rule.plan else call
        if rule.plan:
            inputs += (slots["plan", node.inputs[0]],)
        return Step(self.training.names[node], node.op, part, call, inputs, slots[node], out)

    def _joint(self, node: Symbol, step: Step, buffers: Mapping[Symbol, np.ndarray]) -> Step:
        """Return `step`, the forward step of a loss, as a training step that also writes the gradient of its scores.

        `step` itself for other nodes or if that gradient is not needed.
        """
        slope = self.training.slopes.get(node)
        joint = node.operator.joint
        if joint is None or slope is None or slope not in buffers:
            return step
        call = joint_call(joint, buffers[slope], node.params)
        return Step(step.name, step.op, "loss", call, step.inputs, step.output, step.out)

    def _store(self, name: str, node: Symbol) -> None:
        """Append the backward step that adds or copies gradient `node` of argument `name` to its buffer, if any."""
        source, slot = self.training.slots[node], self.training.slots["gradient", name]
        facts, step = self.facts[node], None
        if self.training.requests[name] == "add":
            step = Step(f"gradient of {name}", None, "store", add_values, (source, slot), slot)
        elif not self._owns(name, node):
            out = self._view(("gradient", name), node) if facts.format == "dense" else None
            step = Step(f"gradient of {name}", None, "store", copy_value, (source,), slot, out)
        self.program.written[name] = source if step is None else slot
        if step is not None:
            self.program.backward.append(step)

    def _owns(self, name: str, node: Symbol) -> bool:
        """Return whether `node` computes only the gradient of argument `name`, so that it may write to its buffer."""
        others = [*self.training.outputs, *(g for n, g in self.training.gradients.items() if n != name)]
        alone = node.op is not None and not _is_among(node, others)
        return alone and not self._shares(node) and self.training.requests[name] == "write"

    def _passes(self, node: Symbol) -> bool:
        """Return whether the node changes neither shape, dtype nor format, so that its input is passed on uncomputed.

        False for outputs of the graph and for operators not in `PASSING`.
        """
        if node.kind not in PASSING or _is_among(node, self.training.outputs):
            return False
        mine, its = self.facts[node], self.facts[node.inputs[0]]
        return (mine.shape, mine.dtype, mine.format) == (its.shape, its.dtype, its.format)

    def _shares(self, node: Symbol) -> bool:
        """Return whether the value of `node` is that of its input or written over it, so that it needs no buffer."""
        if node not in self._sharing:
            self._sharing[node] = self.training.scales(node) or self._passes(node)
        return self._sharing[node]

    def _buffers(self, order: Sequence[Symbol]) -> dict[Symbol, np.ndarray]:
        """Return {node: preallocated array} of the dense values of `order`.

        Values with disjoint lifetimes share memory.
        """
        kept: dict[Symbol, tuple[str, int | str]]
        kept = {node: ("output", place) for place, node in enumerate(self.training.outputs) if node.op is not None}
        kept |= {g: ("gradient", n) for n, g in self.training.gradients.items() if self._owns(n, g)}
        ends = last_uses([self._reads(node) for node in order], [*kept, *self.training.gradients.values()])
        shared, keys = Shared(), dict[Symbol, Hashable](kept)
        release: dict[int, list[tuple[str, int]]] = {}
        for number, node in enumerate(order):
            for value in (node, self.training.slopes.get(node)):
                if value is None or value not in ends or value in keys or not self._needs_buffer(value):
                    continue
                known = self.facts[value].complete
                keys[value] = block = shared.take(math.prod(known.shape), known.dtype)
                release.setdefault(ends[value], []).append(block)
            for key in release.pop(number, ()):
                shared.give_back(key)
        for key, size in shared.sizes.items():
            self.pool.view(key, (size,), np.dtype(key[0]))
        return {node: self._view(key, node) for node, key in keys.items() if self._needs_buffer(node)}

    def _view(self, key: Hashable, node: Symbol) -> np.ndarray:
        """Return the pool's array at `key` in the shape and dtype of the node's value."""
        known = self.facts[node].complete
        return self.pool.view(key, known.shape, known.dtype)

    def _needs_buffer(self, node: Symbol) -> bool:
        """Return whether the node's value is dense and has its own memory."""
        own = node.op is None or not (self._shares(node) or node in self.training.fused)
        return own and self.facts[node].format == "dense"

    def _reads(self, node: Symbol) -> tuple[Symbol, Sequence[Symbol], bool]:
        """Return (node, inputs, whether its value may share their memory), for `last_uses`."""
        shares = self.facts[node].format != "dense" or self._shares(node) or node in self.training.fused
        return node, node.inputs, shares
