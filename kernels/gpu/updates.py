"""Launches of `update.cu`: the CUDA implementations of every update rule, with the rule as first parameter."""

from typing import TYPE_CHECKING, Any, final

import numpy as np

from kernels import devices
from kernels.contract import KernelError
from kernels.formula import Backend, Float, Truth
from kernels.gpu.rounding import NEAREST, Rounding
from kernels.gpu.row_sums import KEPT_BYTES, PACK, UNKNOWN, Lengths, Tile, results_of
from kernels.gpu.source import FLOATS, NARROW, Source, blocks, c_name, source

if TYPE_CHECKING:
    from kernels.rules.rule import Rule


@final
class Lines(Backend):
    """Backend that writes lines of C++, each assigning a result to a name; values of `Float` are names."""

    def __init__(self) -> None:
        """Start without lines of code."""
        self.lines: list[str] = []

    def named(self, name: str) -> Float:
        """Return the C variable `name` as a `Float`; writes no line."""
        return Float(self, name)

    def _keep(self, kind: str, expression: str) -> str:
        """Append a line that assigns the C `expression` to a new constant of type `kind`.

        Return its name, such as "t3".
        """
        self.lines.append(f"const {kind} t{len(self.lines)} = {expression};")
        return f"t{len(self.lines) - 1}"

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """Write `one sign other`, sign one of + - * /, as a line of C; return the variable that holds the result."""
        return Float(self, self._keep("T", f"{word(one)} {sign} {word(other)}"))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """Write the comparison `one sign other` as a line of C; return the bool variable."""
        return Truth(self, self._keep("bool", f"{word(one)} {sign} {word(other)}"))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """Add a line of C for `condition ? one : other` to the source; return the variable that holds the result."""
        return Float(self, self._keep("T", f"{condition.value} ? {word(one)} : {word(other)}"))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """Write a call of a CUDA function (sqrt, fabs, copysign, fma) as a line of C; return the result's variable."""
        return Float(self, self._keep("T", f"{function}({', '.join(map(word, arguments))})"))


def word(number: Float | float) -> str:
    """Return a number as C++ source: the variable's name, or a constant such as "(T)0.5"."""
    return number.value if isinstance(number, Float) else f"(T){float(number)!r}"


def _function(head: str, backend: Lines, results: list[str]) -> str:
    """Return the source of a static device function template with this head, the backend's lines and `results`."""
    lines = [f"        {line}" for line in (*backend.lines, *results)]
    return "\n".join(("    template <class T>", f"    static __device__ {head} {{", *lines, "    }"))


def cuda_of(rule: "Rule") -> str:
    """Return C++ source: the struct `Rule` for `updates.cuh`, with counts of states and settings, step and average."""
    count, states = len(rule.settings(*rule.example)), len(rule.states)
    stepping, averaging = Lines(), Lines()
    names, places = [f"settings[{k}]" for k in range(count)], [f"state[{k}]" for k in range(states)]
    means = ["mean"] if rule.average else []
    new = rule.formula(*map(stepping.named, ("w", *places, "g", *means, *names)))
    results = [f"{target} = {word(value)};" for target, value in zip(("w", *places), new, strict=True)]
    step = _function("void step(T& w, T* state, T g, T mean, const T* settings)", stepping, results)
    average = word(rule.average(*map(averaging.named, ("w", "g", *names)))) if rule.average else "(T)0"
    averaged = _function("T average(T w, T g, const T* settings)", averaging, [f"return {average};"])
    by_row = "true" if rule.average else "false"
    head = f"static constexpr int STATES = {states}, SETTINGS = {count};\n    static constexpr bool BY_ROW = {by_row};"
    return f"struct Rule {{\n    {head}\n\n{step}\n\n{averaged}\n}};\n"


GROUPS = (4, 32)
MOST_STATES, MOST_SETTINGS = 3, 10

TILES = {
    "float": ((1, 1, 8, 1), (1, 32, 1, 1), (4, 4, 2, 1), (4, 16, 1, 1), (4, 32, 1, 1), (4, 32, 1, 2)),
    "double": ((1, 1, 8, 1), (1, 32, 1, 1), (2, 16, 1, 1), (2, 32, 1, 1)),
}
"""Tiles of weighted sums that fused updates use: every one more compiles two kernels for every rule."""

_sources: dict[str, Source] = {}


def register_source(rule: "Rule") -> None:
    """Create the CUDA source of a rule's kernels and keep it by the rule's name; compiles nothing.

    Raises KernelError if the rule has more states or settings than the kernels support.
    """
    if len(rule.states) > MOST_STATES or len(rule.settings(*rule.example)) > MOST_SETTINGS:
        raise KernelError(
            f"{rule.name} has {len(rule.states)} states and {len(rule.settings(*rule.example))} settings; CUDA kernels "
            f"take {MOST_STATES} and {MOST_SETTINGS}. Raise the limits in kernels/gpu/update.cu and updates.py."
        )
    names = [f"lazy<{value}, {pack}, {g}>" for value in FLOATS for pack in (1, PACK[value]) for g in GROUPS]
    names += [f"lazy<float, {pack}, {g}, {kind}>" for kind in NARROW.values() for pack in (1, 4) for g in GROUPS]
    if rule.average:
        names += [f"rows_live<{value}, {pack}, {g}>" for value in FLOATS for pack in (1, PACK[value]) for g in GROUPS]
    else:
        kinds = "dense", "dense_live"
        names += [f"{kind}<{value}, {pack}>" for kind in kinds for value in FLOATS for pack in (1, PACK[value])]
    if rule.step_by_step:
        names += [f"step_by_step<{value}, {g}>" for value in FLOATS for g in GROUPS]
        names += [f"step_by_step<float, {g}, {kind}>" for kind in NARROW.values() for g in GROUPS]
    tiles = {value: [Tile(*tile).name(value) for tile in TILES[value]] for value in FLOATS}
    last = {value: [_widest(value, pack).name(value) for pack in (1, PACK[value])] for value in FLOATS}
    for kernel, each in (("fused", tiles), ("fused_pieces", last)):
        names += [f"{kernel}<{tile}>" for value in FLOATS for tile in each[value]]
        names += [f"{kernel}<{tile}, {kind}>" for kind in NARROW.values() for tile in each["float"]]
    _sources[rule.name] = source(__file__, names, "update.cu", title=f"{rule.name}.update", before=cuda_of(rule))


def _tiles(value: str, pack: int) -> list[Tile]:
    """Return the tiles of fused updates for C type `value` ("float", "double") and packs of `pack` values."""
    return [Tile(*fields) for fields in TILES[value] if fields[0] == pack]


def _widest(value: str, pack: int) -> Tile:
    """Return the widest tile for C type `value` and packs of `pack` values, used to add up pieces."""
    return _tiles(value, pack)[-1]


def _arrays(arrays: tuple) -> tuple:
    """Return weights and states padded to 1 + MOST_STATES arrays; the padding is not read."""
    return (*arrays, *[arrays[0]] * (1 + MOST_STATES - len(arrays)))


def _settings(settings: tuple, dtype: np.dtype) -> tuple:
    """Return the settings as MOST_SETTINGS scalars of `dtype`, padded by zeros."""
    return tuple(map(dtype.type, (*settings, *[0.0] * (MOST_SETTINGS - len(settings)))))


def _held(weights: Any) -> str:
    """Return the template argument for narrow weights, such as ", Half"; "" for float32 and float64."""
    return f", {c_name(weights.dtype)}" if weights.dtype.name in NARROW else ""


def _pack(device: devices.Device, arrays: tuple, width: int, value: str) -> int:
    """Return how many values of C type `value` a thread loads at once: 1 unless `width` and `arrays` are aligned."""
    return PACK[value] if width % PACK[value] == 0 and all(map(device.is_aligned, arrays)) else 1


def gpu_dense(rule: "Rule", *args: Any) -> None:
    """Update all rows of weights and states by a gradient [D, N] on a CUDA device, in place.

    `args` are weights, states, gradient and the rule's scalars.
    """
    arrays, (gradient,), settings = rule.split(args)
    if rule.average:
        lazy(rule, arrays, None, gradient, settings)
    elif size := gradient.size:
        device, value = devices.device_of(gradient), c_name(gradient.dtype)
        pack = _pack(device, (*arrays, gradient), size, value)
        arguments = *_arrays(arrays), gradient, size // pack, *_settings(settings, gradient.dtype)
        device.launch(_sources[rule.name], f"dense<{value}, {pack}>", blocks(size // pack), *arguments)


def live_dense(rule: "Rule", arrays: tuple, gradient: Any, live: Any) -> None:
    """Queue the update of all rows by a gradient [D, N], with settings read from `live` on the device at run time.

    So the launch may be repeated, as part of a CUDA graph, with other settings. Updates `arrays` in place.
    """
    if not gradient.size:
        return
    device, value, (count, width) = devices.device_of(gradient), c_name(gradient.dtype), gradient.shape
    sizes: tuple[int, ...]
    if rule.average:
        pack, lanes = _shape_of_rows(rule, device, arrays, gradient)
        name, sizes, threads = f"rows_live<{value}, {pack}, {lanes}>", (count, width), count * lanes
    else:
        pack = _pack(device, (*arrays, gradient), gradient.size, value)
        threads = gradient.size // pack
        name, sizes = f"dense_live<{value}, {pack}>", (threads,)
    device.launch(_sources[rule.name], name, blocks(threads), *_arrays(arrays), gradient, *sizes, live)


def _shape_of_rows(rule: "Rule", device: devices.Device, arrays: tuple, gradient: Any) -> tuple[int, int]:
    """Return (values a lane moves at once, lanes per row) of kernels that update rows by `gradient` [U, N]."""
    value, width = c_name(gradient.dtype), gradient.shape[1]
    pack = _pack(device, (arrays[0], gradient, *(() if rule.average else arrays[1:])), width, value)
    return pack, GROUPS[0] if width <= pack * GROUPS[0] else GROUPS[1]


def gpu_lazy(rule: "Rule", *args: Any) -> None:
    """Update the rows `rows` of weights and states by a gradient [U, N] on a CUDA device, in place.

    `args` are weights, states, rows, gradient and the rule's scalars.
    """
    arrays, (rows, gradient), settings = rule.split(args)
    lazy(rule, arrays, rows, gradient, settings)


def lazy(rule: "Rule", arrays: tuple, rows: Any, gradient: Any, settings: tuple, rounding: Rounding = NEAREST) -> None:
    """Queue the update of rows `rows` int64 [U] (None: all) of `arrays`, weights and states, by `gradient` [U, N].

    Weights may have two bytes per value, with all else float32; they are rounded as `rounding` says.
    """
    if not gradient.size:
        return
    device, value, (count, width) = devices.device_of(gradient), c_name(gradient.dtype), gradient.shape
    pack, lanes = _shape_of_rows(rule, device, arrays, gradient)
    named = device.empty(0, np.int64) if rows is None else rows
    arguments = *_arrays(arrays), named, rows is not None, gradient, count, width, *rounding.arguments(gradient)
    name = f"lazy<{value}, {pack}, {lanes}{_held(arrays[0])}>"
    device.launch(_sources[rule.name], name, blocks(count * lanes), *arguments, *_settings(settings, gradient.dtype))


def gpu_step_by_step(rule: "Rule", *args: Any) -> None:
    """Apply the zero-gradient steps that each of `rows` has missed on a CUDA device, in place.

    `args` are weights, states, rows [U], since [U] and table [S, settings].
    """
    step_by_step(rule, args[: len(rule.written)], args[len(rule.written) :])


def step_by_step(rule: "Rule", arrays: tuple, missed: tuple, rounding: Rounding = NEAREST) -> None:
    """Queue the missed zero-gradient steps of `arrays`, weights and states, in place; `missed` is (rows, since, table).

    Row rows[u] gets steps since[u] to S - 1 of table [S, settings]. Weights as in `lazy`. Raises KernelError for a
    table of another width.
    """
    rows, since, table = missed
    width, (steps, count) = arrays[0].shape[1], table.shape
    if count != len(rule.settings(*rule.example)):
        raise KernelError(
            f"{rule.name}_step_by_step: table has {count} columns; a row holds the {len(rule.settings(*rule.example))} "
            "settings of a step."
        )
    if not rows.size or not width:
        return
    device, lanes = devices.device_of(table), GROUPS[0] if width <= GROUPS[0] else GROUPS[1]
    name = f"step_by_step<{c_name(table.dtype)}, {lanes}{_held(arrays[0])}>"
    arguments = rows, since, table, steps, rows.size, width, *rounding.arguments(table)
    device.launch(_sources[rule.name], name, blocks(rows.size * lanes), *_arrays(arrays), *arguments)


def gpu_fused(rule: "Rule", *args: Any) -> None:
    """Update the rows `columns` by (A.T @ g)[columns] on a CUDA device, in place.

    `args` are weights, states, columns, segments, rows, values, g and the rule's scalars.
    """
    fused(rule, *rule.split(args))


def fused(
    rule: "Rule",
    arrays: tuple,
    batch: tuple,
    settings: tuple,
    lengths: Lengths = UNKNOWN,
    counted: Any = None,
    live: Any = None,
    partial: Any = None,
    rounding: Rounding = NEAREST,
) -> None:
    """Queue the update of the active rows of a batch (columns, segments, rows, values, g) in `arrays`, in place.

    `arrays` are weights and states, weights as in `lazy`; `lengths` is what is known of the column lengths. For work
    that is repeated as a graph: `counted` int64 [1] is the number of columns if the arrays are longer, `live`
    [settings] is read instead of `settings`, and `partial` [2 * pieces_of(z), N] holds sums of pieces.
    """
    columns, segments, rows, values, g = batch
    count, width = columns.size, g.shape[1]
    if not count or not width:
        return
    device, value, pieces = devices.device_of(g), c_name(g.dtype), lengths.pieces(rows.size)
    pack = _pack(device, (arrays[0], g, *(() if rule.average else arrays[1:])), width, value)
    last = _widest(value, pack)
    tile = next((tile for tile in _tiles(value, pack) if pack * tile.lanes * tile.packs >= width), last)
    if partial is None:
        partial = device.empty((2 * pieces, width), g.dtype)  # [2 * pieces, N]
    results = results_of(segments, count, rows.size, lengths, counted)
    leading = *_arrays(arrays), *results, columns
    ends = np.int32(width), (g if live is None else live), live is not None
    code, weights_type = _sources[rule.name], _held(arrays[0])
    numbers = *rounding.arguments(g), *_settings(settings, g.dtype)
    first = *leading, rows, values, g, partial, *ends, g.nbytes <= KEPT_BYTES, *numbers
    device.launch(code, f"fused<{tile.name(value)}{weights_type}>", blocks((count + pieces) * tile.group), *first)
    if pieces:
        name, grid = f"fused_pieces<{last.name(value)}{weights_type}>", blocks(count * last.group)
        device.launch(code, name, grid, *leading, partial, *ends, *numbers)
