"""The executor's own error."""

from workbench.graph import GraphError


class BindError(GraphError):
    """Argument that does not fit the graph, or a call in the wrong order; the message says what to do."""
