"""The error of this package, in a file of its own, as all others raise it."""


class DataError(ValueError):
    """A data set cannot be had as asked; the message says what came, what is allowed and what to do."""


class MissingLabelsError(DataError):
    """Data in which no labels were found, where labels are needed; it can be read with `kind="none"`."""


_OF_FILE = "--labels FILE for a file of labels, or --kind none to go on without"
_IN_PYTHON = 'labels="FILE" or kind="none"'
ADVICE_LABELS_FILE = f"Type {_OF_FILE} (in Python {_IN_PYTHON})."
"""What to type when a reader without named columns found no labels: the last line of the message."""
ADVICE_LABELS = f'Type --label NAME for a column of it, {_OF_FILE} (in Python label="NAME", {_IN_PYTHON}).'
"""What to type when a reader of named columns found no labels."""
