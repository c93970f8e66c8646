"""Ask the cache for an element ahead of its use, from plain compiled code (row loops have that of `vector.lanes`)."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels._compat.numba_internals import cgutils

_I8, _I32 = ir.IntType(8), ir.IntType(32)


@intrinsic
def prefetch(typing_context, array, place):
    """`prefetch(array, place)`: fetch the cache line of that element. Nothing is read, so any place is harmless."""

    def generate(context, builder, signature, values):
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        arguments = (_I8.as_pointer(), _I32, _I32, _I32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), arguments), "llvm.prefetch.p0"
        )
        at = builder.bitcast(builder.gep(data, [values[1]]), _I8.as_pointer())
        builder.call(function, [at, _I32(0), _I32(3), _I32(1)])  # to read, into every level, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate
