"""Digests of source files are kept from one process to the next, and computed anew when a source file has changed."""

import json

import pytest

from workbench.measure import closure
from workbench.sweeps import source_digests

ROOTS, NONE = ["kernels.one"], []
READ = source_digests._kept.__wrapped__
"""Reads the file each time, as a new process does."""


@pytest.fixture
def tree(tmp_path, monkeypatch, own_cache):
    """A small installation; `again()` forgets what this process knows of it, as a new process does not know it."""
    folder = tmp_path / "installed" / "kernels"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "", "one": "import kernels.two\n", "two": "", "three": ""}.items():
        (folder / f"{name}.py").write_text(text)

    def again() -> list:
        code, asked = closure.Code(folder.parent, {}), []
        compute = code.digest
        monkeypatch.setattr(code, "digest", lambda *parts: asked.append(parts) or compute(*parts))
        monkeypatch.setattr(closure, "installed_code", lambda: code)
        monkeypatch.setattr(source_digests, "_kept", READ)
        return asked

    return folder, again


def kept_file(tmp_path):
    (found,) = (tmp_path / "cache").glob("sources-*.json")
    return found


def test_a_digest_is_computed_once_for_a_state_of_the_files(tree, tmp_path):
    folder, again = tree
    expected = closure.Code(folder.parent, {}).digest(ROOTS)
    asked = again()
    assert source_digests.digest(ROOTS, NONE, False) == expected
    assert len(asked) == 1
    asked = again()
    assert source_digests.digest(ROOTS, NONE, False) == expected
    assert not asked, "what another process has computed is read"
    (folder / "two.py").write_text("changed = True\n")
    assert source_digests.digest(ROOTS, NONE, False) != expected


def test_other_questions_have_other_digests(tree):
    _, again = tree
    again()
    whole = source_digests.digest(ROOTS, NONE, False)
    assert source_digests.digest(ROOTS, ["kernels.two"], False) != whole
    assert source_digests.digest(["kernels.three"], NONE, False) != whole
    assert source_digests.digest(ROOTS, NONE, False) == whole


@pytest.mark.parametrize("damaged", ["", "[1]", '{"tree": 1}', "{"], ids=["empty", "a list", "no digests", "half"])
def test_a_damaged_file_is_computed_and_written_anew(tree, tmp_path, damaged):
    _, again = tree
    again()
    expected = source_digests.digest(ROOTS, NONE, False)
    path = kept_file(tmp_path)
    known = json.loads(path.read_text())
    path.write_text(damaged)
    asked = again()
    assert source_digests.digest(ROOTS, NONE, False) == expected
    assert len(asked) == 1
    assert json.loads(path.read_text()) == known


def test_without_a_folder_for_it_a_digest_is_computed(tree, tmp_path, monkeypatch):
    _, again = tree
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "file" / "below"))
    asked = again()
    assert source_digests.digest(ROOTS, NONE, False)
    assert len(asked) == 1
