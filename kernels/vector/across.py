"""What rows need whose numbers depend on each other, as those of a softmax do: the largest and the sum of all columns,
one column told apart, and exp, within a row's work (`kernels.vector.lanes`) whose tiles are one vector each.

Carried vectors keep one number a lane from tile to tile; they are folded once, at the end of the row.
"""

from collections.abc import Callable

from llvmlite import ir

from kernels.formula import Float, Truth, choose
from kernels.vector import elementary
from kernels.vector.lanes import Lane
from kernels.vector.tiles import Cut, Tile, full_lanes
from kernels.vector.values import Int

I32 = ir.IntType(32)


def cut_narrow(bits: int) -> Cut:
    """Rows of one vector or less, in a masked one: the same code for each width."""
    return Cut(None, Tile(bits, full_lanes(bits), 1, masked=True))


def cut_wide(bits: int) -> Cut:
    """Wider rows, vector by vector: the same code for each width."""
    return Cut(Tile(bits, full_lanes(bits), 1, masked=False), Tile(bits, full_lanes(bits), 1, masked=True))


def every(lane: Lane, number: float) -> Float:
    """The number in every lane."""
    return lane.float(ir.Constant(lane.vector, [number] * lane.tile.lanes))


def filled(lane: Lane, vector: Float, number: float) -> Float:
    """The vector with the number in lanes beyond the row's edge."""
    return vector if lane.mask is None else choose(Truth(lane.numbers, lane.mask), vector, every(lane, number))


def is_column(lane: Lane, start: Int, column: Int) -> Truth:
    """Which lane, if any, of the tile that begins at column `start` is that column."""
    place = lane.spread(lane.builder.trunc((column - start).value, I32))
    numbers = ir.Constant(place.type, list(range(lane.tile.lanes)))
    return Truth(lane.numbers, lane.builder.icmp_signed("==", numbers, place))


def fold(lane: Lane, vector: Float, combine: Callable[[Float, Float], Float]) -> Float:
    """All lanes in one number, halves with halves."""
    value, lanes = vector.value, lane.tile.lanes
    while lanes > 1:
        lanes //= 2
        halves = [ir.Constant(ir.VectorType(I32, lanes), list(range(at, at + lanes))) for at in (0, lanes)]
        value = combine(*(lane.float(lane.builder.shuffle_vector(value, value, half)) for half in halves)).value
    return lane.float(lane.builder.extract_element(value, I32(0)))


def larger(one: Float, other: Float) -> Float:
    """The larger of two; the other where either is NaN."""
    return choose(one > other, one, other)


def exp_of_negative(lane: Lane, x: Float) -> Float:
    """exp(x) of numbers that are not positive, as `kernels.vector.elementary` has it."""
    if lane.bits == 64:
        return lane.numbers.called("exp", x)
    rounded = x.times_plus(elementary.LOG2_E, elementary.ROUND)
    count = rounded - elementary.ROUND
    rest = count.times_plus(-elementary.LN2_LOW, count.times_plus(-elementary.LN2_HIGH, x))
    first, second, *terms = elementary.EXP_TERMS
    total = rest.times_plus(first, second)
    for term in terms:
        total = total.times_plus(rest, term)
    total = (total * rest).times_plus(rest, rest) + 1.0
    power = lane.numbers.power_of_two(rounded, elementary.ROUND_BITS)
    return choose(x < elementary.EXP_SMALLEST, every(lane, 0.0), total * power)
