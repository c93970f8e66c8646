"""Pages are short: limits for the words of a page and of a paragraph, outside of the reference."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS_PAGE, WORDS_PARAGRAPH = 1500, 90
GENERATED = ("reference", "results", "tutorials")
"""Folders of pages that the build of the documentation writes."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.relative_to(ROOT / "docs").parts[0] not in GENERATED
    ),
]


def paragraphs(text: str) -> Iterator[str]:
    """Return paragraphs and items of lists; code, tables and headings are left out."""
    text = re.sub(r"^(```+)[^`\n]*\n.*?^\1$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^:::.*$", "\n", text, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n", text):
        if not block.startswith(("    ", "|", "#")):
            yield from re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", block)


def too_long(text: str) -> list[str]:
    """Return what exceeds a limit: the page, and the beginning of each paragraph."""
    found = ["the page"] if len(text.split()) > WORDS_PAGE else []
    return found + [each.strip()[:60] for each in paragraphs(text) if len(each.split()) > WORDS_PARAGRAPH]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_and_its_paragraphs_are_short(page):
    assert not too_long(page.read_text(encoding="utf-8"))


def test_what_is_too_long_is_found():
    assert too_long("word " * 91) == [("word " * 91)[:60]]
    assert not too_long(f"```\n{'word ' * 91}\n```\n\n| {'word ' * 91} |\n")
    assert not too_long(f"- {'word ' * 60}\n- {'word ' * 60}")
    assert too_long(f"{'word ' * 80}\n\n" * 19) == ["the page"]
