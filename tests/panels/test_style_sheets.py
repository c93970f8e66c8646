"""Style sheets of the panel, of results and of reports have no rule that browsers would drop."""

import re
from pathlib import Path

import pytest

from workbench.api import results
from workbench.panels import picture, style
from workbench.reports import export

SHEETS = {
    "panel": style.SHEET,
    "charts": picture.THEMES,
    "results": results.SHEET,
    "report": (Path(export.__file__).parent / "page.html").read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("sheet", SHEETS.values(), ids=SHEETS)
def test_every_rule_of_a_style_sheet_has_a_selector(sheet):
    """A declaration outside of a rule makes browsers drop the rule after it."""
    text = re.sub(r"/\*.*?\*/", "", sheet.partition("<style>")[2].partition("</style>")[0], flags=re.DOTALL)
    text = re.sub(r"@(?:container|media)[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", text)
    rules = re.findall(r"([^{}]*)\{([^{}]*)\}", text)
    assert len(rules) > 1
    assert [selector.strip() for selector, _ in rules if not selector.strip() or ";" in selector] == []
    assert re.sub(r"[^{}]*\{[^{}]*\}", "", text).strip() == ""
