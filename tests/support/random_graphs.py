"""Random graphs of operators on arrays in any formats, and their gradients by central differences of the dense meaning.

By hand, with any seeds: `python -m tests.support.random_graphs --graphs 20000 --seed 7`; `--show` prints one graph.
"""

import argparse
import contextlib
import itertools
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support import op_arrays
from tests.support.random_steps import STEPS
from workbench import executor, formats, graph, ops
from workbench.graph import GraphError, Symbol

STEP = 1e-6
LARGEST = 1e3
"""Beyond that differences are too coarse to compare with."""
MATRICES = ("csr", "csc", "coo")
NUMBERS = (-2.0, -1.0, -0.5, 0.5, 1.0, 1.0, 2.0)
"""Few, so that sums cancel and values repeat."""
REFUSED = (ops.OpError, GraphError, formats.FormatError)
Pick = Callable[[Sequence], Any]


@dataclass
class Case:
    """A graph that grows: variables with their arrays, and every node with its value by the dense meaning."""

    pick: Pick
    random: np.random.Generator
    args: dict[str, Any] = field(default_factory=dict)
    values: dict[Symbol, np.ndarray] = field(default_factory=dict)
    constants: dict[Symbol, np.ndarray] = field(default_factory=dict)
    heads: list[np.ndarray] = field(default_factory=list)
    outputs: list[Symbol] = field(default_factory=list)

    def variable(self, shape: tuple[int, ...], form: str) -> Symbol:
        """A variable in that format; a sparse one has stored zeros, duplicates and places in any order."""
        dense = self.random.choice(NUMBERS, shape) * (self.random.random(shape) < self.pick((0.0, 0.5, 0.7, 1.0)))
        name = f"v{len(self.args)}"
        self.args[name] = op_arrays.messy(dense, form, self.random)
        node = graph.variable(name, form, shape, "float64")
        self.values[node] = op_arrays.dense_of(self.args[name])
        return node

    def add(self, node: Symbol) -> None:
        """Take the node in, unless the operators refuse it or its numbers get too large."""
        node.infer()
        known = self.constants | self.values
        known |= computed(graph.group([node]).nodes(), known, self.args)
        value = known[node]
        if value.size > 200 or not np.isfinite(value).all() or (np.abs(value) > LARGEST).any():
            return
        self.values[node] = value

    def of(self, wanted: Callable[[np.ndarray], bool]) -> list[Symbol]:
        """The nodes whose values are as wanted."""
        return [node for node, value in self.values.items() if wanted(value)]


def meaning(node: Symbol, inputs: Sequence[np.ndarray], args: dict[str, Any]) -> np.ndarray:
    """The value of a node by its operator's dense meaning, at the places of a variable where that is what it reads."""
    if node.op.name == "to_format":
        return np.array(inputs[0])
    if node.op.name == "retain":
        kept = np.isin(np.arange(len(inputs[0])), inputs[1])
        return inputs[0] * kept.reshape(-1, *(1 for _ in inputs[0].shape[1:]))
    with np.errstate(all="ignore"):
        value = np.asarray(node.op.dense(*inputs, **node.params))
    if node.op.name in ("sampled_dot", "stored_add_scalar", "stored_divide"):
        held = args[node.inputs[0].given]
        whole = node.op.name == "sampled_dot" and formats.format_of(held) not in MATRICES
        return value if whole else np.where(op_arrays.stored_places(held), value, 0)
    return value


def computed(
    nodes: Sequence[Symbol], known: Mapping[Symbol, np.ndarray], args: dict[str, Any]
) -> dict[Symbol, np.ndarray]:
    """The values of all nodes, of those that are not known by the dense meaning."""
    values = dict(known)
    for node in nodes:
        if node not in values:
            values[node] = meaning(node, [values[entry] for entry in node.inputs], args)
    return values


def grown(pick: Pick, seed: int) -> Case:
    """A graph of a few operators on one to three variables, and heads for its outputs."""
    case = Case(pick, np.random.default_rng(seed))
    base = (pick((0, 1, 2, 3, 3)), pick((0, 1, 2, 3, 3)))
    shapes = (base, base, base[::-1], (base[1], 2), base[:1], (2, *base))
    for _ in range(pick((1, 2, 3))):
        shape = pick(shapes)
        case.variable(shape, pick(formats.names() if len(shape) == 2 else ("dense", "row_sparse")))
    for _ in range(pick((1, 2, 3, 4, 6, 8))):
        with contextlib.suppress(*REFUSED):
            made = pick(STEPS)(case)
            if made is not None:
                case.add(made)
    nodes = [node for node in case.values if node.op is not None] or list(case.values)
    case.outputs = [nodes[-1]] if pick((True, False)) else [nodes[-1], pick(nodes)]
    case.heads = [case.random.choice((0.5, 1.0, 2.0, -1.0), case.values[node].shape) for node in case.outputs]
    return case


def _is_smooth(before: np.ndarray, here: np.ndarray, after: np.ndarray) -> bool:
    """Whether a node's value has a derivative here: no operator is at a kink or jump of its own."""
    left, right = (here - before) / STEP, (after - here) / STEP
    return bool((np.abs(right - left) < 1e-4 * (1 + np.abs(left))).all() and (np.abs(left) < 1e4).all())


def expected(case: Case, name: str, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the derivative of the sum of outputs times heads, where it exists) at some places of a variable."""
    nodes = graph.group(case.outputs).nodes()
    (variable,) = [node for node in nodes if node.given == name]
    slopes, exists = np.zeros(places.shape), np.zeros(places.shape, bool)
    for place in map(tuple, np.argwhere(places)):
        sums, each = [], []
        for step in (-STEP, 0.0, STEP):
            moved = case.values[variable].copy()
            moved[place] += step
            leaves = {node: case.values[node] for node in nodes if node.kind in ("variable", "stop_gradient")}
            values = computed(nodes, case.constants | leaves | {variable: moved}, case.args)
            sums.append(sum(float((values[o] * h).sum()) for o, h in zip(case.outputs, case.heads, strict=True)))
            each.append([values[node] for node in nodes])
        left, right = ((after - before) / STEP for before, after in itertools.pairwise(sums))
        slopes[place] = (left + right) / 2
        exists[place] = all(map(_is_smooth, *each))
    return slopes, exists


def check(case: Case) -> int:
    """The number of places at which the gradients were compared with differences (`AssertionError`)."""
    symbol = graph.group(case.outputs)
    names = [name for name in symbol.arguments() if name in case.args]
    args = {name: case.args[name] for name in names}
    try:
        bound = executor.bind(symbol, args, grad_req=dict.fromkeys(names, "write"))
    except REFUSED:
        return 0
    outputs = bound.forward(training=True)
    for output, node in zip(outputs, case.outputs, strict=True):
        np.testing.assert_allclose(op_arrays.dense_of(output), case.values[node], rtol=1e-9, atol=1e-9)
    gradients = bound.backward([head.copy() for head in case.heads])
    compared = 0
    for name in names:
        gradient, held = gradients[name], formats.format_of(args[name])
        places = np.ones(gradient.shape, bool)
        if held in MATRICES:
            places = op_arrays.stored_places(args[name])
            assert formats.format_of(gradient) == held
            assert _each_place_once(gradient)
            np.testing.assert_array_equal(op_arrays.stored_places(gradient), places)
        slopes, exists = expected(case, name, places)
        scale = 1e-4 * (1 + np.abs(slopes).max(initial=0))
        found = op_arrays.dense_of(gradient)[exists]
        np.testing.assert_allclose(found, slopes[exists], rtol=1e-4, atol=scale, err_msg=name)
        compared += int(exists.sum())
    return compared


def _each_place_once(x: Any) -> bool:
    coo = x.tocoo()
    return len(set(zip(coo.row.tolist(), coo.col.tolist(), strict=True))) == coo.nnz


def described(case: Case) -> str:
    """The arrays and the nodes, for a report."""
    lines = [f"{name} = {formats.format_of(x)} {op_arrays.dense_of(x).tolist()}" for name, x in case.args.items()]
    symbol = graph.group(case.outputs)
    names = symbol.names()
    for node in symbol.nodes():
        if node.op is not None:
            inputs = ", ".join(names[entry] for entry in node.inputs)
            lines.append(f"{names[node]} = {node.kind}({inputs}, {dict(node.params)})")
    return "\n".join([*lines, f"outputs {symbol.outputs()}, heads {[head.tolist() for head in case.heads]}"])


def of_seed(seed: int) -> Case:
    """The graph of a seed."""
    random = np.random.default_rng(seed)
    return grown(lambda options: options[int(random.integers(len(options)))], seed)


def main() -> int:
    """Check many graphs; print those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ops.DensifyWarning)
    failed = compared = checked = 0
    for seed in range(options.seed, options.seed + options.graphs):
        case = None
        try:
            case = of_seed(seed)
            if options.show:
                print(described(case))
            places = check(case)
            compared, checked = compared + places, checked + bool(places)
        except Exception as error:  # every failure is reported, whatever it is
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:600]}\n{described(case) if case else ''}\n")
    print(f"{options.graphs} graphs, {checked} with gradients, {compared} places compared, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
