"""The first part of a file that is too large for the budget: when one is taken, which lines, and what the user is
told."""

import gzip

import numpy as np
import pytest

from tests.advising.test_advising import AMPLE, AT_ONCE, svmlight
from tests.support.sweeps import supervised_here
from workbench import advising as advice
from workbench import data
from workbench.advising import advising, first_part
from workbench.advising.candidates import list_candidates
from workbench.data import cache, content

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def slow_reader(monkeypatch):
    """Make every file count as large, and its reading as 1 ms for each 100 bytes of text."""
    monkeypatch.setattr(first_part, "LEAST_BYTES", 0)
    monkeypatch.setattr(first_part, "SAMPLE_BYTES", 1000)
    monkeypatch.setattr(first_part, "_seconds_to_read", lambda settings, sample: sample.stat().st_size * 1e-5)


def settings_of(path, dataset="svmlight"):
    return {"dataset": dataset, "path": str(path)}


def test_a_file_that_is_read_within_the_limit_is_read_whole(tmp_path, slow_reader):
    path = tmp_path / "rows.txt"
    svmlight(path, rows=500)
    size = path.stat().st_size
    assert first_part.first_part(settings_of(path), limit=size * 1.05e-5) is None
    assert first_part.first_part(settings_of(path), limit=size * 0.95e-5) is not None


def test_the_first_part_has_the_first_whole_lines_and_takes_half_of_the_limit(tmp_path, slow_reader):
    path = tmp_path / "rows.txt"
    svmlight(path, rows=2000)
    text = path.read_bytes()
    part = first_part.first_part(settings_of(path), limit=len(text) * 0.4e-5)
    copied = part.path.read_bytes()
    assert text.startswith(copied)
    assert copied.endswith(b"\n")
    assert len(copied) == part.bytes_text == pytest.approx(0.2 * len(text), rel=0.02)
    assert part.path.name == path.name
    assert part.share == pytest.approx(0.2, rel=0.02)
    assert part.seconds_whole == pytest.approx(len(text) * 1e-5, rel=0.02)


def test_the_first_part_of_a_packed_file_is_text(tmp_path, slow_reader, monkeypatch):
    monkeypatch.setattr(first_part, "SAMPLE_BYTES", 2_000_000)
    values = np.random.default_rng(0).integers(1, 10**9, 800_000)  # of the file 128 KiB are read at once
    text = "".join(f"{value % 2} 1:{value}\n" for value in values).encode()
    path = tmp_path / "rows.txt"
    path.write_bytes(gzip.compress(text, 1))
    part = first_part.first_part(settings_of(path), limit=len(text) * 0.4e-5)
    assert text.startswith(part.path.read_bytes())
    assert part.share == pytest.approx(0.2, rel=0.2)


def test_a_row_with_a_line_end_within_quotes_is_not_cut(tmp_path, slow_reader):
    path = tmp_path / "table.csv"
    row = '"a\nb",1\n'
    path.write_text("words,label\n" + row * 400)
    part = first_part.first_part(settings_of(path, "table"), limit=0.015)
    lines = part.path.read_text().removeprefix("words,label\n")
    assert lines == row * (len(lines) // len(row))


def test_a_cached_file_and_a_file_of_another_kind_are_read_whole(tmp_path, slow_reader, monkeypatch):
    monkeypatch.setattr(content, "SECONDS_SETTLED", -1.0)  # the file is as old as the test
    path = tmp_path / "rows.txt"
    svmlight(path, rows=500)
    data.load("svmlight", path=str(path))
    assert data.is_cached("svmlight", path=str(path))
    assert first_part.first_part(settings_of(path), limit=1e-6) is None
    path.write_text(path.read_text() + "1 2:1\n")
    assert not data.is_cached("svmlight", path=str(path))
    assert first_part.first_part(settings_of(path, "npz"), limit=1e-6) is None


def test_a_file_that_cannot_be_read_is_left_to_its_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(first_part, "LEAST_BYTES", 0)
    path = tmp_path / "rows.txt"
    path.write_text("1 nonsense\n" * 50)
    assert first_part.first_part(settings_of(path), limit=1e-6) is None


def test_the_same_part_is_taken_again_until_the_file_changes(tmp_path, slow_reader):
    path = tmp_path / "rows.txt"
    svmlight(path, rows=2000)
    first = first_part.first_part(settings_of(path), limit=0.1)
    before = first.path.read_bytes()
    again = first_part.first_part(settings_of(path), limit=0.11)
    assert again.path.read_bytes() == before
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(reversed(lines)))
    changed = first_part.first_part(settings_of(path), limit=0.1)
    assert changed.path.read_bytes() != before
    assert path.read_bytes().startswith(changed.path.read_bytes())


def test_advice_on_a_first_part_says_so_and_names_the_whole_file(tmp_path, monkeypatch, slow_reader):
    monkeypatch.setattr(advising, "list_candidates", lambda *given: list_candidates(*given)[:2])
    monkeypatch.setattr(advising, "READING_SHARE", 5e-5)
    path = svmlight(tmp_path / "clicks.txt", rows=4000)
    settings, _ = advice.settings_of(path)
    with supervised_here():
        answer = advice.advise({**settings, "batch_rows": 16, "threads": 1}, AMPLE, measure=AT_ONCE)
    assert 200 < answer.profile.rows < 3800
    assert answer.note.startswith(f"Only the first {answer.profile.rows:,} rows of {path} were read")
    assert answer.note in str(answer)
    assert answer.as_json()["note"] == answer.note
    assert path in answer.command
    assert answer.settings["path"] == path
    assert answer.folder.name == advising.folder_name_of(settings | {"model": "logistic"})


def test_clearing_the_cache_removes_parts(tmp_path, slow_reader):
    path = tmp_path / "rows.txt"
    svmlight(path, rows=2000)
    part = first_part.first_part(settings_of(path), limit=0.1)
    assert cache.clear() >= part.bytes_text
    assert not part.path.exists()
