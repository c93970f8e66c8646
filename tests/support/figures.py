"""Charts drawn off screen, and what is written on them."""

from matplotlib.figure import Figure

from workbench import plots, store


def drawn(name, rows, **controls):
    """The figure of a chart of these rows, laid out, and its sentence."""
    figure = Figure(figsize=(9, 6))
    sentence = plots.draw(name, store.frame(rows), figure, **controls)
    figure.draw_without_rendering()
    return figure, sentence


def texts(figure):
    """All texts that are seen."""
    found = figure.findobj(lambda artist: hasattr(artist, "get_text") and hasattr(artist, "get_fontsize"))
    return [text for text in found if text.get_text() and text.get_visible()]


def said(figure):
    """All that is written on a figure."""
    return " | ".join(text.get_text().replace("\n", " ") for text in texts(figure))


def notes(figure):
    """What is written beside break-evens that are marked."""
    texts = [" ".join(text.get_text().split()) for text in figure.axes[0].texts]
    return [text for text in texts if text.startswith("break-even")]
