"""The Source record, what a data set is made by, and its registry."""

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.registry import Registry, format_count, nearest
from workbench.data import part_files
from workbench.data.content import Paths
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, Stream, StreamedBlock
from workbench.data.errors import AS_WHOLE, DataError
from workbench.data.files.labels import read_label_file
from workbench.data.files.lent_lines import one_ahead
from workbench.data.files.reading import LICENCE
from workbench.data.files.types import guess
from workbench.data.labels import NONE, Wanted, read_labels
from workbench.formats.parts import Parts
from workbench.option_text import Options, read_options

MEANT = {
    "path": ", your file or folder",
    "labels": ", a file with a label for each row, which this data has not in itself",
}
"""Meanings of parameters that must be given, by name."""


def _nothing(**parameters: Any) -> str:
    """Return an empty fingerprint: the default for sources without files."""
    return ""


def _given_files(
    path: Any = None, labels: Any = None, node_features: Any = None, **parameters: Any
) -> tuple[str | os.PathLike, ...]:
    """Return the paths among the parameters of a source that are given: the default of `Source.files`."""
    return tuple(file for file in (path, labels, node_features) if file is not None)


@dataclass(frozen=True)
class Source:
    """One entry: `make(**parameters)` gives the data set, the same for the same parameters.

    `origin` and `licence` say where it comes from. `files(**parameters)` lists the files that are read, by default
    those of the parameters `path`, `labels` and `node_features`; the hash of their content is part of the keys of
    cached copies and of records. `fingerprint`, called likewise, names whatever else the result depends on, such as a
    version. `gives` names what its data has for
    models that need more than X and labels (`models.NEEDS`): fields in `Dataset.facts`, a graph.
    `takes_folder` tells that its `path` may be a folder.
    `stored(path, labels)` gives what stands in the file, where the reader fixes it: the `formats.parts.Parts` of the
    matrix, unchecked, with duplicates and order as they are, and the labels, None if none are named.
    `is_cached` is False if a copy would be no quicker to load than what is read.

    `blocks(**parameters)`, with the parameters of `make`, gives the same rows block by block, so that `convert` never
    holds them whole; None if `make` must have all of them.

    `stream(size=bytes, **parameters)`, with parameters of `make` but those of labels, gives a `Stream` of the rows,
    `size` bytes of the file at once, in one pass. None if `blocks` serves for it.

    `head(path, options)` tells of a text in columns how many lines are above its rows, and whether the last one is a
    header: of the files of a folder all but the first are read without these lines.
    """

    name: str
    make: Callable[..., Dataset]
    origin: str = "a file of yours"
    licence: str = LICENCE
    files: Callable[..., Paths] = _given_files
    fingerprint: Callable[..., str] = _nothing
    gives: tuple[str, ...] = ()
    takes_folder: bool = False
    stored: Callable[..., tuple[Parts, np.ndarray | None]] | None = None
    blocks: Callable[..., RowBlocks] | None = None
    stream: Callable[..., Stream] | None = None
    head: part_files.Head = None
    is_cached: bool = True

    def __post_init__(self) -> None:
        """Wrap `make`, `blocks` and `files` of a file reader so that they take the parameters of its labels.

        These are the fields of `Wanted` in place of a parameter `wanted`, `label` and `labels`. Its `path` may be a
        folder of part files.
        """
        object.__setattr__(self, "make", _expand_wanted(self.make))
        object.__setattr__(self, "blocks", self.blocks and _expand_wanted(self.blocks))
        _add_label_parameters(self)
        _add_folders(self)

    def open_stream(self, size: int, given: Mapping[str, Any]) -> Stream:
        """Return the rows for one pass, about `size` bytes of the file at once.

        `given` are parameters without those of labels. Raises DataError for unknown ones, and a source that makes all
        rows at once.
        """
        self.refuse_unknown(given)
        path = given.get("path", self.name)
        if self.stream is not None and not part_files.is_folder_of_parts(path):
            known = inspect.signature(self.stream).parameters
            is_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
            unknown = (name for name in given if name not in known and not is_any)
            if other := next(unknown, None):
                raise DataError(
                    f"{other} is given, and {path} is read block by block without it; leave one of them out."
                )
            return self.stream(size=size, **given)
        make = self.blocks
        if make is None:
            raise DataError(f"The data set {self.name} is not read block by block.\n{AS_WHOLE}")

        def blocks(start: int) -> Iterator[StreamedBlock]:
            """Yield the blocks from number `start` on."""
            made = make(**given)
            names = None if made.labels is None else np.array(made.labels.classes)
            for number, block in enumerate(one_ahead(iter(made.blocks))):
                if number >= start:
                    labels = block[1] if names is None or not len(names) else names[block[1]]
                    yield StreamedBlock(block[0], labels, number + 1)

        facts = dict(make(**given).facts)
        return Stream(blocks, None, facts, lambda row: f"{path}, row {row}")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters with their defaults; a required one has `inspect.Parameter.empty`."""
        return dict(_defaults(self.make))

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `given` with defaults for the missing parameters of the source.

        Raises DataError for unknown names, missing required ones, and a required path that is no path.
        """
        self.refuse_unknown(given)
        known = self.parameters
        complete = {**known, **given}
        if missing := [name for name, value in complete.items() if value is inspect.Parameter.empty]:
            needed = f"{self.name} needs {missing[0]}{MEANT.get(missing[0], '')}"
            raise DataError(f"{needed}; its parameters are {', '.join(known)}.")
        self._refuse_no_path(complete)
        return complete

    def _refuse_no_path(self, given: dict[str, Any]) -> None:
        """Raise DataError if the value of a required `path` or `labels` parameter is neither str nor path."""
        for name in MEANT:
            is_required = self.parameters.get(name) is inspect.Parameter.empty
            if is_required and not isinstance(given[name], str | os.PathLike):
                what = "a path" if name == "path" else "the path of a file with a label for each row"
                raise DataError(f"{self.name}: {name} is {given[name]!r:.80}; expected {what}.")

    def refuse_unknown(self, given: Iterable[str]) -> None:
        """Raise DataError, listing the known and the nearest name, for the first of `given` that is not a parameter."""
        known = self.parameters
        if unknown := [name for name in given if name not in known]:
            near = nearest(unknown[0], known)
            raise DataError(
                f"{self.name} has no parameter {unknown[0]!r}; its parameters are {', '.join(known)}.{near}"
            )


@functools.lru_cache(maxsize=256)
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function with their defaults, `inspect.Parameter.empty` if required; cached.

    Every configuration of a sweep asks for them several times.
    """
    return {name: entry.default for name, entry in inspect.signature(function).parameters.items()}


def _expand_wanted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the fields of `Wanted` by name in place of the parameter `wanted` of `function`.

    Without such a parameter it is `function` itself.
    """
    parameters = list(inspect.signature(function).parameters.values())
    place = next((place for place, entry in enumerate(parameters) if entry.name == "wanted"), None)
    if place is None:
        return function
    defaults = dataclasses.asdict(parameters[place].default)

    @functools.wraps(function)
    def taking_fields(*args: Any, **given: Any) -> Any:
        """Call the reader with the fields of `Wanted` in one."""
        wanted = Wanted(**{name: given.pop(name, value) for name, value in defaults.items()})
        return function(*args, wanted=wanted, **given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters[place : place + 1] = [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]
    taking_fields.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return taking_fields


LABEL_NAMES = ("labels_variable", "label_column", "column")
"""Parameters of readers that name where labels stand in the file; `label` is another name of each."""


def _add_label_parameters(source: Source) -> None:
    """Add the parameters `label` and `labels` to a source that reads files, in place, where it lacks them.

    `label` becomes another name of the parameter that names the labels in the file; `labels` is a separate file of
    labels.
    """
    known = source.parameters
    if "path" not in known or "kind" not in known:
        return
    place = next((name for name in LABEL_NAMES if name in known), None)
    added = [name for name in ("label", "labels") if name not in known and (name == "labels" or place)]
    if not added:
        return
    make, blocks, files = source.make, source.blocks, source.files

    def renamed(given: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with `label` under the source's own name for it; removes it from `given`.

        DataError if both are given and differ.
        """
        label = given.pop("label", None) if "label" in added else None
        if label is None or place is None:
            return given
        if given.get(place) not in (None, known[place]):
            raise DataError(f"label is {label!r}, and {place} is {given[place]!r}; keep one of the two.")
        return given | {place: label}

    def made(*args: Any, **given: Any) -> Dataset:
        """Return the data set of the source, with labels from the file `labels` if that is given."""
        labels, given = _pop_labels(given, "labels" in added), renamed(given)
        return make(*args, **given) if labels is None else _make_with_labels(make, args, given, labels)

    def made_in_blocks(*args: Any, **given: Any) -> RowBlocks:
        """Return the rows of the source in blocks; with a file `labels` all are read at once, as one block."""
        labels, given = _pop_labels(given, "labels" in added), renamed(given)
        if labels is None and blocks is not None:
            return blocks(*args, **given)
        return _in_one_block(_make_with_labels(make, args, given, labels))

    def files_read(*args: Any, **given: Any) -> Paths:
        """Return the paths that the source reads, and that of the file `labels` (None if not given)."""
        labels, given = _pop_labels(given, "labels" in added), renamed(given)
        return (*files(*args, **given), labels)

    signature, kind = inspect.signature(make), inspect.Parameter.KEYWORD_ONLY
    parameters = [*signature.parameters.values(), *(inspect.Parameter(name, kind, default=None) for name in added)]
    made.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    made.__doc__ = make.__doc__
    object.__setattr__(source, "make", made)
    object.__setattr__(source, "blocks", made_in_blocks if blocks else None)
    object.__setattr__(source, "files", files_read)


def _in_one_block(read: Dataset) -> RowBlocks:
    """Return the rows of a data set as one block."""
    block = RowBlock(read.x, read.y, read.groups)
    return RowBlocks(iter([block]), read.name, read.source, read.licence, read.features, read.labels, read.facts)


def _add_folders(source: Source) -> None:
    """Let the `path` of a source that reads files be a folder of part files, in place."""
    if not {"path", "kind"} <= source.parameters.keys():
        return
    name, head, make, blocks, files = source.name, source.head, source.make, source.blocks, source.files
    has_own_folders = source.takes_folder

    def is_of_parts(path: Any, given: Mapping[str, Any]) -> bool:
        """Return whether the path is a folder of part files; one of documents, each a text, is not."""
        is_of_documents = has_own_folders and given.get("label", "none") == "none"
        return not is_of_documents and part_files.is_folder_of_parts(path)

    @functools.wraps(make)
    def made(path: Any, *args: Any, **given: Any) -> Dataset:
        """Return the data set of the file, or of all files in the folder."""
        if not is_of_parts(path, given):
            return make(path, *args, **given)
        return part_files.read_parts(make, name, head, path, given)

    def made_in_blocks(path: Any, *args: Any, **given: Any) -> RowBlocks:
        """Return the rows of the file, or of all files in the folder, in blocks."""
        assert blocks is not None
        if not is_of_parts(path, given):
            return blocks(path, *args, **given)
        joined = part_files.read_parts_in_blocks(blocks, name, head, path, given)
        return _in_one_block(made(path, **given)) if joined is None else joined

    def files_read(path: Any, *args: Any, **given: Any) -> Paths:
        """Return the paths that the source reads; of a folder itself and its files."""
        read = [*files(path, *args, **given)]
        return [*part_files.files_of_parts(path), *read[1:]] if is_of_parts(path, given) else read

    made.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]
    object.__setattr__(source, "make", made)
    object.__setattr__(source, "blocks", made_in_blocks if blocks else None)
    object.__setattr__(source, "files", files_read)
    object.__setattr__(source, "takes_folder", True)


def _pop_labels(given: dict[str, Any], is_added: bool) -> Any:
    """Remove the parameter `labels` from `given` in place and return it, if it was added for the source; else None."""
    return given.pop("labels", None) if is_added else None


def _make_with_labels(make: Callable[..., Dataset], args: tuple, given: dict[str, Any], labels: Any) -> Dataset:
    """Return the data set made by `make` without labels, with those in the file `labels` instead.

    The label parameters (kind, positive, classes, unseen) are removed from `given` in place. Raises DataError if the
    file has another number of labels than the data rows, or invalid ones.
    """
    names = ("kind", "positive", "classes", "unseen")
    wanted = Wanted(**{name: given.pop(name, None) for name in names})
    made = make(*args, **given, kind=NONE)
    stored, place = read_label_file(labels)
    if len(stored) != made.rows:
        raise DataError(
            f"{labels} has {format_count(len(stored), 'label')} for {format_count(made.rows, 'row')}; "
            "there must be one for each row."
        )
    meaning, y = read_labels(stored, wanted, place)
    return dataclasses.replace(made, y=y, labels=meaning)


_sources: Registry[Source] = Registry("data set", ("workbench.data.sources",), DataError, is_named_by_files=True)
register, names, get, unavailable = _sources.register, _sources.names, _sources.get, _sources.unavailable


# Parameters of a reader: the setting `reading`, a mapping, which people type as one line of text.


def reader_options(given: Mapping[str, Any] | str | None) -> Options:
    """Return reader options from what was given: a mapping, or a line of text such as "hashed=65536, label=y".

    Raises DataError for text that cannot be parsed.
    """
    try:
        return read_options(given, "reading")
    except ValueError as error:
        raise DataError(str(error)) from None


def guess_reader_options(path: str | os.PathLike, options: Mapping[str, Any]) -> tuple[str, Options, str]:
    """Return (data source that reads the file or folder, its options, the reason).

    `options` take precedence over guessed ones. Raises DataError if no source reads the file, or an option is unknown.
    """
    dataset, guessed, why = guess(path)
    get(dataset).refuse_unknown(options)
    return dataset, Options({**guessed, **options}), why


def with_label(options: Mapping[str, Any], label: str) -> Options:
    """Return reader options with the label added; without it if `label` is "".

    Raises DataError if they name another label already.

    >>> with_label({"hashed": 65536}, "clicked")
    {'hashed': 65536, 'label': 'clicked'}
    """
    if label and options.get("label", label) != label:
        raise DataError(f"label is {label!r}, and {options['label']!r} in reading; keep one of the two.")
    return Options({**options, "label": label} if label else options)


# A second file read as the first one was: the same features, kind of labels and classes.


def parameters_like(source: Source, like: Dataset, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with which `source` reads a file into the features, kind and classes of `like`.

    Those in `given` take precedence. Raises DataError if the source does not read files, or `like` has renumbered
    columns.
    """
    known = source.parameters
    if "classes" not in known or "path" not in known:
        raise DataError(f"{source.name} is not read from a file; leave like= out.")
    if "features_kept" in like.facts:
        kept = f"{like.name} has {like.features} columns that keep_features chose and renumbered"
        raise DataError(f"{kept}; read the file like the set as it was before that.")
    of_like = {"features": like.features, "kind": like.kind, **like.facts.get("reread", {})}
    if like.kind != "numbers" and given.get("kind", like.kind) == like.kind:
        of_like |= {"classes": _original_classes(like), "positive": like.labels.positive}
    parameters = {name: value for name, value in of_like.items() if name in known and value is not None} | given
    if like.labels.merged and parameters.get("unseen") == like.classes[-1]:
        parameters["unseen"] = like.labels.merged[0]  # which becomes that class
    return parameters


def _original_classes(like: Dataset) -> tuple[str, ...]:
    """Return the class names that a file may contain, with merged classes in place of their merger."""
    return (*like.classes[:-1], *like.labels.merged) if like.labels.merged else like.classes


def merge_classes_like(dataset: Dataset, like: Dataset) -> Dataset:
    """Return `dataset` with the label meaning of `like`, by whose parameters it was read, classes merged as there.

    It is unchanged if the caller named other classes. Raises DataError if the numbers of features differ.
    """
    if dataset.features != like.features:
        widths = f"{dataset.source} has {dataset.features} features and {like.source} {like.features}"
        raise DataError(f"{widths}; a file read like another has as many.")
    if dataset.kind == "numbers" == like.kind or dataset.classes == like.classes:
        return dataclasses.replace(dataset, labels=like.labels)
    if like.labels.merged and dataset.classes == _original_classes(like):
        return dataclasses.replace(dataset, y=np.minimum(dataset.y, len(like.classes) - 1), labels=like.labels)
    return dataset  # the caller named other classes
