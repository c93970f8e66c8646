"""Cases recorded from Apache MXNet 1.9.1: each passes, or differs as a row of `golden_differences.py` says.

`pytest tests/golden/test_golden.py --golden DIR` runs those of another folder.
"""

import functools
import importlib
import warnings
from itertools import product
from pathlib import Path

import pytest

from tests.support import golden_cases, golden_linreg
from tests.support.golden_differences import DIFFERENCES, Difference
from workbench.ops import DensifyWarning


def folder_of(config) -> Path:
    folder = Path(config.getoption("--golden") or golden_cases.FOLDER).resolve()
    if not any((folder / f"{group}.json").exists() for group in golden_cases.GROUPS):
        wanted = ", ".join(f"{group}.json" for group in golden_cases.GROUPS)
        raise pytest.UsageError(f"--golden {folder} has none of the files {wanted}.")
    return folder


def pytest_generate_tests(metafunc):
    if "case_ids" in metafunc.fixturenames:
        found = cases_by_op(folder_of(metafunc.config))
        ids = [f"{group}-{op}" for group, op in found]
        metafunc.parametrize(("group", "case_ids"), [(group, names) for (group, _), names in found.items()], ids=ids)


def cases_by_op(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Names of the recorded cases by group and operator."""
    found: dict[tuple[str, str], list[str]] = {}
    for group in golden_cases.GROUPS:
        for name, case in golden_cases.cases(folder, group).items():
            found.setdefault((group, str(case.get("op", "all"))), []).append(name)
    return found


def run(folder: Path, group: str, case_id: str) -> set[tuple[Difference, str]]:
    """The rows of the table that the case needs, and for which field; `AssertionError` where none allows it."""
    case, arrays = golden_cases.cases(folder, group)[case_id], golden_cases.arrays_of(folder, group)
    rows, used = [row for row in DIFFERENCES.values() if row.matches(group, case)], set()

    def differs(field, came):
        allowing = {(row, field) for row in rows if row.allows(field, came)}
        assert allowing, f"{case_id} differs in {field}: {came} came. The case is {case}"
        used.update(allowing)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensifyWarning)
        importlib.import_module(f"tests.support.golden_{group}").run(case, arrays, differs)
    return used


@functools.cache
def needed(folder: Path, group: str, case_id: str) -> set[tuple[Difference, str]]:
    return run(folder, group, case_id)


def test_cases(group, case_ids, pytestconfig, subtests, monkeypatch):
    """Of products that differ in sizes and density alone one is computed; each further width compiles code."""
    folder = folder_of(pytestconfig)
    if pytestconfig.getoption("--exhaustive"):
        monkeypatch.setattr(golden_linreg, "MOST_OF_SINGLE_ROWS", 10)
    elif group == "dot" and folder == golden_cases.FOLDER:
        case_ids = golden_cases.one_of_each_kind(folder, group, case_ids)
    for case_id in case_ids:
        with subtests.test(case_id):
            needed(folder, group, case_id)


def test_the_folder_has_cases(pytestconfig):
    folder = folder_of(pytestconfig)
    assert any(golden_cases.cases(folder, group) for group in golden_cases.GROUPS), f"{folder} has no recorded cases"


@pytest.mark.parametrize(
    ("reason", "group", "field"),
    [(reason, *pair) for reason, row in DIFFERENCES.items() for pair in product(row.group.split(), row.field.split())],
)
def test_every_difference_is_needed_by_a_case(reason, group, field):
    folder, row = golden_cases.FOLDER, DIFFERENCES[reason]
    matched = [name for name, case in golden_cases.cases(folder, group).items() if row.matches(group, case)]
    assert any((row, field) in needed(folder, group, name) for name in matched), (
        f"No recorded case needs {row}: {reason}"
    )


@pytest.mark.parametrize(
    ("text", "arrays", "message"),
    [
        ('{"cases": [', True, r"dot.json has no recorded cases: JSONDecodeError"),
        ('{"groups": []}', True, r"dot.json has no recorded cases: KeyError\('cases'\)"),
        ('{"cases": []}', False, r"dot.npz is missing"),
    ],
)
def test_a_broken_folder_is_refused_with_the_file_named(tmp_path, text, arrays, message):
    (tmp_path / "dot.json").write_text(text)
    if arrays:
        (tmp_path / "dot.npz").write_bytes(b"")
    with pytest.raises(pytest.UsageError, match=message):
        golden_cases.cases(tmp_path, "dot")


def test_a_wrong_result_fails():
    case = {"op": "abs", "pattern": "exact", "rtol": 1e-6, "atol": 0}
    one, two = (golden_cases.formats.RowSparse([[1.0]], [row], (3, 1)) for row in (0, 2))
    found = []
    golden_cases.agree(one, two, case, lambda field, came: found.append(field))
    golden_cases.agree(one, one.toarray().astype("float64"), case, lambda field, came: found.append(field), "grad_")
    assert found == ["pattern", "value", "grad_stype", "grad_dtype"]
