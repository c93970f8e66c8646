"""Content of files by its hash: what changes it, what does not, and how often a file is read for it."""

import hashlib
import os

import pytest

from tests.support.adversarial_files import EXAMPLES
from tests.support.small_sets import same
from workbench import data
from workbench.data import cache, content


@pytest.fixture(autouse=True)
def _settled(tmp_path, monkeypatch):
    """An own cache folder; files are as good as old at once."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(content, "SECONDS_SETTLED", -1e9)


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """Names of the files that were read for their hash alone."""
    names: list[str] = []
    real = content._hash
    monkeypatch.setattr(content, "_hash", lambda name: names.append(name) or real(name))
    return names


def written(path, text: str):
    path.write_text(text)
    return path


def test_the_hash_of_a_file_is_that_of_its_bytes_wherever_it_is_and_whenever_it_was_written(tmp_path):
    one, other = written(tmp_path / "a", "1 1:2\n"), written(tmp_path / "b", "1 1:2\n")
    os.utime(other, (1, 1))
    expected = hashlib.blake2b(b"1 1:2\n", digest_size=16).hexdigest()
    assert content.hash_of([one]) == content.hash_of([other]) == expected
    assert content.hash_of([written(other, "1 1:3\n")]) != expected
    assert content.hash_of([written(other, "")]) == hashlib.blake2b(b"", digest_size=16).hexdigest()


def test_the_hash_of_several_files_depends_on_each_and_on_their_order(tmp_path):
    one, other = written(tmp_path / "a", "1"), written(tmp_path / "b", "2")
    before = content.hash_of([one, other])
    assert content.hash_of([one, None, other]) == before
    assert len({before, content.hash_of([other, one]), content.hash_of([one])}) == 3
    written(other, "3")
    assert content.hash_of([one, other]) != before


def test_the_hash_of_a_folder_depends_on_the_names_below_it(tmp_path):
    folder = tmp_path / "texts"
    (folder / "yes").mkdir(parents=True)
    file = written(folder / "yes" / "one", "words")
    before = content.hash_of([folder, file])
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    assert content.hash_of([moved, moved / "yes" / "one"]) == before
    (moved / "yes").rename(moved / "no")
    assert content.hash_of([moved, moved / "no" / "one"]) != before


def test_what_cannot_be_read_has_no_hash(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert content.hash_of([tmp_path / "nowhere"]) == content.hash_of([tmp_path / "pipe"]) == content.hash_of([]) == ""
    assert content.hash_of([written(tmp_path / "a", "1"), tmp_path / "nowhere"]) == ""


def test_an_unchanged_file_is_hashed_once_also_for_other_processes(tmp_path, hashed, monkeypatch):
    file = written(tmp_path / "a", "1 1:2\n")
    first = content.hash_of([file])
    assert content.hash_of([file]) == content.stored_hash(content.states_of([file])) == first
    assert hashed == [str(file)]
    os.utime(file, (1, 1))
    assert content.stored_hash(content.states_of([file])) is None
    assert content.hash_of([file]) == first
    assert hashed == [str(file)] * 2


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"states": 3, "hash": 3}', "[" * 10**5])
def test_a_damaged_note_is_replaced(tmp_path, hashed, monkeypatch, damage):
    file = written(tmp_path / "a", "1")
    first = content.hash_of([file])
    [note] = (cache.cache_folder() / content.NOTES).iterdir()
    note.write_text(damage)
    for _ in range(2):
        assert content.hash_of([file]) == first
    assert hashed == [str(file)] * 2


def test_a_hash_is_not_stored_of_a_file_that_may_change_within_the_tick_of_its_time(tmp_path, hashed, monkeypatch):
    monkeypatch.setattr(content, "SECONDS_SETTLED", 1e9)
    file = written(tmp_path / "a", "1")
    assert content.hash_of([file]) == content.hash_of([file])
    assert hashed == [str(file)] * 2
    assert not (cache.cache_folder() / content.NOTES).exists()


def test_a_cache_folder_that_cannot_be_written_costs_another_look(tmp_path, hashed, monkeypatch):
    (tmp_path / "cache").write_text("no folder")
    file = written(tmp_path / "a", "1")
    first = content.hash_of([file])
    assert content.hash_of([file]) == first
    assert len(hashed) == 2


def test_a_file_that_is_written_while_it_is_hashed_is_refused(tmp_path, monkeypatch):
    file, real = written(tmp_path / "a", "1"), content._hash
    monkeypatch.setattr(content, "_hash", lambda name: real(str(written(file, "12"))))
    with pytest.raises(data.DataError, match=r"a has changed while it was read; read it again when it is complete"):
        content.hash_of([file])


def test_a_copy_is_found_by_content(tmp_path, hashed):
    file = written(tmp_path / "rows.txt", "1 1:2\n0 2:3\n")
    first = data.load("svmlight", path=str(file))
    assert data.is_cached("svmlight", path=str(file))
    assert len(hashed) == 1
    os.utime(file, (1, 1))
    assert same(first, data.load("svmlight", path=str(file)))
    assert len(list(cache.cache_folder().glob("svmlight-*"))) == 1, "the same content has one entry"


def test_a_file_with_the_size_and_time_of_another_is_not_answered_by_its_copy(tmp_path):
    file = written(tmp_path / "rows.txt", "1 1:2\n")
    os.utime(file, ns=(10**18, 10**18))
    assert data.load("svmlight", path=str(file)).x.data.tolist() == [2]
    other = written(tmp_path / "other.txt", "1 1:5\n")
    os.utime(other, ns=(10**18, 10**18))
    other.replace(file)
    assert data.load("svmlight", path=str(file)).x.data.tolist() == [5]


def test_a_set_that_changed_while_it_was_read_is_not_kept(tmp_path):
    file = written(tmp_path / "a", "1")
    made = data.load("uniform", rows=9, features=9, density=0.5, cache=False)
    entry = data.Source("changing", lambda: written(file, "22") and made, "here", "none", lambda: [file])
    assert cache.load_or_make(entry, {}) is made
    assert not list(cache.cache_folder().glob("changing-*"))
    steady = data.Source("steady", lambda: made, "here", "none", lambda: [file])
    cache.load_or_make(steady, {})
    assert len(list(cache.cache_folder().glob("steady-*"))) == 1


def test_clear_deletes_the_notes_too(tmp_path):
    content.hash_of([written(tmp_path / "a", "1")])
    assert cache.clear() > 0
    assert not list((cache.cache_folder() / content.NOTES).iterdir())


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_file_of_a_data_set_is_part_of_its_content(tmp_path, name):
    folder = tmp_path / "example"
    folder.mkdir()
    source = data.get(name)
    files = {os.path.realpath(path) for path in source.files(**source.complete(EXAMPLES[name](folder))) if path}
    there = {str(path) for path in folder.rglob("*") if path.is_file()}
    assert there <= files or name == "sparse", "whose manifest has a hash of every shard"
    assert content.hash_of(files)
