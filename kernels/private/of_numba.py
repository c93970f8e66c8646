"""Parts of Numba's inside: the cache of compiled code, what writes code, and the threads of parallel calls."""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir

from kernels.private import missing, part

cgutils = part("numba.core.cgutils")
Dispatcher = part("numba.core.dispatcher.Dispatcher")
Intrinsic = part("numba.core.extending._Intrinsic")
FunctionCache = part("numba.core.caching.FunctionCache")
IndexDataCacheFile = part("numba.core.caching.IndexDataCacheFile")
_parallel = part("numba.np.ufunc.parallel")


class FileCache(FunctionCache):
    """Numba's cache of a function's versions in `folder`, in files called `name`, good for code of one `digest`."""

    def __init__(self, function: Callable, folder: str | None, name: str, digest: str) -> None:
        super().__init__(function)
        for attribute in ("_cache_path", "_cache_file"):
            if not hasattr(self, attribute):
                raise missing(f"numba.core.caching.FunctionCache.{attribute}")
        self._cache_path = folder or self._cache_path
        self._cache_file = IndexDataCacheFile(self._cache_path, name, digest)


def keep_code_in(cache: Any, dispatcher: Any) -> None:
    """Let a compiled function look for its code in `cache`, and keep it there."""
    if not hasattr(dispatcher, "_cache"):
        raise missing("numba.core.dispatcher.Dispatcher._cache")
    dispatcher._cache = cache


def definition_of(intrinsic: Any) -> Any:
    """The function that an intrinsic is made from; what is none is returned."""
    if isinstance(intrinsic, Intrinsic) and not hasattr(intrinsic, "_defn"):
        raise missing("numba.core.extending._Intrinsic._defn")
    return getattr(intrinsic, "_defn", intrinsic)


def define(symbol: str, address: int) -> None:
    """Let compiled code call the function at `address` by that name."""
    llvmlite.binding.add_symbol(symbol, address)


def check_accesses_by(require: Callable) -> None:
    """Let `require(context, builder, place, length, axis)` write the check of indices, in code with `boundscheck`."""
    if not hasattr(cgutils, "do_boundscheck"):
        raise missing("numba.core.cgutils.do_boundscheck")
    cgutils.do_boundscheck = require


def note(context: Any, builder: Any, symbol: str, place: Any, length: Any, what: str) -> None:
    """Write a call of the function `symbol` with a place, a length and a text."""
    i64, text = ir.IntType(64), ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [i64, i64, text]), symbol)
    builder.call(function, [place, length, context.insert_const_string(builder.module, what)])


def leave(context: Any, builder: Any) -> None:
    """Write a return with an error."""
    context.call_conv.return_user_exc(builder, IndexError, ("index is out of bounds",))


def layer_module(layer: str) -> str:
    """The module of the threading layer omp, tbb or workqueue."""
    return f"numba.np.ufunc.{layer if layer == 'workqueue' else f'{layer}pool'}"


@dataclass(frozen=True)
class Layer:
    """The functions of the threading layer in use, which Numba itself calls behind two locks.

    `count` and `set_count`: threads of the next parallel call of the calling thread. `start` takes the number that
    every thread begins with. `dies_of_fork`: a parallel call in a forked process ends it.
    """

    count: Callable[[], int]
    set_count: Callable[[int], None]
    start: Callable[[int], None]
    dies_of_fork: bool


@functools.cache
def layer() -> Layer:
    """The layer, which is loaded where it was not yet."""
    numba.get_num_threads()  # loads it
    name = layer_module(numba.threading_layer())
    count = ctypes.PYFUNCTYPE(ctypes.c_int)(part(f"{name}.get_num_threads"))
    takes = ctypes.PYFUNCTYPE(None, ctypes.c_int)
    set_count, start = takes(part(f"{name}.set_num_threads")), takes(part(f"{name}.launch_threads"))
    return Layer(count, set_count, start, getattr(part(name), "openmp_vendor", "") == "GNU")


def is_layer_loaded() -> bool:
    """Whether this process has a threading layer, or one that it was forked from had."""
    if not hasattr(_parallel, "_is_initialized"):
        raise missing("numba.np.ufunc.parallel._is_initialized")
    return _parallel._is_initialized
