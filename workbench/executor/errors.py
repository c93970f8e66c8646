"""The executor's own error."""

from workbench.graph import GraphError


class BindError(GraphError):
    """What was given does not fit the graph, or calls came in the wrong order; the message says what to do."""
