"""`wb.advise` and its answer; `wb.lab` outside a notebook."""

import numpy as np
import pytest

import workbench as wb
from tests.support.shown import assert_shown
from tests.support.sweeps import supervised_here


def test_advise_x_y(advice):
    assert advice.verdict in ("sparse", "dense", "level", "inconclusive", "none")
    assert advice.best.get("format") in ("csr", "csc", "coo", "dense") or advice.verdict == "none"
    assert "verdict" in advice.table.columns
    assert "verdict" in assert_shown(advice)
    assert repr(advice).startswith("Advice: ")
    assert "Train it with:" in str(advice)


def test_command_is_none_for_data_in_memory(advice):
    assert advice.command is None


def test_code_runs_and_trains_so(advice, data):
    x, y = data
    names: dict = {"X": x, "y": y}
    exec(advice.code, names)
    assert names["model"].predict(x).shape == (300,)


@pytest.mark.parametrize(
    ("best", "expected"),
    [
        ({"format": "dense", "update": "standard"}, {"format": "dense"}),
        ({"format": "dense", "update": "standard", "storage": "csr"}, {"format": "dense", "storage": "csr"}),
        ({"format": "csr", "update": "lazy"}, {"lazy": "on"}),
        ({"format": "csc", "update": "standard"}, {"format": "csc", "lazy": "off"}),
    ],
)
def test_an_estimator_trains_in_the_format_of_the_best(advice, data, best, expected):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice, "best", {"batch_rows": 64, **best})
        parameters = advice.parameters
        assert {name: parameters[name] for name in ("format", "storage", "lazy") if name in parameters} == expected
        assert all(f"{name}={value!r}" in advice.code for name, value in expected.items())
        setup = advice.fit(max_iter=1, random_state=0)._learner.setup
    assert (setup.format, setup.storage) == (best["format"], best.get("storage", "same"))
    assert setup.update == best["update"]


def test_fit_returns_a_trained_estimator(advice, data):
    model = advice.fit(random_state=0)
    assert isinstance(model, wb.SparseClassifier)
    assert np.mean(model.predict(data[0]) == data[1]) > 0.6


def test_plot_and_report(advice, tmp_path):
    import matplotlib.pyplot as plt

    assert advice.plot() is not None
    plt.close("all")
    assert advice.report(tmp_path / "x.html").exists()


@pytest.fixture(scope="module")
def predicted(data, tmp_path_factory):
    """An advice that had no time to start a trial."""
    from workbench.advising import advising

    with pytest.MonkeyPatch.context() as patch, supervised_here():
        patch.setattr(advising, "SECONDS_START", 1e9)
        patch.setattr(advising, "SECONDS_HERE", 1e9)
        return wb.advise(*data, budget=5, run=tmp_path_factory.mktemp("predicted") / "run")


def test_without_a_trial_what_was_predicted_is_shown(predicted):
    import matplotlib.pyplot as plt

    assert "predicted" in repr(predicted)
    assert "predicted" in predicted._repr_html_()
    assert not len(predicted.table)
    assert predicted.plot() is not None
    plt.close("all")


@pytest.mark.parametrize("name", [None, "x.html", "x.md"])
def test_without_a_trial_a_report_says_what_was_predicted(predicted, tmp_path, name):
    assert "predicted" in predicted.report(name and tmp_path / name).read_text()


def test_without_a_trial_a_table_has_no_rows(predicted, tmp_path):
    assert len(predicted.report(tmp_path / "x.csv").read_text().splitlines()) == 1


@pytest.mark.parametrize("budget", [1, float("nan"), float("inf"), "60", True])
def test_bad_budgets_are_refused(data, budget):
    with pytest.raises(ValueError, match=r"expected 5 or more seconds, 60 is usual.\nType budget=60"):
        wb.advise(*data, budget=budget)


def test_settings_are_named_as_they_are_typed(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^model = 'logistc'.*Did you mean 'logistic'"):
        wb.advise(*data, model="logistc")


def test_lab_outside_a_notebook_says_how_to_open_one(data, capsys):
    assert wb.lab(*data) is None
    assert "Type workbench lab in a shell" in capsys.readouterr().out
