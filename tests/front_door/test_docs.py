"""What README, docs and the reference show of `wb` runs as it stands, but for budgets, which are made small."""

import importlib.util
import re
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest

import workbench as wb
from tests.support.sweeps import supervised_here
from workbench import data

ROOT = Path(__file__).parents[2]
SMALLER = {
    "budget=60": "budget=5",
    'format=["csr", "dense"])': 'format="csr", update="lazy", execution="step", storage="same", rounds=1)',
}
SUPERVISED = "README.md"
"""The page whose sweeps have a process of their own, as users have it; those of the others are supervised here."""
PAGES = (SUPERVISED, "docs/start/five_minutes.md", "docs/howto/keep_a_model.md", "docs/howto/own_data.md")
PAGES += ("docs/howto/few_weights.md",)


def block(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    code = next(code for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "wb." in code)
    for shown, small in SMALLER.items():
        code = code.replace(shown, small)
    return code


@pytest.mark.parametrize("page", PAGES)
def test_python_of_a_page_runs(page, data, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{1 if row % 2 else -1} {1 + row % 5}:1 {7 + row % 2}:1\n" for row in range(400))
    (tmp_path / "training.txt").write_text(lines)
    frame = pd.DataFrame({"site": ["a", "b"] * 20, "clicked": [0, 1] * 20})
    names = {"X": data[0], "y": data[1], "X_new": data[0][:3], "frame": frame}
    with nullcontext() if page == SUPERVISED else supervised_here():
        exec(compile(block(page), page, "exec"), names)
    plt.close("all")
    assert hasattr(names["model"] if "model" in names else names["advice"].fit(), "predict")


def test_every_name_that_docs_promise_is_there():
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*/*.md"))
    named = set(re.findall(r"\bwb\.([a-z_]+)\(", text + (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {"advise", "sweep", "train", "load_model", "profile", "compare"} <= named <= set(dir(wb))


@pytest.fixture
def generate(monkeypatch):
    """The module `docs/generate.py`."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_lists_the_public_names(generate):
    page = generate.api_page("workbench")
    for name in ("advise", "sweep", "train", "load", "Dataset", "SparseClassifier"):
        assert f"   {name}\n" in page


def test_the_reference_describes_each_reader_by_its_own_words(generate):
    described = re.findall(r"^## \w+\n\n(.+)$", generate.data_sets(), re.MULTILINE)
    assert len(described) == len(data.names()) == len(set(described))


def test_the_page_of_a_class_lists_what_its_bases_in_the_project_define(generate):
    members = generate.own_members()["workbench.SparseClassifier"]
    assert {"fit", "predict", "save"} <= set(members)
    assert not {"__init__", "get_metadata_routing", "set_fit_request"} & set(members)
