"""The store: sums over workers, rows by number, a step of the optimizer a push, state that comes back; no silence."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from workbench import formats
from workbench.formats import RowSparse
from workbench.kvstore import LocalStore, StoreError
from workbench.optimizers import Updater

RNG = np.random.default_rng(3)
SHAPES = [(6,), (6, 2), (6, 2, 3)]


def rows(indices, shape=(6, 2), dtype=np.float32) -> RowSparse:
    return RowSparse(RNG.integers(-4, 5, (len(indices), *shape[1:])).astype(dtype), indices, shape)


def dense(x) -> np.ndarray:
    return formats.to_format(x, "dense")


def store(value, key="w") -> LocalStore:
    made = LocalStore()
    made.init(key, value)
    return made


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pushes_of_several_workers_are_summed_to_the_union_of_their_rows(shape, dtype):
    parts = [rows(indices, shape, dtype) for indices in ([0, 2], [], [2, 3, 5], [2])]
    for order in itertools.permutations(parts, 3):
        held = store(formats.zeros(shape, "row_sparse", dtype))
        held.push("w", list(order))
        came = held.pull("w")
        np.testing.assert_array_equal(came.toarray(), sum(part.toarray() for part in order))
        assert came.indices.tolist() == sorted({row for part in order for row in part.indices.tolist()})
        assert (came.shape, came.dtype) == (shape, dtype)


@pytest.mark.parametrize("stored", ["dense", "row_sparse"])
@pytest.mark.parametrize("kinds", list(itertools.product(["dense", "row_sparse"], repeat=3)))
def test_dense_and_row_sparse_pushes_go_together_and_the_key_keeps_its_format(stored, kinds):
    parts = [formats.to_format(rows([1, 4]), kind) for kind in kinds]
    held = store(formats.zeros((6, 2), stored))
    held.push("w", parts)
    came = held.pull("w")
    assert formats.format_of(came) == stored
    np.testing.assert_array_equal(dense(came), sum(dense(part) for part in parts))


def test_without_an_optimizer_a_push_takes_the_place_of_all_rows():
    held = store(rows([0, 1, 2]))
    pushed = rows([2, 4])
    held.push("w", pushed)
    assert held.pull("w") == pushed
    pushed.values[...] = 99
    assert not (held.pull("w").values == 99).any()  # what was pushed was copied


def test_what_is_given_out_and_taken_in_is_copied():
    first = np.ones((6, 2), np.float32)
    held = store(first)
    first[...] = 7
    pulled = held.pull("w")
    pulled[...] = 8
    part = held.row_sparse_pull("w", [1])
    part.values[...] = 9
    np.testing.assert_array_equal(held.pull("w"), np.ones((6, 2)))


@pytest.mark.parametrize("stored", ["dense", "row_sparse"])
@pytest.mark.parametrize("out", ["dense", "row_sparse", "csr"])
def test_pull_writes_all_rows_to_an_array_of_any_format(stored, out):
    value = rows([0, 3])
    held = store(formats.to_format(value, stored))
    target = formats.to_format(rows([1, 2, 3]), out)
    assert held.pull("w", out=target) is target
    np.testing.assert_array_equal(dense(target), value.toarray())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stored", ["dense", "row_sparse"])
@pytest.mark.parametrize(
    "ids",
    [
        *([3, 1, 3, 0], [5], [], [[1, 1], [4, 2]], range(6)),
        *(np.int32([4, 2]), np.uint8([4]), np.float32([2, 0]), np.float64([5, 5]), np.array(3)),
    ],
)
def test_rows_are_pulled_sorted_and_once(shape, stored, ids):
    value = rows([1, 2, 4], shape)
    part = store(formats.to_format(value, stored)).row_sparse_pull("w", ids)
    wanted = sorted(set(np.asarray(ids).ravel().astype(int).tolist()))
    assert part.check().indices.tolist() == wanted
    assert part.indices.dtype == np.int64
    np.testing.assert_array_equal(part.values, value.toarray()[wanted])
    assert part.shape == shape


def test_rows_of_a_store_without_rows_are_rows_of_zeros():
    """Our choice: what is pulled does not depend on what happens to be stored."""
    part = store(formats.zeros((6, 2), "row_sparse")).row_sparse_pull("w", [4, 0])
    assert part == RowSparse(np.zeros((2, 2), np.float32), [0, 4], (6, 2))


def test_ids_beyond_what_float32_counts_are_exact_as_int64():
    rows_in_all = 60_000_000
    held = store(formats.zeros((rows_in_all, 1), "row_sparse"))
    held.push("w", RowSparse(np.ones((1, 1), np.float32), [59_000_001], (rows_in_all, 1)))
    assert held.row_sparse_pull("w", np.array([59_000_001])).values.tolist() == [[1]]
    with pytest.raises(StoreError, match=r"up to which float32 is exact. Pass int64"):
        held.row_sparse_pull("w", np.float32([59_000_001]))


@pytest.mark.parametrize("stored", ["dense", "row_sparse"])
@pytest.mark.parametrize("ids", [[6], [-1], [0, 2**40], [0.5], [np.nan], ["1"]])
def test_row_numbers_that_are_none_are_refused(stored, ids):
    held = store(formats.to_format(rows([1]), stored))
    with pytest.raises(StoreError, match="row_sparse_pull of 'w'"):
        held.row_sparse_pull("w", ids)


@pytest.mark.parametrize("stored", ["dense", "row_sparse"])
def test_an_optimizer_on_the_store_makes_a_push_a_step(stored):
    start = rows(range(6))
    held, weight = store(formats.to_format(start, stored)), formats.to_format(start, stored)
    held.set_optimizer(Updater("momentum", learning_rate=0.5))
    alone = Updater("momentum", learning_rate=0.5)
    for _ in range(3):
        parts = [rows([0, 4]), rows([4, 5])]
        held.push("w", parts)
        summed = RowSparse.from_dense(parts[0].toarray() + parts[1].toarray())
        alone.update({"w": weight}, {"w": RowSparse(summed.toarray()[[0, 4, 5]], [0, 4, 5], (6, 2))})
    came = held.pull("w")
    assert formats.format_of(came) == stored
    np.testing.assert_array_equal(dense(came), dense(weight))


def test_a_push_to_several_keys_is_one_step():
    """Which clipping by the norm of all gradients needs."""
    held = LocalStore()
    for key in ("a", "b"):
        held.init(key, np.zeros(2, np.float32))
    held.set_optimizer(Updater("sgd", learning_rate=1, clip_global_norm=1))
    held.push_all({"a": np.float32([3, 0]), "b": [np.float32([0, 1]), np.float32([0, 3])]})
    np.testing.assert_allclose(held.pull("a"), [-0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(held.pull("b"), [0, -0.8], rtol=1e-6)


@pytest.mark.parametrize("keys", [("w", "7"), (7, 3)])
def test_a_store_that_was_saved_goes_on_with_the_same_bits(tmp_path, keys):
    def fresh() -> LocalStore:
        made = LocalStore()
        made.set_optimizer(Updater("adam", learning_rate=0.1))
        return made

    pushes = [[rows([0, 2], dtype=np.float64), RNG.standard_normal((6, 2))] for _ in range(6)]
    through, stopped, again = fresh(), fresh(), fresh()
    for made in (through, stopped):
        made.init(keys[0], formats.to_format(np.ones((6, 2)), "row_sparse"))
        made.init(keys[1], np.ones((6, 2)))
    for part in pushes:
        through.push_all(dict(zip(keys, part, strict=True)))
    for part in pushes[:3]:
        stopped.push_all(dict(zip(keys, part, strict=True)))
    stopped.save(tmp_path / "store.npz")
    again.load(tmp_path / "store.npz")
    assert again.keys() == list(keys)
    for part in pushes[3:]:
        again.push_all(dict(zip(keys, part, strict=True)))
    assert again.pull(keys[0]) == through.pull(keys[0])
    np.testing.assert_array_equal(again.pull(keys[1]), through.pull(keys[1]))


def test_nothing_changes_where_one_of_several_pushes_is_refused():
    held = LocalStore()
    held.init("a", np.zeros(2, np.float32))
    held.init("b", np.zeros(2, np.float32))
    for wrong in ({"a": np.ones(2, np.float32), "b": np.ones(3, np.float32)}, {"a": np.ones(2, np.float32), "c": 1}):
        with pytest.raises(StoreError):
            held.push_all(wrong)
    np.testing.assert_array_equal(held.pull("a"), [0, 0])


def numbered() -> LocalStore:
    return store(np.zeros(2, np.float32), key=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.init("w", np.zeros(2)), "The key 'w' is set already; push changes its value"),
        (lambda s: s.init(3, np.zeros(2)), "The key 3 came and 'w' is set; all keys are strings, or all are numbers"),
        (lambda s: numbered().init("w", np.zeros(2)), "The key 'w' came and 3 is set"),
        (lambda s: s.init(1.5, np.zeros(2)), "The key 1.5 is a float; keys are strings, or whole numbers"),
        (lambda s: s.init(True, np.zeros(2)), "The key True is a bool"),
        (
            lambda s: s.init("c", sp.csr_array((2, 2), dtype=np.float32)),
            "'c' was given a csr array; a store holds dense",
        ),
        (lambda s: s.push("v", np.zeros(2)), r"Unknown key 'v'.*Expected one of: w. Call init\('v', value\) first"),
        (lambda s: s.pull("v"), "Unknown key 'v'"),
        (lambda s: s.row_sparse_pull("v", [0]), "Unknown key 'v'"),
        (lambda s: LocalStore().pull("v"), "Expected one of: none"),
        (lambda s: s.push("w", []), "Nothing was pushed to 'w'"),
        (lambda s: s.push("w", rows([0], (7, 2))), r"float32 \(7, 2\) was pushed to 'w', which is float32 \(6, 2\)"),
        (lambda s: s.push("w", rows([0], dtype=np.float64)), r"float64 \(6, 2\) was pushed to 'w', which is float32"),
        (lambda s: s.push("w", sp.csr_array((6, 2), dtype=np.float32)), "'w' was given a csr array"),
        (lambda s: s.set_optimizer("sgd"), "An optimizer is an optimizers.Updater; a str came"),
        (lambda s: s.load_state_dict({"w": np.zeros(2)}), "names begin with 'value:' or 'optimizer:'"),
        (lambda s: s.load_state_dict({"optimizer:w": np.zeros(2)}), r"call set_optimizer\(updater\) first"),
        (lambda s: store(np.array(2.0)).row_sparse_pull("w", [0]), r"has no rows; call pull\('w'\)"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(call, message):
    held = store(rows([1, 2]))
    before = held.pull("w")
    with pytest.raises(StoreError, match=message):
        call(held)
    assert held.pull("w") == before
