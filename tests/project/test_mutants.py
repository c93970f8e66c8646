"""Mutants can be made of the code as it is, so that `python -m tests.mutants` can show that tests find them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.catalogue import Mutant, MutantError, load, select

ROOT = Path(__file__).parents[2]
MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_that_a_mutant_replaces_occurs_once(mutant):
    changed = mutant.changed(ROOT)
    assert changed != (ROOT / mutant.file).read_text(encoding="utf-8")
    compile(changed, mutant.file, "exec")
    assert mutant.tests
    assert all((ROOT / test).is_file() for test in mutant.tests), mutant.tests


def test_there_are_mutants_of_all_that_computes():
    folders = {"/".join(mutant.file.split("/")[:2]) for mutant in MUTANTS}
    assert folders >= {"kernels/products", "kernels/updates", "kernels/losses", "workbench/ops"}
    assert folders >= {"workbench/optimizers", "workbench/analysis", "workbench/measure"}
    assert len(MUTANTS) >= 40


@pytest.mark.parametrize(
    ("text", "message"),
    [("z", "'z' occurs 0 times in code.py; expected exactly once"), ("x", "'x' occurs 2 times in code.py")],
)
def test_a_text_that_does_not_occur_exactly_once_is_refused(tmp_path, text, message):
    (tmp_path / "code.py").write_text("x = 1 + x\n")
    mutant = Mutant("wrong", "code.py", text, "y", ("tests/test_code.py",))
    with pytest.raises(MutantError, match=message):
        mutant.changed(tmp_path)
    assert replace(mutant, text="1 + x").changed(tmp_path) == "x = y\n"


def test_a_file_that_is_gone_is_refused(tmp_path):
    with pytest.raises(MutantError, match=r"gone: there is no file code\.py"):
        Mutant("gone", "code.py", "x", "y", ()).changed(tmp_path)


def test_mutants_are_selected_by_name():
    assert select(MUTANTS, []) == MUTANTS
    assert select(MUTANTS, [MUTANTS[3].name, MUTANTS[1].name]) == [MUTANTS[3], MUTANTS[1]]
    with pytest.raises(MutantError, match="Unknown mutants ugly"):
        select(MUTANTS, ["ugly"])
