"""Another density changes how many entries rows have, in proportion, and nothing else."""

import dataclasses

import numpy as np
import pytest

from tests.support.small_sets import labelled, same, targets
from workbench import data, formats
from workbench.data import DataError
from workbench.data.dataset import selection


def skewed(rows=600, features=400, classes=3, seed=0):
    """Rows of lognormal lengths over columns of skewed popularity."""
    return data.load(
        "power_law", rows=rows, features=features, density=0.03, classes=classes, seed=seed, sigma=0.5, cache=False
    )


def cv(lengths):
    return lengths.std() / lengths.mean()


def row_lengths(made):
    return np.diff(made.x.indptr)


@pytest.mark.parametrize("asked", [0.25, 0.2, 0.1, 0.02, 0.001])
def test_thinning_is_exact_and_keeps_rows(asked):
    made = labelled([0, 1] * 20)
    thin = data.with_density(made, asked)
    assert thin.x.nnz == round(asked * 40 * 8)
    assert (thin.rows, thin.features) == (40, 8)
    formats.check(thin.x, full=True)
    whole, part = made.x.toarray(), thin.x.toarray()
    np.testing.assert_array_equal(part[part != 0], whole[part != 0])
    assert same(thin, data.with_density(made, asked))
    assert asked in (0.25, 0.001) or not same(thin, data.with_density(made, asked, seed=1))


@pytest.mark.parametrize("asked", [0.3, 0.5, 0.62, 1.0])
def test_joining_is_exact_and_keeps_rows(asked):
    made = labelled([0] * 12 + [1] * 12, groups=np.arange(24))
    joined = data.with_density(made, asked)
    assert joined.x.nnz == round(asked * 24 * 8)
    assert (joined.rows, joined.features, joined.labels) == (24, 8, made.labels)
    assert joined.x.indices.dtype == made.x.indices.dtype
    np.testing.assert_array_equal(joined.y, made.y)
    np.testing.assert_array_equal(joined.groups, made.groups)
    assert joined.facts["rows_joined"] >= 2
    formats.check(joined.x, full=True)
    assert same(joined, data.with_density(made, asked))
    assert asked == 1 or not same(joined, data.with_density(made, asked, seed=1))


@pytest.mark.parametrize("asked", [0.012, 0.02, 0.06, 0.12])
def test_rows_keep_their_skew_at_every_density(asked):
    made = skewed()
    changed = data.with_density(made, asked)
    assert changed.facts["row_length_cv_natural"] == cv(row_lengths(made)) > 0.4
    assert changed.facts["row_length_cv"] == cv(row_lengths(changed))
    assert cv(row_lengths(changed)) == pytest.approx(cv(row_lengths(made)), rel=0.05)
    if changed.facts.get("rows_joined", 0) < made.rows / 3:  # no row had to take less than the factor
        scaled = asked / made.density * row_lengths(made)
        np.testing.assert_array_less(np.abs(row_lengths(changed) - scaled), 1.001)


def test_joining_a_fixed_number_of_rows_would_lose_the_skew():
    """The twin that shows what the test above looks at."""
    made = skewed()
    lengths = row_lengths(made)
    assert cv(lengths + np.random.default_rng(0).permutation(lengths)) < 0.8 * cv(lengths)


def test_rows_that_would_be_cut_to_nothing_are_told():
    facts = data.with_density(skewed(), 0.001).facts
    assert facts["row_length_cv"] > 1.5 * facts["row_length_cv_natural"]


def test_a_joined_row_has_columns_of_rows_of_its_label_and_its_own_norm():
    made = labelled([1, 0] * 4, features=40, per_row=5)
    joined = data.with_density(made, 0.25)
    of_label = np.stack([made.x.toarray()[made.y == label].any(0) for label in (0, 1)])
    assert not (joined.x.toarray().astype(bool) & ~of_label[made.y]).any()
    np.testing.assert_allclose(np.linalg.norm(joined.x.toarray(), axis=1), np.sqrt(55), rtol=1e-6)


def test_a_joined_value_is_in_proportion_to_the_sum():
    made = labelled([0, 0], features=4)  # rows (1, 2, 0, 0) and (0, 1, 2, 0)
    joined = data.with_density(made, 0.75).x.toarray()
    np.testing.assert_allclose(joined, np.float32([[1, 3, 2, 0]] * 2) * np.sqrt(5 / 14), rtol=1e-6)


def test_entries_that_cancel_and_stored_zeros_count_as_entries():
    made = labelled([0, 0], features=4)
    made.x.data[:] = [1, 2, -2, 0]
    joined = data.with_density(made, 0.75)
    assert joined.x.nnz == 6
    np.testing.assert_array_equal(joined.x.indices, [0, 1, 2] * 2)


def test_every_entry_has_the_same_chance():
    made = labelled([0] * 4000, features=16, per_row=8)
    thin = data.with_density(made, 3 / 16)
    assert set(row_lengths(thin)) == {3}
    kept = np.bincount(thin.x.data.astype(int) - 1, minlength=8)  # the values tell the place in the row
    np.testing.assert_allclose(kept / 4000, 3 / 8, atol=0.03)


def test_joined_data_are_still_learnable():
    """The mean row of each class, of one half, tells the classes of the other half."""
    dense = data.with_density(skewed(rows=1200, classes=2), 0.12)
    x, half = dense.x.toarray(), 600
    means = np.stack([x[:half][dense.y[:half] == label].mean(0) for label in (0, 1)])
    scores = x[half:] @ (means[1] - means[0]) - (means**2).sum(1) @ [-0.5, 0.5]
    assert ((scores > 0) == dense.y[half:]).mean() > 0.9


def test_what_cannot_be_reached_says_how_far_one_can_get():
    made = labelled([0] * 3 + [1] * 3)
    with pytest.raises(DataError, match=r"small cannot reach density 0.6: .* rows reach 0.5 at most. Ask for less"):
        data.with_density(made, 0.6)
    assert data.with_density(made, 0.5).density == 0.5
    for asked in (0, 1.1):
        with pytest.raises(DataError, match=f"density is {asked}; it is nnz / size, above 0 and at most 1"):
            data.with_density(made, asked)


def test_rows_without_entries_stay_so():
    made = labelled([0] * 6)
    made = dataclasses.replace(made, x=formats.to_format(made.x.toarray() * (np.arange(6) > 1)[:, None], "csr"))
    joined = data.with_density(made, 0.4)
    assert row_lengths(joined)[:2].tolist() == [0, 0]


def test_data_without_entries_reach_nothing():
    made = labelled([0, 0])
    made = dataclasses.replace(made, x=formats.to_format(np.zeros((2, 8), np.float32), "csr"))
    with pytest.raises(DataError, match="rows reach 0 at most"):
        data.with_density(made, 0.5)


def test_rows_of_like_numbers_are_joined():
    made = dataclasses.replace(targets(range(6)), x=labelled([0] * 6).x)
    with pytest.raises(DataError, match=f"rows reach {made.density:.4g} at most"):  # six numbers are in six parts
        data.with_density(made, 0.9)
    many = labelled([0] * 64)
    many = dataclasses.replace(many, y=np.arange(64, dtype=np.float32)[::-1].copy(), labels=data.Labels("numbers"))
    joined = data.with_density(many, 0.5)
    assert joined.density == 0.5
    np.testing.assert_array_equal(joined.y, many.y)
    assert selection._label_of_rows(many).tolist() == [7 - row // 8 for row in range(64)]


def test_rows_of_several_classes_are_joined_by_the_most_frequent_one():
    made = labelled([0] * 8)
    y = np.zeros((8, 3), np.uint8)
    y[:4, 1], y[3:7, 0], y[4, 1] = 1, 1, 1
    made = dataclasses.replace(made, y=y, labels=data.Labels("multilabel", ("a", "b", "c")))
    assert selection._label_of_rows(made).tolist() == [1, 1, 1, 1, 1, 2, 2, 0]
    np.testing.assert_array_equal(data.with_density(made, 0.3).y, y)


def test_work_in_parts_gives_the_same_as_all_at_once(monkeypatch):
    """Up to where rows are thinned, which draws anew for each part: lengths and rows joined are the same."""
    made = skewed(rows=300)
    whole = data.with_density(made, 0.1)
    monkeypatch.setattr(selection, "ENTRIES_AT_ONCE", 50)
    parts = data.with_density(made, 0.1)
    formats.check(parts.x, full=True)
    np.testing.assert_array_equal(parts.x.indptr, whole.x.indptr)
    assert parts.facts == whole.facts


@pytest.mark.parametrize("seed", range(20))
def test_lengths_are_exact_whatever_the_limits(seed):
    random = np.random.default_rng(seed)
    own = random.integers(0, 30, 50)
    most = np.where(own > 0, own + random.integers(0, 40, 50), 0)
    for count in (own.sum(), most.sum(), (own.sum() + most.sum()) // 2):
        lengths = selection._scale_lengths(own, most, count, random)
        assert lengths.sum() == count
        assert (own <= lengths).all()
        assert (lengths <= most).all()
