"""The error of this package, in a file of its own, as all others raise it."""


class DataError(ValueError):
    """A data set cannot be had as asked; the message says what came, what is allowed and what to do."""
