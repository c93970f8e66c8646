"""The code of a row's work made into that of all rows, in parts on the threads.

Each thread finds itself where its parts begin: a call before that cuts the rows takes as long as a small batch.
"""

from typing import TYPE_CHECKING

from numba import types
from numba.extending import intrinsic

from kernels.private.of_numba import on_threads
from kernels.vector.lanes import I64, Lane, operands_of, programs
from kernels.vector.values import Int

if TYPE_CHECKING:
    from kernels.vector.operands import Array


class Costs:
    """Costs of rows from the first one on: as many for each as `per_row`, and its entries where `starts` tells them.

    Without `starts` every row costs the same.
    """

    def __init__(self, lane: Lane, rows: Int, starts: "Array | None", per_row: int) -> None:
        self.lane, self.rows, self.starts, self.per_row = lane, rows, starts, per_row

    def before(self, row: Int) -> Int:
        """The cost of the rows before this one."""
        return self.starts[row] - self.starts[self.lane.integer(0)] + row * self.per_row

    def first(self, part: Int, parts: Int) -> Int:
        """The first row of a part, of which all have the same cost as near as whole rows allow; `rows` for the end."""
        if self.starts is None:
            return (self.rows * part).over(parts)
        return self._bisect((self.before(self.rows) * part).over(parts))

    def _bisect(self, target: Int) -> Int:
        """The first row before which there is a cost of `target` or more."""
        builder, before = self.lane.builder, self.lane.builder.block
        head, inside, after = (builder.append_basic_block(f"rows.{part}") for part in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        low, high = builder.phi(I64), builder.phi(I64)
        low.add_incoming(I64(0), before)
        high.add_incoming(self.rows.value, before)
        builder.cbranch(builder.icmp_signed("<", low, high), inside, after)
        builder.position_at_end(inside)
        middle = Int(self.lane, builder.lshr(builder.add(low, high), I64(1)))
        is_less = builder.icmp_signed("<", self.before(middle).value, target.value)
        low.add_incoming(builder.select(is_less, (middle + 1).value, low), builder.block)
        high.add_incoming(builder.select(is_less, high, middle.value), builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return Int(self.lane, low)


@intrinsic(prefer_literal=True)
def emit(typing_context, name, parts, rows, width, arguments):
    """The code of `programs[name]` for rows of `width` columns, 0 to `rows`, in so many parts, on a thread each.

    `arguments` is the tuple of its other arguments.
    """
    if not isinstance(name, types.StringLiteral):
        return None

    def generate(context, builder, signature, values):
        program = programs[name.literal_value]

        def write(builder, first, count, values):
            lane = Lane(context, builder, program, values[2])
            operands = operands_of(lane, program, arguments, values[3])
            starts = None if program.starts is None else operands[program.starts]
            parts, cost = Int(lane, values[0]), Costs(lane, Int(lane, values[1]), starts, program.per_row)

            def part(number, _):
                row = lambda u, _: program.row(lane, u, *operands)  # noqa: E731
                lane.loop(cost.first(number, parts), cost.first(number + 1, parts), 1, [], row)

            first = Int(lane, first)
            lane.loop(first, first + Int(lane, count), 1, [], part)

        on_threads(builder, values[1], values[1:], write)
        return context.get_dummy_value()

    return types.void(name, types.int64, types.int64, types.int64, arguments), generate
