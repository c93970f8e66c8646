"""Damaged rows of results: read and made a frame, or a `RowError` that names the line; nothing else."""

import json
import warnings

import pytest

from tests.support import rows as maker
from tests.support.mutations import damaged_bytes, damaged_json, draws, tried
from workbench import store
from workbench.analysis import answer_text
from workbench.store import RowError, TornLineWarning

MUTATIONS = 120


def read(path) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornLineWarning)
            rows = store.read(path)
            store.done_keys(path)
    except RowError:
        return False
    assert list(store.frame(rows).columns) == list(store.COLUMNS)
    return True


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture(scope="module")
def whole():
    return [row for row in maker.rich() if row["status"] == "ok"][:3]


def test_damaged_values(whole, path):
    taken = 0
    for _, source in draws(MUTATIONS):
        path.write_text("".join(json.dumps(damaged_json(source, row)) + "\n" for row in whole))
        taken += read(path)
    assert taken < tried(MUTATIONS)


def test_damaged_text(whole, path):
    text = "".join(json.dumps(row) + "\n" for row in whole).encode()
    for _, source in draws(MUTATIONS):
        path.write_bytes(damaged_bytes(source, text))
        read(path)


def test_rows_that_are_read_can_be_judged(whole, path):
    for _, source in draws(MUTATIONS // 10):
        path.write_text("".join(json.dumps(damaged_json(source, row)) + "\n" for row in whole))
        if read(path):
            str(answer_text(store.frame(store.read(path))))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows_total": 2**70}, "rows_total is of kind integer"),
        ({"learning_rate": 10**400}, "learning_rate is of kind number"),
        ({"curve": [[1, 2]]}, "curve is of kind curve"),
        ({"samples": ["x"]}, "samples is of kind numbers"),
        ({"status": "fine"}, "status is 'fine'; allowed: ok"),
        ({"key": None}, "key is None; a key is needed"),
        ({"schema": "2"}, "schema is of kind integer"),
        ({"reason": 3}, "reason is of kind text"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_its_line(change, words, whole, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in (whole[0], whole[1] | change)))
    with pytest.raises(RowError, match=f"line 2: .*{words}"):
        store.read(path)


def test_what_is_whole_is_read_so_that_the_tests_above_can_fail(whole, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in whole))
    assert read(path)
