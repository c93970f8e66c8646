"""Vector code for adjacent elements of which only some are processed: those whose byte in an array of marks is not
zero.
"""

from collections.abc import Callable

from llvmlite import ir

from kernels.vector.lanes import I8, Lane
from kernels.vector.operands import Array
from kernels.vector.values import Int


def where_marked(lane: Lane, marks: Array, place: Int, length: Int, body: Callable[[Int], None]) -> None:
    """Emit `body(place)` for the lanes of a masked tile whose bytes of `marks` from `place` on are not 0, if there is
    any.

    These bytes are set to 0. What `body` loads and stores has `length` elements, with no marks beyond.
    """
    builder, lanes = lane.builder, lane.tile.lanes
    vector, bits = ir.VectorType(I8, lanes), ir.IntType(lanes)
    at = builder.bitcast(marks.bytes_at(place, lane.integer(lanes)), vector.as_pointer())
    none = ir.Constant(vector, [0] * lanes)
    found = builder.load(at)
    found.align = 1
    mask = builder.icmp_unsigned("!=", found, none)
    with builder.if_then(builder.icmp_unsigned("!=", builder.bitcast(mask, bits), bits(0))):
        lane.mask, lane.edge = mask, (length - place).least(lane.integer(lanes))
        body(place)
        builder.store(none, at).align = 1
