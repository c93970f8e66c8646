"""Made data sets are kept on disk, whole or not at all."""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest

from kernels import threads
from kernels._compat import numba_internals
from tests.support.small_sets import labelled, same, svmlight
from workbench import data
from workbench.data import cache
from workbench.data import content as data_content
from workbench.data import contract as sources

pytestmark = pytest.mark.usefixtures("own_cache")


def drawn(where=None, **parameters):
    folder = {} if where is None else {"cache": where}
    return data.load("power_law", rows=40, features=30, density=0.2, classes=3, **parameters, **folder)


@pytest.fixture
def makes(monkeypatch):
    """How often a data set was made."""
    calls = []
    entry = data.get("power_law")

    @functools.wraps(entry.make)
    def make(**parameters):
        calls.append(parameters)
        return entry.make(**parameters)

    monkeypatch.setitem(sources._sources.entries, "power_law", dataclasses.replace(entry, make=make))
    return calls


def entries():
    return sorted(cache.cache_folder().glob("*"))


def test_a_cached_set_is_made_once_and_comes_back_the_same(makes):
    one, again = drawn(), drawn()
    assert len(makes) == 1
    assert same(one, again)
    for name in ("name", "source", "licence", "facts", "groups"):
        assert getattr(one, name) == getattr(again, name)
    assert {file.suffix for file in entries()[0].iterdir()} == {".npy", ".json"}


def test_groups_and_targets_are_cached_too(makes):
    assert drawn(seed=4).y.dtype == np.int64
    made = [data.load("uniform", rows=9, features=9, density=0.5, classes=None, width=2) for _ in range(2)]
    assert same(*made)
    entry = dataclasses.replace(data.get("uniform"), name="grouped", make=lambda: labelled(groups=np.arange(6)))
    assert (
        cache.load_or_make(entry, {}).groups.tolist() == cache.load_or_make(entry, {}).groups.tolist() == list(range(6))
    )


def test_parameters_code_and_fingerprint_are_parts_of_the_key(makes, monkeypatch):
    drawn()
    drawn(seed=1)
    monkeypatch.setattr(cache, "_code", lambda: "changed")
    drawn()
    entry = dataclasses.replace(data.get("power_law"), fingerprint=lambda **parameters: "another file")
    cache.load_or_make(entry, {**makes[0]})
    assert len(makes) == len(entries()) == 4


def test_a_changed_file_is_read_again(tmp_path):
    assert svmlight(tmp_path, "1 1:1\n").x.data.tolist() == [1]
    assert svmlight(tmp_path, "1 1:25\n").x.data.tolist() == [25]


def test_the_cache_can_be_elsewhere_or_nowhere(makes, tmp_path, monkeypatch):
    assert cache.cache_folder() == tmp_path / "cache"
    assert cache.cache_folder("~/x") == Path.home() / "x"
    drawn(tmp_path / "other")
    assert len(list((tmp_path / "other").iterdir())) == 1
    drawn(False)
    assert entries() == []
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr(data_content.sys, "platform", "linux")
    assert cache.cache_folder() == Path("/somewhere/sparse-workbench")


def damage(name, how):
    file = entries()[0] / name
    content = file.read_bytes()
    file.write_bytes({"cut": content[:-5], "flip": content[:-1] + bytes([content[-1] ^ 1]), "empty": b""}[how])


def test_checksums_that_are_made_on_several_threads_are_those_of_one(monkeypatch):
    monkeypatch.setattr(numba_internals.config, "NUMBA_NUM_THREADS", 2)
    arrays = [np.arange(1000), np.zeros(0), np.ones((3, 4), np.float32).T]
    alone = cache._sums(arrays)
    monkeypatch.setattr(cache, "BYTES_ON_THREADS", 0)
    assert cache._sums(arrays) == alone == list(map(cache._sum, arrays))
    with threads.serial():
        monkeypatch.setattr(cache, "ThreadPoolExecutor", None)
        assert cache._sums(arrays) == alone


@pytest.mark.parametrize("how", ["cut", "flip", "empty"])
@pytest.mark.parametrize("name", ["data.npy", "indptr.npy", "y.npy", "meta.json"])
def test_a_damaged_entry_is_made_anew_with_a_warning(makes, name, how):
    one = drawn()
    damage(name, how)
    with pytest.warns(UserWarning, match=r"The cached data set .* is damaged \(.*\); it is made again"):
        again = drawn()
    assert same(one, again)
    assert same(one, drawn())
    assert len(makes) == 2


def test_a_missing_part_is_damage(makes):
    drawn()
    (entries()[0] / "indices.npy").unlink()
    with pytest.warns(UserWarning, match="is damaged"):
        drawn()


def test_a_failed_write_leaves_nothing_and_costs_a_warning(makes, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(cache.np, "save", full)
    with pytest.warns(UserWarning, match=r"could not be cached in .* \(no space left\)"):
        drawn()
    assert entries() == []


def test_a_second_writer_leaves_the_first_ones_entry(makes):
    one = drawn()
    cache._write(entries()[0], drawn(False))
    assert len(entries()) == 1
    assert same(one, drawn())
    assert len(makes) == 2


def test_clear_deletes_entries_and_nothing_else(makes):
    drawn()
    size = sum(file.stat().st_size for file in entries()[0].iterdir())
    keep = cache.cache_folder() / "mine"
    keep.mkdir()
    (keep / "file.txt").write_text("kept")
    assert cache.clear() == size
    assert entries() == [keep]


def test_a_cached_set_is_described_without_its_arrays(makes):
    parameters = {"rows": 40, "features": 30, "density": 0.2, "classes": 3}
    first = data.describe("power_law", **parameters)
    made = data.load("power_law", **parameters)
    assert (len(makes), first.labels, first.has_graph) == (1, made.labels, False)
    for array in entries()[0].glob("*.npy"):
        array.unlink()
    assert data.describe("power_law", **parameters) == first
    (entries()[0] / "meta.json").write_text("{", encoding="utf-8")
    with pytest.warns(UserWarning, match="is damaged"):
        assert data.describe("power_law", **parameters).labels == made.labels
    assert data.describe("block_graph", rows=40).has_graph
