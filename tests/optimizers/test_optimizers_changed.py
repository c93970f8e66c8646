"""What changes between steps: options, weights put in place of others, index arrays written to."""

import numpy as np
import pytest

from tests.optimizers.test_optimizers_updater import D, N, assert_near, make, sparse_gradients, weights_of
from workbench.formats import FormatError, RowSparse, to_format
from workbench.optimizers import Multiplier, OptimizerError, Updater

RULES = ("sgd", "momentum", "adam", "rmsprop", "ftrl", "adagrad")


def train_with_changes(name, lazy, change, held="dense", at=6):
    updater, weights = make(name, lazy, decay=0.0), to_format(weights_of(), held)
    for number, gradient in enumerate(sparse_gradients(12)):
        if number == at:
            updater.catch_up({"w": weights})
            change(updater)
        updater.update({"w": weights}, {"w": gradient})
    updater.catch_up({"w": weights})
    return [x if isinstance(x, np.ndarray) else x.toarray() for x in (weights, *updater.states["w"])]


CHANGES = {
    "decay": lambda u: u.options.update(decay=0.3),
    "learning_rate": lambda u: u.options.update(learning_rate=0.03),
    "multiplier": lambda u: u.multipliers.update(w=Multiplier(0.5, 2.0)),
    "clip": lambda u: u.options.update(clip=0.01),
}


@pytest.mark.covering
@pytest.mark.parametrize("held", ["dense", "row_sparse"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", RULES)
def test_options_that_change_between_steps_are_obeyed(name, change, held):
    expected = train_with_changes(name, "off", CHANGES[change], held)
    assert_near(train_with_changes(name, "exact", CHANGES[change], held), expected)
    if (name, change) != ("ftrl", "clip"):
        same = train_with_changes(name, "off", lambda u: None, held)
        changed = any(np.abs(a - b).max() > 1e-6 for a, b in zip(same, expected, strict=True))
        assert changed or change == "multiplier" or name == "ftrl"


def test_decay_that_is_changed_after_the_first_step_acts_in_the_second():
    updater, weights, nothing = Updater("sgd", learning_rate=0.5), np.ones((2, 2)), np.zeros((2, 2))
    updater.update({"w": weights}, {"w": nothing})
    updater.options["decay"] = 1.0
    updater.update({"w": weights}, {"w": nothing})
    assert weights.tolist() == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    "change", [{"decay": "x"}, {"decay": float("nan")}, {"decays": 1.0}, {"learning_rate": 10**400}, {"clip": -1}]
)
def test_options_that_cannot_be_are_refused_at_the_next_step(change):
    updater, weights = make("sgd"), weights_of()
    updater.update({"w": weights}, {"w": sparse_gradients(1)[0]})
    before, good = weights.copy(), dict(updater.options)
    updater.options.update(change)
    for call in (lambda: updater.update({"w": weights}, {"w": sparse_gradients(1)[0]}), lambda: updater.settings):
        with pytest.raises(OptimizerError):
            call()
    assert np.array_equal(weights, before)
    updater.options.clear()
    updater.options.update(good)
    updater.update({"w": weights}, {"w": sparse_gradients(1)[0]})
    assert updater.steps == {"w": 2}


def test_another_way_to_catch_up_is_refused_while_rows_lag_and_taken_after():
    updater, weights = make("rmsprop", "exact", decay=0.0), weights_of()
    gradient = RowSparse(np.ones((1, N)), [2], (D, N))
    updater.update({"w": weights}, {"w": gradient})
    updater.options["decay"] = 0.1
    with pytest.raises(OptimizerError, match="rows of w catch up in another way"):
        updater.update({"w": weights}, {"w": gradient})
    updater.options["decay"] = 0.0
    updater.catch_up({"w": weights})
    updater.options["decay"] = 0.1
    updater.update({"w": weights}, {"w": gradient})
    assert updater.parameters["w"].missed.way == "step_by_step"


@pytest.mark.parametrize("name", ["sgd", "momentum"])
def test_state_saved_after_decay_was_switched_off_is_taken_by_an_updater_without(name):
    updater, weights = make(name, "exact", decay=0.1), weights_of()
    updater.update({"w": weights}, {"w": sparse_gradients(1)[0]})
    updater.options["decay"] = 0.0
    updater.update({"w": weights}, {"w": sparse_gradients(1)[0]})
    other, same = Updater.from_settings(updater.settings), weights.copy()
    other.load_state_dict(updater.state_dict())
    for one, array in ((updater, weights), (other, same)):
        one.update({"w": array}, {"w": sparse_gradients(3)[2]})
        one.catch_up({"w": array})
    np.testing.assert_array_equal(weights, same)


# Weights put in place of others


@pytest.mark.parametrize("held", ["dense", "row_sparse"])
@pytest.mark.parametrize("name", RULES)
def test_weights_in_place_of_others_while_rows_lag_are_refused_or_announced(name, held):
    expected, weights = make(name, "off"), to_format(weights_of(), held)
    for gradient in sparse_gradients(3):
        expected.update({"w": weights}, {"w": gradient})
    new = weights_of()[::-1].copy()
    dense = new.copy()
    expected.update({"w": to_format(dense, held)}, {"w": to_format(np.zeros((D, N)), held)})
    updater, old = make(name, "exact"), to_format(weights_of(), held)
    for gradient in sparse_gradients(3):
        updater.update({"w": old}, {"w": gradient})
    ours = to_format(new.copy(), held)
    for call in (updater.update, lambda w, g: updater.catch_up(w)):
        with pytest.raises(OptimizerError, match=r"weights w are another array .* Call catch_up .* or replace\(\)"):
            call({"w": ours}, {"w": sparse_gradients(1)[0]})
    np.testing.assert_array_equal(ours if held == "dense" else ours.toarray(), new)
    updater.replace({"w": ours})
    updater.update({"w": ours}, {"w": to_format(np.zeros((D, N)), held)})
    updater.catch_up({"w": ours})
    for one, other in zip(updater.states["w"], expected.states["w"], strict=True):
        dense_of = [x if isinstance(x, np.ndarray) else x.toarray() for x in (one, other)]
        np.testing.assert_allclose(*dense_of, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_weights_in_place_of_others_that_were_caught_up_are_taken(name):
    updater, weights = make(name, "exact"), weights_of()
    updater.update({"w": weights}, {"w": sparse_gradients(1)[0]})
    updater.catch_up({"w": weights})
    other = np.ones((D, N))
    updater.catch_up({"w": other})
    np.testing.assert_array_equal(other, np.ones((D, N)))


def test_a_view_of_the_same_memory_is_the_same_weights():
    updater, weights = make("momentum", "exact"), weights_of()
    for gradient in sparse_gradients(6):
        updater.update({"w": weights[:]}, {"w": gradient})
    updater.catch_up({"w": weights})
    expected, dense = make("momentum", "off"), weights_of()
    for gradient in sparse_gradients(6):
        expected.update({"w": dense}, {"w": gradient})
    np.testing.assert_allclose(weights, dense, rtol=1e-11)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_rows_that_came_with_a_loaded_state_have_missed_nothing(name):
    """A state whose weights hold rows that it does not know: their last step is not read before the record."""
    weights = RowSparse(np.ones((2, N)), [0, 1], (D, N))
    updater = make(name, "exact")
    for row in (0, 1, 0):
        updater.update({"w": weights}, {"w": RowSparse(np.ones((1, N)), [row], (D, N))})
    updater.catch_up({"w": weights})
    updater.update({"w": weights}, {"w": RowSparse(np.ones((1, N)), [1], (D, N))})
    other, more = make(name, "exact"), RowSparse(np.full((3, N), 9.0), [1, 4, 5], (D, N))
    other.load_state_dict(updater.state_dict())
    other.catch_up({"w": more})
    assert more.toarray()[[4, 5]].tolist() == np.full((2, N), 9.0).tolist()


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_rows_that_only_states_hold_have_missed_nothing_before_they_are_weights_again(name):
    """Their states act on the zeros that stand for rows that are not stored: from then on, not from the first step."""
    exact, off, trained = make(name, "exact", decay=0.0), make(name, "off", decay=0.0), []
    first, later = RowSparse(np.ones((3, N)), [0, 1, 2], (D, N)), RowSparse(np.ones((1, N)), [0], (D, N))
    for updater in (exact, off):
        weights = to_format(np.zeros((D, N)), "row_sparse")
        for _ in range(3):
            updater.update({"w": weights}, {"w": first})
        updater.catch_up({"w": weights})
        weights = RowSparse(weights.values[:2], [0, 1], (D, N))
        for _ in range(4):
            updater.update({"w": weights}, {"w": later})
        updater.catch_up({"w": weights})
        trained.append(weights.toarray())
    np.testing.assert_allclose(*trained, rtol=1e-11, atol=1e-13)


# Index arrays that are written to


def test_gradient_whose_indices_were_written_to_is_refused():
    indices = np.array([0, 1, 2])
    gradient, weights = RowSparse(np.ones((3, N)), indices, (D, N)), weights_of()
    indices[2] = D + 3
    updater = make("sgd")
    with pytest.raises(OptimizerError, match=r"The gradient of w: indices\[2\] is 15, out of range"):
        updater.update({"w": weights}, {"w": gradient})
    assert np.array_equal(weights, weights_of())
    assert updater.steps == {}


@pytest.mark.parametrize("lazy", ["off", "on", "exact"])
def test_weights_whose_indices_were_written_to_are_refused_at_first_and_out_of_reach_after(lazy):
    indices = np.array([0, 1, 2])
    weights = RowSparse(np.ones((3, N)), indices, (D, N))
    gradient = RowSparse(np.ones((2, N)), [0, 2], (D, N))
    indices[2] = D + 3
    updater = make("momentum", lazy)
    with pytest.raises(FormatError, match=r"indices\[2\] is 15, out of range"):
        updater.update({"w": weights}, {"w": gradient})
    indices[2] = 2
    updater.update({"w": weights}, {"w": gradient})
    indices[2] = D + 3
    updater.update({"w": weights}, {"w": gradient})
    assert weights.indices.max() < D
    with pytest.raises(ValueError, match="read-only"):
        weights.indices[0] = D
