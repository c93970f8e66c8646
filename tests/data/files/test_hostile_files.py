"""Every data set that reads a file, given damaged ones: finite rows, or a `DataError` that names the file; and soon."""

import os
import signal
import threading
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.support.adversarial_files import (
    EXAMPLES,
    IN_PLACE_OF_A_FILE,
    NOT_HELD_TO_IT,
    SHAPES,
    WRONG_NUMBERS,
    bombs,
    example,
    numbers_replaced,
)
from tests.support.clocks import SECONDS
from tests.support.small_sets import same
from workbench import data, formats
from workbench.data import DataError
from workbench.data.files import opened

BYTES = 2**26
READERS = [name for name in data.names() if "path" in data.get(name).parameters and name not in NOT_HELD_TO_IT]


class TooLong(BaseException):
    """No reader may keep it."""


@contextmanager
def in_time():
    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read(name: str, parameters: dict, damaged: Path) -> bool:
    """Whether there are rows; what is refused is refused by name."""
    refused = ""
    try:
        with in_time():
            made = data.load(name, cache=False, **parameters)
    except DataError as error:
        refused = str(error)
    if refused:
        own = [damaged, *(value for value in parameters.values() if isinstance(value, Path))]
        assert any(file.name in refused for file in own), refused
        return False
    formats.check(made.x, full=True)
    assert made.rows
    assert made.kind == "classes" or np.isfinite(made.y).all()
    return True


def written(name: str, folder: Path) -> tuple[dict, list[Path]]:
    """The parameters of a fresh example, and its files."""
    folder.mkdir(exist_ok=True)
    parameters = EXAMPLES[name](folder)
    return parameters, sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_reader_has_an_example():
    assert sorted(EXAMPLES) == READERS


@pytest.mark.parametrize("name", READERS)
def test_what_is_whole_is_read_so_that_the_tests_below_can_fail(name, tmp_path):
    parameters, _ = written(name, tmp_path)
    assert read(name, parameters, tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_a_file_read_like_itself_and_one_kept_on_disk_are_the_same(name, tmp_path):
    parameters, _ = written(name, tmp_path / "example")
    made = data.load(name, cache=tmp_path / "cache", **parameters)
    assert same(made, data.load(name, cache=tmp_path / "cache", **parameters))
    if "classes" in data.get(name).parameters:
        assert same(made, data.load(name, cache=False, like=made, **parameters))


def try_all(name, folder, damages):
    parameters, files = written(name, folder)
    for path in files:
        content = path.read_bytes()
        for damaged in damages(content):
            path.write_bytes(damaged)
            read(name, parameters, path)
        path.write_bytes(content)


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_another_shape(name, tmp_path, subtests):
    for number, shape in enumerate(SHAPES):
        with subtests.test(shape):
            try_all(name, tmp_path / str(number), SHAPES[shape])


@pytest.mark.parametrize("name", READERS)
def test_something_else_for_a_number(name, tmp_path, subtests):
    for number, wrong in enumerate(WRONG_NUMBERS):
        with subtests.test(ascii(wrong[:20])):
            try_all(name, tmp_path / str(number), lambda content, wrong=wrong: numbers_replaced(content, wrong))


@pytest.mark.parametrize("name", READERS)
def test_archives_that_unpack_to_far_more_than_they_are(name, tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "FREE_BYTES", 2**18)  # soon, for the sake of time
    monkeypatch.setattr(opened, "MOST_RATIO", 3)
    parameters, files = written(name, tmp_path)
    read(name, parameters, tmp_path)  # what is imported for it is no memory of the file's
    for path in files:
        content = path.read_bytes()
        for bomb in bombs(content):
            path.write_bytes(bomb)
            tracemalloc.start()
            try:
                read(name, parameters, path)
                assert tracemalloc.get_traced_memory()[1] < BYTES
            finally:
                tracemalloc.stop()
        path.write_bytes(content)


@pytest.mark.parametrize("put", IN_PLACE_OF_A_FILE, ids=lambda put: put.__name__)
@pytest.mark.parametrize("name", READERS)
def test_something_else_in_place_of_a_file(name, put, tmp_path):
    for number in range(len(written(name, tmp_path / "example")[1])):
        parameters, files = written(name, tmp_path / str(number))
        files[number].unlink()
        put(files[number])
        read(name, parameters, files[number])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_must_not_be_read(name, tmp_path):
    parameters, files = written(name, tmp_path)
    for path in files:
        path.chmod(0)
        assert not read(name, parameters, path)
        path.chmod(0o600)


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_changes_while_it_is_read(name, tmp_path):
    parameters, files = written(name, tmp_path)
    contents = {path: path.read_bytes() for path in files}
    ended = threading.Event()

    def change():
        number = 0
        while not ended.is_set():
            for path, content in contents.items():
                number += 1
                path.write_bytes((content, content[: len(content) // 2], content + content, b"")[number % 4])

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(20):
            read(name, parameters, files[0])
    finally:
        ended.set()
        changing.join()


def test_an_example_is_entered_once():
    with pytest.raises(AssertionError, match="svmlight has an example already"):
        example("svmlight")(lambda folder: {})
