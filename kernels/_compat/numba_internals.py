"""Private parts of Numba: its cache of compiled code, code generation, and the threads of parallel calls."""

import ctypes
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels._compat import missing, part

cgutils = part("numba.core.cgutils")
Dispatcher = part("numba.core.dispatcher.Dispatcher")
Intrinsic = part("numba.core.extending._Intrinsic")
FunctionCache: Any = part("numba.core.caching.FunctionCache")
NullCache: Any = part("numba.core.caching.NullCache")
IndexDataCacheFile: Any = part("numba.core.caching.IndexDataCacheFile")
Compiler: Any = part("numba.core.compiler.Compiler")
JITCodeLibrary: Any = part("numba.core.codegen.JITCodeLibrary")
environment: Any = part("numba.core.environment")
runtime: Any = part("numba.core.runtime.rtsys")
_parallel = part("numba.np.ufunc.parallel")
CompileResult: Any = part("numba.core.compiler.CompileResult")
cpu_target: Any = part("numba.core.registry.cpu_target")

config: Any = numba.config
"""Numba's settings, which it defines at run time."""


class Version(NamedTuple):
    """A compiled version of a function on disk: folder, name and digest of the function's index, name of its file."""

    folder: str
    name: str
    digest: str
    file: str


_loaded_ahead: dict[tuple[str, Any], tuple[Any, Sequence[Callable[[], None]]]] = {}
"""Versions loaded by `load_ahead`, by the path of the index and the key in it, with what each has to call at first."""

on_load: list[Callable[[Version], None]] = []
"""Called with each version that is loaded from disk."""


class VersionFile(IndexDataCacheFile):
    """Numba's index and data files of a function's versions, which notes the data file that was read last."""

    last_read = ""

    def _load_data(self, name: str) -> Any:
        """Return what the data file called `name` holds."""
        self.last_read = name
        return super()._load_data(name)


def load_ahead(version: Version) -> None:
    """Load a version from disk for the processes that will be forked from this one; no thread is started.

    Raises StopIteration or OSError if the version is not on disk any more.
    """
    if not hasattr(CompileResult, "_rebuild"):
        raise missing("numba.core.compiler.CompileResult._rebuild")
    file = VersionFile(version.folder, version.name, version.digest)
    key = next(key for key, name in file._load_index().items() if name == version.file)
    context = cpu_target.target_context
    with _loading(context):
        *known, calls, environments = file._load_data(version.file)
        result = CompileResult._rebuild(context, *known, (), environments)
    _loaded_ahead[file._index_path, key] = result._replace(reload_init=calls), calls


class FileCache(FunctionCache):
    """Numba's cache of a function's versions in `folder`, in files called `name`, valid for code with this `digest`."""

    def __init__(self, function: Callable, folder: str | None, name: str, digest: str) -> None:
        """Point Numba's cache of `function` to files called `name` in `folder` (None: Numba's own choice).

        Files with another `digest` are invalid. Raises ImportError if this Numba lacks a private attribute.
        """
        super().__init__(function)
        for attribute in (
            "_cache_path",
            "_cache_file",
            "_index_key",
            "_load_overload",
            "_guard_against_spurious_io_errors",
        ):
            if not hasattr(self, attribute):
                raise missing(f"numba.core.caching.FunctionCache.{attribute}")
        self._cache_path: str = folder or self._cache_path
        self._cache_file = VersionFile(self._cache_path, name, digest)
        self._named = name, digest

    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        """Return the key of a version: (signature, processor); `digest` identifies the rest.

        Numba also takes what the function closes over, pickled, which may be impossible to pickle or differ between
        processes.
        """
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled version of the signature `sig`, as `load_ahead` has loaded it, or from disk, or None.

        Calls `on_load` with a version that is loaded from disk.
        """
        known = _loaded_ahead.get((self._cache_file._index_path, self._index_key(sig, target_context.codegen())))
        if known is not None:
            result, calls = known
            for call in calls:  # such as the start of the threads
                call()
            return result
        with self._guard_against_spurious_io_errors(), _loading(target_context):
            result = self._load_overload(sig, target_context)
        if result is not None:
            for tell in on_load:
                tell(Version(self._cache_path, *self._named, self._cache_file.last_read))
        return result


@contextmanager
def _loading(target_context: Any) -> Iterator[None]:
    """Prepare `target_context` for code that is loaded within the block, not compiled.

    Numba first imports and registers all that code could be compiled from, which takes longer than loading. Code that
    is loaded is compiled already: it needs the addresses of the runtime and of hashing alone. A function that has to be
    compiled registers the rest.
    """
    runtime.initialize(target_context)
    import_module("numba.cpython.hashing")
    with _libraries_as(target_context.codegen(), None), _environments_without_modules():
        yield


@contextmanager
def _environments_without_modules() -> Iterator[None]:
    """Have environments of Numba's own functions loaded without importing the modules that define them.

    Compiled code reads the constants of its environment; only object mode, which these functions lack, reads globals.
    Raises ImportError if Numba has no such function.
    """
    if not hasattr(environment, "_rebuild_env"):
        raise missing("numba.core.environment._rebuild_env")
    before = environment._rebuild_env

    def rebuild(module: str, constants: list, name: str) -> Any:
        """Return the environment called `name`, with a module of Numba that is not imported replaced by its name."""
        if not module.startswith("numba.") or module in sys.modules:
            return before(module, constants, name)
        known = environment.lookup_environment(name)
        if known is None:
            known = environment.Environment({"__name__": module})
            known.consts[:], known.env_name = constants, name
            environment.Environment._memo[name] = known
        return known

    environment._rebuild_env = rebuild
    try:
        yield
    finally:
        environment._rebuild_env = before


class _WithoutEnvironments:
    """The code generator of a `PartLibrary`, whose functions have no environment: nothing reads it."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Do nothing; both parameters are unused, since the code calls no Python object and needs no environment."""


class PartLibrary(JITCodeLibrary):
    """Code of a function that is inlined into all that call it: kept as it was generated.

    Numba optimises the code of each function, with all that it calls, and makes machine code of it. What is seven calls
    deep is optimised seven times, and only the last result is ever run.
    """

    codegen = _WithoutEnvironments()

    def _optimize_final_module(self) -> None:
        """Do nothing: the callers' code is optimised, which has this inside."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add LLVM code to the library, except the wrapper for calls from C."""
        if ir_module.name != "cfunc_wrapper":
            super().add_ir_module(ir_module)

    def _finalize_final_module(self) -> None:
        """Mark the code as final without making machine code of it."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@contextmanager
def _libraries_as(codegen: Any, create: Callable | None) -> Iterator[None]:
    """Make Numba's code generator create libraries by `create` within the block; None: by its own method."""
    before = vars(codegen).pop("create_library", None)
    if create is not None:
        codegen.create_library = create
    try:
        yield
    finally:
        vars(codegen).pop("create_library", None)
        if before is not None:
            codegen.create_library = before


@contextmanager
def _garbage_left() -> Iterator[None]:
    """Search for no garbage within the block, unless that is switched off already.

    Compiling makes millions of objects that live until its end; each search goes over all of them, a fifth of the time.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


class ParallelCompiler(Compiler):
    """Numba's compiler, for functions with loops on several threads."""

    def compile_extra(self, func: Callable) -> Any:
        """Compile the Python function `func`; return Numba's compile result."""
        with _garbage_left():
            return super().compile_extra(func)


class WholeCompiler(Compiler):
    """Numba's compiler, for functions with machine code; what Numba implements their calls by, such as creating an
    array, is compiled as parts of them.
    """

    def compile_extra(self, func: Callable) -> Any:
        """Compile the Python function `func` into a code library that can be cached; return Numba's compile result.

        Internal implementations that it calls become `PartLibrary` code.
        """
        codegen = self.state.targetctx.codegen()
        with _libraries_as(codegen, None):
            self.state.library = codegen.create_library(func.__qualname__)
        self.state.library.enable_object_caching()
        with _libraries_as(codegen, functools.partial(PartLibrary, codegen)), _garbage_left():
            return super().compile_extra(func)


class PartCompiler(Compiler):
    """Numba's compiler, for functions that are inlined into all that call them."""

    def compile_extra(self, func: Callable) -> Any:
        """Compile the Python function `func` into a `PartLibrary`, to be linked into its callers.

        Return Numba's result.
        """
        self.state.library = PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


def keep_code_in(cache: Any, dispatcher: Any) -> None:
    """Make a dispatcher load its code from `cache` and store it there.

    Raises ImportError if Numba has no such attribute.
    """
    if not hasattr(dispatcher, "_cache"):
        raise missing("numba.core.dispatcher.Dispatcher._cache")
    dispatcher._cache = cache


def definition_of(intrinsic: Any) -> Any:
    """Return the Python function that a Numba intrinsic is made from; any other object is returned unchanged.

    Raises ImportError if this Numba keeps it elsewhere.
    """
    if isinstance(intrinsic, Intrinsic) and not hasattr(intrinsic, "_defn"):
        raise missing("numba.core.extending._Intrinsic._defn")
    return getattr(intrinsic, "_defn", intrinsic)


def define(symbol: str, address: int | None) -> None:
    """Make the function at `address` callable by compiled code as `symbol`, for this process."""
    llvmlite.binding.add_symbol(symbol, address)


def check_accesses_by(require: Callable) -> None:
    """Replace Numba's index check of code with `boundscheck` by `require(context, builder, place, length, axis)`.

    That function emits the check. Affects all later compilations. Raises ImportError if Numba has no such function.
    """
    if not hasattr(cgutils, "do_boundscheck"):
        raise missing("numba.core.cgutils.do_boundscheck")
    cgutils.do_boundscheck = require


def emit_c_call(context: Any, builder: Any, symbol: str, place: Any, length: Any, what: str) -> None:
    """Emit a call of the C function `symbol(int64 place, int64 length, char* what)`.

    `place`, `length` are LLVM values.
    """
    i64, text = ir.IntType(64), ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [i64, i64, text]), symbol)
    builder.call(function, [place, length, context.insert_const_string(builder.module, what)])


def leave(context: Any, builder: Any) -> None:
    """Emit a return with an IndexError, or a plain return from a function of `on_threads`."""
    if builder.function.function_type.return_type == ir.VoidType():
        builder.ret_void()
        return
    context.call_conv.return_user_exc(builder, IndexError, ("index is out of bounds",))


def on_threads(builder: Any, count: Any, values: Sequence, write: Callable[[Any, Any, Any, Sequence], None]) -> None:
    """Emit a call of code for `count` parts on the layer's threads, or on this thread if there is one part or thread.

    `write(builder, first, parts, values)` emits the code of consecutive parts, given the shared LLVM `values`; it is
    emitted once, as a function. The layer passes the address `first`, since it adds to pointers: NULL is the first
    part, a step one byte.
    """
    i64, bytes_, void = ir.IntType(64), ir.IntType(8).as_pointer(), ir.VoidType()
    shared = cgutils.alloca_once_value(builder, cgutils.pack_struct(builder, values))
    pointers = [bytes_.as_pointer(), i64.as_pointer(), i64.as_pointer(), bytes_]
    name = builder.module.get_unique_name(f"{builder.function.name}.parts")
    function = ir.Function(builder.module, ir.FunctionType(void, pointers), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    inside = ir.IRBuilder(function.append_basic_block())
    first, parts = inside.ptrtoint(inside.load(function.args[0]), i64), inside.load(function.args[1])
    struct = inside.load(inside.bitcast(function.args[3], shared.type))
    write(inside, first, parts, cgutils.unpack_tuple(inside, struct))
    inside.ret_void()

    places = [cgutils.alloca_once_value(builder, value) for value in (bytes_(None), count, i64(1))]
    arguments = [*places, builder.bitcast(shared, bytes_)]
    number = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), NUMBER)
    threads = builder.sext(builder.call(number, []), i64)
    is_alone = builder.or_(*(builder.icmp_signed("==", many, i64(1)) for many in (count, threads)))
    with builder.if_else(is_alone) as (alone, together):
        with alone:
            builder.call(function, arguments)
        with together:
            loop = ir.FunctionType(void, [bytes_] * 5 + [i64, i64, i64])
            loop = cgutils.get_or_insert_function(builder.module, loop, LOOP)
            casted = [builder.bitcast(pointer, bytes_) for pointer in (function, *arguments)]
            builder.call(loop, [*casted, i64(1), i64(1), threads])


def call_compiled(context: Any, builder: Any, function: Any, signature: Any, values: Sequence) -> None:
    """Emit a call of a compiled function, given by its Numba type, with LLVM `values` of the `signature`.

    The function must not raise and returns nothing.
    """
    compiled = function.dispatcher.overloads[tuple(signature.args)]
    context.active_code_library.add_linking_library(compiled.library)
    context.call_internal_no_propagate(builder, compiled.fndesc, signature, values)


LOOP, NUMBER = "numba_parallel_for", "get_num_threads"
"""Functions of the layer by the names that compiled code has for them once it is loaded."""
LAYER_FUNCTIONS = (
    *("do_scheduling_signed", "do_scheduling_unsigned", "allocate_sched", "deallocate_sched"),
    *("get_num_threads", "set_num_threads", "get_thread_id"),
    *("set_parallel_chunksize", "get_parallel_chunksize", "get_sched_size"),
)
"""Other functions of a layer that the code of parallel loops calls, each by its own name."""


def layer_module(layer: str) -> str:
    """Return the module name of the threading layer "omp", "tbb" or "workqueue"."""
    return f"numba.np.ufunc.{layer if layer == 'workqueue' else f'{layer}pool'}"


@dataclass(frozen=True)
class Layer:
    """Functions of the threading layer in use, which Numba itself calls behind two locks.

    `count` and `set_count`: threads of the next parallel call of the calling thread. `start` takes the initial thread
    count.
    `dies_of_fork`: whether a parallel call in a forked process ends it.
    """

    count: Callable[[], int]
    set_count: Callable[[int], None]
    start: Callable[[int], None]
    dies_of_fork: bool


@functools.cache
def layer() -> Layer:
    """Load the active threading layer of Numba and return its functions to count, set and start threads; cached."""
    numba.get_num_threads()  # loads it
    name = layer_module(numba.threading_layer())
    count = ctypes.PYFUNCTYPE(ctypes.c_int)(part(f"{name}.get_num_threads"))
    takes = ctypes.PYFUNCTYPE(None, ctypes.c_int)
    set_count, start = takes(part(f"{name}.set_num_threads")), takes(part(f"{name}.launch_threads"))
    return Layer(count, set_count, start, getattr(part(name), "openmp_vendor", "") == "GNU")


def name_layer_functions(name: str) -> None:
    """Make the functions of the threading layer `name` known to code that is loaded, without starting the layer.

    `layer` starts it, which no process may do that forks later.
    """
    module = part(layer_module(name))
    llvmlite.binding.add_symbol(LOOP, module.parallel_for)
    for symbol in LAYER_FUNCTIONS:
        if not hasattr(module, symbol):
            raise missing(f"{layer_module(name)}.{symbol}")
        llvmlite.binding.add_symbol(symbol, getattr(module, symbol))


def is_layer_loaded() -> bool:
    """Return whether this process, or the one it was forked from, has loaded a threading layer. Raises ImportError."""
    if not hasattr(_parallel, "_is_initialized"):
        raise missing("numba.np.ufunc.parallel._is_initialized")
    return _parallel._is_initialized


_MUTEX = ctypes.create_string_buffer(128)
"""A pthread_mutex_t, for which every C library needs less: held by the thread whose parallel loop is running."""

_engines: list[Any] = []
"""Owners of the machine code that `serialize_loops` made: it is freed with them."""


def serialize_loops() -> None:
    """Make parallel loops of several threads run one after the other in the layer "workqueue".

    Without it a second loop at the same time ends the process (SIGABRT). Loops in code that was loaded before are not
    changed. Repeated calls change nothing.
    """
    if _engines:
        return
    library = ctypes.CDLL(None)
    _initialize_mutex()
    os.register_at_fork(after_in_child=_initialize_mutex)  # the thread that held it may not be in the child
    module = part(layer_module("workqueue"))
    word = ir.IntType(64)
    loop = ir.FunctionType(ir.VoidType(), [word] * 8)  # five pointers and three sizes, each a word
    change = ir.FunctionType(ir.IntType(32), [word])
    code = ir.Module()
    function = ir.Function(code, loop, "serialized_loop")
    builder = ir.IRBuilder(function.append_basic_block())

    def call(kind: ir.FunctionType, address: int, operands: Sequence[Any]) -> None:
        """Emit the call of the C function at `address`, of this `kind`."""
        builder.call(builder.inttoptr(word(address), kind.as_pointer()), operands)

    mutex = [word(ctypes.addressof(_MUTEX))]
    call(change, _address(library.pthread_mutex_lock), mutex)
    call(loop, part(f"{layer_module('workqueue')}.parallel_for"), function.args)
    call(change, _address(library.pthread_mutex_unlock), mutex)
    builder.ret_void()
    machine = llvmlite.binding.Target.from_default_triple().create_target_machine()
    engine = llvmlite.binding.create_mcjit_compiler(llvmlite.binding.parse_assembly(str(code)), machine)
    engine.finalize_object()
    _engines.append(engine)
    module.parallel_for = engine.get_function_address(function.name)
    if is_layer_loaded() and numba.threading_layer() == "workqueue":
        llvmlite.binding.add_symbol(LOOP, module.parallel_for)


def _initialize_mutex() -> None:
    """Make `_MUTEX` a mutex that no thread holds."""
    ctypes.CDLL(None).pthread_mutex_init(_MUTEX, None)


def _address(function: Any) -> int:
    """Return the address of a function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@intrinsic
def each_part(typing_context, function, parts, arguments):
    """Call `function(part, *arguments)` for part 0 to parts - 1 on the layer's threads, in compiled code.

    `arguments` is a tuple. The function must return nothing and raise nothing. Call `layer` before compiling a caller:
    its code is linked with the threading layer. Numba's `prange` compiles what it repeats behind two more functions, in
    a module each, and takes twice as long.
    """
    call = function.get_call_type(typing_context, (types.int64, *arguments), {})

    def generate(context, builder, signature, values):
        """Emit the loop over the parts on the threads of the layer; return the LLVM value of None.

        The parameters are those of Numba's code generators.
        """

        def write(builder, first, count, values):
            """Emit the calls for parts first to first + count - 1 (LLVM integers), the share of one thread.

            values[0] is the packed argument tuple.
            """
            operands = cgutils.unpack_tuple(builder, values[0])
            with cgutils.for_range(builder, count) as loop:
                call_compiled(context, builder, function, call, [builder.add(first, loop.index), *operands])

        on_threads(builder, values[1], values[2:], write)
        return context.get_dummy_value()

    return types.void(function, types.int64, arguments), generate


@intrinsic
def flat(typing_context, array):
    """Return a C-contiguous array as a 1-d array of the same memory, in compiled code; read-only if it is.

    Typing fails for other arrays.
    """
    if not (isinstance(array, types.Array) and array.layout == "C"):
        return None
    result = types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def generate(context, builder, signature, values):
        """Emit a 1-d array structure over the memory of values[0], which it keeps alive; return its LLVM value.

        `context` and `builder` are Numba's code generator, `signature` is unused.
        """
        populate = part("numba.np.arrayobj.populate_array")  # code that is loaded from disk does without the module
        given = context.make_array(array)(context, builder, values[0])
        made = context.make_array(result)(context, builder)
        shape, strides = [given.nitems], [given.itemsize]
        populate(made, given.data, shape, strides, given.itemsize, given.meminfo, given.parent)
        return part("numba.core.imputils.impl_ret_borrowed")(context, builder, result, made._getvalue())

    return result(array), generate
