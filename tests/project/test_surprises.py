"""The committed pages on other libraries are what their generators make of facts and break-evens."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["surprises", "breakevens"])
def test_the_page_is_what_its_generator_makes(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "understand" / f"{name}.md").read_text(encoding="utf-8")
    assert written == module.page(), "Build the documentation, make docs-quick, and commit the page"


def test_each_row_names_a_probe_that_exists():
    text = (ROOT / "docs" / "understand" / "surprises.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if "[probe `" in line]
    assert len(rows) >= 40
    for row in rows:
        name, path = row.split("[probe `")[1].split("`](")
        source = (ROOT / "docs" / "understand" / path.split(")")[0]).resolve().read_text(encoding="utf-8")
        assert f"def {name}():" in source
