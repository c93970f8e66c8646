"""Generated texts and click logs: the same for a seed, of the size asked for, readable, with words that drift."""

import itertools

import numpy as np
import pytest

import workbench as wb
from benchmarks import generated
from benchmarks.suites import bench


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Make blocks of few rows."""
    monkeypatch.setattr(generated, "ROWS_OF_TEXTS", 300)
    monkeypatch.setattr(generated, "ROWS_OF_CLICKS", 2000)


@pytest.mark.parametrize("kind", generated.KINDS)
def test_a_file_is_of_the_size_and_a_longer_one_begins_with_it(tmp_path, kind):
    short, long, other = (
        generated.write(kind, size, tmp_path / name, seed).read_bytes()
        for name, size, seed in (("a", 400_000, 0), ("b", 900_000, 0), ("c", 400_000, 1))
    )
    assert 390_000 < len(short) <= 400_000
    assert short.endswith(b"\n")
    assert long.startswith(short)
    assert short != other
    with pytest.raises(FileExistsError):
        generated.write(kind, 1000, tmp_path / "a")


def test_texts_are_svmlight_with_labels_that_words_tell(tmp_path):
    path = generated.write("texts", 3_000_000, tmp_path)
    read = wb.load(path)
    assert read.classes == ("-1", "1")
    assert 0.35 < read.y.mean() < 0.65
    assert 60 < read.x.nnz / read.rows < 200
    counts = np.sort(np.bincount(read.x.indices))[::-1]
    assert counts[0] > 10 * counts[300] > 0
    assert (read.x.data >= 1).all()


def test_clicks_are_a_table_and_one_in_twenty_is_positive(tmp_path):
    pd = pytest.importorskip("pandas")
    path = generated.write("clicks", 2_000_000, tmp_path)
    frame = pd.read_csv(path)
    assert list(frame) == ["clicked", "hour", "price", *generated.CATEGORIES]
    assert 0.03 < frame["clicked"].mean() < 0.08
    assert frame["device"].nunique() <= generated.CATEGORIES["device"]


def test_frequent_values_change_from_the_first_rows_to_later_ones():
    count, uniform = 1000, np.random.default_rng(0).random(5000)
    first, later = (
        generated.drifted(generated.zipf(uniform, count), np.full(5000, row), count)
        for row in (0, 5 * generated.DRIFT_ROWS)
    )
    assert np.bincount(first, minlength=count).argmax() != np.bincount(later, minlength=count).argmax()
    every = generated.drifted(np.arange(count), np.zeros(count), count)
    assert sorted(every) == list(range(count))


def test_a_size_or_kind_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="The size is 'large'"):
        list(generated.run(["large"], tmp_path, ["texts"], 0))
    with pytest.raises(ValueError, match="Unknown kind 'words'; expected one of: texts, clicks"):
        list(generated.run(["1MB"], tmp_path, ["words"], 0))


def test_the_command_says_what_was_written(tmp_path):
    from typer.testing import CliRunner

    ran = CliRunner().invoke(bench, ["data", "0.2MB", "--folder", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "texts.svm: 195 kB, 219 rows" in ran.output
    assert (tmp_path / "0.2MB" / "clicks.csv").is_file()


def test_weights_of_values_are_normal_and_fixed():
    weights = generated.weights_of(np.arange(20_000), 3)
    assert abs(weights.mean()) < 0.03
    assert abs(weights.std() - 1) < 0.03
    assert np.array_equal(weights[:9], generated.weights_of(np.arange(9), 3))
    assert len(set(itertools.chain(weights.tolist()))) == 20_000


def test_rows_of_a_file_are_drawn_and_rare_columns_are_new_in_each_copy(tmp_path):
    source = tmp_path / "own.svm"
    lines = [f"{row % 2} 1:0.5 {2 + row % 3}:1e-2 {10 + row}:3 # a comment" for row in range(40)]
    source.write_text("\n".join(lines) + "\n\n")
    short, long, other = (
        generated.write("texts", size, tmp_path / name, seed, source).read_text()
        for name, size, seed in (("a", 2000, 0), ("b", 6000, 0), ("c", 2000, 1))
    )
    assert long.startswith(short)
    assert short != other
    read = wb.load(tmp_path / "b" / "own.svm")
    copies, columns = read.rows / 40, np.unique(read.x.indices)
    assert copies > 4
    frequent = columns[columns < 10]
    assert set(frequent.tolist()) in ({1, 2, 3, 4}, {0, 1, 2, 3})
    assert 0.5 * 40 * copies < len(columns) - len(frequent) < 0.75 * 40 * copies  # a bootstrap has 63 % of the rows
    assert all(line.split()[2].partition(":")[2] == "1e-2" for line in long.splitlines())
    for wrong in ("1 2:a", "", "word 1:2"):
        source.write_text(wrong)
        with pytest.raises(ValueError, match=r"own\.svm"):
            generated.write("texts", 100, tmp_path / "d", 0, source)
