"""Widgets with all that their state names: closed together, and sent without defaults."""

from functools import partial
from typing import Any

import ipywidgets as widgets


def tree(widget: widgets.Widget) -> list[widgets.Widget]:
    """Return a widget and all that its state names, such as children, layouts and styles, parents first."""
    named = [getattr(widget, name) for name in widget.keys]
    inner = [part for value in named for part in (value if isinstance(value, tuple | list) else [value])]
    return [widget, *(found for part in inner if isinstance(part, widgets.Widget) for found in tree(part))]


def close_tree(widget: widgets.Widget) -> None:
    """Close a widget and all that its state names.

    ipywidgets closes the widget alone: its layout would be sent to every page that is loaded, and a box that is still
    open with a closed child makes ipywidgets fail to send any widget at all.
    """
    for part in tree(widget):
        part.close()


def send_less(widget: widgets.Widget) -> None:
    """Have a widget and all that its state names send what differs from the defaults when a page asks for its state.

    By default ipywidgets sends every trait, of which a layout alone has forty that are empty.
    """
    for part in tree(widget):
        part.get_state = partial(_state_without_defaults, part)


def _state_without_defaults(
    widget: widgets.Widget, key: str | set[str] | None = None, drop_defaults: bool = False
) -> dict[str, Any]:
    """Return the state of a widget: the traits `key`, or if that is None those that differ from their defaults."""
    return type(widget).get_state(widget, key, drop_defaults or key is None)
