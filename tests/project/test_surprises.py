"""The committed page of facts is what its generator makes of them."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_facts():
    spec = importlib.util.spec_from_file_location("surprises", ROOT / "docs" / "surprises.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "understand" / "surprises.md").read_text(encoding="utf-8")
    assert written == module.page(), "Build the documentation, make docs-quick, and commit the page"


def test_each_row_names_a_probe_that_exists():
    text = (ROOT / "docs" / "understand" / "surprises.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if "[probe `" in line]
    assert len(rows) >= 40
    for row in rows:
        name, path = row.split("[probe `")[1].split("`](")
        source = (ROOT / "docs" / "understand" / path.split(")")[0]).resolve().read_text(encoding="utf-8")
        assert f"def {name}():" in source
