"""What a drawn chart shows, read back from its figure: the named lines and bars, and the text of each point.

Tooltips of pictures and interactive charts are made of it, so that a chart is written once, for Matplotlib.
"""

from collections.abc import Callable, Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from workbench.analysis import formatting

_texts: "WeakKeyDictionary[Artist, Sequence[str]]" = WeakKeyDictionary()


class ValueText(FuncFormatter):
    """Formatter of ticks by a function of the value alone, which is kept as `tell`."""

    def __init__(self, tell: Callable[[float], str]) -> None:
        """Format values by `tell(value)`."""
        super().__init__(lambda value, _: tell(value))
        self.tell = tell


def text_on_axis(axis: Axis) -> Callable[[float], str]:
    """Return the function that gives a value as text, in the format of the axis's ticks."""
    formatter = axis.get_major_formatter()
    return formatter.tell if isinstance(formatter, ValueText) else formatting.format_number


def tell(artist: Artist, texts: Sequence[str]) -> None:
    """Keep the texts of a line's points, or of a bar, such as "sparse: 5 %, 1.2 ms (95 %: 1.1 to 1.3 ms)"."""
    _texts[artist] = texts


def lines(axes: Axes) -> Iterator[tuple[Line2D, str]]:
    """Yield (line, name) of the lines with a name; names begin with "_", which keeps them out of legends."""
    for line in axes.get_lines():
        label = str(line.get_label())
        is_named = label != "_" and not label.startswith("_child")
        if is_named and line.get_transform() == axes.transData and np.size(line.get_xdata()):
            yield line, label.removeprefix("_")


def texts_of_line(axes: Axes, line: Line2D, name: str) -> Sequence[str]:
    """Return the text of each point of a line: those that were kept, else its name with both values."""
    if line in _texts:
        return _texts[line]
    tell_x, tell_y = text_on_axis(axes.xaxis), text_on_axis(axes.yaxis)
    points = np.array(line.get_data(), dtype=np.float64).T.tolist()
    return [f"{name}: {tell_x(x)}, {tell_y(y)}" for x, y in points]


def bars(axes: Axes) -> Iterator[tuple[Rectangle, str, str]]:
    """Yield (bar, name, text) of the bars; the name is that of its container, or "" if that has none."""
    names, tell_x = [text.get_text() for text in axes.get_yticklabels()], text_on_axis(axes.xaxis)
    for each in axes.containers:
        if not isinstance(each, BarContainer):
            continue
        label = str(each.get_label())
        label = "" if label.startswith("_container") else label.removeprefix("_")
        for number, bar in enumerate(each.patches):
            at = round(bar.get_y() + bar.get_height() / 2)
            name = names[at] if 0 <= at < len(names) else names[number] if number < len(names) else ""
            whole = ", ".join(filter(None, (name, label)))
            yield bar, label, _texts[bar][0] if bar in _texts else f"{whole}: {tell_x(bar.get_width())}"
