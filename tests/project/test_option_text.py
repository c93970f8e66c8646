"""Options as one line of text."""

import pytest

from workbench import option_text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"a": 1, "b": -2.5, "c": True, "d": None, "e": "text"},
        {"commas": "x, y = z", "digits": "12", "word": "true", "empty": "", "quotes": 'it\'s \\ "so"', "blank": " x"},
        {"large": 2**70, "tiny": 1e-300, "underscore": "1_000"},
    ],
)
def test_what_is_written_is_read_back(options):
    assert option_text.parsed(option_text.written(options)) == options


@pytest.mark.parametrize("text", ["a", "a=1, a=2", "=3", "a=1,,b=2", "a='open", "a=1; b=2'x'"])
def test_an_invalid_line_is_refused(text):
    with pytest.raises(ValueError, match="reading is"):
        option_text.parsed(text, "reading")
