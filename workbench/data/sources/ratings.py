"""Ratings, `user item rating` a line, and lists of what users took, `user item item ...` a line, for factorization.

A row of the data set is one rating: its user one-hot, behind it its item one-hot; `facts["fields"]` has the widths of
both blocks. Ratings are held out by rows, as for the root mean squared error of MovieLens, so there are no groups.

Ids are any text, 7 and 07 are two. Users are numbered by value where all of their ids are whole numbers, else by the
alphabet, and so are items. What is implicit, a pair without a rating, has y = 1: lists, two columns, and any file with
`implicit`; a pair that comes again counts once there, and `facts["duplicates"]` says how many did.
"""

import itertools
import os
import re
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError, reader_option_advice
from workbench.data.files.labels import Numbers, places_of, sort_ids
from workbench.data.files.reading import dataset_of, reading
from workbench.data.files.types import rating_columns, refuse_binary
from workbench.data.labels import AS_NUMBERS, Place, Wanted, format_names, number_named
from workbench.data.text import separated
from workbench.data.text.separated import Layout
from workbench.option_text import typed

NAME = "ratings"
WHAT = "ratings (each line: user item rating)"
COLUMNS = "user item rating"
DUPLICATES = ("refuse", "last")
UNKNOWN = ("refuse", "empty")
ROWS_SEEN = 100
"""First rows by which a header is told from a row."""
DIGIT = re.compile(r"\d")


class Pairs(NamedTuple):
    """Pairs of a file: the numbers of users and items, their ids, a rating each or None, and the place of each.

    `note` says what was guessed, "" for nothing."""

    users: np.ndarray
    items: np.ndarray
    user_ids: list[str]
    item_ids: list[str]
    ratings: np.ndarray | None
    place: Place
    note: str = ""

    def taken(self, kept: np.ndarray) -> "Pairs":
        """Return the pairs with indices `kept`, int [pairs], in that order."""
        ratings = None if self.ratings is None else self.ratings[kept]
        users, items = self.users[kept], self.items[kept]
        place = self.place
        return self._replace(users=users, items=items, ratings=ratings, place=lambda row: place(int(kept[row])))


class Block(NamedTuple):
    """One-hot columns of users or items: the column of each pair, -1 for none, and the ids of the columns."""

    columns: np.ndarray
    ids: list[str]


def make(
    path: str | os.PathLike,
    separator: str | None = None,
    header: bool | None = None,
    columns: str = COLUMNS,
    lists: bool | None = None,
    implicit: bool = False,
    duplicates: str = "refuse",
    user_ids: Sequence[str] | None = None,
    item_ids: Sequence[str] | None = None,
    unknown: str = "refuse",
    wanted: Wanted = AS_NUMBERS,
) -> Dataset:
    """Return one row a rating, x [ratings, users + items] with a 1 for the user and a 1 for the item, y the rating.

    `separator` is tab, space (any blanks), comma, semicolon, pipe or colons (::), by default what the first line has;
    `header` says whether that line names the columns, by default where its rating is no number. `columns` has the names
    in order, time and what follows may be left out. `lists` says that a line is a user, a colon behind it or not, and
    what that user took, by default where lines differ in length or have the colon. `duplicates` are refused, or the
    `last` rating of a pair in the file is taken.
    `user_ids` and `item_ids` are all there may be, in order, as another file is read with; others are refused, or with
    unknown = "empty" leave their part of the row empty. `kind`, `positive`, `classes`, `unseen`: as of npz. Refused
    (`DataError`, with the line): what is invalid. Memory about 150 bytes a rating.
    """
    _check(columns, duplicates, unknown)
    if columns == COLUMNS and header is not False:
        columns = _columns_of_header(path, separator, implicit) or columns
    with reading(path, WHAT):
        pairs, repeated = _without_repeated(_read(path, separator, header, columns, lists, implicit), duplicates)
        blocks = _blocks(pairs, user_ids, item_ids, unknown)
        y = np.ones(len(pairs.users)) if pairs.ratings is None else pairs.ratings
        facts = _facts(blocks, pairs, repeated, {"columns": columns, "implicit": implicit, "lists": lists})
        return dataset_of(NAME, _one_hot(*blocks), y, wanted, path, pairs.place, **facts)


def _columns_of_header(path: str | os.PathLike, separator: str | None, implicit: bool) -> str:
    """Return what the columns mean by the first line, as "user item rating other3"; "" if it is no header.

    A column of ratings is not needed if `implicit`.
    """
    with reading(path, WHAT):
        refuse_binary(path, WHAT)
        columns = rating_columns(separated.layout(path, separator).first, needs_rating=not implicit)
    return " ".join(columns or ())


def _facts(blocks: list[Block], pairs: Pairs, repeated: int, reread: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of the data set: counts of users and items, duplicates, and ids to read a later file by.

    {"users", "items", "fields", "implicit", "duplicates", "reread"}; `reread` are the reader's parameters, `blocks` the
    two columns, `repeated` the duplicates.
    """
    (_, users), (_, items) = blocks
    counted = {"users": len(users), "items": len(items), "fields": [len(users), len(items)]}
    implicit = {"implicit": pairs.ratings is None, "duplicates": repeated}
    guesses = {"guesses": (pairs.note,)} if pairs.note else {}
    return counted | implicit | guesses | {"reread": reread | {"user_ids": users, "item_ids": items}}


def _check(columns: str, duplicates: str, unknown: str) -> None:
    """Raise DataError if `columns`, `duplicates` or `unknown` has a value that is not allowed."""
    names = columns.split()
    if len(set(names)) < len(names) or not {"user", "item"} <= set(names):
        advice = f"it names each column once, user and item among them, such as {COLUMNS!r}"
        raise DataError(f"columns is {columns!r}; {advice}.")
    for name, value, allowed in (("duplicates", duplicates, DUPLICATES), ("unknown", unknown, UNKNOWN)):
        if value not in allowed:
            raise DataError(f"{name} is {value!r}; it is one of {', '.join(allowed)}.")


def _read(
    path: str | os.PathLike,
    separator: str | None,
    header: bool | None,
    columns: str,
    lists: bool | None,
    implicit: bool,
) -> Pairs:
    """Return the pairs of a file, as lists of items or by columns; `lists` None infers which. Raises DataError."""
    refuse_binary(path, WHAT)
    layout = separated.layout(path, separator)
    if lists or (lists is None and has_lists(path, layout)):
        return _read_lists(path, layout)
    return _read_columns(path, layout, header, columns.split(), implicit)


def has_lists(path: str | os.PathLike, layout: Layout) -> bool:
    """Return whether the file holds lists: its first 100 lines differ in length, are long, or begin with "user:"."""
    lines = (line for (_, line), _ in zip(separated.lines_of(path, layout), range(100), strict=False))
    lengths = {len(separated.fields(line.decode("utf-8"), layout.separator)) for line in lines}
    return len(lengths) > 1 or max(lengths) > 8 or (layout.separator == "space" and layout.first[0].endswith(":"))


def _read_lists(path: str | os.PathLike, layout: Layout) -> Pairs:
    """Return the pairs of a file with lines "user item item ...", without ratings.

    DataError with the line of an empty id.
    """
    users, items = Numbers(), Numbers()
    user_of, items_of, lines, counts = array("q"), array("q"), array("q"), array("q")
    for number, line in separated.lines_of(path, layout):
        user, *taken = separated.fields(line.decode("utf-8"), layout.separator)
        user = user.removesuffix(":")
        if "" in (user, *taken):
            raise DataError(f"{path}:{number}: an id is empty; a line is a user and the items of that user.")
        user_of.append(users[user])
        items_of.extend(map(items.__getitem__, taken))
        lines.append(number)
        counts.append(len(taken))
    lengths = np.array(counts, np.int64)
    line_of = np.repeat(np.array(lines, np.int64), lengths)
    return Pairs(
        np.repeat(np.array(user_of, np.int64), lengths), np.array(items_of, np.int64), list(users), list(items),
        None, lambda row: f"{path}:{line_of[row]}",
    )  # fmt: skip


def _read_columns(
    path: str | os.PathLike, layout: Layout, header: bool | None, columns: list[str], implicit: bool
) -> Pairs:
    """Return the pairs of a file with one pair a line; `columns` names its columns, `implicit` ignores the rating.

    Raises DataError if there are too few columns, or only two without `implicit`, and with the line of invalid values.
    """
    names = {name: place for place, name in enumerate(columns)}
    if layout.columns < len(columns):
        if columns != COLUMNS.split() or layout.columns != 2:
            raise DataError(f"{path} has {layout.columns} columns; {' '.join(columns)!r} needs {len(columns)}.")
        if not implicit:
            raise DataError(
                f"{path} has two columns and no ratings; each may be a user and an item that was taken.\n"
                f"{reader_option_advice(implicit=True)}"
            )
        del names["rating"]
    if implicit:
        names.pop("rating", None)
    is_header = _is_header(path, layout, names) if header is None else header
    if is_header:
        layout = layout.without_header
    kinds = {place: "number" if name == "rating" else "text" for name, place in names.items() if name in COLUMNS}
    read = separated.read_columns(path, layout, kinds, advice=lambda place: _advice_on_rating(layout, columns, place))
    user, item, ratings = read[names["user"]], read[names["item"]], read.get(names.get("rating", -1))
    pairs = Pairs(user.codes, item.codes, user.texts, item.texts, ratings, separated.place_of(path, layout))
    if is_header is not None:
        return pairs
    taken = (
        f"The first line is taken as a user {layout.first[names['user']]!r} and an item {layout.first[names['item']]!r}"
    )
    return pairs._replace(note=f"{taken}. As a header: {typed(header=True)}.")


def _advice_on_rating(layout: Layout, columns: list[str], place: int) -> str:
    """Return that the column with index `place` is read as the rating, and what to type if another one is.

    If it has no number in the second row, the next column that has one may be.
    """
    seen = layout.second or layout.first
    other = next((at for at in range(place, len(seen)) if separated.is_number(seen[at])), place)
    if other == place:
        return " It is read as the rating."
    order = [*columns[:place], *(f"other{at + 1}" for at in range(place, other)), "rating"]
    return f" It is read as the rating; if column {other + 1} is:\n{reader_option_advice(columns=' '.join(order))}"


def _is_header(path: str | os.PathLike, layout: Layout, names: dict[str, int]) -> bool | None:
    """Return whether the first row is a header, None if its ids could be either; `names` maps column names to indices.

    The rating decides: no number in the first row, and one in the second. Without ratings a header names a user and an
    item, or is no number in a column of numbers, or has no digit in a column of ids that all have one.
    """
    if len(layout.second) != layout.columns:
        return False
    if "rating" in names:
        place = names["rating"]
        return number_named(layout.first[place]) is None and number_named(layout.second[place]) is not None
    if rating_columns(layout.first, needs_rating=False):
        return True
    lines = itertools.islice(separated.lines_of(path, layout), 1, ROWS_SEEN)
    rows = [separated.fields(line.decode("utf-8"), layout.separator) for _, line in lines]
    ids = names["user"], names["item"]
    for place, columns in enumerate(zip(*(row for row in rows if len(row) == layout.columns), strict=True)):
        is_like_first = DIGIT.search if place in ids else separated.is_number
        if all(map(is_like_first, columns)) and not is_like_first(layout.first[place]):
            return not any(DIGIT.search(layout.first[place]) for place in ids)
    return False if any(DIGIT.search(layout.first[place]) for place in ids) else None


def _without_repeated(pairs: Pairs, duplicates: str) -> tuple[Pairs, int]:
    """Return (pairs without repeats, in file order, number left out); of rated pairs the last rating is kept.

    Raises DataError with both lines if ratings repeat and `duplicates` is "refuse".
    """
    keys = pairs.users * len(pairs.item_ids) + pairs.items
    order = np.argsort(keys, kind="stable")
    is_again = np.diff(keys[order], prepend=-1) == 0
    if not is_again.any():
        return pairs, 0
    if pairs.ratings is not None and duplicates == "refuse":
        again = int(order[is_again].min())
        before = int(np.argmax(keys == keys[again]))
        user, item = pairs.user_ids[pairs.users[again]], pairs.item_ids[pairs.items[again]]
        twice = f"{pairs.place(again)}: user {user} rates item {item} again, after {pairs.place(before)}"
        raise DataError(f"{twice}; the last rating of a pair can be taken.\n{reader_option_advice(duplicates='last')}")
    is_left_out = is_again if pairs.ratings is None else np.append(is_again[1:], False)
    return pairs.taken(np.sort(order[~is_left_out])), int(is_again.sum())


def _blocks(pairs: Pairs, user_ids: Sequence[str] | None, item_ids: Sequence[str] | None, unknown: str) -> list[Block]:
    """Return the one-hot columns of users and of items; known ids fix the columns, else all ids sorted.

    An id that is not known gets the column -1, or raises DataError with the line if `unknown` is "refuse".
    """
    blocks = []
    for what, codes, ids, known in (
        ("user", pairs.users, pairs.user_ids, user_ids),
        ("item", pairs.items, pairs.item_ids, item_ids),
    ):
        in_order, places = sort_ids(ids) if known is None else (list(known), places_of(ids, known))
        block = Block(places[codes], in_order)
        if unknown == "refuse" and (block.columns < 0).any():
            row = int(np.argmin(block.columns))
            those = f"the {what} {ids[codes[row]]} is none of the {len(in_order):,} known: {format_names(in_order)}"
            raise DataError(
                f"{pairs.place(row)}: {those}; that part of the row can be left empty.\n"
                f"{reader_option_advice(unknown='empty')}"
            )
        blocks.append(block)
    return blocks


def _one_hot(users: Block, items: Block) -> scipy.sparse.csr_array:
    """Return CSR float32 [pairs, users + items]: a 1 for the user and a 1 for the item; none for a column of -1."""
    width = len(users.ids)
    columns = np.stack([users.columns, np.where(items.columns < 0, -1, items.columns + width)], axis=1)
    is_known = columns >= 0
    indptr = np.concatenate([[0], np.cumsum(is_known.sum(axis=1))])
    ones = np.ones(int(indptr[-1]), np.float32)
    return scipy.sparse.csr_array((ones, columns[is_known], indptr), shape=(len(columns), width + len(items.ids)))


register(Source(NAME, make, gives=("fields",)))
