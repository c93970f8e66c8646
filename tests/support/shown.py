"""What every object of the front door has that a notebook or a terminal shows."""


def assert_shown(thing: object, most: int | None = 400) -> str:
    """Require HTML for a notebook and text for a terminal, of fewer than `most` characters by `repr`; return the HTML.

    `most` is None for what is text itself, which a terminal shows whole.
    """
    html = thing._repr_html_()
    assert "<" in html
    assert str(thing).strip()
    assert most is None or len(repr(thing)) < most
    return html
