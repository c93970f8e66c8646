"""A compiled function for each of some parts, on all threads, from within compiled code.

Numba's own `prange` compiles what it repeats behind two more functions, in a module each, and takes twice as long.
"""

from numba import types
from numba.extending import intrinsic

from kernels._compat.numba_internals import call_compiled, cgutils, on_threads


@intrinsic
def each_part(typing_context, function, parts, arguments):
    """Call `function(part, *arguments)` for each part from 0 to `parts` - 1 on the threads of the layer.

    The function must return nothing and raise nothing. Call `kernels._compat.numba_internals.layer` before compiling a
    caller: its code is linked with the threading layer.
    """
    call = function.get_call_type(typing_context, (types.int64, *arguments), {})

    def generate(context, builder, signature, values):
        """Emit the loop over the parts, on the threads of the layer."""

        def write(builder, first, count, values):
            """Emit the calls for parts first to first + count - 1, the share of one thread."""
            operands = cgutils.unpack_tuple(builder, values[0])
            with cgutils.for_range(builder, count) as loop:
                call_compiled(context, builder, function, call, [builder.add(first, loop.index), *operands])

        on_threads(builder, values[1], values[2:], write)
        return context.get_dummy_value()

    return types.void(function, types.int64, arguments), generate
