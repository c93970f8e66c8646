"""The executor: a graph with its arrays, which are validated as they come, run forward and backward."""

import threading
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from typing import Any, NoReturn, final

import numpy as np

from kernels.plan import BatchPlan
from workbench import formats
from workbench.executor import binding
from workbench.executor.program import BindError, HeadsOfOnes, Pool, Program, Step, Writer, scale_in_place
from workbench.formats import RowSparse, validate
from workbench.graph import Facts, Graph, Inference
from workbench.graph.explanation import Explanation
from workbench.graph.inference import infer
from workbench.ops import products


def validate_argument(value: Any, name: str) -> Any:
    """Return `value` validated; FormatError, with the argument's name as a note, if it is invalid."""
    try:
        return validate(value)[1]
    except formats.FormatError as error:
        error.add_note(f"This is {name} of the graph.")
        raise


def _fixed_places(x: Any) -> tuple | None:
    """Return (shape, *index arrays) of csr, csc or row_sparse if these are read-only and own memory, else None.

    None for other arrays.
    """
    if isinstance(x, RowSparse):
        indices: tuple = (x.indices,)
    elif getattr(x, "format", None) in ("csr", "csc"):
        indices = (x.indptr, x.indices)
    else:
        return None
    for array in indices:
        if array.flags.writeable or array.base is not None:
            return None
    return (x.shape, *indices)


@final
class Slots(dict[str, int]):
    """Slots (positions) of arguments by name. Raises BindError for an unknown one."""

    def __missing__(self, name: str) -> int:
        """Raise BindError for the unknown argument `name`."""
        raise BindError(f"There is no argument {name!r}; the arguments are {list(self)}.")


@final
class InputChecker:
    """Sparse arrays passed in by the caller, by slot, which are validated before each pass that reads them.

    Weights whose index arrays are the same read-only objects as before are not validated again: a step that reads few
    rows would pay for all stored ones.
    """

    def __init__(self, names: dict[int, str]) -> None:
        """Keep the names of the sparse arguments by slot; nothing is validated yet."""
        self.names = names
        self.checked: dict[int, Any] = {}
        self.own: set[int] = set()
        """Slots of arrays that nobody else holds, made from validated ones: they are not validated."""

    def check(self, slot: int, value: Any, name: str) -> Any:
        """Return the validated array of a slot, noting its indices if read-only (FormatError naming the argument)."""
        value = validate_argument(value, name)
        self.own.discard(slot)
        self.checked[slot] = _fixed_places(value)
        return value

    def recheck(self, values: list, taken: Container[int] = ()) -> dict[int, Any]:
        """Return {slot: validated array} of `values` that may have changed, but `taken` slots (FormatError)."""
        checked = {}
        for slot, name in self.names.items():
            if slot not in taken and slot not in self.own and not self._is_settled(slot, values[slot]):
                checked[slot] = self.check(slot, values[slot], name)
        return checked

    def _is_settled(self, slot: int, value: Any) -> bool:
        """Return whether `value` has the same read-only index arrays as when its slot was validated, and fits them."""
        before, now = self.checked.get(slot), _fixed_places(value)
        if before is None or now is None or before[0] != now[0]:
            return False
        same = all(one is other for one, other in zip(before[1:], now[1:], strict=True))
        values = value.values if isinstance(value, RowSparse) else value.data
        return same and values.shape[0] == now[-1].size


@final
class Released:
    """Arguments whose arrays an executor has released: `names` by slot, until they are passed again.

    `without_rows` are arrays without rows, by slot, that take the place of released ones.
    """

    def __init__(self) -> None:
        """Start without released arguments."""
        self.names: dict[int, str] = {}
        self.without_rows: dict[int, Any] = {}

    def add(self, slot: int, facts: Facts) -> None:
        """Keep an array without rows for a slot, with the format, dtype and other lengths of `facts`."""
        known = facts.complete
        self.without_rows[slot] = formats.zeros((0, *known.shape[1:]), known.format, known.dtype)

    def require(self, arrays: Container[int]) -> None:
        """Raise BindError unless all released arguments are among the slots `arrays`; then mark none as released."""
        if not all(map(arrays.__contains__, self.names)):
            missing = [name for slot, name in self.names.items() if slot not in arrays]
            raise BindError(
                f"The arrays of {', '.join(missing)} were freed by release(). Pass them to forward() again."
            )
        self.names.clear()


@final
class Arguments(Mapping):
    """Mapping of the arguments' arrays by name. `args["w"][:] = value` and `args["w"] = value` both write into the
    array.
    """

    def __init__(self, executor: "Executor") -> None:
        """Wrap an executor; arrays are read from it at each access."""
        self._executor = executor

    def __getitem__(self, name: str) -> Any:
        """Return the array of the argument, not copied. Raises BindError for an unknown name."""
        return self._executor.values[self._executor.slots[name]]

    def __setitem__(self, name: str, value: Any) -> None:
        """Overwrite the array of the argument in place. Raises BindError for an unknown name, FormatError."""
        formats.assign(self[name], value)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the arguments."""
        return iter(self._executor.known)

    def __len__(self) -> int:
        """Return the number of arguments."""
        return len(self._executor.known)

    def __repr__(self) -> str:
        """Return the arrays by name as text."""
        return f"Arguments({dict(self)!r})"


# One call at a time: an executor's values are those of one batch, and two threads would mix theirs.


ADVICE = "Bind an executor for each thread: each then has its own arrays and values."


@final
class ReentrancyGuard:
    """Reentrancy guard: one call at a time; a second one raises BindError. Costs less than half a microsecond.

    A call takes the `lock` with `acquire(False)`, or `refuse`s, and releases it at its end: as a context manager the
    guard would take two calls more in each pass.
    It also records in `trained_by` which thread's training pass may be followed by `backward`; 0 if there is none.
    """

    __slots__ = ("lock", "trained_by")

    def __init__(self) -> None:
        """Start unlocked and without a training pass."""
        self.lock = threading.Lock()
        self.trained_by = 0

    def refuse(self) -> NoReturn:
        """Raise BindError, which says that another call or thread is using the executor."""
        raise BindError(f"This executor is already running, in another call or thread. {ADVICE}")

    def require_trained(self) -> None:
        """Raise BindError unless this thread did the last forward pass for training and its values are not used up."""
        if not self.trained_by:
            raise BindError(
                "backward needs the values of a forward pass, and uses them up. Call forward(training=True) first."
            )
        if self.trained_by != threading.get_ident():
            raise BindError(f"The last forward(training=True) was made by another thread. {ADVICE}")


PROGRAMS = 64
"""Tuples of shapes whose programs are kept."""
OnStep = Callable[[Step], None]


@final
class Executor:
    """A bound graph; created by `bind`.

    `args`, `grads` and `outputs` are arrays by name; outputs and gradients are overwritten by the next call. `requests`
    has "write" or "add" for each argument with a gradient; `reads_plan` names the arguments whose batch plan (column
    index) is read, which `forward` builds unless it is passed.

    Examples
    --------
    See `workbench.executor`.
    """

    def __init__(
        self,
        graph: Graph,
        args: Mapping[str, Any],
        given: Mapping[str, Mapping[str, Any]],
        grad_req: str | Mapping[str, str],
        grad_formats: Mapping[str, str],
        convert: bool,
        resizable: Collection[str] = (),
    ) -> None:
        """Bind the graph to arrays, infer all facts and allocate memory; parameters as of `bind`. Raises BindError."""
        self.graph, self.convert = graph, convert
        self.declared = binding.complete_facts(graph, args, given)
        self.inferred = inference = infer(graph, **self.declared)
        self.known: dict[str, Facts] = inference.arguments
        self.resizable = binding.resizable_of(resizable, inference)
        self.training, self.alike = binding.differentiate(graph, inference, self.declared, grad_req, dict(grad_formats))
        self.requests = dict(self.training.requests)
        self.pool = Pool()
        self.programs: dict[tuple, Program] = {}
        self.values: list[Any] = [None] * len(self.training.slots)
        slots = self.training.slots
        self.slots = Slots((name, slots[node]) for name, node in graph.variables().items())
        self.ones: dict[int, Any] = {}
        self.output_slots = [slots[head] for head in graph.heads]
        self.output_names = graph.outputs()
        arguments = self.training.graph.variables()
        self.head_slots = [slots.get(arguments.get(name)) for name in [*self.alike][: len(graph.heads)]]
        names = {self.slots[name]: name for name, facts in self.known.items() if facts.format != "dense"}
        self.outside = InputChecker(names)
        self._hold_constants()
        arrays = {
            self.slots[name]: binding.coerce_argument(facts, args[name], convert)
            if name in args
            else binding.zeros(facts)
            for name, facts in self.known.items()
        }
        self.grads: dict[str, Any] = {}
        self.args, self.alone, self.released = Arguments(self), ReentrancyGuard(), Released()
        self.headed: Program | None = None  # the program whose heads of ones are in place
        self.backward_steps: list[Step] = []  # of the last backward
        self.held_shapes: tuple[tuple[int, ...], ...] = ()  # of the arguments, by slot
        self.traits = dict[int, tuple]()  # class, dtype and shape
        self.program: Program
        self._hold(arrays)
        binding.require_no_densifying(self.inference)
        self._start()

    def __repr__(self) -> str:
        """Return outputs and argument shapes: "<Executor dot0: x [2, 3], w [3, 1]>"."""
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in self.args.items())
        return f"<Executor {', '.join(self.output_names)}: {shapes}>"

    @property
    def inference(self) -> Inference:
        """Return the facts of every node, backward part included, for the shapes of the last call."""
        return self.program.inference

    @property
    def reads_plan(self) -> list[str]:
        """Return the names of the arguments whose batch plan is read."""
        return [name for name, slot in self.slots.items() if slot in self.program.plans]

    def new_plan(self, name: str, x: Any) -> BatchPlan | None:
        """Return a new batch plan of `x` for an argument of `reads_plan`; None if its reader is faster without one."""
        return products.plan_for(x, self.program.widths[self.slots[name]])

    @property
    def outputs(self) -> dict[str, Any]:
        """Return the outputs by name, not copied; zeros before the first `forward`."""
        return dict(zip(self.output_names, (self.values[slot] for slot in self.output_slots), strict=True))

    @property
    def slopes(self) -> dict[str, Any]:
        """Return the gradients of the scores by the names of the losses; valid right after a training forward pass."""
        names, slots = self.training.names, self.training.slots
        return {names[loss]: self.values[slots[slope]] for loss, slope in self.training.slopes.items()}

    @property
    def bytes_buffers(self) -> int:
        """Return the bytes that the executor allocated for dense values."""
        return self.pool.nbytes

    def forward(
        self,
        training: bool = False,
        plans: Mapping[str, BatchPlan] | None = None,
        on_step: OnStep | None = None,
        wanted: Sequence[int] | None = None,
        is_own: bool = False,
        **new_args: Any,
    ) -> list[Any]:
        """Compute the outputs.

        Parameters
        ----------
        training : bool, default False
            Keep what `backward` reads.
        plans : mapping of str to BatchPlan, optional
            Batch plans by argument, of the arrays of this call.
        on_step : callable, optional
            Called with every `Step` when it is done.
        wanted : sequence of int, optional
            Without training: positions of the outputs to compute; the others are None, also in `outputs`.
        is_own : bool, default False
            Whether `new_args` were made from validated arrays and nobody else holds them; they are then not validated.
        **new_args : array
            Arrays by argument; held, not copied. The number of rows may change, of `resizable` arguments all lengths.

        Returns
        -------
        list of array
            The outputs; overwritten by the next call.

        Raises
        ------
        FormatError
            If a sparse argument is invalid; they are validated in every call.
        BindError
            If an argument does not fit, or another thread's call is running.

        Examples
        --------
        See `workbench.executor`.
        """
        if training and wanted is not None:
            raise BindError("wanted chooses outputs of forward(training=False); training computes all of them.")
        if not self.alone.lock.acquire(False):
            self.alone.refuse()
        try:
            arrays, are_alike = self._validate_new_args(new_args, is_own)
            if self.released.names:
                self.released.require(arrays)
            if again := self.outside.recheck(self.values, arrays):
                arrays, are_alike = arrays | again, False
            self._hold(arrays, are_alike)
            self._take_plans(plans or {})
            self.alone.trained_by = 0
            self._run(self.program.training if training else self._forward_steps(wanted), on_step)
            self.alone.trained_by = threading.get_ident() if training else 0
            return list(map(self.values.__getitem__, self.output_slots))
        finally:
            self.alone.lock.release()

    def _forward_steps(self, wanted: Sequence[int] | None) -> list[Step]:
        """Return the forward steps for the outputs at positions `wanted` (None: all); sets values of others to None."""
        if wanted is None:
            return self.program.forward
        slots = frozenset(self.output_slots[place] for place in wanted)
        computed = {slot for slot in self.output_slots if slot not in self.slots.values()}
        for slot in computed - slots:
            self.values[slot] = None
        return self.program.needed(slots)

    def backward(self, heads: Any = None, on_step: OnStep | None = None) -> dict[str, Any]:
        """Compute the gradients of the last `forward(training=True)`, once.

        Parameters
        ----------
        heads : array or list of array or None, optional
            Head gradient of each output, converted to the format of the output; None stands for ones. Losses, output
            layers and outputs of one element need none.
        on_step : callable, optional
            Called with every `Step` when it is done.

        Returns
        -------
        dict of str to array
            Gradients by argument, as in `grads`; overwritten by the next call.

        Raises
        ------
        BindError
            If there was no training pass of this thread, or a head is missing or does not fit.

        Examples
        --------
        See `workbench.executor`.
        """
        if not self.alone.lock.acquire(False):
            self.alone.refuse()
        try:
            self.alone.require_trained()
            if heads is not None or self.headed is not self.program:
                known = self.program.with_ones if heads is None else None
                if known is None:
                    self._take_heads(heads)
                self.headed = self.program if heads is None else None
                if known is None:
                    self._choose_steps()
                else:
                    self._take_ones(known)
            if self.program.reads_again:
                self.outside.recheck(self.values)
            self.alone.trained_by = 0
            self._run(self.backward_steps, on_step)
            for name, slot in self.program.written.items():
                self.grads[name] = self.values[slot]
            return self.grads
        finally:
            self.alone.lock.release()

    def _choose_steps(self) -> None:
        """Set the backward steps; heads of ones multiply nothing: the results are set to the inputs, and kept."""
        program, ones = self.program, set(map(id, self.ones.values()))
        self.backward_steps, passed = program.backward, list[tuple[int, int]]()
        if self.headed is None:
            return
        kept = []
        for step in program.backward:
            head = self.values[step.inputs[1]] if step.call is scale_in_place else None
            if head is not None and id(head) in ones and head.size == 1:
                self.values[step.output] = self.values[step.inputs[0]]
                passed.append((step.output, step.inputs[0]))
            else:
                kept.append(step)
        self.backward_steps = kept
        program.with_ones = HeadsOfOnes(dict(self.ones), passed, kept)

    def _take_ones(self, known: HeadsOfOnes) -> None:
        """Put the heads of ones that a program had before into their slots, and set its backward steps."""
        values = self.values
        self.ones.update(known.heads)
        for slot, head in known.heads.items():
            values[slot] = head
        for output, source in known.passed:
            values[output] = values[source]
        self.backward_steps = known.steps

    def release(self, *names: str) -> None:
        """Release batch plans, factored gradients and the arrays of these arguments, so that the next batch reuses
        their memory.

        The next call must pass the released arguments; until then they have no rows.

        Parameters
        ----------
        *names : str
            Arguments to release.

        Examples
        --------
        See `workbench.executor`.
        """
        self.alone.trained_by = 0
        released = self.released
        for name in names:
            slot = self.slots[name]
            if slot not in released.without_rows:
                released.add(slot, self.known[name])
            self.values[slot], released.names[slot] = released.without_rows[slot], name
        for slot in self.program.plans.values():
            self.values[slot] = None
        for name, slot in self.program.written.items():
            if isinstance(self.values[slot], products.Unsummed):
                self.values[slot] = None
                self.grads.pop(name, None)

    def explain(self) -> Explanation:
        """Explain every node, forward and backward, and what is made dense, for the shapes of the last call.

        Returns
        -------
        Explanation
            Prints as a table.

        Examples
        --------
        See `workbench.executor`.
        """
        return binding.explain(self)

    def _run(self, steps: Sequence[Step], on_step: OnStep | None) -> None:
        """Run the steps in order, storing outputs; call `on_step(step)`, unless None, after each. Errors get a note."""
        values = self.values
        step = None
        try:
            with np.errstate(all="ignore"):  # NaN and infinities are results, as of operators on arrays
                for step in steps:
                    values[step.output] = step.call(*step.take(values), out=step.out)
                    for slot in step.dead:
                        values[slot] = None
                    if on_step is not None:
                        on_step(step)
        except Exception as error:
            if step is not None:
                error.add_note(f"This happened in the step {step.name}.")
            raise

    def _validate_new_args(self, new_args: Mapping[str, Any], is_own: bool) -> tuple[dict[int, Any], bool]:
        """Return ({slot: validated array} of new_args, whether types, dtypes and shapes are those of the last call).

        `is_own`: sparse arrays are not validated. Raises BindError or FormatError.
        """
        arrays, are_alike = {}, True
        for name, value in new_args.items():
            slot = self.slots[name]
            if is_own:
                self.outside.own.add(slot)
            elif not isinstance(value, np.ndarray):
                value = self.outside.check(slot, value, name)
            trait, before = (type(value), value.dtype, value.shape), self.traits[slot]
            if trait != before:
                are_alike = False
                if trait[:2] != before[:2] or trait[2][1:] != before[2][1:] or len(trait[2]) != len(before[2]):
                    resizable = name in self.resizable
                    value = binding.coerce_argument(self.known[name], value, self.convert, resizable, is_own)
            arrays[slot] = value
        return arrays, are_alike

    def _hold_constants(self) -> None:
        """Copy the constants of the graph to their slots in `values`."""
        for node in self.training.nodes:
            if node.kind == "constant":
                slot = self.training.slots[node]
                self.values[slot] = node.value
                if not isinstance(node.value, np.ndarray):
                    self.outside.names[slot] = self.training.names[node]

    def _hold(self, arrays: Mapping[int, Any], are_alike: bool = False) -> None:
        """Put new arrays into their slots and select the program for their shapes; nothing changes on an error."""
        values, shapes = self.values, self.held_shapes
        if not are_alike:
            shapes = tuple([arrays.get(slot, values[slot]).shape for slot in self.slots.values()])
        if shapes != self.held_shapes or not self.programs:
            if shapes not in self.programs:
                self._write(shapes)
            self.program, self.held_shapes = self.programs[shapes], shapes
            for slot, view in self.program.views:
                values[slot] = view
            self.ones.clear()
        for slot, value in arrays.items():
            values[slot] = value
            if not are_alike:
                self.traits[slot] = type(value), value.dtype, value.shape

    def _write(self, shapes: tuple) -> None:
        """Compile the program for these argument shapes and cache it; other programs go if memory had to grow."""
        declared = self.declared.copy()
        declared["shapes"] = dict(zip(self.slots, shapes, strict=True))
        is_first = [self.known[name].shape for name in self.slots] == list(shapes)  # those that it was bound with
        facts = (self.inferred if is_first else infer(self.graph, **declared)).facts
        here = set(self.training.graph.arguments())
        like = {name: facts[node] for name, node in self.alike.items() if name in here}
        inference = infer(self.training.graph, **binding.leaf_facts(like, declared))
        grown = self.pool.grown
        program = Writer(self.training, inference, self.pool).write()
        if self.pool.grown > grown or len(self.programs) >= PROGRAMS:
            self.programs.clear()  # the others are over blocks that are no more
        self.programs[shapes] = program

    def _start(self) -> None:
        """Set outputs and gradients to zeros, their values before the first call."""
        facts = self.inference.facts
        for step in self.program.forward:
            self.values[step.output] = step.out
        for slot, node in zip(self.output_slots, self.graph.heads, strict=True):
            if self.values[slot] is None:
                self.values[slot] = binding.zeros(facts[node])
        for name, node in self.training.gradients.items():
            if node not in self.training.fused:
                slot = self.training.slots["gradient", name]
                self.grads[name] = self.values[slot] = binding.zeros(facts[node])

    def _take_plans(self, plans: Mapping[str, BatchPlan]) -> None:
        """Put batch plans into their slots, None for missing ones (BindError if one does not fit its array)."""
        for slot in self.program.plans.values():
            self.values[slot] = None
        for name, plan in plans.items():
            x = self.values[self.slots[name]]
            if plan.shape != x.shape:
                raise BindError(f"The plan of {name} is of a batch {plan.shape}; {name} is {x.shape}. Build it anew.")
            if plan_slot := self.program.plans.get(self.slots[name]):
                self.values[plan_slot] = plan

    def _take_heads(self, given: Any) -> None:
        """Put the gradients of the outputs (one, a list or None) into their slots; ones if one element. BindError."""
        listed = binding.list_heads(given, self.output_names)
        for place, (slot, value) in enumerate(zip(self.head_slots, listed, strict=True)):
            if value is None and (slot is None or (slot in self.ones and self.values[slot] is self.ones[slot])):
                continue  # an output layer has no use for it, or it is there
            head = binding.head_array(self.output_names[place], self.inference.facts[self.graph.heads[place]], value)
            if slot is not None:
                self.values[slot] = head
                if value is None:
                    self.ones[slot] = head
