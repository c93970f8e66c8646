"""`wb.sweep`, `wb.open`, `wb.runs`, `wb.compare` and what their results show."""

import io
import re
import threading

import pandas as pd
import pytest

import workbench as wb
from tests.support.shown import assert_shown
from workbench.api import loading, sweeping
from workbench.sweeps import run_folder


def test_sweep_x_y_density_format(result):
    assert set(result.frame["format"]) == {"csr", "dense"}
    assert set(result.trials["density"]) == {0.02, 0.1}
    assert (result.folder / "X.sparse").is_dir()


@pytest.mark.usefixtures("sweeps_here")
@pytest.mark.parametrize("name", ["uniform", pytest.param("power_law", marks=pytest.mark.exhaustive)])
def test_a_generated_data_set_is_measured_with_its_own_rows_and_classes(name, tmp_path, monkeypatch):
    """Trials generated a set of that name anew, with 16,384 rows and 2,048 features."""
    monkeypatch.chdir(tmp_path)
    made = wb.load(name, rows=200, features=30, density=0.2, classes=3)
    one = {
        "format": "csr",
        "update": "lazy",
        "execution": "step",
        "storage": "same",
        "rounds": 1,
        "trial_seconds": 0.01,
    }
    trials = wb.sweep(made, density=0.1, **one).trials
    assert set(trials["rows_total"]) == {200}
    assert set(trials["features"].dropna()) <= {30}
    assert set(trials["width"]) == {3}
    assert not loading.receive(made).settings
    assert not loading.receive(name, reading={"rows": 200}).settings
    assert loading.receive(name).settings == {"dataset": name}


@pytest.mark.usefixtures("sweeps_here")
def test_sweep_spec_toml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(
        'name = "tiny"\n[axes]\ndataset = "uniform"\nrows = 200\nfeatures = 64\nformat = ["csr", "dense"]\n'
        "[measure]\nrounds = 1\ntrial_seconds = 0.01\n"
    )
    made = wb.sweep("spec.toml")
    assert made.folder.name == "tiny"
    assert len(made.trials)
    with pytest.raises(ValueError, match="Both a spec and density"):
        wb.sweep("spec.toml", density=0.1)


def test_result_frame_has_one_line_a_configuration(result):
    frame = result.frame
    assert frame["key"].is_unique
    assert {"ratio", "ratio_low", "ratio_high", "verdict"} <= set(frame.columns)
    allowed = {"faster", "slower", "equivalent", "inconclusive", "baseline"}
    assert set(frame["verdict"]) <= allowed
    assert (frame["verdict"] == "baseline").sum() == 2  # one at each density
    known = frame.dropna(subset=["ratio"])
    assert (known["ratio_low"] <= known["ratio"]).all()


def test_result_trials_has_all_columns_of_all_trials(result):
    assert {"seconds_step", "machine", "round", "key"} <= set(result.trials.columns)


def test_result_verdict(result):
    assert str(result.verdict).strip()
    assert "verdict" in assert_shown(result.verdict, most=None)
    assert_shown(result)
    assert "Finished" in str(result)


def test_result_plot_returns_axes(result):
    import matplotlib.pyplot as plt

    axes = result.plot()
    assert axes.get_xlabel()
    assert result.plot("memory").figure is not axes.figure
    assert result.plot("memory", figure=axes.figure).figure is axes.figure
    plt.close("all")


def test_a_chart_takes_the_place_of_an_axes_of_a_grid_or_a_size(result):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    assert result.plot(ax=left, candidates="best").get_figure(root=True) is figure
    assert right in figure.axes
    assert left not in figure.axes
    assert result.plot(size=(6, 4)).figure.get_size_inches().tolist() == [6, 4]
    with pytest.raises(ValueError, match=r"expected an Axes of a grid.\nType fig, axes = plt.subplots"):
        result.plot(ax=plt.figure().add_axes((0, 0, 1, 1)))
    plt.close("all")


def test_a_result_is_written_for_a_paper_with_where_it_was_measured(result, tmp_path):
    assert pd.read_csv(io.StringIO(result.to_csv())).shape == result.frame.shape
    assert result.to_csv(tmp_path / "rows.csv") is None
    assert (tmp_path / "rows.csv").read_text() == result.to_csv()
    versions = result.trials["versions"].iloc[0]
    assert f"numpy {versions['numpy']}" in result.citation
    text = result.to_latex()
    assert text.count(r"\\") == len(result.frame) + 1
    assert r"\toprule" in text
    assert f"numpy {versions['numpy']}" in text


def test_a_result_without_a_trial_takes_a_line_and_not_the_height_of_a_chart(tmp_path):
    import matplotlib.pyplot as plt

    axes = wb.Result(tmp_path).plot()
    assert axes.figure.get_figheight() < 1
    assert [text.get_text() for text in axes.texts] == ["Nothing was measured yet."]
    plt.close("all")


def test_the_picture_below_a_result_does_not_repeat_its_verdict(result):
    shown = result._repr_html_()
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", shown)
    assert "<img" in shown
    visible = re.sub(r"<[^>]*>", " ", shown)
    assert captions
    assert all(visible.count(caption) == 1 for caption in captions)


def test_result_report(result, tmp_path):
    assert result.report(tmp_path / "x.html").read_text("utf-8").startswith("<!")


def test_open_and_runs(result, monkeypatch):
    root = result.folder.parents[1]
    monkeypatch.chdir(root)
    assert wb.open(f"runs/{result.folder.name}").frame.equals(result.frame)
    assert len(wb.open(result.folder.name).trials) == len(result.trials)
    assert wb.runs()["run"].tolist() == [f"runs/{result.folder.name}"]
    with pytest.raises(FileNotFoundError, match=r"There is no run 'memry'; there are: runs/memory.*\nType wb\."):
        wb.open("memry")


def test_compare_a_b(result):
    found = wb.compare(result, result.folder)
    assert str(found)
    assert found.is_worse is False
    assert_shown(found)
    with pytest.raises(TypeError, match="is no run; expected a Result"):
        wb.compare(result, 3)
    with pytest.raises(TypeError, match="None is no run; expected a Result"):
        wb.open(None)


def test_a_result_of_a_run_that_is_still_measured_says_so(result, tmp_path):
    state = run_folder.read_progress(result.folder)
    other = tmp_path / "run"
    other.mkdir()
    state.state, state.done, state.total = "running", 1, 9
    state.pid = __import__("os").getpid()
    run_folder.write_progress(other, state)
    (other / "trials.jsonl").touch()
    made = wb.open(other)
    assert made.is_running
    assert "Still measured: 1 of 9 trials. Type result.refresh()" in repr(made)
    assert made.refresh() is made


def test_ctrl_c_keeps_what_there_is(monkeypatch, tmp_path):
    stopped, states = [], iter([KeyboardInterrupt(), None])

    class Interrupted:
        def __next__(self):
            value = next(states)
            if isinstance(value, BaseException):
                raise value
            raise StopIteration

    monkeypatch.setattr(run_folder, "watch_progress", lambda folder: Interrupted())
    monkeypatch.setattr(run_folder, "stop_run", stopped.append)
    sweeping.follow("Measuring", tmp_path, 0.0, 0.0)
    assert stopped == [tmp_path]


def test_without_waiting_a_result_comes_at_once_and_can_be_stopped(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = wb.sweep(*data, density=0.1, rounds=1, wait=False)
    assert made.is_running
    made.stop()
    watcher = threading.Thread(target=lambda: list(run_folder.watch_progress(made.folder)))
    watcher.start()
    watcher.join(60)
    assert made.refresh().is_running is False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"densty": 0.1}, "Unknown setting 'densty'. Did you mean 'density'"),
        ({"density": 2}, "density"),
        ({"density": "much"}, "'much' is not a number"),
        ({"format": "dense"}, 'always measured.\nType format=\\["csr", "dense"\\]'),
        ({"format": "crs"}, "Did you mean 'csr'"),
        ({"model": "logistc"}, "Did you mean 'logistic'"),
        ({"budget": 0}, "budget is 0; expected a number of seconds"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"budget": "60"}, "budget is '60'"),
        ({"width": {"a": 1}}, "expected one value or a list"),
        ({"rounds": 0}, "^rounds = 0: Input should be greater than or equal to 1"),
        ({"rounds": 30}, "^rounds = 30: Input should be less than or equal to 12"),
    ],
)
def test_bad_settings_are_refused(data, given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        wb.sweep(*data, **{"density": 0.1, **given})
    assert not list(tmp_path.glob("runs/*/progress.json"))
