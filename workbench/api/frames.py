"""Conversion of tables with named columns into a matrix: numbers stay numbers, text and categories are one-hot.

The encoder is scikit-learn's, so that what is fitted on one table takes the next one, with values it has not seen.
"""

import difflib
from typing import Any

from workbench.data.errors import DataError
from workbench.data.tables.guessing import LABELS

IDS = ("user", "item", "id")
"""Words in the name of a column of whole numbers that make it a category."""
MOST_IN_ORDER = 32
"""Different whole numbers that a column of a category's name has at least."""
WRITTEN_NUMBER = r"[^\w.]*(\d[\d,' \u00a0]*\.?\d*|\.\d+)[^\w.]*"
"""A number between signs that are no letters, with groups of digits."""
MOSTLY = 0.9
"""Share of the values of a category of numbers, written as text, from which on that is said."""


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table with named columns.

    >>> is_frame([[1, 2]])
    False
    """
    return hasattr(value, "columns") and (hasattr(value, "iloc") or hasattr(value, "to_pandas"))


def as_pandas(table: Any) -> Any:
    """Return a table of pandas, Arrow or Polars as a pandas frame; duplicate column names are refused."""
    frame = table if hasattr(table, "iloc") else table.to_pandas()
    names = [str(name) for name in frame.columns]
    if not names:
        raise DataError("The frame has no columns; expected one or more.\nCheck how it was made.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"The frame has the column {twice[0]!r} more than once; expected different names.\n"
            "Type frame.loc[:, ~frame.columns.duplicated()] to keep the first of each."
        )
    return frame


def take_label(frame: Any, label: str | None) -> tuple[Any, Any, str]:
    """Split a frame into (features, labels, how the column was guessed); "" if `label` names it.

    Raises
    ------
    DataError
        If there is no such column; the message lists the columns.
    """
    names = list(frame.columns)
    if label is not None and label not in names:
        near = difflib.get_close_matches(str(label), map(str, names), 1)
        hint = f'label="{near[0]}"' if near else 'label="NAME"'
        shown = ", ".join(map(str, names[:20])) + (f", and {len(names) - 20} more" if len(names) > 20 else "")
        raise DataError(f"The frame has no column {label!r}; expected one of: {shown}.\nType {hint}.")
    chosen, why = (label, "") if label is not None else guess_label(frame)
    return frame.drop(columns=[chosen]), frame[chosen], why


def guess_label(frame: Any) -> tuple[Any, str]:
    """Choose the column of labels: by name, else the only one of two values, else the last; with the reason.

    Examples
    --------
    >>> import pandas
    >>> guess_label(pandas.DataFrame({"age": [1, 2, 3], "clicked": [0, 1, 0]}))[0]
    'clicked'
    """
    names = list(frame.columns)
    by_name = sorted((LABELS.index(str(name).lower()), name) for name in names if str(name).lower() in LABELS)
    two = [name for name in names if frame[name].nunique() == 2] if not by_name else []
    if by_name:
        chosen, reason, several = by_name[0][1], "by its name", [name for _, name in by_name]
    elif len(two) == 1:
        chosen, reason, several = two[0], "the only column of two values", []
    else:
        chosen, reason, several = names[-1], "the last column", two
    others = [name for name in several if name != chosen]
    beside = f"; others would fit: {', '.join(map(str, others[:5]))}" if others else ""
    return chosen, f'label="{chosen}" was guessed ({reason}{beside}). Type label="NAME" to change it.'


def is_numeric(frame: Any) -> bool:
    """Tell whether all columns of a frame are numbers that mean amounts."""
    return not categories_of(frame)


def categories_of(frame: Any) -> list[Any]:
    """List the columns of a frame that are categories: text, and whole numbers that are named like ids."""
    return [name for name in frame.columns if _is_category(name, frame[name])]


def _is_category(name: Any, column: Any) -> bool:
    """Return whether a frame's column becomes one-hot: text, categories, or whole numbers named as an id."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "fc" or str(column.dtype).startswith("Sparse"):
        return False
    if kind in "biu":
        words = str(name).lower().replace("-", "_").split("_")
        return kind != "b" and any(word in IDS for word in words) and column.nunique() >= MOST_IN_ORDER
    return True


def encoder_of(frame: Any) -> Any:
    """Return an unfitted scikit-learn transformer of frames with these columns: categories one-hot, numbers kept."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    categories = categories_of(frame)
    numbers = [name for name in frame.columns if name not in categories]
    parts = [("categories", OneHotEncoder(handle_unknown="ignore"), categories), ("numbers", "passthrough", numbers)]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=1.0)


def matrix_of_frame(frame: Any) -> tuple[Any, Any, str]:
    """Return (matrix, fitted encoder or None, remark) of the features of a frame.

    Raises
    ------
    DataError
        If a value is missing, with the columns that have such.

    Examples
    --------
    >>> import pandas
    >>> matrix, encoder, remark = matrix_of_frame(pandas.DataFrame({"color": ["red", "blue"], "size": [3.0, 4.0]}))
    >>> matrix.shape, remark
    ((2, 3), 'Categories, one column a value: color; numbers as they are: size.')
    """
    missing = [(str(name), int(count)) for name, count in frame.isna().sum().items() if count]
    if missing:
        named = ", ".join(f"{name} ({count:,})" for name, count in missing[:5])
        more = f", and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DataError(
            f"The frame has missing values in {len(missing)} columns: {named}{more}; expected none.\n"
            'Type frame.dropna() to leave these rows out, or frame.fillna(0) or frame.fillna("missing").'
        )
    if times := [str(name) for name in frame.columns if getattr(frame[name].dtype, "kind", "") in "mM"]:
        raise DataError(
            f"The column {times[0]!r} holds dates; expected numbers or categories.\n"
            f'Type frame["{times[0]}"].dt.hour or .astype("int64"), or frame.drop(columns={times!r}).'
        )
    categories = categories_of(frame)
    if not categories:
        is_sparse = len(frame.columns) and all(str(kind).startswith("Sparse") for kind in frame.dtypes)
        return (frame.sparse.to_coo() if is_sparse else frame.to_numpy()), None, ""
    encoder = encoder_of(frame)
    matrix = encoder.fit_transform(frame)
    numbers = [str(name) for name in frame.columns if name not in categories]
    beside = f"; numbers as they are: {_listed(numbers)}" if numbers else ""
    remark = f"Categories, one column a value: {_listed(categories)}{beside}."
    return matrix, encoder, f"{remark}{_numbers_as_text(frame, categories)}"


def _numbers_as_text(frame: Any, categories: list[Any]) -> str:
    """Return the sentence on categories that are numbers written as text, such as "$3,123.00", with what to type."""
    for name in categories:
        texts = frame[name].astype(str).drop_duplicates()
        share = texts.str.fullmatch(WRITTEN_NUMBER).mean()
        if len(texts) > MOST_IN_ORDER and share >= MOSTLY:
            convert = f'frame["{name}"] = frame["{name}"].str.replace(r"[^0-9.-]", "", regex=True).astype(float)'
            return f"\n{name} holds numbers as text, such as {texts.iloc[0]!r}. Type {convert} to take them as numbers."
    return ""


def _listed(names: list[Any]) -> str:
    """Return the first eight names as text, with the count of the others."""
    return ", ".join(map(str, names[:8])) + (f", and {len(names) - 8} more" if len(names) > 8 else "")
