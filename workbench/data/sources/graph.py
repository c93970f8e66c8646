"""Graphs whose nodes have classes: citation archives, edge lists, adjacency matrices; for models of nodes.

A node is a row: x holds its features, y its label, `graph` the edges. A citation archive (.npz) has the arrays
adj_data, adj_indices, adj_indptr, adj_shape, the same of attr_ for features, and labels. An edge list is text, `u v` or
`u v weight` a line, with comments behind #. An adjacency is Matrix Market text, or a matrix of
`scipy.sparse.save_npz`.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, compressed, graph_of, with_known_values
from workbench.data.errors import DataError, reader_option_advice
from workbench.data.files.labels import is_whole, of_text, places_of, read_label_file
from workbench.data.files.matrix_market import is_market
from workbench.data.files.reading import ZIP, dataset_of, read_matrix, read_npz_arrays, reading
from workbench.data.files.types import refuse_binary, starts_with
from workbench.data.labels import Place, Wanted, format_names
from workbench.data.text import separated
from workbench.data.text.separated import Layout
from workbench.option_text import typed

NAME = "graph"
WHAT = "a graph (.npz, .mtx, or text with an edge a line: u v)"
PARTS = ("data", "indices", "indptr", "shape")
ADVICE = f"Type {typed(labels='FILE')} with a label for each node (.npy, .mtx, or text, one a line)."


class Labelled(NamedTuple):
    """Labels of nodes as they stand in a file, where that is, and the names of the nodes where they have any."""

    values: np.ndarray
    place: Place
    names: list[str] | None = None


class Edges(NamedTuple):
    """Edges among so many nodes: the numbers of both ends of each, and its weight."""

    nodes: int
    ends: tuple[np.ndarray, np.ndarray]
    weights: np.ndarray


class Read(NamedTuple):
    """Content of the files: edges, labels, features of the nodes and names of the classes, if the file has them."""

    edges: Edges
    labels: Labelled
    features: Any = None
    classes: Sequence[Any] | None = None


def make(
    path: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    node_features: str | os.PathLike | None = None,
    named: bool = False,
    zero_based: bool | str = "auto",
    directed: bool = False,
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
    per_class: int | None = None,
) -> Dataset:
    """Return the nodes of the graph in `path`, their features from `node_features` (.npz or .mtx), else one-hot.

    `labels` is .npy, .mtx or text with the label of each node on a line; an archive may hold its own. With `named` it
    is text of two columns, a node as the edge list calls it and its label. Else nodes of an edge list are whole
    numbers, the places of their labels: from 0 or 1 as `zero_based` says; auto takes the base that fits, if one does.
    Edges are stored both ways unless `directed`, and once: of several the largest weight. `kind`, `positive`, `classes`
    and `unseen` are those of the data set npz. Where rows are held out, `per_class` nodes of each class are trained on,
    as in the usual splits of citation graphs (Yang et al. 2016), by default the usual share. Refused (`DataError`, with
    the line): no labels, nodes without one, what is invalid. 1 s a million edges, memory about 150 bytes an edge.
    """
    if zero_based not in (True, False, "auto"):
        raise DataError(f"zero_based is {zero_based!r}; it is true, false or auto.")
    with reading(path, WHAT):
        read = _read(path, labels, named, zero_based)
        nodes, ends, weights = read.edges
        if len(read.labels.values) != nodes:
            raise DataError(f"{path} has {nodes} nodes, and {len(read.labels.values)} labels came; each has one.")
        x = read.features if node_features is None else read_matrix(node_features)
        x = scipy.sparse.eye_array(nodes, format="csr", dtype=np.float32) if x is None else x
        if x.shape[0] != nodes:
            raise DataError(f"{node_features or path} has features of {x.shape[0]} nodes, and {path} {nodes} nodes.")
        wanted = Wanted(kind, positive, read.classes if classes is None and kind != "numbers" else classes, unseen)
        facts: dict[str, Any] = {"edges_read": len(weights), "loops_read": int((ends[0] == ends[1]).sum())}
        facts |= {"directed": directed, "trained_per_class": per_class}
        facts["reread"] = {"named": named, "directed": directed}
        own, place = read.labels.values, read.labels.place
        made = dataset_of(NAME, x, own, wanted, node_features or path, place, **facts)
        return dataclasses.replace(made, graph=graph_of(ends, weights, nodes, directed))


def _read(path: str | os.PathLike, labels: str | os.PathLike | None, named: bool, zero_based: bool | str) -> Read:
    """Return edges, labels and features of a graph file: a citation archive, a matrix, or an edge list.

    `named` and `zero_based` say how edge lists call their nodes. Raises DataError for invalid files or missing labels.
    """
    if starts_with(path, ZIP):
        with read_npz_arrays(path) as archive:
            if "adj_indptr" in archive.files:
                return _read_archive(path, archive, labels)
    if starts_with(path, ZIP) or is_market(path):
        given = _read_given_labels(path, labels, named=False)
        return Read(_edges_of(read_matrix(path), path), given)
    refuse_binary(path, WHAT)
    given = _read_given_labels(path, labels, named)
    return Read(_edges_in_text(path, given, zero_based), given)


def _read_given_labels(path: str | os.PathLike, labels: str | os.PathLike | None, named: bool) -> Labelled:
    """Return the labels in the file `labels`; if `named`, with the node names from its first column.

    Raises DataError if `labels` is None, the file has other columns, or a node occurs twice.
    """
    if labels is None:
        raise DataError(
            f"{path} has edges and no labels of its nodes.\n{ADVICE}\n"
            "If each edge is a user and an item that was taken, a model can learn the order of items.\n"
            f"{reader_option_advice(dataset='ratings', implicit=True)}"
        )
    if not named:
        return Labelled(*read_label_file(labels))
    from workbench.data.tables.guessing import LABELS  # late: few files have named nodes

    with reading(labels, "labels of named nodes (each line: node label)"):
        layout = separated.layout(labels)
        if layout.columns != 2:
            raise DataError(f"{labels} has {layout.columns} columns; with named=true it has a node and its label.")
        node, label = separated.read_columns(labels, layout, {0: "text", 1: "text"}).values()
        place = separated.place_of(labels, layout)
        names = [node.texts[code] for code in node.codes]
        if len(node.texts) < len(names):
            again = int(np.flatnonzero(np.bincount(node.codes)[node.codes] > 1)[-1])
            raise DataError(f"{place(again)}: the node {names[again]} comes again; each has one label.")
        is_header = layout.first[1].casefold() in LABELS and (label.codes == label.codes[0]).sum() == 1
        first = int(is_header and len(names) > 1)
        values = of_text([label.texts[code] for code in label.codes[first:]])
        return Labelled(values, lambda row: place(row + first), names[first:])


def _read_archive(path: str | os.PathLike, archive: Any, labels: str | os.PathLike | None) -> Read:
    """Return edges, labels and features of an .npz archive with adj_* and attr_* arrays; `labels` replaces its own.

    Raises DataError without labels, or for class indices beyond class_names.
    """
    names = archive.files
    if labels is None and "labels" not in names:
        raise DataError(f"{path} holds no labels, but {format_names(names)}.\n{ADVICE}")
    edges = _edges_of(_read_compressed(archive, "adj", path), path)
    features = _read_compressed(archive, "attr", path) if "attr_indptr" in names else None
    if labels is not None:
        return Read(edges, _read_given_labels(path, labels, named=False), features)
    own = Labelled(archive["labels"], lambda row: f"{path}, labels, row {row}")
    classes = archive["class_names"].tolist() if "class_names" in names else None
    if classes is None or own.values.dtype.kind not in "iu":
        return Read(edges, own, features)
    if own.values.size and not 0 <= own.values.min() <= own.values.max() < len(classes):
        seen = f"{own.values.min()} to {own.values.max()}"
        raise DataError(f"{path}: labels are {seen}, and class_names has {len(classes)}; they count from 0.")
    return Read(edges, own._replace(values=np.array(classes)[own.values]), features, classes)


def _read_compressed(archive: Any, prefix: str, path: str | os.PathLike) -> scipy.sparse.csr_array:
    """Return the CSR float64 array stored as PREFIX_data, _indices, _indptr and _shape; DataError if one is missing.

    Its structure is not validated.
    """
    if missing := [f"{prefix}_{part}" for part in PARTS if f"{prefix}_{part}" not in archive.files]:
        raise DataError(f"{path} holds no array {missing[0]}, but {format_names(archive.files)}.")
    data, indices, indptr, shape = (archive[f"{prefix}_{part}"] for part in PARTS)
    if data.dtype.kind not in "biuf" or indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise DataError(f"{path}: the parts of {prefix} are {data.dtype}, {indices.dtype}, {indptr.dtype}; no matrix.")
    index = np.promote_types(indices.dtype, indptr.dtype)
    index = index if index in (np.dtype(np.int32), np.dtype(np.int64)) else np.dtype(np.int64)
    parts = (data.astype(np.float64), indices.astype(index), indptr.astype(index))
    return scipy.sparse.csr_array(parts, shape=tuple(map(int, shape)))


def _edges_of(adjacency: Any, path: str | os.PathLike) -> Edges:
    """Return the entries of a square adjacency matrix as edges; DataError, naming `path`, if it is not square."""
    rows, columns = adjacency.shape
    if rows != columns:
        raise DataError(f"The adjacency in {path} is {rows} x {columns}; it has a row and a column for each node.")
    entries = formats.to_format(with_known_values(compressed(adjacency)), "coo")
    return Edges(rows, entries.coords, entries.data.astype(np.float64))


def _edges_in_text(path: str | os.PathLike, labels: Labelled, zero_based: bool | str) -> Edges:
    """Return the edges of a text file with lines "u v" or "u v weight", weights 1 if there are none.

    Raises DataError, with the line, for other columns, or nodes without a label.
    """
    layout = separated.layout(path)
    if layout.columns not in (2, 3):
        raise DataError(f"{path} has {layout.columns} columns; an edge is u v, or u v weight.")
    if _is_header(layout, labels.names):
        layout = layout.without_header
    kind = "whole" if labels.names is None else "text"
    kinds = {0: kind, 1: kind} | ({2: "number"} if layout.columns == 3 else {})
    read = separated.read_columns(path, layout, kinds, comments=True)
    place = separated.place_of(path, layout, comments=True)
    nodes = len(labels.values)
    if labels.names is None:
        ends = _zero_based([read[0], read[1]], nodes, zero_based, place)
    else:
        ends = [places_of(read[end].texts, labels.names)[read[end].codes] for end in (0, 1)]
        for end, numbers in enumerate(ends):
            if (numbers < 0).any():
                row = int(np.argmin(numbers))
                raise DataError(f"{place(row)}: the node {read[end].texts[read[end].codes[row]]!r} has no label.")
    return Edges(nodes, (ends[0], ends[1]), read.get(2, np.ones(len(ends[0]))))


def _is_header(layout: Layout, names: list[str] | None) -> bool:
    """Return whether the first row names no nodes and the second does; `names` None means that nodes are integers."""

    def is_node(text: str) -> bool:
        """Return whether the text is the id of a node."""
        return is_whole(text) if names is None else text in names

    return not any(map(is_node, layout.first[:2])) and bool(layout.second) and all(map(is_node, layout.second[:2]))


def _zero_based(ends: Sequence[np.ndarray], nodes: int, zero_based: bool | str, place: Place) -> list[np.ndarray]:
    """Return the node indices from 0 of both ends, int64 arrays, which count from 0 or 1 in the file.

    `zero_based` "auto" takes the base that fits. Raises DataError if both fit, or a node is out of range (with its
    line).
    """
    least, most = min(int(end.min()) for end in ends), max(int(end.max()) for end in ends)
    fitting = [base for base in (0, 1) if least >= base and most < nodes + base]
    if zero_based == "auto" and len(fitting) == 2:
        unclear = f"nodes are {least} to {most} of {nodes}, and may count from 0 or from 1"
        raise DataError(f"{place(0)} and on: {unclear}.\n{reader_option_advice(zero_based=True)} Or false.")
    base = (fitting or [0])[0] if zero_based == "auto" else 0 if zero_based else 1
    for end in ends:
        outside = (end < base) | (end >= nodes + base)
        if outside.any():
            row = int(np.argmax(outside))
            labelled = f"{base} to {nodes - 1 + base}, the places of the labels"
            raise DataError(f"{place(row)}: the node {end[row]} is none of {labelled}.")
    return [end - base for end in ends]


register(Source(NAME, make, gives=("graph",)))
