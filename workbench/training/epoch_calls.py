"""Epochs in few calls, on the host: many batches of an epoch in one compiled call (`kernels.epochs`).

A call does steps of the optimizer (`RuleSteps`), or dual ascent (`DualSteps`), which minimizes the mean of the rows'
losses + decay / 2 * |W|^2, as `sgd` does with an exact update. W is the sum of x.T @ dual over the rows, divided by
decay and the number of rows. The intercept has no decay: it is trained as a feature of one value whose weight decays
towards the intercept that the last epoch ended with, which is as if the dual variables were forced to sum to zero (the
method of multipliers, Hestenes 1969).

Rows are read where they stand, in the order of the epoch's batches. A call ends after about 50 ms, so that progress,
loss curves, Ctrl-C and changed options work as with single steps.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, final

import numpy as np

from kernels import Kernel, aligned, epochs
from kernels.epochs import dense
from kernels.rules.missed import STEPS
from workbench import data, formats
from workbench.training.setup import SetupError
from workbench.training.training import PhaseTimer, StepEvent
from workbench.watching import tell

if TYPE_CHECKING:
    from workbench.training.run import Run
    from workbench.training.training import Prepared

SHARE = 1 / 16
"""The square of an intercept's value, by the mean sum of squares of a row: much less slows rows without it little."""


@final
class DualSteps:
    """Dual ascent on the rows of a training, from dual variables of zero when it takes others.

    `dual` [T, N] are the variables, `squares` [T] the sums of squares of the rows `x`.
    """

    def __init__(self, run: "Run") -> None:
        """Store the run and its decay; dual variables are created when rows come."""
        self.run = run
        self.decay = float(run.setup.options["decay"])
        self.has_intercept, self.nothing = run.setup.has_intercept, np.zeros(0, run.dtype)
        self.x: Any = None
        self.is_zero = True
        """Whether all dual variables are zero, as before the first call."""
        self.bound: tuple[tuple, Callable[[np.ndarray], np.ndarray]] | None = None
        """Operands of the last call on CSR rows, and the kernel on them as a function of the order."""

    @property
    def nbytes(self) -> int:
        """Bytes of the dual variables and the sums of squares of rows."""
        return 0 if self.x is None else self.dual.nbytes + self.squares.nbytes

    def hold(self, x: Any) -> None:
        """Create dual variables of zero for the rows of x if they are others than before; weights stay.

        The decay then pulls towards those weights.
        """
        if x is self.x:
            return
        self.x, self.bound, self.is_zero = x, None, True
        self.dual = aligned.zeros((x.shape[0], self.run.width), self.run.dtype)
        self.squares = np.full(x.shape[0], -1, self.run.dtype)  # not known before a row comes
        self.square = SHARE * sum_of_squares(x if isinstance(x, np.ndarray) else x.data) / max(x.shape[0], 1) or 1.0

    def kernel_of(self, x: Any) -> tuple[Kernel, *tuple[np.ndarray, ...]]:
        """Return (kernel for CSR or dense x, *arrays of x that it takes)."""
        from kernels.epochs import dual, dual_dense  # late: most trainings do steps

        loss = self.run.model.loss
        if isinstance(x, np.ndarray):
            return dual_dense.get(loss), x
        return dual.get(loss), x.indptr, x.indices, x.data

    def begin(self, x: Any) -> None:
        """Prepare an epoch on x: shift the intercept, whose decay is centred at its last value, in place."""
        self.hold(x)
        if self.has_intercept and x.shape[0] and not self.is_zero:
            self.run.arrays["b"] += column_sums(self.dual) * (self.square / (self.decay * x.shape[0]))

    def do(
        self, x: Any, y: np.ndarray, counts: np.ndarray, order: np.ndarray, batch_rows: int, epoch_rows: int
    ) -> np.ndarray:
        """Update weights, dual variables and intercept in place by the rows `order`; return the mean loss per batch.

        `counts` [T] are row weights, empty for none; `batch_rows` only groups the losses; `epoch_rows` is unused.
        """
        self.hold(x)
        self.is_zero = False
        b = self.run.arrays["b"] if self.has_intercept else self.nothing
        losses = self._climb(x, (y, counts, self.squares), order, (self.run.arrays["w"], self.dual, b))
        sums = np.add.reduceat(losses, np.arange(0, order.size, batch_rows))
        sums[:-1] /= batch_rows
        sums[-1] /= order.size - (sums.size - 1) * batch_rows
        return sums

    def _climb(self, x: Any, of_rows: tuple, order: np.ndarray, arrays: tuple) -> np.ndarray:
        """Do a step of each row of `order`, in place; return the losses before, float64 [M].

        `of_rows` are targets, counts and squares, `arrays` weights, dual variables and intercept. Operands are
        validated again only if one is another array than in the call before, or X is dense.
        """
        kernel, *rows = self.kernel_of(x)
        operands = *rows, *of_rows, *arrays, self.square, self.decay
        if self.bound and len(operands) == len(self.bound[0]) and all(map(is_, operands, self.bound[0])):
            return self.bound[1](order)
        everything = *rows, *of_rows, order, *arrays, self.square, self.decay
        if isinstance(x, np.ndarray) or not kernel.are_plain(*everything):
            return kernel.trusted(*everything)
        from kernels.epochs import dual

        self.bound = operands, dual.climber_of_csr(self.run.model.loss, *everything)
        return self.bound[1](order)

    # What a saved training has of it

    def state(self) -> dict[str, np.ndarray]:
        """Return {"dual": copy of the dual variables [T, N]} of the rows trained on."""
        self.hold(self.run.batches.x)
        return {"dual": self.dual.copy()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Overwrite the dual variables by those of `state`; SetupError if shape or dtype differ."""
        self.hold(self.run.batches.x)
        saved = arrays["dual"]
        if not isinstance(saved, np.ndarray) or (saved.shape, saved.dtype) != (self.dual.shape, self.dual.dtype):
            raise SetupError(
                f"The state has dual variables {saved!r:.80}; those of this training are {self.dual.dtype} "
                f"{self.dual.shape}, a row for each that is trained on."
            )
        self.dual[...], self.is_zero = saved, False


MANY_VALUES, PARTS, PART = 1 << 17, 16, 1 << 10
"""Values from which on the sum of their squares is estimated, and how many parts of how many are looked at for it."""


def sum_of_squares(values: np.ndarray) -> float:
    """Return the sum of the squares of a C-order array; of many values an estimate from evenly spread parts of them.

    All values are read if they are at most 2^17. To read those of an a9a took as long as steps of a thousand rows.
    """
    parts = values.reshape(1, -1)
    if values.size > MANY_VALUES:
        parts = parts[0, : values.size // PARTS * PARTS].reshape(PARTS, -1)[:, :PART]
    return float(np.einsum("ij,ij->", parts, parts)) * (values.size / max(parts.size, 1))


TOGETHER = 64
"""Rows that are added as one long row."""


def column_sums(array: np.ndarray) -> np.ndarray:
    """Return the sum of each column of a C-order array [T, N] with small N, faster than NumPy's own."""
    rows, columns = array.shape
    whole = rows // TOGETHER * TOGETHER
    sums = array[:whole].reshape(-1, TOGETHER * columns).sum(axis=0).reshape(TOGETHER, columns).sum(axis=0)
    return sums + array[whole:].sum(axis=0)


SECONDS_CALL = 0.05
"""What a call takes, about."""

SECONDS_EPOCHS = 0.002
"""What a call of several epochs takes, about: what a call costs besides is then a hundredth of it."""

SECONDS_ROW, SECONDS_ENTRY, SECONDS_ELEMENT, SECONDS_UNTOUCHED = 60e-9, 15e-9, 0.6e-9, 2e-9
"""What a row, an entry, a column of an entry's weights, and the step of an element that is not touched take, about:
calls have the same batches on any machine."""

SECONDS_DENSE, SECONDS_PRODUCT = 0.4e-9, 0.1e-9
"""What an entry of a dense row and a column of its weights take, about."""


@final
class RuleSteps:
    """Steps of the setup's optimizer, whose states are those of the training."""

    def __init__(self, run: "Run") -> None:
        """Store the run whose parameters and optimizer are used."""
        self.run, self.has_intercept = run, run.setup.has_intercept

    def do(
        self, x: Any, y: np.ndarray, counts: np.ndarray, order: np.ndarray, batch_rows: int, epoch_rows: int
    ) -> np.ndarray:
        """Train on the rows `order` int64 of x, targets y, in batches of `batch_rows`, in one kernel call.

        Return the mean loss of each batch, float64 [batches]. `counts` [T] are row weights, empty for none. A batch
        ends, too, after `epoch_rows` rows. Parameters and states change in place.
        """
        run, steps = self.run, epochs.count_batches(order.size, batch_rows, epoch_rows)
        is_dense = run.setup.format == "dense"
        w = of_b = run.updater.begin_steps("w", run.arrays["w"], steps, whole=is_dense)
        b = [np.zeros(0, run.dtype)] * len(w.tables)
        if self.has_intercept:
            of_b = run.updater.begin_steps("b", run.arrays["b"], steps, whole=True, other=w)
            b = [table.reshape(-1) for table in of_b.tables]
        held, *rows = _held(x)
        loss, rule = run.model.loss, run.setup.optimizer
        kernel = dense.get(loss, rule, held) if is_dense else epochs.get(loss, rule, w.way)
        batches, of_steps = (y, counts, order, batch_rows, epoch_rows), (w.settings, of_b.settings, *w.update_arrays)
        losses = kernel.trusted(*rows, *batches, *w.tables, *b, *of_steps)
        for ahead in {id(one): one for one in (w, of_b)}.values():
            ahead.end()
        return losses


def _held(x: Any) -> tuple:
    """Return (storage name "csr", "float16", "uint8" or "dense", *arrays of x as a kernel takes them).

    float16 is viewed as uint16.
    """
    if not isinstance(x, np.ndarray):
        return "csr", x.indptr, x.indices, x.data
    if x.dtype == np.float16:
        return "float16", x.view(np.uint16)
    return "uint8" if x.dtype == np.uint8 else "dense", x


def _mean_of_rows(losses: np.ndarray, rows: int, batch_rows: int) -> np.ndarray:
    """Return the mean loss of `rows` rows from that of each batch [.., batches], of which the last may have fewer."""
    rest = rows - (losses.shape[-1] - 1) * batch_rows
    return (losses[..., :-1].sum(axis=-1) * batch_rows + losses[..., -1] * rest) / rows


@final
class EpochCalls:
    """The calls of a training; parameters, states and the count of steps are those of the training itself."""

    def __init__(self, run: "Run", steps: "DualSteps | RuleSteps") -> None:
        """Store the run and the kind of steps that calls do."""
        self.run, self.steps = run, steps
        self.nothing = np.zeros(0, run.dtype)
        """Weights of rows that have none."""
        self.rows_most: int | None = None
        """Rows of a call at most, for who wants to hear of it sooner than after `SECONDS_CALL`."""

    @property
    def nbytes(self) -> int:
        """Bytes kept besides parameters and states: those of dual ascent."""
        return self.steps.nbytes if isinstance(self.steps, DualSteps) else 0

    def events(self, epoch: int) -> Generator[StepEvent, None, None]:
        """Train an epoch by compiled calls on consecutive parts of its rows; yield an event for each call.

        Parameters, states and step count change in place. Raises DataError for stored rows.
        """
        timer, batches = PhaseTimer(), self._batches()
        order, x = batches.order(epoch, by_rows=isinstance(self.steps, DualSteps)), batches.x
        held = {name: array for name, _, array in batches.labels}
        if isinstance(self.steps, DualSteps):
            self.steps.begin(x)
        batch_rows = self.run.setup.batch_rows
        stride = self._rows_a_call(x, self.rows_most or x.shape[0], batch_rows)
        calls = -(-order.size // stride) or 1
        stride = -(-order.size // (calls * batch_rows)) * batch_rows or 1  # calls of about as many batches each
        timer.split("slice")
        for first in range(0, order.size, stride):
            rows = order[first : first + stride]
            losses = self.call(x, held["label"], held.get("weight"), rows, batch_rows)
            timer.split("batches")
            loss = float(_mean_of_rows(losses, rows.size, batch_rows))
            yield StepEvent(self.run.step, epoch, rows.size, loss, timer.seconds, losses=losses)
            timer = PhaseTimer()

    def events_of_epochs(
        self, first: int, count: int | None, most: int | None = None
    ) -> Generator[StepEvent, None, None]:
        """Train `count` epochs (None: without end) from `first` on; yield an event for each call.

        Short epochs, but for the first of a training, are several in one call, up to `most` if given, which its event
        stands for, with the last epoch's number. Weights, states and losses have the same bits as with `events`.
        Parameters, states and step count change in place.
        """
        epoch = first
        while count is None or epoch < first + count:
            limits = most, None if count is None else first + count - epoch
            at_once = min([self._epochs_a_call(), *(limit for limit in limits if limit is not None)])
            if at_once == 1:
                yield from self.events(epoch)
            else:
                yield self._call_of_epochs(epoch, at_once)
            epoch += at_once

    def _call_of_epochs(self, first: int, count: int) -> StepEvent:
        """Train `count` whole epochs from `first` on in one call, in place; return its event."""
        timer, batches = PhaseTimer(), self._batches()
        orders, rows = batches.orders(first, count), batches.total
        held = {name: array for name, _, array in batches.labels}
        timer.split("slice")
        losses = self.call(batches.x, held["label"], held.get("weight"), orders, self.run.setup.batch_rows, rows)
        timer.split("batches")
        means = _mean_of_rows(losses.reshape(count, -1), rows, self.run.setup.batch_rows)
        step, last, mean = self.run.step, first + count - 1, float(means.mean())
        return StepEvent(step, last, orders.size, mean, timer.seconds, losses=losses, losses_epochs=means)

    def losses_of_epochs(self, first: int, count: int, at_once: int, passes: int = 1) -> Iterator[float]:
        """Train `count` epochs from `first` on, up to `at_once` in a call; yield the mean loss of each.

        `passes` above 1: those of `epochs_of_one_batch`. Else each epoch has all rows.
        """
        if passes > 1:
            yield from self.epochs_of_one_batch(first, count, passes, at_once)
            return
        total, rows, all_rows, done = 0.0, 0.0, self.run.batches.total, 0
        for event in self.events_of_epochs(first, count, at_once):
            if event.losses_epochs is not None:
                done += event.losses_epochs.size
                yield from event.losses_epochs.tolist()
                continue
            total, rows = total + event.loss * event.rows, rows + event.rows
            if event.rows and rows >= all_rows:
                done += 1
                yield total / rows
                total = rows = 0.0
            elif rows:
                tell("epoch", done + rows / all_rows, count, {"loss": total / rows})

    def _epochs_a_call(self) -> int:
        """Return how many epochs one call trains on to take about `SECONDS_EPOCHS`, at least 1.

        1 for the first epoch, which may have to wait for code, for dual ascent, whose intercept moves between epochs,
        for rows that catch up on deferred updates, and unless each epoch has all rows once.
        """
        run, batches = self.run, self._batches()
        is_plain = isinstance(self.steps, RuleSteps) and not self.rows_most
        if not (is_plain and run.step) or batches.last != "keep" or run.updater.way_of("w"):
            return 1
        steps = -(-batches.total // run.setup.batch_rows)
        seconds = self._seconds_row(batches.x, run.setup.batch_rows) * batches.total
        return max(min(int(SECONDS_EPOCHS / seconds), STEPS // steps), 1)

    def epochs_of_one_batch(self, first: int, epochs: int, passes: int, at_once: int) -> Iterator[float]:
        """Train `epochs` epochs from `first` on, each of `passes` steps on all rows; yield the mean loss of each epoch.

        Up to `at_once` epochs are one compiled call. Rows are taken in stored order: a step of all rows does not depend
        on it, and to draw orders took a fifth of the time of `fit` on a hundred rows.
        """
        batches = self._batches()
        x = batches.x
        held, rows = {name: array for name, _, array in batches.labels}, batches.total
        at_once = min(at_once, self._rows_a_call(x, rows * STEPS, rows) // (rows * passes)) or 1
        for start in range(first, first + epochs, at_once):
            order = np.tile(np.arange(rows), min(at_once, first + epochs - start) * passes)
            losses = self.call(x, held["label"], held.get("weight"), order, rows)
            yield from losses.reshape(-1, passes).mean(axis=1).tolist()

    def _batches(self) -> data.Batches:
        """Return the batches of the training; DataError if their rows are stored and read as they are trained on."""
        batches = self.run.batches
        if not isinstance(batches, data.Batches):
            raise data.DataError(
                f"{batches.x.place} is read as it is trained on, and epochs in one call read rows in memory: execution "
                "step, or load it with whole=True (reading: whole=true)."
            )
        return batches

    def _rows_a_call(self, x: Any, most: int, batch_rows: int) -> int:
        """Return how many rows, at most `most` and in whole batches, one call trains on to take about `SECONDS_CALL`.

        All rows, rounded up to batches, if they take no longer.
        """
        rows = min(int(SECONDS_CALL / self._seconds_row(x, batch_rows)), STEPS * batch_rows)
        if rows >= x.shape[0] <= most:
            return -(-min(rows, most) // batch_rows) * batch_rows
        return max(min(rows, most) // batch_rows, 1) * batch_rows

    def _seconds_row(self, x: Any, batch_rows: int) -> float:
        """Return about how many seconds a row of x takes in a call of batches of `batch_rows` rows."""
        if self.run.setup.format == "dense":
            seconds = x.shape[1] * (SECONDS_DENSE + SECONDS_PRODUCT * self.run.width)
        else:
            seconds = x.nnz / max(x.shape[0], 1) * (SECONDS_ENTRY + SECONDS_ELEMENT * self.run.width)
        return SECONDS_ROW + seconds + SECONDS_UNTOUCHED * self._untouched(x) / batch_rows

    def _untouched(self, x: Any) -> int:
        """Return about how many weights a batch updates besides its active ones.

        That is all for dense updates, those of columns with entries for replayed catch-up, else 0.
        """
        if self.run.setup.execution == "dual":
            return 0
        if self.run.setup.update == "standard":
            return x.shape[1] * self.run.width
        return min(x.shape[1], x.nnz) * self.run.width if self.run.updater.way_of("w") == "step_by_step" else 0

    def step_by(self, batch: "Prepared") -> None:
        """Train on one prepared batch in one call, in place.

        Its rows are converted to the storage of the training data.
        """
        x, rows = batch.x, batch.x.shape[0]
        if self.run.setup.format == "dense":
            held = self.run.batches.x
            x = formats.astype(formats.to_format(x, formats.format_of(held)), held.dtype, copy=False)
        self.call(x, batch.y, batch.weights, np.arange(rows), rows)

    def call(
        self,
        x: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        order: np.ndarray,
        batch_rows: int,
        epoch_rows: int | None = None,
    ) -> np.ndarray:
        """Train on the rows `order` int64 [M] of x in batches of `batch_rows`, in one call.

        Return the mean loss per batch, float64 [batches]. y are the targets of x; `weights` [T] those of the rows'
        losses, None if all are equal. A batch ends, too, after `epoch_rows` rows (None: M). Parameters and step count
        change in place.
        """
        counts = self.nothing if weights is None else weights
        losses = self.steps.do(x, y, counts, order, batch_rows, epoch_rows or max(order.size, 1))
        self.run.step += losses.size
        return losses


def calls_for(run: "Run") -> EpochCalls | None:
    """Return the compiled epochs of a run whose execution is "epoch" or "dual"; None if it trains step by step."""
    kinds: dict[str, type[RuleSteps] | type[DualSteps]] = {"epoch": RuleSteps, "dual": DualSteps}
    return EpochCalls(run, kinds[run.setup.execution](run)) if run.setup.execution in kinds else None
