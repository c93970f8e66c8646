"""Losses of `wb.train` while it runs: what is reported, where it is shown, and that the training stays the same."""

import io
import re
import sys

import IPython.display
import numpy as np
import pytest

import workbench as wb
from workbench.api import live_losses
from workbench.watching import watched_by

RNG = np.random.default_rng(0)
X = RNG.random((150, 6)).astype(np.float32)
CLASSES, NUMBERS = (X[:, 0] > 0.5).astype(int), X @ np.arange(6.0) + 0.1
STEPS = {"optimizer": "adagrad", "max_iter": 5, "random_state": 0}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    for name in ("SECONDS_HIDDEN", "SECONDS_BETWEEN"):
        monkeypatch.setattr(live_losses, name, 0.0)
    for shown in (live_losses._InLog, live_losses._InTerminal, live_losses._InNotebook):
        monkeypatch.setattr(shown, "seconds_between", 0.0)


def reports_of(*data, **parameters):
    reached = []
    with watched_by(reached.append):
        wb.train(*data, progress=False, **parameters)
    return reached


@pytest.mark.parametrize(
    ("y", "parameters", "stages", "names"),
    [
        (CLASSES, STEPS, {"epoch"}, {"loss"}),
        (CLASSES, {**STEPS, "early_stopping": True}, {"epoch"}, {"loss", "held-out score"}),
        (CLASSES, {"random_state": 0}, {"search, pass", "pass"}, {"held-out loss", "loss and penalty"}),
        (NUMBERS, {"search": 0}, {"pass"}, {"loss and penalty"}),
        (
            CLASSES,
            {"execution": "dual", "optimizer": "sgd", "lazy": "exact", "alpha": 0.01, "max_iter": 200},
            {"epoch", "pass"},
            {"loss", "loss and penalty"},
        ),
    ],
)
def test_losses_are_told_of_each_way_to_train(y, parameters, stages, names):
    reached = reports_of(X, y, **parameters)
    assert {one.stage for one in reached} == stages
    assert {name for one in reached for name in one.losses} == names
    assert all(np.isfinite(value) for one in reached for value in one.losses.values())


def test_each_epoch_is_told_with_its_loss_and_parts_of_long_ones_before(monkeypatch):
    assert [one.done for one in reports_of(X, CLASSES, **STEPS)] == [1, 2, 3, 4, 5]
    for name in ("SECONDS_CALL", "SECONDS_EPOCHS"):
        monkeypatch.setattr(f"workbench.training.epoch_calls.{name}", 1e-9)
    parts = reports_of(X, CLASSES, **{**STEPS, "batch_rows": 50})
    assert [one.done for one in parts] == pytest.approx([k / 3 for k in range(1, 16)])
    assert parts[-1].losses["loss"] < parts[0].losses["loss"]


@pytest.mark.parametrize(
    "parameters", [{"search": 0}, {"random_state": 0}, {**STEPS, "model": "factorization_machine"}]
)
def test_losses_of_numbers_are_those_of_the_targets_as_they_came(parameters):
    one, other = (reports_of(X, times * NUMBERS, **parameters)[-1].losses for times in (1.0, 1000.0))
    assert {name: value * 1e6 for name, value in one.items()} == pytest.approx(other, rel=0.5)


@pytest.mark.parametrize("parameters", [STEPS, {**STEPS, "early_stopping": True}, {"random_state": 0}])
def test_the_model_is_the_same_whoever_watches(parameters, capsys):
    shown, hidden = (wb.train(X, CLASSES, progress=shown, **parameters) for shown in (True, False))
    np.testing.assert_array_equal(shown.coef_, hidden.coef_)


def test_a_log_has_lines_and_none_with_progress_off(capsys, monkeypatch):
    wb.train(X, CLASSES, **STEPS)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("Epoch")]
    assert re.fullmatch(r"Epoch 1 of 5, loss 0\.\d+; 0 s, about \d+ s left", lines[0])
    assert (len(lines), out) == (5, "")
    wb.train(X, CLASSES, progress=False, **STEPS)
    assert "Epoch" not in "".join(capsys.readouterr())
    monkeypatch.setattr(live_losses, "SECONDS_HIDDEN", 1e9)
    wb.train(X, CLASSES, **STEPS)
    assert "Epoch" not in "".join(capsys.readouterr()), "short trainings show nothing"


def test_a_terminal_has_a_bar_on_standard_error_which_goes_away(monkeypatch, capsys):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    wb.train(X, CLASSES, **STEPS)
    assert "Epoch 1 of 5" in terminal.getvalue()
    after = terminal.getvalue().rpartition("Epoch 5 of 5")[2]
    assert "\x1b[2K" in after, "the line is cleared"
    assert "Epoch" not in capsys.readouterr().out


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_notebook_has_one_line_of_output_which_is_empty_in_the_end(error, monkeypatch, capsys):
    states = []

    class Handle:
        def update(self, shown):
            states.append(shown.data)
            if error and len(states) == 3:
                raise error

    def display(shown, display_id):
        states.append(shown.data)
        return Handle()

    monkeypatch.setattr(live_losses, "in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", display)
    if error:
        with pytest.raises(error):
            wb.train(X, CLASSES, **STEPS)
    else:
        wb.train(X, CLASSES, **STEPS)
    assert re.match(r'<p role="status"><progress value="0\.200".*Epoch 1 of 5, loss ', states[0])
    assert (len(states), states[-1]) == (4 if error else 6, "")


def test_streams_and_recommenders_are_told_too(tmp_path, capsys):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{k % 2} {1 + k % 2}:1 3:1\n" for k in range(400)))
    last = reports_of(str(path), stream=True, passes=2)[-1]
    assert (last.stage, int(last.done), set(last.losses)) == ("pass 2, row", 400, {"loss", "held-out loss"})
    reached = reports_of(np.kron(np.eye(2), np.ones((9, 8))), model="als", iterations=3, factors=2, regularization=0.1)
    assert [(one.stage, one.done, one.most) for one in reached][-3:] == [("iteration", k, 3) for k in (1, 2, 3)]
