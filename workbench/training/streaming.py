"""Training of a linear model on rows that come once, in blocks: predict, then learn, and forget the block.

Memory holds the weights, the optimizer's states, some blocks and a sample of held-out rows. Weights grow with the
columns that come, by doubling. AdaGrad does a step for each row; its rate is chosen on the first rows, by the loss of
rows before they are learned. Columns whose values are far larger or smaller than those of most entries, as counts
among categories, are divided by their root mean square in the first rows. A row is held out by a hash of its number, so
that it is the same in each pass.
"""

import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
import scipy.sparse

from kernels.moments import root_mean_squares
from kernels.registry import format_count, format_size
from kernels.rules.missed import STEPS
from workbench import data, formats
from workbench.data.batches.slicing import gather_rows
from workbench.data.content import cache_folder
from workbench.data.dataset.record import Stream, StreamedBlock
from workbench.data.errors import AS_WHOLE, DataError
from workbench.data.files.reading import fingerprint
from workbench.data.labels import MOST_CLASSES, Labels, Names, Wanted, format_names, name_of, read_labels
from workbench.formats.compressed import assemble
from workbench.formats.files import bytes_memory
from workbench.models.scaling import Scaling, has_penalty
from workbench.option_text import typed, worded
from workbench.training.block_cache import BlockCache
from workbench.training.constant import why_worse
from workbench.training.learner import Learner
from workbench.training.setup import Setup, with_epoch_calls
from workbench.training.trained import NOT_OF_READER, ModelFolderError, TrainedModel

MODELS = {"binary": "logistic", "classes": "softmax", "numbers": "linear"}
"""Model that is trained by the kind of target."""
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Learning rates of which one is chosen, times the inverse of the root mean square of the values."""
GRADIENTS = 10.0
"""The history of AdaGrad begins as if so many gradients of 1, times a typical value, had come: small first steps."""
CHOOSING_ROWS, CHOOSING_ENTRIES = 20_000, 1 << 21
"""Rows, or entries, that a learning rate is chosen by: blocks of less are joined at the beginning."""
UNLIKE = 30
"""Root mean square of a column by the median size of all entries, or the inverse, from which on it is scaled."""
LEAST_FEATURES = 1 << 10
"""Columns that weights are made for at first; twice as many each time that these do not suffice."""
SAMPLED_ENTRIES = 1 << 20
"""Entries of held-out rows that are kept for the loss of the trained model, at most: 8 MB."""


FOLDER = "streams"
"""Folder in the cache folder for the blocks of a training."""
NO_CACHE = "The file is parsed in each pass: its rows cannot be kept on the disk ({error})."
STATE = ("number", "position", "features", "rate", "seconds", "rows_all")
"""Attributes of a training that its saved state has."""


@dataclass(frozen=True)
class Progress:
    """How far a training is: `rows` and `position` in the pass `number` of `passes`, and the losses so far in it.

    `loss` is the mean loss of rows before they were learned, `held_out` that of rows that are not, after those of
    their block; NaN without rows.
    `note` is something that was decided, "" mostly.
    """

    number: int
    passes: int
    rows: int
    position: int
    loss: float
    held_out: float
    note: str = ""


@dataclass
class _Sums:
    """Rows read in a pass, and the sum of losses of rows trained on and of held-out rows, with their counts."""

    rows: int = 0
    trained: float = 0.0
    trained_rows: int = 0
    held_out: float = 0.0
    held_out_rows: int = 0


class _UnseenLabelError(Exception):
    """A label came that is none of the classes so far."""


@final
class _Targets:
    """Labels of blocks as targets: the classes, or numbers shifted and scaled as the first ones are spread."""

    def __init__(self, labels: Labels, shift: float = 0.0, scale: float = 1.0) -> None:
        """Store what labels mean, and of numbers what is subtracted and what they are divided by."""
        self.labels, self.names, self.shift, self.scale = labels, Names(labels.classes), shift, scale
        self.kind = "numbers" if labels.kind == "numbers" else "binary" if len(labels.classes) == 2 else "classes"
        self.positive = labels.classes.index(labels.positive) if self.kind == "binary" and labels.positive else 1

    @classmethod
    def of_first(cls, found: np.ndarray, wanted: Wanted, stream: Stream) -> "_Targets":
        """Return targets for labels like `found`; DataError for labels of several columns."""
        if not isinstance(found, np.ndarray) or found.ndim != 1:
            raise DataError(f"Rows have several labels, which are not trained on block by block.\n{AS_WHOLE}")
        labels, y = read_labels(found, wanted, stream.place)
        if labels.kind != "numbers":
            return cls(replace(labels, guess=labels.guess and f"{labels.guess}, in the first rows"))
        return cls(replace(labels, span=None), float(y.mean()), float(y.std()) or 1.0)

    def of(self, found: np.ndarray, place: Callable[[int], str], before: int) -> np.ndarray:
        """Return targets as the loss takes them; `before` is the number of rows before, for messages.

        Raises _UnseenLabelError for a label that is none of the classes.
        """
        if self.kind == "numbers":
            y = read_labels(found, Wanted("numbers"), lambda row: place(before + row))[1]
            return ((y - self.shift) / self.scale).astype(np.float32)[:, np.newaxis]
        distinct, inverse = np.unique(found, return_inverse=True)
        numbers = [self.names.find(label) for label in distinct]
        if None in numbers:
            raise _UnseenLabelError
        y = np.array(numbers, np.int64)[inverse.reshape(-1)]
        return (y == self.positive).astype(np.float32)[:, np.newaxis] if self.kind == "binary" else y

    @property
    def width(self) -> int:
        """Number of outputs."""
        return len(self.labels.classes) if self.kind == "classes" else 1


def losses_of(kind: str, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the loss of each row, float64 [R], of scores [R, N] and targets as the loss takes them."""
    scores = scores.astype(np.float64)
    if kind == "numbers":
        return 0.5 * ((scores - y) ** 2).sum(axis=1)
    if kind == "binary":
        return np.logaddexp(0, np.where(y[:, 0] > 0.5, -scores[:, 0], scores[:, 0]))
    return np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]


def are_held_out(first: int, count: int, share: float) -> np.ndarray:
    """Return which of `count` rows from number `first` on are held out, bool [count]: a share, by a hash of the number.

    The hash is the last step of splitmix64 (Steele, Lea and Flood 2014).

    >>> held = are_held_out(0, 100_000, 0.1)
    >>> bool(abs(held.mean() - 0.1) < 0.01 and (are_held_out(500, 9, 0.1) == held[500:509]).all())
    True
    """
    return _hashes(first, count) < np.uint64(min(int(share * 2.0**64), 2**64 - 1))


def _hashes(first: int, count: int) -> np.ndarray:
    """Return the hash of each row number, uint64 [count]."""
    z = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@final
class _Sample:
    """Held-out rows of the first pass, all of them up to `SAMPLED_ENTRIES`, then every second, fourth and so on."""

    def __init__(self) -> None:
        """Start without rows."""
        self.parts: list[tuple[Any, np.ndarray, np.ndarray]] = []
        self.entries, self.level = 0, 0

    def add(self, x: Any, y: np.ndarray, hashes: np.ndarray) -> None:
        """Keep a copy of rows x, targets y, whose hashes decide which are kept when they are too many."""
        self._append(x, y, hashes)
        while self.entries > SAMPLED_ENTRIES and any(len(part[1]) > 1 for part in self.parts):
            self.level += 1
            parts, self.parts, self.entries = self.parts, [], 0
            for part in parts:
                self._append(*part)

    def _append(self, x: Any, y: np.ndarray, hashes: np.ndarray) -> None:
        """Append the rows that are kept at the present level."""
        kept = np.flatnonzero(hashes & np.uint64((1 << self.level) - 1) == 0)
        if kept.size:
            self.parts.append((gather_rows("csr", x, kept), y[kept], hashes[kept]))
            self.entries += self.parts[-1][0].nnz

    def rows(self, features: int) -> tuple[Any, np.ndarray] | None:
        """Return (x csr [R, features], targets) of all rows that are kept; None if there are none."""
        if not self.parts:
            return None
        starts = np.cumsum([0, *(length for x, _, _ in self.parts for length in np.diff(x.indptr))])
        indices, values = (
            np.concatenate([getattr(part[0], name) for part in self.parts]) for name in ("indices", "data")
        )
        x = assemble("csr", starts.astype(indices.dtype), indices, values, (len(starts) - 1, features))
        return x, np.concatenate([y for _, y, _ in self.parts])


@dataclass(frozen=True)
class Options:
    """How to train: number of `passes`, share of rows `held_out`, what labels mean, and options of the optimizer.

    `options` without a learning rate has one chosen. `model` None is the one that suits the labels.
    """

    passes: int = 1
    held_out: float = 0.1
    wanted: Wanted = field(default_factory=Wanted)
    model: str | None = None
    optimizer: str = "adagrad"
    options: Mapping[str, float] = field(default_factory=dict)
    batch_rows: int = 1
    intercept: bool | None = None


BLOCKS_OF_MEMORY = 32
"""Share of the memory for rows that the text of a block is: some blocks are parsed ahead, their arrays are as large."""
LEAST_BLOCK, USUAL_MEMORY = 1 << 12, 1 << 25


def open_stream(reader: str, parameters: Mapping[str, Any], memory: int, bits: int | None = None) -> Stream:
    """Return the rows of a file as a stream, in blocks that take about `memory` bytes.

    `parameters` are those of the reader, such as `path`, without those of labels. `bits` hashes columns to 2**bits.
    Raises DataError for a reader that reads files whole.
    """
    source, given = data.get(reader), {name: value for name, value in parameters.items() if value is not None}
    if bits is not None:
        hashing = {"svmlight": {"bits": bits}, "vw": {"bits": bits}, "table": {"hashed": 1 << bits}}
        if reader not in hashing:
            raise DataError(
                f"bits is {bits}, and {reader} does not hash columns; expected one of {', '.join(hashing)}."
            )
        given |= hashing[reader]
    if reader == "vw":
        given.setdefault("columns", "hashed")  # whether all names are numbers is known only at the end
    return source.open_stream(max(memory // BLOCKS_OF_MEMORY, LEAST_BLOCK), given)


def _with_first_joined(blocks: Iterator[StreamedBlock]) -> Iterator[StreamedBlock]:
    """Yield blocks, the first ones as one of `CHOOSING_ROWS` rows or `CHOOSING_ENTRIES` entries, if there are so many.

    By fewer rows a learning rate that learns nothing looks best.
    """
    parts: list[StreamedBlock] = []
    for block in blocks:
        is_like_others = not parts or parts[0].labels.dtype.kind == block.labels.dtype.kind
        rows = sum(len(one.labels) for one in [*parts, block])
        entries = sum(one.x.nnz for one in [*parts, block])
        if is_like_others and rows < CHOOSING_ROWS and entries < CHOOSING_ENTRIES:
            parts.append(block._replace(labels=block.labels.copy(), x=block.x.copy()))
            continue
        if is_like_others:
            yield _joined([*parts, block])
        else:
            yield from (_joined(parts), block)
        yield from blocks
        return
    if parts:
        yield _joined(parts)


def _joined(parts: list[StreamedBlock]) -> StreamedBlock:
    """Return blocks as one, which ends where the last one does."""
    if len(parts) == 1:
        return parts[0]
    features = max(part.x.shape[1] for part in parts)
    x = scipy.sparse.vstack(
        [assemble("csr", one.x.indptr, one.x.indices, one.x.data, (len(one.labels), features)) for one in parts],
        format="csr",
    )
    return parts[-1]._replace(x=x, labels=np.concatenate([part.labels for part in parts]))


@final
class StreamTraining:
    """A training of a linear model on the rows of a `Stream`; `events` does it, `trained` is the model so far.

    It can be stopped between two events, and saved by `state`. The first pass of several that begins at the first row
    keeps its blocks in a file, if there is room, and the others read that.
    """

    def __init__(self, stream: Stream, options: Options) -> None:
        """Begin without weights; the first block says what labels are."""
        self.stream, self.options = stream, options
        self.learner: Learner | None = None
        self.targets: _Targets | None = None
        self.number, self.position, self.features, self.sums, self.sample = 0, 0, 0, _Sums(), _Sample()
        self.rate = self.seconds = 0.0
        self.rows_all = 0
        """Rows of the first pass."""
        self.cache: BlockCache | None = None
        self.scaling = Scaling()
        """How columns are scaled in the training, as the first rows tell; columns that these lack stay as they are."""
        self._note = ""

    # The training

    def events(self) -> Iterator[Progress]:
        """Train what is left of all passes; yield after each block.

        Raises DataError for what cannot be read or trained on, and ValueError for a training that diverges.
        """
        start = time.perf_counter() - self.seconds
        try:
            yield from self._passes(start)
        finally:
            self._drop_cache()

    def _passes(self, start: float) -> Iterator[Progress]:
        """Train the passes that are left; `start` is when the first one began."""
        while self.number < self.options.passes:
            try:
                blocks = self._blocks()
                for block in blocks if self.learner is not None else _with_first_joined(blocks):
                    yield from self._learn(block)
                    self.seconds = time.perf_counter() - start
            except _UnseenLabelError:
                yield self._progress(
                    "A label came that the first rows have not: all labels are read, then it begins anew."
                )
                self._begin_with_all_labels()
                continue
            if not self.sums.rows:
                raise DataError("The file holds no rows; training needs at least one.")
            self._refuse_constant()
            self.number, self.position = self.number + 1, 0
            if self.number < self.options.passes:
                self.sums = _Sums()

    def _blocks(self) -> Iterator[StreamedBlock]:
        """Yield the blocks of the pass from the present position on, of the cache if a pass is in it."""
        if self.cache is not None:
            yield from self.cache.blocks(self.position)
            return
        blocks = self.stream.blocks(self.position)
        if self.position or self.number + 1 >= self.options.passes:
            yield from blocks
            return
        cache = self._new_cache()
        try:
            with ThreadPoolExecutor(1, "workbench-keeping") as pool:  # which keeps a block while it is trained on
                for block in blocks:
                    kept = pool.submit(cache.keep, block) if cache is not None else None
                    yield block
                    if cache is not None and kept is not None and not self._is_kept(kept):
                        cache.close()
                        cache = None
            self.cache, cache = cache, None
        finally:
            if cache is not None:
                cache.close()

    def _new_cache(self) -> BlockCache | None:
        """Return a cache for the blocks of this pass; None if its folder cannot be written."""
        try:
            return BlockCache(cache_folder() / FOLDER)
        except OSError as error:
            self._note = NO_CACHE.format(error=error)
            return None

    def _is_kept(self, kept: Future[None]) -> bool:
        """Wait until a block is kept, and return True; False if there is no room for it, which is said."""
        try:
            kept.result()
        except OSError as error:
            self._note = NO_CACHE.format(error=error)
            return False
        return True

    def _drop_cache(self) -> None:
        """Remove the cache if there is one."""
        if self.cache is not None:
            self.cache.close()
            self.cache = None

    def _learn(self, block: StreamedBlock) -> Iterator[Progress]:
        """Train on the rows of a block, then predict those that are held out; yield the progress."""
        count = len(block.labels)
        if count:
            if self.targets is None:
                self.targets = _Targets.of_first(block.labels, self.options.wanted, self.stream)
                if len(self.targets.labels.classes) == 1:
                    raise _UnseenLabelError
            y = self.targets.of(block.labels, self.stream.place, self.sums.rows)
            hashes = _hashes(self.sums.rows, count)
            held = are_held_out(self.sums.rows, count, self.options.held_out)
            rows, rows_held = np.flatnonzero(~held), np.flatnonzero(held)
            self.features = max(self.features, block.x.shape[1])
            if self.learner is None:
                is_free = not has_penalty(self.options.options)
                self.scaling = _scaling_of(block.x) if is_free else Scaling()
                self.learner = self._first_learner(self._scaled(block.x), y, rows)
                yield self._progress(self._choice())
            if self.features > self.learner.features:
                self.learner = with_features(self.learner, _capacity(self.features, self.targets.width))
            x = assemble("csr", block.x.indptr, block.x.indices, block.x.data, (count, self.learner.features))
            x = self._scaled(x)
            total = do_steps(self.learner, x, y, rows)
            if not math.isfinite(total):
                self._refuse_diverged()
            self.sums.trained += total
            self.sums.trained_rows += rows.size
            if rows_held.size:
                part = gather_rows("csr", x, rows_held)
                losses = losses_of(self.targets.kind, self.learner.scores(part), y[rows_held])
                self.sums.held_out += float(losses.sum())
                self.sums.held_out_rows += rows_held.size
                if not self.number:
                    self.sample.add(part, y[rows_held], hashes[rows_held] >> np.uint64(8))
            self.sums.rows += count
        self.rows_all = max(self.rows_all, self.sums.rows)
        self.position = block.position
        note, self._note = self._note, ""
        yield self._progress(note)

    def _scaled(self, x: Any) -> Any:
        """Return rows x [R, D] as they are trained on."""
        if (scale := self.scaling.scale) is not None and len(scale) < x.shape[1]:
            self.scaling = Scaling(scale=np.pad(scale, (0, x.shape[1] - len(scale)), constant_values=1.0))
        return self.scaling.rows(x)

    def _refuse_diverged(self) -> NoReturn:
        """Raise ValueError: losses or weights are not finite."""
        lower = typed(learning_rate=float(f"{self.rate / 10:.1g}"))
        raise ValueError(worded(f"Training diverged: losses or weights are NaN or infinite.\nType {lower}, or lower."))

    def _progress(self, note: str = "") -> Progress:
        """Return the progress now."""
        unit = self.targets.scale**2 if self.targets else 1.0
        sums = self.sums
        loss = sums.trained * unit / sums.trained_rows if sums.trained_rows else math.nan
        held_out = sums.held_out * unit / sums.held_out_rows if sums.held_out_rows else math.nan
        return Progress(self.number, self.options.passes, sums.rows, self.position, loss, held_out, note)

    def _first_learner(self, x: Any, y: np.ndarray, rows: np.ndarray) -> Learner:
        """Return a learner without training, whose rate is the best one on the first rows."""
        assert self.targets is not None
        size = float(np.sqrt(np.mean(np.square(x.data, dtype=np.float64)))) if x.nnz else 1.0
        size = size or 1.0
        options = dict(self.options.options)
        if self.options.optimizer == "adagrad":
            options.setdefault("epsilon", GRADIENTS * size**2)
        rates = [options["learning_rate"]] if "learning_rate" in options else [rate / size for rate in RATES]
        features = _capacity(self.features, self.targets.width)
        losses = []
        for rate in rates if len(rates) > 1 else []:
            tried = self._new_learner({**options, "learning_rate": rate}, features)
            total = do_steps(tried, assemble("csr", x.indptr, x.indices, x.data, (len(y), features)), y, rows)
            del tried  # before the next one is made
            losses.append(total if math.isfinite(total) else math.inf)
        self.rate = rates[int(np.argmin(losses))] if losses else rates[0]
        return self._new_learner({**options, "learning_rate": self.rate}, features)

    def _new_learner(self, options: dict[str, float], features: int) -> Learner:
        """Return a learner of the model that suits the targets, with these options of the optimizer."""
        assert self.targets is not None
        model, asked = MODELS[self.targets.kind], self.options.model
        if asked is not None and asked != model:
            suits = f"the labels are {self.targets.labels}, which {model} is for"
            raise DataError(f"The model is {asked}; block by block linear models are trained, and {suits}.")
        chosen: dict[str, Any] = {
            "model": model,
            "format": "csr",
            "update": "lazy",
            "intercept": self.options.intercept,
        }
        chosen |= {"batch_rows": self.options.batch_rows, "shuffle": False, "optimizer": self.options.optimizer}
        return Learner(with_epoch_calls(Setup(**chosen, options=options)), features, self.targets.width)

    def _choice(self) -> str:
        """Return a sentence on the labels and the learning rate."""
        assert self.targets is not None
        labels, rate = self.targets.labels, f"learning rate {self.rate:.3g}"
        how = "" if "learning_rate" in self.options.options else f", the best of {len(RATES)} on the first rows"
        return f"The labels are {labels}; {MODELS[self.targets.kind]} by {self.options.optimizer}, {rate}{how}."

    def _begin_with_all_labels(self) -> None:
        """Read all labels, and set the training back to its beginning."""
        found = np.empty(0, np.int64)
        for block in self.stream.blocks(0):
            both = [found, block.labels]
            if len({labels.dtype.kind == "U" for labels in both if labels.size}) > 1:  # names among numbers
                both = [np.array([name_of(label) for label in np.unique(labels)], np.str_) for labels in both]
            found = np.unique(np.concatenate([labels for labels in both if labels.size]))
            if len(found) > MOST_CLASSES and found.dtype.kind != "U":
                break
        wanted = self.options.wanted
        if wanted.classes is not None:
            raise DataError(f"The labels are {format_names(map(str, found))}; the classes are {wanted.classes}.")
        if wanted.kind is None:  # each label is there once, which tells nothing of how many rows have it
            are_classes = found.dtype.kind == "U" or (len(found) <= MOST_CLASSES and (found == np.round(found)).all())
            wanted = replace(wanted, kind="classes" if are_classes else "numbers")
        self.targets = _Targets.of_first(found, wanted, self.stream)
        self._refuse_constant()
        self.learner, self.number, self.position, self.features = None, 0, 0, 0
        self.sums, self.sample, self.rows_all = _Sums(), _Sample(), 0

    def _refuse_constant(self) -> None:
        """Raise DataError if there is one class alone."""
        assert self.targets is not None
        if len(self.targets.labels.classes) == 1:
            raise DataError(f"Every label is {self.targets.labels.classes[0]!r}: there is nothing to learn.")

    # The state, from which another process goes on

    def save_state(self, path: str | os.PathLike, about: Mapping[str, Any]) -> None:
        """Write all that the rest of the training depends on to a file, with values of JSON that `about` has."""
        if self.learner is None or self.targets is None:
            raise ValueError("There is no model yet: no row has been read.")
        targets, setup, held = self.targets, self.learner.setup, self.sample.rows(self.learner.features)
        values: dict[str, Any] = {name: getattr(self, name) for name in STATE}
        values |= {"sums": asdict(self.sums), "labels": asdict(targets.labels), "level": self.sample.level}
        values |= {"shift": targets.shift, "scale": targets.scale, "options": dict(setup.options)}
        arrays = {f"run:{name}": array for name, array in self.learner.run.state_dict().items()}
        if held is not None:
            hashes = np.concatenate([part[2] for part in self.sample.parts]).astype(np.int64)
            arrays |= {"x": held[0], "y": held[1], "hashes": hashes}
        if self.scaling.scale is not None:
            arrays["scale"] = self.scaling.scale
        formats.save(path, arrays, {**about, "training": values, "columns": self.learner.features})

    def load_state(self, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Continue from what `save_state` wrote, bit for bit; ValueError, LookupError or TypeError if damaged."""
        values, columns = about["training"], about["columns"]
        if arrays["run:parameter:w"].shape[0] != columns or not all(is_plain_number(values[name]) for name in STATE):
            raise ValueError("sizes of its arrays differ")
        targets = _Targets(Labels.of_json(values["labels"]), float(values["shift"]), float(values["scale"]))
        self.targets = targets
        given = {str(key): float(value) for key, value in values["options"].items()}
        learner = self._new_learner(given, columns)
        states = {name.removeprefix("run:"): array for name, array in arrays.items() if name.startswith("run:")}
        learner.run.load_state_dict(states)
        self.learner, self.sums, self.sample = learner, _Sums(**values["sums"]), _Sample()
        self.scaling = Scaling(scale=arrays.get("scale"))
        if self.scaling.scale is not None and not (
            self.scaling.scale.shape == (columns,) and (self.scaling.scale > 0).all()
        ):
            raise ValueError("sizes of its arrays differ")
        if "x" in arrays:
            x, count = arrays["x"], len(arrays["y"])
            if formats.format_of(x) != "csr" or x.shape != (count, columns) or len(arrays["hashes"]) != count:
                raise ValueError("its held-out rows do not fit the weights")
            formats.check(x, full=True)
            self.sample.parts = [(arrays["x"], arrays["y"], arrays["hashes"].astype(np.uint64))]
            self.sample.entries, self.sample.level = arrays["x"].nnz, int(values["level"])
        for name in STATE:
            setattr(self, name, values[name])

    # What comes of it

    def held_out_quality(self) -> dict[str, float]:
        """Return {name: value} of loss and quality of the model as it is now on a sample of held-out rows."""
        if self.learner is None or self.targets is None or (held := self.sample.rows(self.learner.features)) is None:
            return {}
        x, y = held
        scores, model = self.learner.scores(x), self.learner.model
        name = {"numbers": "half squared error"}.get(self.targets.kind, "log loss")
        loss = float(losses_of(self.targets.kind, scores, y).mean()) * self.targets.scale**2
        return {name: loss, model.quality_name: float(model.quality(scores, y))}

    def warning(self) -> str:
        """Return a line if predictions that ignore X are better on the sample of held-out rows; else ""."""
        if self.learner is None or self.targets is None or (held := self.sample.rows(self.learner.features)) is None:
            return ""
        x, y = held
        better = why_worse(self.targets.kind, self.learner.scores(x), y, None, self.learner.setup.has_intercept)
        return (
            better and f"Warning: {better}. Try {typed(learning_rate=float(f'{self.rate / 3:.1g}'))}, or more passes."
        )

    def trained(self, reader: str, parameters: Mapping[str, Any]) -> TrainedModel:
        """Return the model so far, for files that `reader` reads with these parameters; ValueError before any block."""
        if self.learner is None or self.targets is None:
            raise ValueError("There is no model yet: no row has been read.")
        arrays = dict(self.learner.arrays)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            self._refuse_diverged()
        arrays["w"] = arrays["w"][: self.features] * np.float32(self.targets.scale)
        if self.scaling.scale is not None:
            arrays["w"] = (arrays["w"] / self.scaling.scale[: self.features, np.newaxis]).astype(np.float32)
        if "b" in arrays:
            arrays["b"] = (arrays["b"] * self.targets.scale + self.targets.shift).astype(np.float32)
        elif self.targets.shift:
            raise ValueError(worded(f"Numbers far from 0 need an intercept.\nType {typed(intercept=True)}."))
        setup, facts = self.learner.setup, dict(self.stream.facts)
        kept = Setup(model=setup.model, dtype=setup.dtype, intercept=setup.has_intercept)
        sizes = self.features, self.targets.width
        given = {name: value for name, value in parameters.items() if name not in NOT_OF_READER}
        return TrainedModel(kept, arrays, *sizes, self.targets.labels, facts, reader, given, "csr")


def is_plain_number(value: Any) -> bool:
    """Return whether a value of JSON is a number, finite and not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _scaling_of(x: Any) -> Scaling:
    """Return how the columns of the first rows x csr [R, D] are scaled: those that differ by far from most entries."""
    sizes = np.abs(x.data)
    typical = float(np.median(sizes)) if x.nnz else 0.0
    if not typical or (sizes.max() <= UNLIKE * typical and sizes.min() * UNLIKE >= typical):
        return Scaling()
    scale = root_mean_squares(x.indices, x.data, x.shape[1]) / typical
    is_far = (scale > UNLIKE) | ((scale > 0) & (scale * UNLIKE < 1))
    return Scaling(scale=np.where(is_far, scale, 1.0)) if is_far.any() else Scaling()


def do_steps(learner: Learner, x: Any, y: np.ndarray, rows: np.ndarray) -> float:
    """Train on rows of csr x [R, D], targets y, in their order; return the sum of their losses before each step."""
    calls, batch_rows, total = learner.run.calls, learner.setup.batch_rows, 0.0
    assert calls is not None
    most = STEPS * batch_rows
    for first in range(0, rows.size, most):
        part = rows[first : first + most]
        losses = calls.call(x, y, None, part, batch_rows)
        total += float(losses[:-1].sum()) * batch_rows
        total += float(losses[-1]) * (part.size - (losses.size - 1) * batch_rows)
    return total


def with_features(learner: Learner, features: int) -> Learner:
    """Return a learner that goes on as this one does, with more columns, whose weights and states are zero."""
    state, before = learner.run.state_dict(), learner.features
    about = json.loads(state["optimizer:about"].tobytes())
    for name in [name for name in state if name == "parameter:w" or name.startswith("optimizer:w/")]:
        grown = np.zeros((features, *state[name].shape[1:]), state[name].dtype)
        grown[:before] = state[name]
        state[name] = grown
    if "w" in about["parameters"]:
        about["parameters"]["w"]["shape"][0] = features
    state["optimizer:about"] = np.frombuffer(json.dumps(about).encode(), np.uint8).copy()
    made = Learner(learner.setup, features, learner.width)
    made.run.load_state_dict(state)
    return made


def _capacity(features: int, width: int) -> int:
    """Return how many columns to make weights for, a power of two; DataError if they take an eighth of the memory."""
    made = max(LEAST_FEATURES, 1 << (features - 1).bit_length())
    needed = made * width * 4 * 2
    if needed > bytes_memory() // 8:
        raise DataError(
            f"{format_count(features, 'column')} came, whose weights and states would take {format_size(needed)}.\n"
            f"Type {typed(bits=22)} to hash the columns to 2**22."
        )
    return made


# A training on a file that can be interrupted, and goes on where it was saved.


STATE_FILE = "training.npz"
"""File in the folder of a model: the state of a training that was interrupted."""


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed in the context; the second time it interrupts at once.

    Only the main thread of a process is told of it; in others the function returns False.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        """Note the first Ctrl-C; raise KeyboardInterrupt at the second."""
        pressed.append(number)
        if len(pressed) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


@final
class FileTraining:
    """A `StreamTraining` of the file that the parameters of a reader name, its state and its model."""

    def __init__(
        self, reader: str, parameters: Mapping[str, Any], options: Options, memory: int, bits: int | None = None
    ) -> None:
        """Open the file; DataError if it cannot be read block by block."""
        self.reader, self.parameters = reader, parameters
        self.stream = open_stream(reader, parameters, memory, bits)
        self.training = StreamTraining(self.stream, options)
        asked = {"reader": reader, "parameters": dict(parameters), "options": asdict(options), "bits": bits}
        asked["memory"] = memory
        self.about = {"file": fingerprint(parameters["path"]), "asked": json.dumps(asked, default=str, sort_keys=True)}

    def resume(self, folder: Path) -> bool:
        """Continue the interrupted training whose state is in the folder of its model; return whether there is one.

        Raises ModelFolderError if it is of another file or settings, or damaged.
        """
        if not (folder / STATE_FILE).is_file():
            return False
        anew = f"Type {worded(typed(force=True))} to begin anew."
        try:
            about, arrays = formats.load_about(folder / STATE_FILE)
            if about is None or {name: about.get(name) for name in self.about} != self.about:
                what = (
                    "the file has changed" if about and about.get("asked") == self.about["asked"] else "settings differ"
                )
                raise ModelFolderError(f"{folder} holds an interrupted training, and {what}.\n{anew}")
            self.training.load_state(about, arrays)
        except ModelFolderError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelFolderError(f"The training in {folder} is damaged: {error}.\n{anew}") from None
        return True

    def model(self) -> TrainedModel:
        """Return the model so far; ValueError before the first block."""
        return self.training.trained(self.reader, self.parameters)

    def save(self, folder: Path, force: bool) -> None:
        """Write the model so far to a folder; with the state of the training unless that is complete."""
        training = self.training
        is_complete = training.number >= training.options.passes
        write = (lambda new: None) if is_complete else (lambda new: training.save_state(new / STATE_FILE, self.about))
        self.model().save(folder, force, write)
